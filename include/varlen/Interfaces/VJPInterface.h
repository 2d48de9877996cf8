//===- VJPInterface.h - Rules of differentiation ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_VJPINTERFACE_H
#define VARLEN_INTERFACES_VJPINTERFACE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::varlen {

class VJPBuilder;

/// Whether values of the type have a cotangent: a float, or a ranked tensor or
/// vector of floats.
bool hasCotangent(Type type);

} // namespace mlir::varlen

#include "varlen/Interfaces/VJPInterface.h.inc" // IWYU pragma: export

namespace mlir::varlen {

/// Reverse-mode differentiation of straight-line code: which values vary with
/// the sources, and the cotangents known so far. Rules build with it.
class VJPBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// The cotangent of `value`; null stands for zero.
  Value getCotangent(Value value) const { return cotangents.lookup(value); }
  /// The same, with a tensor or number of zeros in place of null.
  Value getCotangentOrZero(Value value);
  /// Whether the cotangent of `value` is needed. Operations that rules create
  /// for cotangents of other values are dead, and removed at the end.
  bool isVaried(Value value) const { return varied.contains(value); }
  /// Adds `cotangent` (null: nothing) to that of `value`.
  void accumulate(Value value, Value cotangent);
  /// The same for sums into a part of the cotangent: `add` takes the cotangent
  /// so far, zeros at first, and returns the new one.
  void accumulateInto(Value value, llvm::function_ref<Value(Value)> add);

  /// Elementwise arithmetic, on scalars, vectors and tensors.
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value div(Value lhs, Value rhs);
  Value neg(Value value);
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);
  /// `value` in every element of something with the type and shape of `like`.
  Value constantLike(Value like, double value);
  Value zerosLike(Value like) { return constantLike(like, 0); }
  /// A tensor of the shape of `like`, with `element` unless it is null, whose
  /// elements are not set.
  Value emptyLike(Value like, Type element = {});
  /// The extents of a tensor, computed without its elements where the
  /// operations that produce it can reify them.
  SmallVector<OpFoldResult> getSizes(Value tensor);

  //===--------------------------------------------------------------------===//
  // For passes that differentiate
  //===--------------------------------------------------------------------===//

  /// Marks `sources`, and the values that depend differentiably on them, as
  /// varied. `ops` are in the order of execution.
  void markVaried(ValueRange sources, ArrayRef<Operation *> ops);
  /// Applies the rules of `ops` from the last to the first. Fails, with an
  /// error, if a cotangent has to pass an operation without a rule.
  LogicalResult pullBack(ArrayRef<Operation *> ops);

private:
  /// Whether something varied may have been written to memory.
  bool markResults(ArrayRef<Operation *> ops, bool isMemoryVaried);

  llvm::DenseSet<Value> varied;
  /// Operations that may read something varied from memory.
  llvm::DenseSet<Operation *> readers;
  llvm::DenseMap<Value, Value> cotangents;
};

/// A value that has the shape of `value` and is defined before it, such as the
/// destination of its producer; null if none is known. For a value that a loop
/// carries it is the initial value, if the loop preserves the shape.
Value getEarlierOfSameShape(Value value);

} // namespace mlir::varlen

#endif // VARLEN_INTERFACES_VJPINTERFACE_H
