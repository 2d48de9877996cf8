//===- AttnJVPGradDecompose.cpp - varlen.attn_jvp_grad in plain linalg ----===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn_jvp_grad, written down to be read: the formulas of
// docs/attn-jvp-grad.md on whole matrices.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "GradDecomposer.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class JVPGradDecomposer : public GradDecomposer {
public:
  /// Cotangents may be null but for that of tout.
  JVPGradDecomposer(OpBuilder &builder, AttentionOpInterface op,
                    const varlen::detail::JVPResults &results,
                    const varlen::detail::JVPResults &cotangents)
      : GradDecomposer(builder, op, results.lse), tangents(op.getTangents()),
        results(results), cotangents(cotangents) {}

protected:
  SmallVector<Value> differentiateHead(const Head &head,
                                       ValueRange gradients) override;
  SmallVector<Value> pullBack(ImplicitLocOpBuilder &b, const ScorePoint &point,
                              ValueRange elements, Value query,
                              ValueRange sources) override;

private:
  /// A matrix or a vector, and its tangent.
  struct Dual {
    Value own, tangent;
  };
  /// dp[i, j] = factor[i, j] * dtout[i] . v[j]
  Dual emitProbabilityCotangents(const Head &head);
  /// delta[i] = sum_c dtout[i, c] * out[i, c] - dtlse[i]
  Dual emitDeltas(const Head &head);
  /// ds[i, j] = p[i, j] * (dp[i, j] - delta[i]); `p` has the tangent
  /// p[i, j] * (tlogit[i, j] - tlse[i]).
  Dual emitLogitCotangents(const Head &head, const Dual &p, const Dual &dp,
                           const Dual &delta);
  /// The cotangents of scores for those of logits; `inputs` as for pullBack.
  Dual pullBackLogits(const Head &head, const Dual &dlogits,
                      ArrayRef<PointInput> inputs);
  /// dsink[head] with what one head adds.
  Value addToSink(Value dsink, const Head &head, Value tlse, const Dual &delta);

  AttnTangents tangents;
  varlen::detail::JVPResults results, cotangents;
  /// The tangents of the head that is differentiated.
  ScoreTangents ofScores;
};
} // namespace

SmallVector<Value> JVPGradDecomposer::pullBack(ImplicitLocOpBuilder &b,
                                               const ScorePoint &point,
                                               ValueRange elements, Value query,
                                               ValueRange sources) {
  // The cotangent of the logit, its tangent, and those of what scores are made
  // of.
  CotangentPair cotangent = {elements[0], elements[1]};
  return withTangents(b, ofScores, elements.drop_front(2), query,
                      [&](const ScorePoint &ofPoint) {
                        return emitScoreVJPTangents(b, b.getLoc(), scoreBody,
                                                    point, ofPoint, cotangent,
                                                    sources);
                      });
}

JVPGradDecomposer::Dual
JVPGradDecomposer::emitProbabilityCotangents(const Head &head) {
  OpFoldResult rows = head.rows(), keys = head.keys();
  Value dtout = queryRows(head, cotangents.tout);
  Value own = innerProducts(dtout, head.v, rows, keys);
  Value tangent = innerProducts(dtout, keyRows(head, tangents.v), rows, keys);
  if (cotangents.out)
    tangent =
        addInnerProducts(tangent, queryRows(head, cotangents.out), head.v);
  return {multiplyByFactors(head.scores, own),
          multiplyByFactors(head.scores, tangent)};
}

JVPGradDecomposer::Dual JVPGradDecomposer::emitDeltas(const Head &head) {
  Value zero = filled({head.rows()}, constant(compute, 0));
  Value dtout = queryRows(head, cotangents.tout);
  Value out = queryRows(head, results.out);
  Value own = addRowDots(zero, dtout, out);
  if (cotangents.tlse)
    own = subtract(head, own, queryVector(head, cotangents.tlse));
  Value tangent = addRowDots(zero, dtout, queryRows(head, results.tout));
  if (cotangents.out)
    tangent = addRowDots(tangent, queryRows(head, cotangents.out), out);
  if (cotangents.lse)
    tangent = subtract(head, tangent, queryVector(head, cotangents.lse));
  return {own, tangent};
}

JVPGradDecomposer::Dual
JVPGradDecomposer::emitLogitCotangents(const Head &head, const Dual &p,
                                       const Dual &dp, const Dual &delta) {
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  auto body = [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    return arith::MulFOp::create(b, args[0],
                                 arith::SubFOp::create(b, args[1], args[2]));
  };
  Value own = overVisible(
      head, {{p.own, matrix}, {dp.own, matrix}, {delta.own, perRow}}, body);
  Value tangent =
      overVisible(head,
                  {{p.own, matrix},
                   {dp.tangent, matrix},
                   {delta.tangent, perRow},
                   {p.tangent, matrix},
                   {dp.own, matrix},
                   {delta.own, perRow}},
                  [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    return arith::AddFOp::create(b, body(b, args.take_front(3)),
                                                 body(b, args.drop_front(3)));
                  });
  return {own, tangent};
}

JVPGradDecomposer::Dual
JVPGradDecomposer::pullBackLogits(const Head &head, const Dual &dlogits,
                                  ArrayRef<PointInput> inputs) {
  if (!scoreBody)
    return dlogits;
  Value zero = constant(compute, 0);
  Value score = scoreBody->getArgument(Score);
  auto init = [&] { return filled({head.rows(), head.keys()}, zero); };
  Value own =
      overScores(head.scores, inputs.front(), init(), matrix(),
                 [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                     ValueRange elements, Value visible) -> Value {
                   Value value = emitScoreVJP(b, b.getLoc(), scoreBody, point,
                                              elements.front(), score)
                                     .front();
                   return arith::SelectOp::create(b, visible, value, zero);
                 });
  return {own, pullBackScores(head.scores, inputs, score, init(), matrix())};
}

Value JVPGradDecomposer::addToSink(Value dsink, const Head &head, Value tlse,
                                   const Dual &delta) {
  Value zero = constant(compute, 0);
  Value tsink =
      tangents.sink
          ? tensor::ExtractOp::create(b, tangents.sink, head.number).getResult()
          : zero;
  // (tsink - tlse[i]) * delta[i] + tdelta[i]
  return GradDecomposer::addToSink(
      dsink, head, {tlse, delta.own, delta.tangent},
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        Value change = arith::SubFOp::create(b, tsink, args[0]);
        return arith::AddFOp::create(
            b, arith::MulFOp::create(b, change, args[1]), args[2]);
      });
}

SmallVector<Value> JVPGradDecomposer::differentiateHead(const Head &head,
                                                        ValueRange gradients) {
  const Scores &scores = head.scores;
  OpFoldResult rows = head.rows(), keys = head.keys();
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  Value zero = constant(compute, 0);
  Value tq = queryRows(head, tangents.q), tk = keyRows(head, tangents.k);
  Value dtout = queryRows(head, cotangents.tout);
  Value tlse = queryVector(head, results.tlse);

  // tscore[i, j] = sum_d tq[i, d] * k[j, d] + q[i, d] * tk[j, d]
  Value tscore =
      addInnerProducts(innerProducts(tq, head.k, rows, keys), head.q, tk);
  ofScores = loadScoreTangents(scores.sequence, head.number, tscore);
  Value tlogit = emitLogitTangents(scores, ofScores);

  // tp[i, j] = p[i, j] * (tlogit[i, j] - tlse[i])
  Dual p = {
      head.p,
      overVisible(head, {{head.p, matrix}, {tlogit, matrix}, {tlse, perRow}},
                  [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    Value change = arith::SubFOp::create(b, args[1], args[2]);
                    return arith::MulFOp::create(b, args[0], change);
                  })};
  Dual delta = emitDeltas(head);
  Dual dlogits =
      emitLogitCotangents(head, p, emitProbabilityCotangents(head), delta);
  SmallVector<PointInput> inputs = {{dlogits.own, matrix},
                                    {dlogits.tangent, matrix}};
  llvm::append_range(inputs, getInputs(ofScores));
  Dual ds = pullBackLogits(head, dlogits, inputs);

  // dq = scale * (tds k + ds tk), dk += tds^T q + ds^T tq,
  // dv += (factor tp)^T dtout + (factor p)^T dout
  auto add = [&](Value sums, const Dual &weights, Value own, Value tangent,
                 bool overQueries) {
    sums = addWeighted(sums, weights.tangent, scores.visible, own, overQueries);
    return tangent ? addWeighted(sums, weights.own, scores.visible, tangent,
                                 overQueries)
                   : sums;
  };
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), head.q, 1);
  Value sumsDq = add(filled({rows, columns}, zero), ds, head.k, tk,
                     /*overQueries=*/false);
  Dual weights = {multiplyByFactors(scores, p.own),
                  multiplyByFactors(scores, p.tangent)};
  Value dout = cotangents.out ? queryRows(head, cotangents.out) : Value();
  SmallVector<Value> results = {
      storeQueryGradient(head, sumsDq, gradients[0]),
      add(gradients[1], ds, head.q, tq, /*overQueries=*/true),
      add(gradients[2], weights, dtout, dout, /*overQueries=*/true)};
  if (op.getSink())
    results.push_back(addToSink(gradients[3], head, tlse, delta));
  llvm::append_range(results, gradients.take_back(op.getWrtCaptures().size()));
  addToCaptures(head, inputs, results);
  return results;
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeJVPGrad(AttentionOpInterface op, OpBuilder &builder,
                                 const JVPResults &results,
                                 const JVPResults &cotangents) {
  if (op.isBufferized() || failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  JVPGradDecomposer decomposer(builder, op, results, cotangents);
  return castToResultTypes(builder, op, decomposer.run());
}
