//===- AttnGradDecompose.cpp - varlen.attn_grad in plain linalg -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn_grad, written down to be read: the formulas of
// docs/attn-grad.md on whole matrices. Like the decomposition of varlen.attn it
// shares no code with anything faster.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "GradDecomposer.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class AttnGradDecomposer : public GradDecomposer {
public:
  /// `dlse` may be null.
  AttnGradDecomposer(OpBuilder &builder, AttentionOpInterface op, Value dout,
                     Value out, Value lse, Value dlse)
      : GradDecomposer(builder, op, lse), dout(dout), out(out), dlse(dlse) {}

protected:
  SmallVector<Value> differentiateHead(const Head &head,
                                       ValueRange gradients) override;
  SmallVector<Value> pullBack(ImplicitLocOpBuilder &b, const ScorePoint &point,
                              ValueRange elements, Value query,
                              ValueRange sources) override;

private:
  Value dout, out, dlse;
};
} // namespace

SmallVector<Value> AttnGradDecomposer::pullBack(ImplicitLocOpBuilder &b,
                                                const ScorePoint &point,
                                                ValueRange elements, Value,
                                                ValueRange sources) {
  return emitScoreVJP(b, b.getLoc(), scoreBody, point, elements.front(),
                      sources);
}

SmallVector<Value> AttnGradDecomposer::differentiateHead(const Head &head,
                                                         ValueRange gradients) {
  const Scores &scores = head.scores;
  Value dout = queryRows(head, this->dout), out = queryRows(head, this->out);
  OpFoldResult rows = head.rows(), keys = head.keys();
  AffineMap matrix = this->matrix();
  Value zero = constant(compute, 0);

  // delta[i] = sum_c dout[i, c] * out[i, c] - dlse[i]
  Value delta = addRowDots(filled({rows}, zero), dout, out);
  if (dlse)
    delta = subtract(head, delta, queryVector(head, dlse));

  // ds[i, j] = p[i, j] * (factor[i, j] * dout[i] . v[j] - delta[i])
  Value dp = multiplyByFactors(scores, innerProducts(dout, head.v, rows, keys));
  Value ds =
      overVisible(head, {{head.p, matrix}, {dp, matrix}, {delta, perRow()}},
                  [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    return arith::MulFOp::create(
                        b, args[0], arith::SubFOp::create(b, args[1], args[2]));
                  });
  PointInput dlogits = {ds, matrix};
  if (scoreBody)
    ds = pullBackScores(scores, dlogits, scoreBody->getArgument(Score),
                        filled({rows, keys}, zero), matrix);

  // dq = scale * ds k, dk += ds^T q, dv += (factor p)^T dout
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), head.q, 1);
  Value sumsDq = addWeighted(filled({rows, columns}, zero), ds, scores.visible,
                             head.k, /*overQueries=*/false);
  SmallVector<Value> results = {
      storeQueryGradient(head, sumsDq, gradients[0]),
      addWeighted(gradients[1], ds, scores.visible, head.q,
                  /*overQueries=*/true),
      addWeighted(gradients[2], multiplyByFactors(scores, head.p),
                  scores.visible, dout, /*overQueries=*/true)};
  if (op.getSink())
    results.push_back(addToSink(
        gradients[3], head, delta,
        [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; }));
  llvm::append_range(results, gradients.take_back(op.getWrtCaptures().size()));
  addToCaptures(head, dlogits, results);
  return results;
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeGrad(AttentionOpInterface op, OpBuilder &builder,
                              Value dout, Value out, Value lse, Value dlse) {
  if (op.isBufferized() || failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  AttnGradDecomposer decomposer(builder, op, dout, out, lse, dlse);
  return castToResultTypes(builder, op, decomposer.run());
}
