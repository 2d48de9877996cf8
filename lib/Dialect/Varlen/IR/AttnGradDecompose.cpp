//===- AttnGradDecompose.cpp - varlen.attn_grad in plain linalg -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn_grad, written down to be read: loops over the
// sequences, the kv heads and the query heads of a group, around the formulas
// of docs/attn-grad.md on whole matrices. Like the decomposition of varlen.attn
// it shares no code with anything faster.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "AttnDecomposer.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class GradDecomposer : AttnDecomposer {
public:
  /// `dlse` may be null.
  GradDecomposer(OpBuilder &builder, AttentionOpInterface op, Value dout,
                 Value out, Value lse, Value dlse)
      : AttnDecomposer(builder, op), dout(dout), out(out), lse(lse),
        dlse(dlse) {}

  SmallVector<Value> run();

private:
  /// {dq, dk, dv[, dsink], dcaptures} with what one sequence adds for one kv
  /// head.
  SmallVector<Value> differentiateKvHead(const Sequence &sequence,
                                         Value visible, Value kvHead,
                                         ValueRange gradients);
  /// {dq, sums of dk, sums of dv[, dsink], dcaptures} with what one query head
  /// adds. The sums are matrices of the compute type: the rows of one kv head,
  /// not yet scaled.
  SmallVector<Value> differentiateHead(const Sequence &sequence, Value visible,
                                       Value head, Value kvHead,
                                       ValueRange gradients);
  /// The cotangent of an argument of the score region for that of the logits.
  Value pullBackScores(const Scores &scores, Value dlogits, Value source,
                       Value init, AffineMap resultMap);
  /// `gradient` of a table with what the lookups of one head add: one query
  /// after the other, and for each its keys in order.
  Value addToTable(const Scores &scores, Value dlogits, Value head,
                   unsigned capture, Value gradient);
  /// dcaptures with what one head adds.
  void addToCaptures(const Scores &scores, Value dlogits, Value head,
                     SmallVectorImpl<Value> &gradients);
  /// dsink[head] - sum_i exp(sink - lse[i]) * delta[i]
  Value addToSink(Value dsink, Value head, Value lse, Value delta);
  /// `matrix` times the scale, if there is one, in the rows of a head.
  Value store(Value matrix, Value scale, Value packed, Value row, Value rows,
              Value head);
  /// Zeros in place of gradient `number`, which has the shape of `like`.
  Value zeros(unsigned number, Value like);

  Value dout, out, lse, dlse;
};
} // namespace

Value GradDecomposer::store(Value matrix, Value scale, Value packed, Value row,
                            Value rows, Value head) {
  Value stored =
      generic({matrix}, rowsOf(packed, row, rows, head),
              {this->matrix(), this->matrix()},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value value = args[0];
                if (scale)
                  value = arith::MulFOp::create(b, value, scale);
                return toElement(b, value);
              });
  return insertRows(stored, packed, row, rows, head);
}

Value GradDecomposer::addToSink(Value dsink, Value head, Value lse,
                                Value delta) {
  Value sink = loadSink(head), zero = constant(compute, 0);
  // A sink of -inf is no part of any softmax; lse may be -inf beside it.
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, lowest());
  Value sum =
      generic({lse, delta}, filled({}, zero), {vector(), vector(), map(1, {})},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value share = math::ExpOp::create(
                    b, arith::SubFOp::create(b, sink, args[0]));
                Value term = arith::MulFOp::create(b, share, args[1]);
                term = arith::SelectOp::create(b, none, zero, term);
                return arith::AddFOp::create(b, args[2], term);
              });
  Value before = tensor::ExtractOp::create(b, dsink, head);
  Value after = arith::SubFOp::create(
      b, before, tensor::ExtractOp::create(b, sum, ValueRange()));
  return tensor::InsertOp::create(b, after, dsink, head);
}

Value GradDecomposer::pullBackScores(const Scores &scores, Value dlogits,
                                     Value source, Value init,
                                     AffineMap resultMap) {
  Value zero = constant(compute, 0);
  return overScores(scores, {{dlogits, matrix()}}, init, resultMap,
                    [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                        ValueRange dlogit, Value visible) -> Value {
                      Value value = emitScoreVJP(b, b.getLoc(), scoreBody,
                                                 point, dlogit.front(), source)
                                        .front();
                      return arith::SelectOp::create(b, visible, value, zero);
                    });
}

Value GradDecomposer::addToTable(const Scores &scores, Value dlogits,
                                 Value head, unsigned capture, Value gradient) {
  const Sequence &sequence = scores.sequence;
  Value table = scores.captures[capture], zero = constant(compute, 0);
  bool isOfQueries = varlen::detail::isOfQueries(op, capture),
       isOfKeys = isKeyTable(scoreBody, capture);
  SmallVector<LookupOp> lookups = getScoreLookups(scoreBody, capture);
  SmallVector<Value> entries = llvm::map_to_vector(
      lookups, [](LookupOp lookup) -> Value { return lookup.getEntry(); });

  // All lookups of a pair at once: loops one after another that carry the same
  // tensor take upstream's bufferization a time that doubles with each of them.
  auto addPair = [&](const Pair &pair, Value gradient) {
    auto load = [&](Value tensor, ValueRange at) -> Value {
      return tensor::ExtractOp::create(b, tensor, at);
    };
    SmallVector<Value> both = {pair.query, pair.key}, rows;
    for (Value vector : getVectors(scores.captures))
      rows.push_back(load(vector, pair.query));
    Value score = arith::MulFOp::create(b, load(scores.products, both), scale);
    SmallVector<Value> arguments =
        scoreArguments(b, sequence, pair, score, scores.captures, rows);
    auto lookup = [&](OpBuilder &b, Location, unsigned capture, Value index) {
      return lookUp(b, scores.captures[capture], pair.query, index);
    };
    ScorePoint point{arguments, lookup};
    Value visible = load(scores.visible, both);
    SmallVector<Value> cotangents = emitScoreVJP(
        b, b.getLoc(), scoreBody, point, load(dlogits, both), entries);
    for (auto [lookup, cotangent] : llvm::zip_equal(lookups, cotangents)) {
      SmallVector<Value> at = {head};
      if (isOfQueries)
        at.push_back(arith::AddIOp::create(b, sequence.qRow, pair.query));
      Value entry = clampIndex(b, table, emitIndex(b, point, lookup));
      if (isOfKeys)
        entry = arith::AddIOp::create(b, sequence.kRow, entry);
      at.push_back(entry);
      Value term = arith::SelectOp::create(b, visible, cotangent, zero);
      Value sum = arith::AddFOp::create(b, load(gradient, at), term);
      gradient = tensor::InsertOp::create(b, sum, gradient, at);
    }
    return gradient;
  };
  return loop(sequence.qRows, gradient,
              [&](Value query, ValueRange sums) {
                return loop(sequence.kRows, sums,
                            [&](Value key, ValueRange sums) {
                              return SmallVector<Value>{
                                  addPair({query, key}, sums.front())};
                            });
              })
      .front();
}

void GradDecomposer::addToCaptures(const Scores &scores, Value dlogits,
                                   Value head,
                                   SmallVectorImpl<Value> &gradients) {
  size_t count = op.getWrtCaptures().size();
  const Sequence &sequence = scores.sequence;
  Value zero = constant(compute, 0);
  for (auto [number, gradient] : llvm::zip_equal(
           op.getWrtCaptures(), MutableArrayRef(gradients).take_back(count))) {
    if (isTable(scoreBody, number)) {
      gradient = addToTable(scores, dlogits, head, number, gradient);
      continue;
    }
    Value argument = scoreBody->getArgument(Captures + number);
    if (isa<RankedTensorType>(scores.captures[number].getType())) {
      Value sums = pullBackScores(scores, dlogits, argument,
                                  filled({sequence.qRows}, zero), perRow());
      gradient =
          insertVector(sums, gradient, sequence.qRow, sequence.qRows, head);
      continue;
    }
    Value sum =
        pullBackScores(scores, dlogits, argument, filled({}, zero), map(2, {}));
    Value total =
        arith::AddFOp::create(b, tensor::ExtractOp::create(b, gradient, head),
                              tensor::ExtractOp::create(b, sum, ValueRange()));
    gradient = tensor::InsertOp::create(b, total, gradient, head);
  }
}

SmallVector<Value> GradDecomposer::differentiateHead(const Sequence &sequence,
                                                     Value visible, Value head,
                                                     Value kvHead,
                                                     ValueRange gradients) {
  auto queryRows = [&](Value packed) {
    return rowsOf(packed, sequence.qRow, sequence.qRows, head);
  };
  Value q = queryRows(op.getQ()), dout = queryRows(this->dout);
  Value out = queryRows(this->out);
  Value k = rowsOf(sequence.k, sequence.kRow, sequence.kRows, kvHead);
  Value v = rowsOf(sequence.v, sequence.kRow, sequence.kRows, kvHead);
  Value lse = vectorOf(this->lse, sequence.qRow, sequence.qRows, head);
  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  AffineMap matrix = this->matrix(), perRow = this->perRow();
  Value zero = constant(compute, 0), lowest = this->lowest();

  // p[i, j] = exp(scale * q[i] . k[j] - lse[i]) where visible, else 0: a row
  // that sees no key, or whose scores are all -inf, has lse = -inf and no
  // weight. The argument is chosen, not the exponential: an infinite one would
  // make a NaN of a derivative that is 0.
  SmallVector<Value> captures = loadCaptures(sequence, head);
  visible = visibleKeys(sequence, visible, captures);
  Scores scores{sequence, innerProducts(q, k, rows, keys), visible, captures};
  Value p =
      overScores(scores, {{lse, perRow}}, filled({rows, keys}, zero), matrix,
                 [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                     ValueRange lse, Value visible) -> Value {
                   Value power = arith::SubFOp::create(b, emitLogit(b, point),
                                                       lse.front());
                   Value some = arith::CmpFOp::create(
                       b, arith::CmpFPredicate::UNE, lse.front(), lowest);
                   Value counts = arith::AndIOp::create(b, visible, some);
                   return math::ExpOp::create(
                       b, arith::SelectOp::create(b, counts, power, lowest));
                 });

  // delta[i] = sum_c dout[i, c] * out[i, c] - dlse[i]
  Value delta =
      generic({dout, out}, filled({rows}, zero), {matrix, matrix, perRow},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value product = arith::MulFOp::create(b, toCompute(b, args[0]),
                                                      toCompute(b, args[1]));
                return arith::AddFOp::create(b, args[2], product);
              });
  if (this->dlse) {
    Value dlse = vectorOf(this->dlse, sequence.qRow, sequence.qRows, head);
    delta = generic({delta, dlse}, filled({rows}, zero),
                    {vector(), vector(), vector()},
                    [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                      return arith::SubFOp::create(b, args[0], args[1]);
                    });
  }

  // ds[i, j] = p[i, j] * (factor[i, j] * dout[i] . v[j] - delta[i]) where
  // visible, else 0: what p is multiplied by may be NaN where p is 0.
  Value dp = multiplyByFactors(scores, innerProducts(dout, v, rows, keys));
  Value ds = generic({p, dp, delta, visible}, filled({rows, keys}, zero),
                     {matrix, matrix, perRow, matrix, matrix},
                     [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                       Value change =
                           arith::SubFOp::create(b, args[1], args[2]);
                       Value value = arith::MulFOp::create(b, args[0], change);
                       return arith::SelectOp::create(b, args[3], value, zero);
                     });

  Value dlogits = ds;
  if (scoreBody)
    ds = pullBackScores(scores, dlogits, scoreBody->getArgument(Score),
                        filled({rows, keys}, zero), matrix);

  // dq = scale * ds k, dk += ds^T q, dv += (factor p)^T dout
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), q, 1);
  Value rowsDq = addWeighted(filled({rows, columns}, zero), ds, visible, k,
                             /*overQueries=*/false);
  SmallVector<Value> results = {
      store(rowsDq, scale, gradients[0], sequence.qRow, sequence.qRows, head),
      addWeighted(gradients[1], ds, visible, q, /*overQueries=*/true),
      addWeighted(gradients[2], multiplyByFactors(scores, p), visible, dout,
                  /*overQueries=*/true)};
  if (op.getSink())
    results.push_back(addToSink(gradients[3], head, lse, delta));
  llvm::append_range(results, gradients.take_back(op.getWrtCaptures().size()));
  addToCaptures(scores, dlogits, head, results);
  return results;
}

SmallVector<Value> GradDecomposer::differentiateKvHead(const Sequence &sequence,
                                                       Value visible,
                                                       Value kvHead,
                                                       ValueRange gradients) {
  auto sums = [&](Value packed) {
    OpFoldResult keys = sequence.kRows;
    OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), packed, 2);
    return filled({keys, columns}, constant(compute, 0));
  };
  Value group = groupSize();
  Value first = arith::MulIOp::create(b, kvHead, group);
  SmallVector<Value> inits(gradients);
  inits[1] = sums(op.getK());
  inits[2] = sums(op.getV());
  SmallVector<Value> results =
      loop(group, inits, [&](Value member, ValueRange values) {
        Value head = arith::AddIOp::create(b, first, member);
        return differentiateHead(sequence, visible, head, kvHead, values);
      });
  results[1] = store(results[1], scale, gradients[1], sequence.kRow,
                     sequence.kRows, kvHead);
  results[2] = store(results[2], /*scale=*/{}, gradients[2], sequence.kRow,
                     sequence.kRows, kvHead);
  return results;
}

Value GradDecomposer::zeros(unsigned number, Value like) {
  return filledResult(number, tensor::getMixedSizes(b, b.getLoc(), like), 0);
}

SmallVector<Value> GradDecomposer::run() {
  scale = loadScale();
  // Rows that belong to no sequence keep these.
  SmallVector<Value> gradients = {zeros(0, op.getQ()), zeros(1, op.getK()),
                                  zeros(2, op.getV())};
  if (op.getSink())
    gradients.push_back(zeros(3, op.getSink()));
  for (int64_t number : op.getWrtCaptures())
    gradients.push_back(zeros(gradients.size(), op.getCaptures()[number]));

  Value kvHeads = tensor::DimOp::create(b, op.getK(), 1);
  return loopOverSequences(gradients, [&](const Sequence &sequence,
                                          ValueRange gradients) {
    Value visible = visibleKeys(sequence);
    return loop(kvHeads, gradients, [&](Value kvHead, ValueRange gradients) {
      return differentiateKvHead(sequence, visible, kvHead, gradients);
    });
  });
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeGrad(AttentionOpInterface op, OpBuilder &builder,
                              Value dout, Value out, Value lse, Value dlse) {
  if (op.isBufferized() || failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  GradDecomposer decomposer(builder, op, dout, out, lse, dlse);
  return castToResultTypes(builder, op, decomposer.run());
}
