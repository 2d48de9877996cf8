//===- GenericRule.h - The rule of linalg.generic ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H
#define VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H

#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// Pulls the cotangents of `results`, which are what `op` computes, back to its
/// operands and to what its body captures.
LogicalResult pullBackGeneric(linalg::GenericOp op, ValueRange results,
                              VJPBuilder &b);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H
