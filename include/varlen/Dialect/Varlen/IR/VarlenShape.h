//===- VarlenShape.h - Shape functions of the varlen dialect ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Free functions from operand shapes to result shapes, for verifiers, builders
// and the C API alike.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H
#define VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H

#include "mlir/IR/BuiltinTypeInterfaces.h"

namespace mlir::varlen {

/// Tq x Hq x Dv from q (Tq x Hq x D) and v (Tk x Hkv x Dv).
SmallVector<int64_t> inferOutShape(ShapedType q, ShapedType v);

/// Hq x Tq from q (Tq x Hq x D).
SmallVector<int64_t> inferLseShape(ShapedType q);

/// The type of products, sums and lse for element type `type`: f64 for f64,
/// else f32.
FloatType getComputeType(Type type);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H
