//===- SoftmaxDecomposer.cpp - The textbook softmax in plain linalg -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxDecomposer.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

SoftmaxDecomposer::Softmax
SoftmaxDecomposer::emitSoftmax(const Sequence &sequence, Value head, Value q,
                               Value k) {
  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  AffineMap vector = this->vector();
  Value zero = constant(compute, 0);

  // score[i, j] = sum_d q[i, d] * k[j, d]
  Value score = innerProducts(q, k, rows, keys);

  // logit[i, j] = scale * score[i, j], or what the score region makes of it,
  // where visible, else -inf
  SmallVector<Value> captures = loadCaptures(sequence, head);
  Value visible = visibleKeys(sequence, visibleKeys(sequence), captures);
  Value invisible = lowest();
  Scores scores{sequence, score, visible, captures};
  Value logit =
      overScores(scores, /*more=*/{}, filled({rows, keys}, zero), matrix,
                 [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                     ValueRange, Value visible) -> Value {
                   return arith::SelectOp::create(
                       b, visible, emitLogit(b, point), invisible);
                 });

  // top[i] = max(sink, max_j logit[i, j]), or 0 for a row without any: -inf
  // must not be subtracted from -inf.
  Value sink = loadSink(head);
  Value top = generic({logit}, filled({rows}, sink ? sink : invisible),
                      {matrix, perRow},
                      [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                        return arith::MaximumFOp::create(b, args[0], args[1]);
                      });
  top = generic({top}, filled({rows}, zero), {vector, vector},
                [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                  Value none = arith::CmpFOp::create(
                      b, arith::CmpFPredicate::OEQ, args[0], invisible);
                  return arith::SelectOp::create(b, none, zero, args[0]);
                });

  // weight[i, j] = exp(logit[i, j] - top[i])
  Value weight = generic({logit, top}, filled({rows, keys}, zero),
                         {matrix, perRow, matrix},
                         [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                           return math::ExpOp::create(
                               b, arith::SubFOp::create(b, args[0], args[1]));
                         });

  // sum[i] = exp(sink - top[i]) + sum_j weight[i, j]
  Value sum = filled({rows}, zero);
  if (sink)
    sum = generic({top}, sum, {vector, vector},
                  [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    return math::ExpOp::create(
                        b, arith::SubFOp::create(b, sink, args[0]));
                  });
  sum = generic({weight}, sum, {matrix, perRow},
                [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                  return arith::AddFOp::create(b, args[1], args[0]);
                });
  return {scores, top, weight, sum};
}

Value SoftmaxDecomposer::mixValues(const Softmax &softmax, Value v) {
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), v, 1);
  Value zero = constant(compute, 0);
  return addWeighted(filled({softmax.scores.sequence.qRows, columns}, zero),
                     multiplyByFactors(softmax.scores, softmax.weight),
                     softmax.scores.visible, v, /*overQueries=*/false);
}

SmallVector<Value> SoftmaxDecomposer::finish(const Softmax &softmax,
                                             Value mixed, Value head, Value out,
                                             Value lse) {
  const Sequence &sequence = softmax.scores.sequence;
  Value top = softmax.top, sum = softmax.sum, zero = constant(compute, 0);
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  AffineMap vector = this->vector();

  // Both results are computed in place, in the rows they belong to.
  // out[i, c] = mixed[i, c] / sum[i], or 0 for a row without any weight
  Value rowsOut =
      generic({mixed, sum}, rowsOf(out, sequence.qRow, sequence.qRows, head),
              {matrix, perRow, matrix},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                                   args[1], zero);
                Value quotient = arith::DivFOp::create(b, args[0], args[1]);
                Value value = arith::SelectOp::create(b, none, zero, quotient);
                return toElement(b, value);
              });

  // lse[i] = top[i] + log(sum[i]), or -inf for a row without any weight:
  // chosen, since log has no tangent there
  Value rowsLse = vectorOf(lse, sequence.qRow, sequence.qRows, head);
  Value nothing = lowest();
  rowsLse = generic({top, sum}, rowsLse, {vector, vector, vector},
                    [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                      Value none = arith::CmpFOp::create(
                          b, arith::CmpFPredicate::OEQ, args[1], zero);
                      Value value = arith::AddFOp::create(
                          b, args[0], math::LogOp::create(b, args[1]));
                      return arith::SelectOp::create(b, none, nothing, value);
                    });

  return {insertRows(rowsOut, out, sequence.qRow, sequence.qRows, head),
          insertVector(rowsLse, lse, sequence.qRow, sequence.qRows, head)};
}
