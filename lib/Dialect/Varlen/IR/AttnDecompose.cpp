//===- AttnDecompose.cpp - varlen.attn in plain linalg --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn, written down to be read: two loops, over the
// sequences and over the heads, around the textbook softmax on whole matrices.
// Everything faster is compared with this, so it shares no code with it.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "AttnDecomposer.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {
class Decomposer : AttnDecomposer {
public:
  Decomposer(OpBuilder &builder, AttentionOpInterface op)
      : AttnDecomposer(builder, op) {}

  SmallVector<Value> run();

private:
  /// {out, lse} with the rows of `head` of `sequence` filled in.
  SmallVector<Value> attendHead(const Sequence &sequence, Value head, Value out,
                                Value lse);
};
} // namespace

SmallVector<Value> Decomposer::attendHead(const Sequence &sequence, Value head,
                                          Value out, Value lse) {
  Value kvHead = arith::DivSIOp::create(b, head, groupSize());
  Value q = rowsOf(op.getQ(), sequence.qRow, sequence.qRows, head);
  Value k = rowsOf(sequence.k, sequence.kRow, sequence.kRows, kvHead);
  Value v = rowsOf(sequence.v, sequence.kRow, sequence.kRows, kvHead);

  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), v, 1);
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
  Value logit = overScores(scores, /*more=*/{}, /*moreMap=*/{},
                           filled({rows, keys}, zero), matrix,
                           [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                               Value, Value visible) -> Value {
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

  // mixed[i, c] = sum_j factor[i, j] * weight[i, j] * v[j, c]
  weight = multiplyByFactors(scores, weight);
  Value mixed = addWeighted(filled({rows, columns}, zero), weight, visible, v,
                            /*overQueries=*/false);

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

  // lse[i] = top[i] + log(sum[i]): -inf for a row without any weight
  Value rowsLse = vectorOf(lse, sequence.qRow, sequence.qRows, head);
  rowsLse = generic({top, sum}, rowsLse, {vector, vector, vector},
                    [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                      return arith::AddFOp::create(
                          b, args[0], math::LogOp::create(b, args[1]));
                    });

  return {insertRows(rowsOut, out, sequence.qRow, sequence.qRows, head),
          insertVector(rowsLse, lse, sequence.qRow, sequence.qRows, head)};
}

SmallVector<Value> Decomposer::run() {
  Location loc = b.getLoc();
  OpFoldResult tokens = tensor::getMixedSize(b, loc, op.getQ(), 0);
  OpFoldResult heads = tensor::getMixedSize(b, loc, op.getQ(), 1);
  OpFoldResult columns =
      tensor::getMixedSize(b, loc, op.getV(), getColumnsDim(op.getV()));
  scale = loadScale();

  // Rows that belong to no sequence keep these.
  Value out = filledResult(0, {tokens, heads, columns}, 0);
  Value lse = filledResult(1, {heads, tokens},
                           -std::numeric_limits<double>::infinity());

  Value end = getValueOrCreateConstantIndexOp(b, loc, heads);
  return loopOverSequences(
      {out, lse}, [&](const Sequence &sequence, ValueRange results) {
        return loop(end, results, [&](Value head, ValueRange results) {
          return attendHead(sequence, head, results[0], results[1]);
        });
      });
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeAttn(AttentionOpInterface op, OpBuilder &builder) {
  if (op.isBufferized())
    return failure();
  return castToResultTypes(builder, op, Decomposer(builder, op).run());
}
