//===- VJPInterface.h - Rules of the reverse mode ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_VJPINTERFACE_H
#define VARLEN_INTERFACES_VJPINTERFACE_H

#include "varlen/Interfaces/DerivativeBuilder.h"

namespace mlir::varlen {
class VJPBuilder;
} // namespace mlir::varlen

#include "varlen/Interfaces/VJPInterface.h.inc" // IWYU pragma: export

namespace mlir::varlen {

/// Reverse-mode differentiation of straight-line code: the cotangents known so
/// far. Rules build with it.
class VJPBuilder : public DerivativeBuilder {
public:
  using DerivativeBuilder::DerivativeBuilder;

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// The cotangent of `value`; null stands for zero. Operations that rules
  /// create for cotangents of values that are not varied are dead, and removed
  /// at the end.
  Value getCotangent(Value value) const { return cotangents.lookup(value); }
  /// The same, with a tensor or number of zeros in place of null.
  Value getCotangentOrZero(Value value);
  /// Adds `cotangent` (null: nothing) to that of `value`.
  void accumulate(Value value, Value cotangent);
  /// The same for sums into a part of the cotangent: `add` takes the cotangent
  /// so far, zeros at first, and returns the new one.
  void accumulateInto(Value value, llvm::function_ref<Value(Value)> add);

  //===--------------------------------------------------------------------===//
  // For passes that differentiate
  //===--------------------------------------------------------------------===//

  /// Applies the rules of `ops`, of which markVaried knows, from the last to
  /// the first. Fails, with an error, if a cotangent has to pass an operation
  /// without a rule.
  LogicalResult pullBack(ArrayRef<Operation *> ops);

protected:
  bool hasRule(Operation *op) const override;
  bool isDifferentiable(OpOperand &operand) const override;
  StringRef getMode() const override { return "reverse"; }

private:
  llvm::DenseMap<Value, Value> cotangents;
};

} // namespace mlir::varlen

#endif // VARLEN_INTERFACES_VJPINTERFACE_H
