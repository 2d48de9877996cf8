//===- JVPInterface.h - Rules of the forward mode ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INTERFACES_JVPINTERFACE_H
#define VARLEN_INTERFACES_JVPINTERFACE_H

#include "varlen/Interfaces/DerivativeBuilder.h"

namespace mlir::varlen {
class JVPBuilder;
} // namespace mlir::varlen

#include "varlen/Interfaces/JVPInterface.h.inc" // IWYU pragma: export

namespace mlir::varlen {

/// Forward-mode differentiation of straight-line code: the tangents known so
/// far. Rules build with it.
class JVPBuilder : public DerivativeBuilder {
public:
  using DerivativeBuilder::DerivativeBuilder;

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// The tangent of `value`; null stands for zero.
  Value getTangent(Value value) const { return tangents.lookup(value); }
  /// The same, with a tensor or number of zeros in place of null.
  Value getTangentOrZero(Value value);
  /// Sets the tangent of `value`; null stands for zero.
  void setTangent(Value value, Value tangent);
  /// Whether one of `values` has a tangent.
  bool hasTangent(ValueRange values) const {
    return llvm::any_of(values, [&](Value value) { return getTangent(value); });
  }

  /// Marks the values of the body of a loop that vary, for `sources` and those
  /// of `carried`, which an iteration starts from, that an earlier iteration
  /// makes vary: `yielded` are what the next one starts from.
  void markCarried(ValueRange sources, ValueRange carried, ValueRange yielded,
                   ArrayRef<Operation *> ops);

  //===--------------------------------------------------------------------===//
  // For passes that differentiate
  //===--------------------------------------------------------------------===//

  /// Applies the rules of those of `ops`, of which markVaried knows, that
  /// `wanted` depend on, from the first to the last, each behind its operation:
  /// the tangents of sources come before `ops`. Fails, with an error, if a
  /// tangent has to pass an operation without a rule.
  LogicalResult pushForward(ArrayRef<Operation *> ops, ValueRange wanted);

protected:
  bool hasRule(Operation *op) const override;
  bool isDifferentiable(OpOperand &operand) const override;
  StringRef getMode() const override { return "forward"; }

private:
  llvm::DenseMap<Value, Value> tangents;
};

} // namespace mlir::varlen

#endif // VARLEN_INTERFACES_JVPINTERFACE_H
