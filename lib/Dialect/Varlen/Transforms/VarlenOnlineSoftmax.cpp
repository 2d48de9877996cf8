//===- VarlenOnlineSoftmax.cpp - The steps of attention on tiles ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says what a step of online softmax computes, and what its
// gradients are. Targets differ in the orientation of the score tile and in how
// they lower the resulting linalg, not in this text.
//
//===----------------------------------------------------------------------===//

#include "GradientStepBuilder.h"
#include "OnlineAttnJVPBuilder.h"
#include "OnlineAttnJVPGradBuilder.h"
#include "ScoreReference.h"
#include "StateBuilder.h"
#include "StepBuilder.h"
#include "StepPanel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// The step of online softmax; emit() returns the new acc, m and l.
struct OnlineAttnBuilder : StateBuilder {
  OnlineAttnBuilder(OnlineAttnOp step, bool skipsRescaling, OpBuilder &builder)
      : StateBuilder(step, isRoundedIn(step), builder), step(step),
        skipsRescaling(skipsRescaling) {}
  SmallVector<Value> emit();
  /// The step in granules of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// The scores of a granule, and the largest one of each query so far.
  Values emitGranule(StepPanel &panel, const StepPanel::Granule &at,
                     ValueRange state);
  /// p of a group, as the second product reads it, and its sum.
  Values emitWeights(StepPanel &panel, const StepPanel::Group &group,
                     const Reference &to, Value scores, Value p, Value sum);
  /// The accumulator times `alpha`.
  Value rescaleAcc(Value alpha);

  OnlineAttnOp step;
  bool skipsRescaling;
};

/// Its gradients; emit() returns the new dq, dk, dv and gradients of captures
/// that are no tables, as far as asked for.
struct OnlineAttnGradBuilder : GradientStepBuilder<OnlineAttnGradOp> {
  using GradientStepBuilder::GradientStepBuilder;
  SmallVector<Value> emit();
  /// The gradients in granules of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// ds, as probabilities, of p and of that times the factor of the score
  /// region, the same value without one; adds the gradients of captures to
  /// `dcaptures`.
  Value scoreGradients(Value products, Value p, Value pTimesFactor, Value dp,
                       bool hides, SmallVectorImpl<Value> &dcaptures,
                       Value init = {});
  /// Pulls the cotangents of scores back through the score region to arguments
  /// of it, or to lookups in it, and writes what these get to `inits`.
  SmallVector<Value> pullBack(Value products, Value dscores, ValueRange sources,
                              ValueRange inits);
  /// Whether some result is made of ds.
  bool needsScoreGradients() {
    return step.getDq() || step.getDk() || !step.getWrtCaptures().empty();
  }
  /// p and ds of a granule, and the gradients of captures.
  Values emitGranule(StepPanel &panel, const StepPanel::Granule &at,
                     ValueRange state);
  SmallVector<Value> getResults(Value dq, Value dk, Value dv,
                                ValueRange dcaptures);
};

} // namespace

Value OnlineAttnBuilder::rescaleAcc(Value alpha) {
  Value acc = step.getAcc();
  // Targets with such a branch have queries as rows.
  if (kq || step.getRescaleThreshold() == 0 || !skipsRescaling)
    return multiply(acc, alpha);
  return RescaleOp::create(b, acc.getType(), acc, alpha);
}

SmallVector<Value> OnlineAttnBuilder::emit() {
  Value m = step.getM();
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  s = scaleKeys(s, step.getKScale(), /*init=*/s);
  s = hide(step, score(step, s), -kInfinity);

  Reference to = getReference(m, largest(s, m), step.getRescaleThreshold());
  Value alpha = rescaling(m, to);
  Value lBegin = beginSum(step.getL(), alpha);

  Value p = weights(s, to.factor, to.minus);
  Value lSum = reduce(p, lBegin, bodyOfSum);
  Value lNew = endSum(step.getL(), alpha, lSum);

  // The tensor cores and dot instructions want both factors in one type.
  p = multiplyByFactor(step, p);
  p = scaleKeys(p, step.getVScale(), /*init=*/p);
  p = round(p, step.getV());

  Value accBegin =
      isApart() ? beginSum(step.getAcc(), alpha) : rescaleAcc(alpha);
  Value accSum = kq ? contract(step.getV(), p, accBegin, {2, 0}, {2, 1})
                    : contract(p, step.getV(), accBegin, {0, 2}, {2, 1});
  return {endSum(step.getAcc(), alpha, accSum), to.m, lNew};
}

Values OnlineAttnBuilder::emitGranule(StepPanel &panel,
                                      const StepPanel::Granule &at,
                                      ValueRange state) {
  return panel.forSeeing(at, [&](const StepPanel::Queries &queries) {
    OwningOpRef<OnlineAttnOp> part = panel.cut(step, queries, at.row);
    Value tile = state[0], top = panel.sliceColumns(state[1], queries);
    Value s = products(panel.sliceRows(step.getQ(), queries),
                       panel.sliceRows(step.getK(), at.row),
                       panel.sliceGranule(tile, at.row, queries));
    if (Value scale = step.getKScale())
      s = scaleKeys(s, panel.sliceRows(scale, at.row), /*init=*/s);
    s = score(*part, s);
    auto insert = [&](Value s) {
      return panel.insert(s, tile, {at.row, queries.column});
    };
    auto hidden = [&](Value s) {
      return hide(*part, s, -kInfinity, /*init=*/s);
    };
    if (queries.width == at.group.width) {
      tile = insert(s);
      tile = emitChoice(
                 b, panel.isSeen(at), [&] { return Values{tile}; },
                 [&] {
                   return Values{insert(
                       hidden(panel.sliceGranule(tile, at.row, queries)))};
                 })
                 .front();
      s = panel.sliceGranule(tile, at.row, queries);
    } else {
      s = hidden(s);
      tile = insert(s);
    }
    top = raise(top, s);
    return Values{tile, panel.insertColumns(top, state[1], queries)};
  });
}

Values OnlineAttnBuilder::emitWeights(StepPanel &panel,
                                      const StepPanel::Group &group,
                                      const Reference &to, Value scores,
                                      Value p, Value sum) {
  for (const StepPanel::Queries &queries : group.vectors) {
    OwningOpRef<OnlineAttnOp> cut =
        panel.cut(step, queries, queries.keys.begin);
    SmallVector<OpFoldResult> offsets = {queries.keys.begin, queries.column},
                              sizes = {panel.getLength(queries.keys),
                                       b.getIndexAttr(queries.width)};
    Value part = weights(panel.slice(isRounded ? scores : p, offsets, sizes),
                         panel.sliceColumns(to.factor, queries),
                         panel.sliceColumns(to.minus, queries));
    // Before the sum of the weights, so that one loop computes all of it.
    Value kept = multiplyByFactor(*cut, part);
    if (Value scale = step.getVScale())
      kept = scaleKeys(kept,
                       panel.slice(scale, {offsets[0], b.getIndexAttr(0)},
                                   {sizes[0], b.getIndexAttr(1)}),
                       empty(kept, compute));
    Value added = reduce(part, panel.sliceColumns(sum, queries), bodyOfSum);
    sum = panel.insertColumns(added, sum, queries);
    p = panel.insert(round(kept, step.getV()), p, offsets);
  }
  return {p, sum};
}

SmallVector<Value> OnlineAttnBuilder::emitPanel(CPUScheduleAttr schedule) {
  Value m = step.getM(), acc = step.getAcc();
  StepPanel panel(b, schedule, step, getExtents(b, step.getK())[0]);
  Value scores = emptyScores(step.getQ(), step.getK());
  Values state = {scores, fill(-kInfinity, empty(m, compute))};
  state = panel.forEachGranule(
      state, [&](const StepPanel::Granule &at, ValueRange state) {
        return emitGranule(panel, at, state);
      });
  scores = state[0];
  Reference to = getReference(m, state[1], step.getRescaleThreshold());
  Value alpha = rescaling(m, to);

  // The second product wants both factors in one type.
  Value p = scores;
  if (isRounded)
    p = tensor::EmptyOp::create(b, getExtents(b, scores),
                                elementOf(step.getV()));
  Values sums = {p, beginSum(step.getL(), alpha), acc};
  sums = panel.forEachGroup(
      sums, [&](const StepPanel::Group &group, ValueRange state) {
        Values next = emitWeights(panel, group, to, scores, state[0], state[1]);
        Value factor = panel.sliceColumns(alpha, group);
        next.push_back(
            panel.forEachRows(state[2], group, [&](Value row, Value part) {
              Value sum = panel.addGroup(group, step.getV(), row, next[0],
                                         beginSum(part, factor));
              return endSum(part, factor, sum);
            }));
        return next;
      });
  return {sums[2], to.m, endSum(step.getL(), alpha, sums[1])};
}

SmallVector<Value> OnlineAttnGradBuilder::pullBack(Value products,
                                                   Value dscores,
                                                   ValueRange sources,
                                                   ValueRange inits) {
  return overScoresTiles(
      step, products, dscores, inits,
      [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange more,
          TableLookup) {
        Block *region = step.getScoreBody();
        SmallVector<Value> cotangents = emitScoreVJP(
            inner, inner.getLoc(), region, point, more[0], sources);
        return unlessHidden(inner, region, point, cotangents, 0.0);
      });
}

Value OnlineAttnGradBuilder::scoreGradients(Value products, Value p,
                                            Value pTimesFactor, Value dp,
                                            bool hides,
                                            SmallVectorImpl<Value> &dcaptures,
                                            Value init) {
  Block *region = step.getScoreBody();
  bool isPulledBack = changesScores(region) || getVisible(region);
  bool hasFactor = p != pTimesFactor;
  SmallVector<Value> inputs = {p, dp, step.getDelta()};
  if (hasFactor)
    inputs.push_back(pTimesFactor);
  Value ds = elementwise(
      inputs, init && !hides && !isPulledBack ? init : empty(p, compute),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        // The factor is in both products, but not in delta.
        if (hasFactor) {
          Value x = arith::MulFOp::create(inner, args[0], args[2]);
          Value y = arith::MulFOp::create(inner, args[3], args[1]);
          return arith::SubFOp::create(inner, y, x);
        }
        Value x = arith::SubFOp::create(inner, args[1], args[2]);
        return arith::MulFOp::create(inner, args[0], x);
      });
  addToCaptures(products, hides, dcaptures,
                [&](ValueRange sources, ValueRange inits) {
                  return pullBack(products, ds, sources, inits);
                });
  if (isPulledBack)
    ds = pullBack(products, ds, region->getArgument(Score),
                  init && !hides ? init : empty(products, compute))
             .front();
  // A p of 0 does not hide a NaN.
  return hides ? hide(step, ds, 0.0, init) : ds;
}

SmallVector<Value> OnlineAttnGradBuilder::emit() {
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  Value dq = step.getDq(), dk = step.getDk(), dv = step.getDv();
  auto multiplyDout = [&] {
    return products(step.getDout(), step.getV(), empty(s, compute));
  };
  Value dp;
  if (needsScoreGradients() && step.getScoresFirst())
    dp = multiplyDout();
  Value p = probabilities(s, /*hides=*/true);
  // The queries are the reduction of dk and dv, the keys that of dq.
  SmallVector<unsigned> keysFirst = {0, 2}, queriesFirst = {2, 0};
  if (!kq)
    std::swap(keysFirst, queriesFirst);

  SmallVector<Value> dcaptures(step.getDcaptures());
  Value pTimesFactor = multiplyByFactor(step, p);
  if (dv)
    dv = contract(round(pTimesFactor, step.getDout()), step.getDout(), dv,
                  keysFirst, {2, 1});
  if (needsScoreGradients()) {
    if (!dp)
      dp = multiplyDout();
    Value ds =
        scoreGradients(s, p, pTimesFactor, dp, /*hides=*/true, dcaptures);
    ds = round(ds, step.getQ());
    if (dk)
      dk = contract(ds, step.getQ(), dk, keysFirst, {2, 1});
    if (dq)
      dq = contract(ds, step.getK(), dq, queriesFirst, {2, 1});
  }
  return getResults(dq, dk, dv, dcaptures);
}

Values OnlineAttnGradBuilder::emitGranule(StepPanel &panel,
                                          const StepPanel::Granule &at,
                                          ValueRange state) {
  const StepPanel::Group &group = at.group;
  bool needsDs = needsScoreGradients();
  // Products, of one vector of queries if the other sees no key.
  Values scores = {emptyGranule(group)};
  if (needsDs)
    scores.push_back(emptyGranule(group));
  scores = panel.forSeeing(at, [&](const StepPanel::Queries &queries) {
    StepPanel::Queries own = queries;
    own.column = panel.getOffset(group, queries);
    auto emit = [&](Value ofQueries, Value ofKeys, Value tile) {
      Value products = this->products(panel.sliceRows(ofQueries, queries),
                                      panel.sliceRows(ofKeys, at.row),
                                      panel.sliceColumns(tile, own));
      return panel.insertColumns(products, tile, own);
    };
    Values next = {emit(step.getQ(), step.getK(), scores[0])};
    if (needsDs)
      next.push_back(emit(step.getDout(), step.getV(), scores[1]));
    return next;
  });

  // p and ds, in the tiles that other products read if they are not rounded for
  // these.
  SmallVector<WeightTile> tiles =
      placeGranule(at, state.take_front(scores.size()));
  OwningOpRef<OnlineAttnGradOp> part = panel.cut(step, group, at.row);
  auto emit = [&](bool hides) {
    OnlineAttnGradBuilder of(*part, b);
    auto placeOf = [&](const WeightTile &tile) {
      return viewGranule(panel, group, tile);
    };
    // With a factor p is where ds will be, which it is read for.
    bool hasFactor = getFactor(step.getScoreBody()) != nullptr;
    Value place = placeOf(tiles[0]);
    Value placeOfP = !hasFactor ? place : needsDs ? placeOf(tiles[1]) : Value();
    Value p = of.probabilities(scores[0], hides, placeOfP);
    Value pTimesFactor = of.multiplyByFactor(*part, p, place);
    Values next = {insertGranule(panel, pTimesFactor, tiles[0])};
    if (needsDs) {
      SmallVector<Value> dcaptures;
      for (Value sums : state.drop_front(2))
        dcaptures.push_back(panel.sliceColumns(sums, group));
      Value ds =
          of.scoreGradients(scores[0], p, pTimesFactor, scores[1], hides,
                            dcaptures, hasFactor ? p : placeOf(tiles[1]));
      next.push_back(insertGranule(panel, ds, tiles[1]));
      for (auto [sums, own] : llvm::zip_equal(state.drop_front(2), dcaptures))
        next.push_back(panel.insertColumns(own, sums, group));
    }
    return next;
  };
  return emitTiles(panel, at, tiles, emit);
}

SmallVector<Value> OnlineAttnGradBuilder::emitPanel(CPUScheduleAttr schedule) {
  StepPanel panel(b, schedule, step, getExtents(b, step.getK())[0]);
  Value scores = emptyScores(step.getQ(), step.getK());
  auto emptyLike = [&](Value factor) -> Value {
    return tensor::EmptyOp::create(b, getExtents(b, scores), elementOf(factor));
  };
  Values state = {emptyLike(step.getDout())};
  if (needsScoreGradients()) {
    state.push_back(emptyLike(step.getQ()));
    llvm::append_range(state, step.getDcaptures());
  }
  state = panel.forEachGranule(
      state, [&](const StepPanel::Granule &at, ValueRange state) {
        return emitGranule(panel, at, state);
      });
  Value dq = step.getDq(), dk = step.getDk(), dv = step.getDv();
  if (dv)
    dv = panel.addToKeys(state[0], step.getDout(), dv);
  if (dk)
    dk = panel.addToKeys(state[1], step.getQ(), dk);
  if (dq)
    dq = panel.addToQueries(state[1], step.getK(), dq);
  return getResults(
      dq, dk, dv,
      ArrayRef(state).drop_front(std::min<size_t>(state.size(), 2)));
}

SmallVector<Value> OnlineAttnGradBuilder::getResults(Value dq, Value dk,
                                                     Value dv,
                                                     ValueRange dcaptures) {
  SmallVector<Value> gradients = {dq, dk, dv};
  llvm::erase(gradients, Value());
  llvm::append_range(gradients, dcaptures);
  return gradients;
}

//===----------------------------------------------------------------------===//
// What each operation becomes
//===----------------------------------------------------------------------===//

/// On a CPU the keys that queries see are bounds of loops.
template <typename Builder, typename Step>
static SmallVector<Value> writeStep(Builder builder, Step step) {
  CPUScheduleAttr schedule = getEnclosingSchedule(step);
  return StepPanel::isPanel(step, schedule) ? builder.emitPanel(schedule)
                                            : builder.emit();
}

static SmallVector<Value> write(OnlineAttnGradOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnGradBuilder(step, builder), step);
}

static SmallVector<Value> write(OnlineAttnJVPOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnJVPBuilder(step, builder), step);
}

static SmallVector<Value> write(OnlineAttnJVPGradOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnJVPGradBuilder(step, builder), step);
}

/// The union of two states: acc, m, l and tangents.
static SmallVector<Value> write(OnlineMergeOp merge, OpBuilder &builder) {
  StateBuilder s(merge, merge.getRounded(), builder);
  StateBuilder::Reference to = s.getReference(merge.getM(), merge.getMoreM());
  Value alpha = s.rescaling(merge.getM(), to);
  Value beta = s.rescaling(merge.getMoreM(), to);
  auto sum = [&](Value tile, Value more) {
    Value rescaled = s.multiply(tile, alpha);
    return s.elementwise({more, beta, rescaled}, /*init=*/rescaled,
                         s.bodyOf<math::FmaOp>);
  };
  SmallVector<Value> state = {sum(merge.getAcc(), merge.getMoreAcc()), to.m,
                              sum(merge.getL(), merge.getMoreL())};
  for (auto [tangent, more] :
       llvm::zip_equal(merge.getTangents(), merge.getMoreTangents()))
    state.push_back(sum(tangent, more));
  return state;
}

/// The beginning of a state: acc, m, l and tangents.
static SmallVector<Value> write(OnlineInitOp begin, OpBuilder &builder) {
  StepBuilder s(begin, begin.getOrientation(), begin.getM(), builder);
  SmallVector<Value> state;
  for (auto [tile, number] :
       llvm::zip_equal(begin->getResults(), begin.getNumbers()))
    state.push_back(s.fill(number, s.empty(tile, s.compute)));
  return state;
}

/// `tile`, of a row for each query in orientation qk, with queries as rows.
static Value toRows(StepBuilder &s, Value tile) {
  if (!s.kq)
    return tile;
  SmallVector<OpFoldResult> sizes = getExtents(s.b, tile);
  std::swap(sizes[0], sizes[1]);
  Value rows = tensor::EmptyOp::create(s.b, sizes, s.compute);
  return linalg::TransposeOp::create(s.b, tile, rows, ArrayRef<int64_t>{1, 0})
      ->getResult(0);
}

/// `value`, or 0 for a row whose `factor` is 0: a row without a key may have
/// multiplied NaN by a weight of 0.
static Value unlessUnseen(ImplicitLocOpBuilder &inner, Value factor,
                          Value value) {
  Value zero = arith::ConstantOp::create(
      inner, inner.getFloatAttr(cast<FloatType>(factor.getType()), 0.0));
  Value none =
      arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, factor, zero);
  return arith::SelectOp::create(inner, none, zero, value);
}

/// The end of the tangents of a state, those of acc and l: of out and lse. acc
/// is multiplied by `factor` to make out.
static SmallVector<Value> writeTangents(OnlineFinishOp end, StepBuilder &s,
                                        Value factor, Value lse) {
  Value tacc = end.getTangents()[0], tl = end.getTangents()[1];
  SmallVector<Value> inputs = {tl, factor};
  if (end.getTsink())
    inputs.append({end.getSink(), end.getTsink(), lse});
  Value tlse =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value x = arith::MulFOp::create(inner, args[0], args[1]);
        x = unlessUnseen(inner, args[1], x);
        if (!end.getTsink())
          return x;
        Value term = RecomputedReference(s.compute, /*isNatural=*/true)
                         .emitSinkTerm(inner, args[2], /*lse=*/args[4],
                                       /*delta=*/args[3]);
        return arith::AddFOp::create(inner, x, term).getResult();
      });
  Value tout = s.elementwise(
      {tacc, end.getAcc(), tlse, factor}, s.empty(tacc, s.compute),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value change = arith::MulFOp::create(inner, args[2], args[1]);
        Value x = arith::SubFOp::create(inner, args[0], change);
        x = arith::MulFOp::create(inner, x, args[3]);
        return unlessUnseen(inner, args[3], x);
      });
  return {toRows(s, tout), tlse};
}

/// The end of a state: out and lse, and their tangents.
static SmallVector<Value> write(OnlineFinishOp end, OpBuilder &builder) {
  StepBuilder s(end, end.getOrientation(), end.getM(), builder);
  ScoreReference reference(end.getScale().convertToDouble(), s.compute,
                           end.getRounded());
  SmallVector<Value> inputs = {end.getM(), end.getL()};
  if (end.getSink())
    inputs.push_back(end.getSink());
  // Each result from its own text: what they share is common to both.
  auto result = [&](Value ScoreReference::Result::*field) {
    return s.perQuery(
        inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          return reference.emitResult(inner, args[0], args[1],
                                      end.getSink() ? args[2] : Value()).*
                 field;
        });
  };
  Value factor = result(&ScoreReference::Result::factor);
  Value lse = result(&ScoreReference::Result::lse);
  Value acc = end.getAcc();
  Value out =
      s.elementwise({acc, factor}, s.empty(acc, s.compute),
                    [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                      Value x = arith::MulFOp::create(inner, args[0], args[1]);
                      return unlessUnseen(inner, args[1], x);
                    });
  SmallVector<Value> results = {toRows(s, out), lse};
  if (!end.getTangents().empty())
    llvm::append_range(results, writeTangents(end, s, factor, lse));
  return results;
}

/// Products of rows.
static Value write(RowDotOp dot, OpBuilder &builder) {
  StepBuilder s(dot, Orientation::QK, dot.getResult(), builder);
  return s.reduce(
      {dot.getLhs(), dot.getRhs()},
      s.fill(0.0, s.empty(dot.getResult(), s.compute)),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        auto widen = [&](Value x) {
          return convertScalarToDtype(inner, inner.getLoc(), x, s.compute,
                                      /*isUnsignedCast=*/false);
        };
        Value x = arith::MulFOp::create(inner, widen(args[0]), widen(args[1]));
        return arith::AddFOp::create(inner, args[2], x);
      });
}

/// What gradients need of rows: lse, delta and, with a sink, its terms.
static SmallVector<Value> write(OnlineStatisticsOp rows, OpBuilder &builder) {
  StepBuilder s(rows, Orientation::QK, rows.getLse(), builder);
  RecomputedReference reference(s.compute, rows.getNatural());
  Value lse = s.perQuery(rows.getLse(),
                         [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                           return reference.emitLse(inner, args[0]);
                         });
  SmallVector<Value> inputs = {rows.getLse(), rows.getDot()};
  if (rows.getDlse())
    inputs.push_back(rows.getDlse());
  Value delta =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        return reference.emitDelta(inner, args[0], args[1],
                                   rows.getDlse() ? args[2] : Value());
      });
  SmallVector<Value> results = {lse, delta};
  if (rows.getSink())
    results.push_back(s.perQuery(
        {rows.getSink(), lse, delta},
        [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          return reference.emitSinkTerm(inner, args[0], args[1], args[2]);
        }));
  return results;
}

/// What gradients of tangents need of rows: tdelta and, with a sink, its terms.
static SmallVector<Value> write(OnlineTangentStatisticsOp rows,
                                OpBuilder &builder) {
  StepBuilder s(rows, Orientation::QK, rows.getLse(), builder);
  RecomputedReference reference(s.compute, rows.getNatural());
  SmallVector<Value> inputs = {rows.getLse()};
  llvm::append_range(inputs, rows.getDots());
  if (rows.getDlse())
    inputs.push_back(rows.getDlse());
  Value tdelta =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value dot = args[1];
        for (Value more : args.slice(2, rows.getDots().size() - 1))
          dot = arith::AddFOp::create(inner, dot, more);
        return reference.emitDelta(inner, args[0], dot,
                                   rows.getDlse() ? args.back() : Value());
      });
  if (!rows.getSink())
    return {tdelta};
  inputs = {rows.getSink(), rows.getLse(), rows.getDelta(), rows.getTlse(),
            tdelta};
  if (rows.getTsink())
    inputs.push_back(rows.getTsink());
  Value term =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value change =
            rows.getTsink()
                ? arith::SubFOp::create(inner, args[5], args[3]).getResult()
                : arith::NegFOp::create(inner, args[3]).getResult();
        Value sum = math::FmaOp::create(inner, change, args[2], args[4]);
        return reference.emitSinkTerm(inner, args[0],
                                      reference.emitLse(inner, args[1]), sum);
      });
  return {tdelta, term};
}

template <typename Op>
static LogicalResult writeOut(Op op, PatternRewriter &rewriter) {
  rewriter.replaceOp(op, write(op, rewriter));
  return success();
}

namespace {
struct OnlineAttnPattern : OpRewritePattern<OnlineAttnOp> {
  OnlineAttnPattern(MLIRContext *context, bool skipsRescaling)
      : OpRewritePattern(context), skipsRescaling(skipsRescaling) {}

  LogicalResult matchAndRewrite(OnlineAttnOp step,
                                PatternRewriter &rewriter) const override {
    OnlineAttnBuilder builder(step, skipsRescaling, rewriter);
    rewriter.replaceOp(step, writeStep(builder, step));
    return success();
  }

  bool skipsRescaling;
};

struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  using VarlenOnlineSoftmaxBase::VarlenOnlineSoftmaxBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      numSteps += isa<OnlineAttnOp>(op);
      numGradSteps += isa<OnlineAttnGradOp>(op);
    });
    RewritePatternSet patterns(&getContext());
    populateOnlineSoftmaxPatterns(patterns, skipsRescaling);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void varlen::populateOnlineSoftmaxPatterns(RewritePatternSet &patterns,
                                           bool skipsRescaling) {
  patterns.add<OnlineAttnPattern>(patterns.getContext(), skipsRescaling)
      .add(writeOut<OnlineAttnGradOp>)
      .add(writeOut<OnlineAttnJVPOp>)
      .add(writeOut<OnlineAttnJVPGradOp>)
      .add(writeOut<OnlineInitOp>)
      .add(writeOut<OnlineMergeOp>)
      .add(writeOut<OnlineFinishOp>)
      .add(writeOut<RowDotOp>)
      .add(writeOut<OnlineStatisticsOp>)
      .add(writeOut<OnlineTangentStatisticsOp>);
}
