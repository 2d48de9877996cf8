//===- GenericForwardRule.h - linalg.generic in the forward mode -*- C++
//-*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_GENERICFORWARDRULE_H
#define VARLEN_LIB_DIFFERENTIATION_GENERICFORWARDRULE_H

#include "PointSum.h"
#include "varlen/Interfaces/JVPInterface.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::varlen {

/// Sets the tangents of `results`, which are what `op` computes.
class GenericForwardRule {
public:
  GenericForwardRule(linalg::GenericOp op, ValueRange results, JVPBuilder &b)
      : op(op), results(results), b(b), body(op.getBody()) {}

  LogicalResult run();

private:
  /// A result with a tangent.
  struct Output {
    unsigned number;
    Value tangent;
  };

  /// Whether several points make one element of a result.
  bool isReduced(unsigned number);
  BlockArgument getAccumulator(unsigned number) {
    return op.getMatchingBlockArgument(op.getDpsInitOperand(number));
  }
  Value getInit(unsigned number) { return op.getDpsInitOperand(number)->get(); }
  /// Results that vary, by number.
  SmallVector<unsigned> findVaried();
  /// Arguments of the new body for what points read, with their tangents.
  void addInputs(Block &block, JVPBuilder &inner, IRMapping &mapping);
  /// Results whose accumulators the tangents need, in the order of numbers.
  SmallVector<unsigned> findNeeded(ArrayRef<Output> outputs, Operation *yield);

  linalg::GenericOp op;
  ValueRange results;
  JVPBuilder &b;
  Block *body;
  SmallVector<Input> inputs;
  /// What has a tangent in the new body.
  SmallVector<Value> sources;
  /// The accumulators in the new body, by result; null where there is none.
  SmallVector<Value> accumulators;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_GENERICFORWARDRULE_H
