//===- AttnJVPDecompose.cpp - varlen.attn_jvp in plain linalg -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn_jvp, written down to be read: the softmax of
// varlen.attn, and the formulas of docs/attn-jvp.md on whole matrices. With
// weights w = exp(logit - top) and their sum l, p = w / l, so that all sums are
// made of w and divided once.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "SoftmaxDecomposer.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {
class JVPDecomposer : SoftmaxDecomposer {
public:
  JVPDecomposer(OpBuilder &builder, AttentionOpInterface op)
      : SoftmaxDecomposer(builder, op), tangents(op.getTangents()) {}

  SmallVector<Value> run();

private:
  /// {out, lse, tout, tlse} with the rows of `head` of `sequence` filled in.
  SmallVector<Value> attendHead(const Sequence &sequence, Value head,
                                ValueRange results);
  /// sum_j tweight[i, j] + exp(sink - top[i]) * tsink
  Value sumTangents(const Softmax &softmax, Value tweight, Value head);

  AttnTangents tangents;
};
} // namespace

Value JVPDecomposer::sumTangents(const Softmax &softmax, Value tweight,
                                 Value head) {
  Value zero = constant(compute, 0);
  Value sum = filled({softmax.scores.sequence.qRows}, zero);
  if (tangents.sink) {
    Value sink = loadSink(head);
    Value tangent = tensor::ExtractOp::create(b, tangents.sink, head);
    // A sink of -inf is no part of any softmax.
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, lowest());
    sum = generic({softmax.top}, sum, {vector(), vector()},
                  [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    Value weight = math::ExpOp::create(
                        b, arith::SubFOp::create(b, sink, args[0]));
                    Value term = arith::MulFOp::create(b, weight, tangent);
                    return arith::SelectOp::create(b, none, zero, term);
                  });
  }
  return generic({tweight}, sum, {matrix(), perRow()},
                 [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   return arith::AddFOp::create(b, args[1], args[0]);
                 });
}

SmallVector<Value> JVPDecomposer::attendHead(const Sequence &sequence,
                                             Value head, ValueRange results) {
  Value kvHead = arith::DivSIOp::create(b, head, groupSize());
  auto queryRows = [&](Value packed) {
    return rowsOf(packed, sequence.qRow, sequence.qRows, head);
  };
  auto keyRows = [&](Value packed) {
    return rowsOf(packed, sequence.kRow, sequence.kRows, kvHead);
  };
  Value q = queryRows(op.getQ()), tq = queryRows(tangents.q);
  Value k = keyRows(op.getK()), tk = keyRows(tangents.k);
  Value v = keyRows(op.getV()), tv = keyRows(tangents.v);
  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  AffineMap vector = this->vector();
  Value zero = constant(compute, 0);

  Softmax softmax = emitSoftmax(sequence, head, q, k);
  Value mixed = mixValues(softmax, v), visible = softmax.scores.visible;
  SmallVector<Value> primals =
      finish(softmax, mixed, head, results[0], results[1]);

  // tscore[i, j] = sum_d tq[i, d] * k[j, d] + q[i, d] * tk[j, d]
  Value tscore = addInnerProducts(innerProducts(tq, k, rows, keys), q, tk);
  Value tlogit = emitLogitTangents(softmax.scores,
                                   loadScoreTangents(sequence, head, tscore));

  // tweight[i, j] = weight[i, j] * tlogit[i, j], and their sums
  Value tweight =
      generic({softmax.weight, tlogit}, filled({rows, keys}, zero),
              {matrix, matrix, matrix},
              [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                return arith::MulFOp::create(b, args[0], args[1]);
              });
  Value tsum = sumTangents(softmax, tweight, head);

  // tlse[i] = tsum[i] / sum[i], or 0 for a row without any weight
  auto divide = [&](ImplicitLocOpBuilder &b, Value number, Value sum) -> Value {
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
    return arith::SelectOp::create(b, none, zero,
                                   arith::DivFOp::create(b, number, sum));
  };
  Value tlse = generic({tsum, softmax.sum}, filled({rows}, zero),
                       {vector, vector, vector},
                       [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                         return divide(b, args[0], args[1]);
                       });

  // tmixed[i, c] = sum_j factor[i, j] * (tweight[i, j] * v[j, c] +
  //                                      weight[i, j] * tv[j, c])
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), v, 1);
  Value tmixed =
      addWeighted(filled({rows, columns}, zero),
                  multiplyByFactors(softmax.scores, tweight), visible, v,
                  /*overQueries=*/false);
  tmixed =
      addWeighted(tmixed, multiplyByFactors(softmax.scores, softmax.weight),
                  visible, tv, /*overQueries=*/false);

  // tout[i, c] = (tmixed[i, c] - tlse[i] * mixed[i, c]) / sum[i]
  Value rowsTout =
      generic({tmixed, mixed, tlse, softmax.sum}, queryRows(results[2]),
              {matrix, matrix, perRow, perRow, matrix},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value change = arith::MulFOp::create(b, args[2], args[1]);
                Value value = arith::SubFOp::create(b, args[0], change);
                return toElement(b, divide(b, value, args[3]));
              });
  return {primals[0], primals[1],
          insertRows(rowsTout, results[2], sequence.qRow, sequence.qRows, head),
          insertVector(tlse, results[3], sequence.qRow, sequence.qRows, head)};
}

SmallVector<Value> JVPDecomposer::run() {
  Location loc = b.getLoc();
  OpFoldResult tokens = tensor::getMixedSize(b, loc, op.getQ(), 0);
  OpFoldResult heads = tensor::getMixedSize(b, loc, op.getQ(), 1);
  OpFoldResult columns = tensor::getMixedSize(b, loc, op.getV(), 2);
  scale = loadScale();

  // Rows that belong to no sequence keep these.
  SmallVector<OpFoldResult> ofOut = {tokens, heads, columns};
  SmallVector<OpFoldResult> ofLse = {heads, tokens};
  SmallVector<Value> inits = {
      filledResult(0, ofOut, 0),
      filledResult(1, ofLse, -std::numeric_limits<double>::infinity()),
      filledResult(2, ofOut, 0), filledResult(3, ofLse, 0)};

  Value end = tensor::DimOp::create(b, op.getQ(), 1);
  return loopOverSequences(
      inits, [&](const Sequence &sequence, ValueRange results) {
        return loop(end, results, [&](Value head, ValueRange results) {
          return attendHead(sequence, head, results);
        });
      });
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeJVP(AttentionOpInterface op, OpBuilder &builder) {
  if (op.isBufferized() || failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  JVPDecomposer decomposer(builder, op);
  return castToResultTypes(builder, op, decomposer.run());
}
