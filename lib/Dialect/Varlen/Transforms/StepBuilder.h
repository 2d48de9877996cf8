//===- StepBuilder.h - Steps of attention as linalg -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPBUILDER_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

namespace mlir::varlen {

/// The product of two tiles, added to `init`. `lhsDims` and `rhsDims` count the
/// loops (rows, columns, depth) of the result.
Value emitContract(ImplicitLocOpBuilder &b, Value lhs, Value rhs, Value init,
                   ArrayRef<unsigned> lhsDims, ArrayRef<unsigned> rhsDims);

/// Writes linalg on the tiles of one operation. A score tile has two axes, rows
/// and columns; a statistic has extent 1 along the key axis, so its type alone
/// says what it is.
class StepBuilder {
public:
  /// Computes in the element type of `statistic`.
  StepBuilder(Operation *op, Orientation orientation, Value statistic,
              OpBuilder &builder)
      : op(op), b(op->getLoc(), builder), kq(orientation == Orientation::KQ),
        compute(cast<FloatType>(elementOf(statistic))) {}

  using Body = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;
  /// The body that is one operation on all of its arguments.
  template <typename Op>
  static Value bodyOf(ImplicitLocOpBuilder &inner, ValueRange args) {
    return Op::create(inner, args);
  }
  /// The body of a sum, which goes on with what it gets last.
  static Value bodyOfSum(ImplicitLocOpBuilder &inner, ValueRange args);

  static Type elementOf(Value tile) {
    return cast<RankedTensorType>(tile.getType()).getElementType();
  }
  Value empty(Value like, Type element);
  Value fill(double value, Value init);
  Value constant(double value);

  // Structured operations.
  Value contract(Value lhs, Value rhs, Value init, ArrayRef<unsigned> lhsDims,
                 ArrayRef<unsigned> rhsDims) {
    return emitContract(b, lhs, rhs, init, lhsDims, rhsDims);
  }
  Value elementwise(ValueRange inputs, Value init, Body body);
  /// Several tiles of one operation, of one shape.
  using TilesBody =
      function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>;
  SmallVector<Value> elementwiseTiles(ValueRange inputs, ValueRange inits,
                                      TilesBody body);
  /// A statistic of each query that a statistic, or several, say.
  Value perQuery(ValueRange inputs, Body body) {
    return elementwise(inputs, empty(inputs[0], compute), body);
  }
  /// The reduction of what `inputs` have for each query to a statistic.
  Value reduce(ValueRange inputs, Value init, Body combine);
  Value negate(Value tile);
  /// A score tile times `scale`, a number of each of its keys, which may be
  /// null; written to `init`.
  Value scaleKeys(Value tile, Value scale, Value init);
  /// `tile` rounded to the type of `like`, unless that is quantised.
  Value round(Value tile, Value like);
  Value exp2(ImplicitLocOpBuilder &inner, Value x);
  /// The weight of a score, of its factor and summand.
  Value weight(ImplicitLocOpBuilder &inner, ValueRange args);

  /// A score tile without values.
  Value emptyScores(Value queries, Value keys);
  /// Products of all rows of `keys`, N x (depth), with all rows of `queries`:
  /// a score tile like `scores`.
  Value products(Value queries, Value keys, Value scores);
  /// Adds such products to `scores`.
  Value addProducts(Value queries, Value keys, Value scores);
  /// What `body` makes of the arguments of the score region of `step` for each
  /// of `products`, and of `more` score tiles there, written to `init`.
  using ScoreBody = function_ref<Value(ImplicitLocOpBuilder &,
                                       const ScorePoint &, ValueRange more)>;
  template <typename Step>
  Value overScores(Step step, Value products, ValueRange more, Value init,
                   ScoreBody body) {
    return overScoresTiles(
               step, products, more, init,
               [&](ImplicitLocOpBuilder &inner, const ScorePoint &point,
                   ValueRange more, TableLookup) {
                 return SmallVector<Value>{body(inner, point, more)};
               })
        .front();
  }
  /// The same with several results. The last argument looks up in the tables of
  /// the step that are behind those of its score region, by number.
  using TableLookup = ScorePoint::Lookup;
  using ScoreTilesBody = function_ref<SmallVector<Value>(
      ImplicitLocOpBuilder &, const ScorePoint &, ValueRange more,
      TableLookup)>;
  template <typename Step>
  SmallVector<Value> overScoresTiles(Step step, Value products, ValueRange more,
                                     ValueRange inits, ScoreTilesBody body) {
    ScoreInputs inputs{step.getScoreBody(), step.getPosition(),
                       step.getFirstKey(),  step.getCaptures(),
                       step.getTables(),    step.getRows()};
    return overScores(inputs, products, more, inits, body);
  }
  /// The scores that a step makes of products.
  template <typename Step> Value score(Step step, Value products) {
    Block *region = step.getScoreBody();
    if (!changesScores(region) && !getVisible(region))
      return products;
    return overScores(
        step, products, {}, empty(products, compute),
        [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange) {
          Value score = emitScore(inner, region, point);
          return unlessHidden(inner, region, point, score, -kInfinity).front();
        });
  }
  /// Probabilities times the factor that the score region has of each, written
  /// to `init` if that is not null; `p` as it is without a factor.
  template <typename Step>
  Value multiplyByFactor(Step step, Value p, Value init = {}) {
    Block *region = step.getScoreBody();
    if (!getFactor(region))
      return p;
    // The factor is of any score: p itself is in the place of one.
    return overScores(
        step, p, {}, init ? init : empty(p, compute),
        [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange) {
          return multiply(inner, point.arguments[Score],
                          emitFactor(inner, region, point));
        });
  }
  /// What `body` emits with the tangents of the arguments of a score region at
  /// a point, of which `elements` are the score's and those of the captures of
  /// `wrtCaptures` that are no tables; `lookup` looks up in the tangents of
  /// those that are, in their order.
  static SmallVector<Value>
  withTangents(Block *region, ArrayRef<int64_t> wrtCaptures,
               const ScorePoint &point, ValueRange elements, TableLookup lookup,
               function_ref<SmallVector<Value>(const ScorePoint &)> body);
  /// `values`, or `hidden` where the score region hides the key.
  SmallVector<Value> unlessHidden(ImplicitLocOpBuilder &inner, Block *region,
                                  const ScorePoint &point, ValueRange values,
                                  double hidden);
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  /// The score tile with `hidden` where `step` hides a key from a query,
  /// written to `init` if that is not null.
  template <typename Step>
  Value hide(Step step, Value scores, double hidden, Value init = {}) {
    if (!step.getLo())
      return scores;
    Value whole;
    if (step.getSeenBegin())
      whole = isAll(step.getSeenBegin(), step.getSeenEnd(), step.getK());
    return hide(scores, step.getLo(), step.getHi(), step.getK0(), whole, hidden,
                init ? init : empty(scores, compute));
  }

  Operation *op;
  ImplicitLocOpBuilder b;
  bool kq;
  FloatType compute;

private:
  /// The map of `value` in a loop nest over the axes of a score (or acc) tile:
  /// the identity, or the projection to a statistic.
  AffineMap tileMap(Value value);
  /// An exponential, with the degree that suffices for the step.
  Value withDegree(Value exponential);
  /// In the body of a score tile: which key of its block a score is of, an i32.
  Value keyInBlock(ImplicitLocOpBuilder &inner);
  Value hide(Value scores, Value lo, Value hi, Value k0, Value whole,
             double hidden, Value init);
  /// Whether rows `begin` to before `end` are all that a tile has.
  Value isAll(Value begin, Value end, Value tile);
  /// What the score region of a step reads.
  struct ScoreInputs {
    Block *region;
    Value position, firstKey;
    ValueRange captures, tables, rows;
  };
  SmallVector<Value> overScores(const ScoreInputs &of, Value products,
                                ValueRange more, ValueRange inits,
                                ScoreTilesBody body);
  static Value multiply(ImplicitLocOpBuilder &inner, Value lhs, Value rhs);
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_STEPBUILDER_H
