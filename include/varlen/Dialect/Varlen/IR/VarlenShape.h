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

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// varlen.attn and varlen.attn_grad
//===----------------------------------------------------------------------===//

/// Tq x Hq x Dv from q (Tq x Hq x D) and v (Tk x Hkv x Dv).
SmallVector<int64_t> inferOutShape(ShapedType q, ShapedType v);

/// Hq x Tq from q (Tq x Hq x D).
SmallVector<int64_t> inferLseShape(ShapedType q);

/// The types of out and lse in the tensor form.
RankedTensorType inferOutType(ShapedType q, ShapedType v);
RankedTensorType inferLseType(ShapedType q);

/// The types of dq, dk, dv and, with a sink, dsink in the tensor form: those of
/// q, k and v, and Hq of the compute type.
SmallVector<RankedTensorType> inferGradientTypes(ShapedType q, ShapedType k,
                                                 ShapedType v, bool hasSink);

/// The type of products, sums and lse for element type `type`: f64 for f64,
/// else f32.
FloatType getComputeType(Type type);

//===----------------------------------------------------------------------===//
// varlen.online_attn, varlen.online_attn_grad
//===----------------------------------------------------------------------===//

/// Shapes of the operands of a step. Queries, keys and values are rows in
/// either orientation.
SmallVector<int64_t> getQueryTileShape(const StepSizes &);
SmallVector<int64_t> getKeyTileShape(const StepSizes &);
SmallVector<int64_t> getValueTileShape(const StepSizes &);
/// acc; dout is one of `qk` in either orientation.
SmallVector<int64_t> getAccTileShape(Orientation, const StepSizes &);
/// A statistic, one number for each query: m, l, lse, delta and the limits.
SmallVector<int64_t> getRowStatShape(Orientation, const StepSizes &);

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The integers of a constant of rank 1; none if the value is not one.
std::optional<SmallVector<int64_t>> getConstantIntegers(Value value);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H
