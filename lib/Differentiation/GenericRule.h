//===- GenericRule.h - The rule of linalg.generic ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H
#define VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H

#include "PointSum.h"
#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <optional>

namespace mlir::varlen {

/// A result with a cotangent.
struct Output {
  /// How it comes from the contributions of the points.
  enum Kind { Elementwise, Sum, Extremum };
  Kind kind;
  OpOperand *init;
  AffineMap map;
  /// What the body makes of one point: the yielded value, or of an extremum the
  /// candidate.
  Value contribution;
  Value result, cotangent;
  /// How many points attain an extremum; they share its cotangent.
  Value count;
};

/// Pulls the cotangents of `results`, which are what `op` computes, back to its
/// operands and to what its body captures.
class GenericRule {
public:
  GenericRule(linalg::GenericOp op, ValueRange results, VJPBuilder &b)
      : op(op), results(results), b(b), body(op.getBody()) {}

  LogicalResult run();

private:
  LogicalResult findOutputs();
  std::optional<Output::Kind> classify(OpOperand &init, Value &contribution);
  LogicalResult countExtrema(Output &output);
  void pullBackInit(const Output &output);
  LogicalResult pullBackInput(Value operand, Value inBody, AffineMap map);

  LogicalResult pullBackGather(Value tensor);
  LogicalResult pullBackPlaces(Value operand, Value inBody, AffineMap map);
  FailureOr<Value> addRows(Value sum, unsigned along,
                           ArrayRef<tensor::ExtractOp> reads);
  SmallVector<Value> getRowNumbers(VJPBuilder &inner, tensor::ExtractOp read,
                                   ValueRange position);
  std::optional<unsigned> getRowLoop(ArrayRef<tensor::ExtractOp> reads);
  SmallVector<Value> getExtents();
  Value readInput(VJPBuilder &inner, const Input &input, ValueRange position);

  /// What stands for the arguments of the body at one point.
  struct Point {
    /// One for each; null for the accumulator of a reduction.
    SmallVector<Value> arguments;
    /// For each output.
    SmallVector<Value> results, cotangents, counts;
    /// Where linalg.index does not know it.
    ValueRange position;
  };
  /// What `add` makes of `sum`, at one point after the other.
  FailureOr<Value> addPoints(
      Value sum,
      llvm::function_ref<FailureOr<Value>(VJPBuilder &, const Point &, Value)>
          add);
  /// The operands at a point and, for the outputs, what belongs to them.
  SmallVector<Input> getInputs(bool withOutputs);
  Point getPoint(ValueRange inputs, bool withOutputs);
  SmallVector<Operation *> cloneBody(OpBuilder &builder, const Point &point,
                                     IRMapping &mapping);
  /// The cotangent of `value`, which is an argument of the body, captured by
  /// it, or in it; null for zero. `before` is what it has from elsewhere.
  FailureOr<Value> pullBackBody(OpBuilder &builder, const Point &point,
                                Value value, Value before = {});

  bool isInput(OpOperand &operand);
  AffineMap getMap(OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand);
  }

  linalg::GenericOp op;
  ValueRange results;
  VJPBuilder &b;
  Block *body;
  SmallVector<Output> outputs;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_GENERICRULE_H
