//===- GradDecomposer.cpp - Gradients in plain linalg ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradDecomposer.h"

#include "AttentionInterface.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What gradients are made of
//===----------------------------------------------------------------------===//

GradDecomposer::Head GradDecomposer::loadHead(const Sequence &sequence,
                                              Value visible, Value number,
                                              Value kvHead) {
  Value q = rowsOf(op.getQ(), sequence.qRow, sequence.qRows, number);
  Value k = rowsOf(sequence.k, sequence.kRow, sequence.kRows, kvHead);
  Value v = rowsOf(sequence.v, sequence.kRow, sequence.kRows, kvHead);
  Value lse = vectorOf(this->lse, sequence.qRow, sequence.qRows, number);
  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  Value zero = constant(compute, 0), lowest = this->lowest();

  // p[i, j] = exp(scale * q[i] . k[j] - lse[i]) where visible, else 0: a row
  // that sees no key, or whose scores are all -inf, has lse = -inf and no
  // weight. The argument is chosen, not the exponential: an infinite one would
  // make a NaN of a derivative that is 0.
  SmallVector<Value> captures = loadCaptures(sequence, number);
  visible = visibleKeys(sequence, visible, captures);
  Scores scores{sequence, innerProducts(q, k, rows, keys), visible, captures};
  Value p = overScores(
      scores, {{lse, perRow()}}, filled({rows, keys}, zero), matrix(),
      [&](ImplicitLocOpBuilder &b, const ScorePoint &point, ValueRange lse,
          Value visible) -> Value {
        Value power =
            arith::SubFOp::create(b, emitLogit(b, point), lse.front());
        Value some = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE,
                                           lse.front(), lowest);
        Value counts = arith::AndIOp::create(b, visible, some);
        return math::ExpOp::create(
            b, arith::SelectOp::create(b, counts, power, lowest));
      });
  return {scores, number, kvHead, q, k, v, lse, p};
}

Value GradDecomposer::overVisible(const Head &head, ArrayRef<PointInput> inputs,
                                  Body body) {
  Value zero = constant(compute, 0);
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const PointInput &input : inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(input.map);
  }
  tensors.push_back(head.scores.visible);
  maps.append(2, matrix());
  return generic(tensors, filled({head.rows(), head.keys()}, zero), maps,
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   Value visible = args[inputs.size()];
                   Value value = body(b, args.take_front(inputs.size()));
                   return arith::SelectOp::create(b, visible, value, zero);
                 });
}

Value GradDecomposer::addRowDots(Value init, Value lhs, Value rhs) {
  return generic({lhs, rhs}, init, {matrix(), matrix(), perRow()},
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   Value product = arith::MulFOp::create(
                       b, toCompute(b, args[0]), toCompute(b, args[1]));
                   return arith::AddFOp::create(b, args[2], product);
                 });
}

Value GradDecomposer::subtract(const Head &head, Value lhs, Value rhs) {
  return generic({lhs, rhs}, filled({head.rows()}, constant(compute, 0)),
                 {vector(), vector(), vector()},
                 [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   return arith::SubFOp::create(b, args[0], args[1]);
                 });
}

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

Value GradDecomposer::addToSink(Value dsink, const Head &head,
                                ValueRange inputs, SinkBody body) {
  Value sink = loadSink(head.number), zero = constant(compute, 0);
  // A sink of -inf is no part of any softmax; lse may be -inf beside it.
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, lowest());
  SmallVector<Value> vectors = {head.lse};
  llvm::append_range(vectors, inputs);
  SmallVector<AffineMap> maps(vectors.size(), vector());
  maps.push_back(map(1, {}));
  Value sum = generic(vectors, filled({}, zero), maps,
                      [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                        Value share = math::ExpOp::create(
                            b, arith::SubFOp::create(b, sink, args[0]));
                        Value term = arith::MulFOp::create(
                            b, share, body(b, args.slice(1, inputs.size())));
                        term = arith::SelectOp::create(b, none, zero, term);
                        return arith::AddFOp::create(b, args.back(), term);
                      });
  Value before = tensor::ExtractOp::create(b, dsink, head.number);
  Value after = arith::SubFOp::create(
      b, before, tensor::ExtractOp::create(b, sum, ValueRange()));
  return tensor::InsertOp::create(b, after, dsink, head.number);
}

//===----------------------------------------------------------------------===//
// Score regions
//===----------------------------------------------------------------------===//

Value GradDecomposer::pullBackScores(const Scores &scores,
                                     ArrayRef<PointInput> cotangents,
                                     Value source, Value init,
                                     AffineMap resultMap) {
  Value zero = constant(compute, 0);
  return overScores(
      scores, cotangents, init, resultMap,
      [&](ImplicitLocOpBuilder &b, const ScorePoint &point, ValueRange elements,
          Value visible) -> Value {
        Value value =
            pullBack(b, point, elements, getPair(b).query, source).front();
        return arith::SelectOp::create(b, visible, value, zero);
      });
}

Value GradDecomposer::addToTable(const Head &head,
                                 ArrayRef<PointInput> cotangents,
                                 unsigned capture, Value gradient) {
  const Scores &scores = head.scores;
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
    SmallVector<Value> both = {pair.query, pair.key}, rows, elements;
    for (Value vector : getVectors(scores.captures))
      rows.push_back(load(vector, pair.query));
    for (const PointInput &input : cotangents)
      elements.push_back(load(input.tensor, input.map == matrix()
                                                ? ValueRange(both)
                                                : ValueRange(pair.query)));
    Value score = arith::MulFOp::create(b, load(scores.products, both), scale);
    SmallVector<Value> arguments =
        scoreArguments(b, sequence, pair, score, scores.captures, rows);
    auto lookup = [&](OpBuilder &b, Location, unsigned capture, Value index) {
      return lookUp(b, scores.captures[capture], pair.query, index);
    };
    ScorePoint point{arguments, lookup};
    Value visible = load(scores.visible, both);
    SmallVector<Value> terms =
        pullBack(b, point, elements, pair.query, entries);
    for (auto [lookup, cotangent] : llvm::zip_equal(lookups, terms)) {
      SmallVector<Value> at = {head.number};
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

void GradDecomposer::addToCaptures(const Head &head,
                                   ArrayRef<PointInput> cotangents,
                                   SmallVectorImpl<Value> &gradients) {
  size_t count = op.getWrtCaptures().size();
  const Scores &scores = head.scores;
  const Sequence &sequence = scores.sequence;
  Value zero = constant(compute, 0);
  for (auto [number, gradient] : llvm::zip_equal(
           op.getWrtCaptures(), MutableArrayRef(gradients).take_back(count))) {
    if (isTable(scoreBody, number)) {
      gradient = addToTable(head, cotangents, number, gradient);
      continue;
    }
    Value argument = scoreBody->getArgument(Captures + number);
    if (isa<RankedTensorType>(scores.captures[number].getType())) {
      Value sums = pullBackScores(scores, cotangents, argument,
                                  filled({sequence.qRows}, zero), perRow());
      gradient = insertVector(sums, gradient, sequence.qRow, sequence.qRows,
                              head.number);
      continue;
    }
    Value sum = pullBackScores(scores, cotangents, argument, filled({}, zero),
                               map(2, {}));
    Value total = arith::AddFOp::create(
        b, tensor::ExtractOp::create(b, gradient, head.number),
        tensor::ExtractOp::create(b, sum, ValueRange()));
    gradient = tensor::InsertOp::create(b, total, gradient, head.number);
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

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
        Value number = arith::AddIOp::create(b, first, member);
        return differentiateHead(loadHead(sequence, visible, number, kvHead),
                                 values);
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
