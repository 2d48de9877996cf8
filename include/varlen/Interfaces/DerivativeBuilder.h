//===- DerivativeBuilder.h - What derivatives are built with ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_DERIVATIVEBUILDER_H
#define VARLEN_INTERFACES_DERIVATIVEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::varlen {

/// Whether values of the type have a cotangent and a tangent: a float, or a
/// ranked tensor or vector of floats.
bool hasCotangent(Type type);

/// What the rules of both modes build with, and which values of straight-line
/// code vary with the sources.
class DerivativeBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  virtual ~DerivativeBuilder() = default;

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// Whether a value depends differentiably on a source.
  bool isVaried(Value value) const { return varied.contains(value); }

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

protected:
  /// Whether the mode has a rule for the operation.
  virtual bool hasRule(Operation *op) const = 0;
  /// What the rule of the operation, if there is one, says of an operand.
  virtual bool isDifferentiable(OpOperand &operand) const = 0;
  virtual StringRef getMode() const = 0;

  /// That a derivative can pass an operation; if not, the error is on it.
  LogicalResult verifyCanPass(Operation *op);

private:
  /// Whether something varied may have been written to memory.
  bool markResults(ArrayRef<Operation *> ops, bool isMemoryVaried);

  llvm::DenseSet<Value> varied;
  /// Operations that may read something varied from memory.
  llvm::DenseSet<Operation *> readers;
};

/// A value that has the shape of `value` and is defined before it, such as the
/// destination of its producer; null if none is known. For a value that a loop
/// carries it is the initial value, if the loop preserves the shape.
Value getEarlierOfSameShape(Value value);

} // namespace mlir::varlen

#endif // VARLEN_INTERFACES_DERIVATIVEBUILDER_H
