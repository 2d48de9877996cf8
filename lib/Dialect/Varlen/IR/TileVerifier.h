//===- TileVerifier.h - Checks of operations on tiles -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifiers of steps and of operations on the state of rows share.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_TILEVERIFIER_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_TILEVERIFIER_H

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

namespace mlir::varlen::detail {

inline Type elementOf(Value value) { return shaped(value).getElementType(); }

/// What most of several extents that must agree say, the first of them if they
/// are equally many: the odd one out is then the one to complain about.
int64_t getCommonExtent(ArrayRef<int64_t> extents);

/// "4 x ?".
std::string toString(ArrayRef<int64_t> shape);

/// That the scale of `op` is positive and finite.
LogicalResult verifyScale(Operation *op, const APFloat &scale);

/// That `states` have one compute type, and `inputs` types that accumulate in
/// it; `stateNames` lists the former for the message, as in "acc, m and l".
LogicalResult verifyElements(Operation *op, StringRef stateNames,
                             ArrayRef<NamedValue> states,
                             ArrayRef<NamedValue> inputs);

LogicalResult verifySameElement(Operation *op, NamedValue a, NamedValue b);

/// That `tile`, if there is one, has `shape`, whose extents mean `meaning`.
LogicalResult verifyTile(Operation *op, Orientation orientation,
                         NamedValue tile, StringRef meaning,
                         ArrayRef<int64_t> shape);

/// The same for what has one value per query.
LogicalResult verifyRowStats(Operation *op, Orientation orientation,
                             ArrayRef<NamedValue> tiles, int64_t queries);

} // namespace mlir::varlen::detail

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_TILEVERIFIER_H
