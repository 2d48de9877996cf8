//===- OnlineAttnGradBuilder.cpp - Gradients of a step as linalg ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineAttnGradBuilder.h"

#include "ScoreReference.h"
#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

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

Values OnlineAttnGradBuilder::emitRegisterBlock(
    StepPanel &panel, const StepPanel::RegisterBlock &at, ValueRange state) {
  const StepPanel::Group &group = at.group;
  bool needsDs = needsScoreGradients();
  // Products, of one vector of queries if the other sees no key.
  Values scores = {emptyRegisterBlock(group)};
  if (needsDs)
    scores.push_back(emptyRegisterBlock(group));
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
      placeRegisterBlock(at, state.take_front(scores.size()));
  OwningOpRef<OnlineAttnGradOp> part = panel.cut(step, group, at.row);
  auto emit = [&](bool hides) {
    OnlineAttnGradBuilder of(*part, b);
    auto placeOf = [&](const WeightTile &tile) {
      return viewRegisterBlock(panel, group, tile);
    };
    // With a factor p is where ds will be, which it is read for.
    bool hasFactor = getFactor(step.getScoreBody()) != nullptr;
    Value place = placeOf(tiles[0]);
    Value placeOfP = !hasFactor ? place : needsDs ? placeOf(tiles[1]) : Value();
    Value p = of.probabilities(scores[0], hides, placeOfP);
    Value pTimesFactor = of.multiplyByFactor(*part, p, place);
    Values next = {insertRegisterBlock(panel, pTimesFactor, tiles[0])};
    if (needsDs) {
      SmallVector<Value> dcaptures;
      for (Value sums : state.drop_front(2))
        dcaptures.push_back(panel.sliceColumns(sums, group));
      Value ds =
          of.scoreGradients(scores[0], p, pTimesFactor, scores[1], hides,
                            dcaptures, hasFactor ? p : placeOf(tiles[1]));
      next.push_back(insertRegisterBlock(panel, ds, tiles[1]));
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
  state = panel.forEachRegisterBlock(
      state, [&](const StepPanel::RegisterBlock &at, ValueRange state) {
        return emitRegisterBlock(panel, at, state);
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
