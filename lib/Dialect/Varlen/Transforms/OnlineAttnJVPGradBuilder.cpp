//===- OnlineAttnJVPGradBuilder.cpp - Second derivatives of a step --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineAttnJVPGradBuilder.h"

#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Score tiles
//===----------------------------------------------------------------------===//

void OnlineAttnJVPGradBuilder::multiplyForScores(const QueryRows &queries,
                                                 const KeyRows &keys,
                                                 Products &tiles) {
  tiles.s = products(queries.q, keys.k, tiles.s);
  tiles.ts = products(queries.tq, keys.k, tiles.ts);
  tiles.ts = addProducts(queries.q, keys.tk, tiles.ts);
}

void OnlineAttnJVPGradBuilder::multiplyForCotangents(const QueryRows &queries,
                                                     const KeyRows &keys,
                                                     Products &tiles) {
  tiles.dp = products(queries.dtout, keys.v, tiles.dp);
  tiles.tdp = products(queries.dtout, keys.tv, tiles.tdp);
  if (queries.dout)
    tiles.tdp = addProducts(queries.dout, keys.v, tiles.tdp);
}

SmallVector<OnlineAttnJVPGradBuilder::Weight>
OnlineAttnJVPGradBuilder::getNeededWeights() {
  SmallVector<Weight> needed;
  if (step.getDv())
    needed.push_back(Tp);
  if (step.getDv() && step.getDout())
    needed.push_back(P);
  if (needsScoreGradients())
    needed.append({Ds, Tds});
  return needed;
}

OnlineAttnJVPGradBuilder::Weights
OnlineAttnJVPGradBuilder::toWeights(ValueRange needed) {
  Weights weights;
  for (auto [weight, value] : llvm::zip_equal(getNeededWeights(), needed))
    weights[weight] = value;
  return weights;
}

Value OnlineAttnJVPGradBuilder::emitFactors(Value products) {
  Block *region = step.getScoreBody();
  if (!getFactor(region))
    return {};
  return overScores(
      step, products, {}, empty(products, compute),
      [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange) {
        return emitFactor(inner, region, point);
      });
}

Value OnlineAttnJVPGradBuilder::emitScoreTangents(const Products &products) {
  Block *region = step.getScoreBody();
  if (!changesScores(region) && !getVisible(region))
    return products.ts;
  SmallVector<Value> more = {products.ts};
  llvm::append_range(more, step.getTcaptures());
  auto body = [&](ImplicitLocOpBuilder &inner, const ScorePoint &point,
                  ValueRange more, TableLookup lookup) {
    SmallVector<Value> made =
        withTangents(region, step.getTangentCaptures(), point, more, lookup,
                     [&](const ScorePoint &tangents) {
                       return SmallVector<Value>{emitScoreJVP(
                           inner, inner.getLoc(), region, point, tangents)};
                     });
    return unlessHidden(inner, region, point, made, 0.0);
  };
  return overScoresTiles(step, products.s, more, empty(products.s, compute),
                         body)
      .front();
}

Value OnlineAttnJVPGradBuilder::pullBack(const Products &products,
                                         Value dscores, Value init) {
  Block *region = step.getScoreBody();
  return overScores(
      step, products.s, dscores, init,
      [&](ImplicitLocOpBuilder &inner, const ScorePoint &point,
          ValueRange more) {
        SmallVector<Value> cotangents =
            emitScoreVJP(inner, inner.getLoc(), region, point, more[0],
                         region->getArgument(Score));
        return unlessHidden(inner, region, point, cotangents, 0.0).front();
      });
}

SmallVector<Value> OnlineAttnJVPGradBuilder::pullBackTangents(
    const Products &products, Value dscores, Value tdscores, ValueRange sources,
    ValueRange inits) {
  Block *region = step.getScoreBody();
  SmallVector<Value> more = {dscores, tdscores, products.ts};
  llvm::append_range(more, step.getTcaptures());
  return overScoresTiles(
      step, products.s, more, inits,
      [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange more,
          TableLookup lookup) {
        SmallVector<Value> cotangents = withTangents(
            region, step.getTangentCaptures(), point, more.drop_front(2),
            lookup, [&](const ScorePoint &tangents) {
              return emitScoreVJPTangents(inner, inner.getLoc(), region, point,
                                          tangents, {more[0], more[1]},
                                          sources);
            });
        return unlessHidden(inner, region, point, cotangents, 0.0);
      });
}

OnlineAttnJVPGradBuilder::Recomputed
OnlineAttnJVPGradBuilder::recompute(const Products &products, bool hides,
                                    const Weights &places) {
  Recomputed tiles;
  tiles.factors = emitFactors(products.s);
  // p is where it is a weight, or where the last of them will be, which it is
  // read for.
  SmallVector<Weight> needed = getNeededWeights();
  bool isWeight = llvm::is_contained(needed, P) && !tiles.factors;
  tiles.p =
      probabilities(products.s, hides, places[isWeight ? P : needed.back()]);
  tiles.ts = emitScoreTangents(products);
  return tiles;
}

void OnlineAttnJVPGradBuilder::emitWeights(ArrayRef<Weight> wanted,
                                           const Products &products,
                                           const Recomputed &tiles, bool hides,
                                           MutableArrayRef<Value> dcaptures,
                                           const Weights &places,
                                           Weights &weights) {
  Block *region = step.getScoreBody();
  bool isPulledBack = changesScores(region) || getVisible(region);
  auto isWanted = [&](Weight weight) {
    return llvm::is_contained(wanted, weight);
  };

  // Bodies name what they read; the rest of the inputs is dropped.
  enum { Own, OfScores, Tlse, Dp, Delta, Tdp, Tdelta };
  SmallVector<Value> inputs = {tiles.p, tiles.ts, step.getTlse()};
  if (products.dp)
    inputs.append(
        {products.dp, step.getDelta(), products.tdp, step.getTdelta()});
  size_t numberOfFactor = inputs.size();
  if (tiles.factors)
    inputs.push_back(tiles.factors);
  double scale = step.getScale().convertToDouble();
  auto times = [](ImplicitLocOpBuilder &b, Value x, Value y) -> Value {
    return arith::MulFOp::create(b, x, y);
  };
  auto minus = [](ImplicitLocOpBuilder &b, Value x, Value y) -> Value {
    return arith::SubFOp::create(b, x, y);
  };
  // A factor multiplies probabilities behind the softmax: it is in their
  // cotangents, but not in delta.
  auto timesFactor = [&](ImplicitLocOpBuilder &b, ValueRange args, Value x) {
    return tiles.factors ? times(b, x, args[numberOfFactor]) : x;
  };
  // ts - tlse
  auto change = [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    Value ts = args[OfScores];
    if (scale != 1.0)
      ts = times(b, ts,
                 arith::ConstantOp::create(b, b.getFloatAttr(compute, scale)));
    return minus(b, ts, args[Tlse]);
  };
  // dp - delta
  auto excess = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return minus(b, timesFactor(b, args, args[Dp]), args[Delta]);
  };
  // A p of 0 does not hide a NaN.
  auto make = [&](Value place, Body body) {
    Value tile = elementwise(
        inputs, place && !hides ? place : empty(products.s, compute), body);
    return hides ? hide(step, tile, 0.0, place) : tile;
  };

  if (isWanted(Tp))
    weights[Tp] =
        make(places[Tp], [&](ImplicitLocOpBuilder &b, ValueRange args) {
          return timesFactor(b, args, times(b, args[Own], change(b, args)));
        });
  if (isWanted(P))
    weights[P] =
        !tiles.factors
            ? tiles.p
            : make(places[P], [&](ImplicitLocOpBuilder &b, ValueRange args) {
                return timesFactor(b, args, args[Own]);
              });
  if (!isWanted(Tds))
    return;
  auto bodyOfDs = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return times(b, args[Own], excess(b, args));
  };
  auto bodyOfTds = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    Value texcess = minus(b, timesFactor(b, args, args[Tdp]), args[Tdelta]);
    Value sum =
        math::FmaOp::create(b, change(b, args), excess(b, args), texcess);
    return times(b, args[Own], sum);
  };
  if (!isPulledBack) {
    weights[Ds] = make(places[Ds], bodyOfDs);
    weights[Tds] = make(places[Tds], bodyOfTds);
    return;
  }
  auto cotangents = [&](Body body) {
    return elementwise(inputs, empty(products.s, compute), body);
  };
  Value ds = cotangents(bodyOfDs), tds = cotangents(bodyOfTds);
  addToCaptures(products.s, hides, dcaptures,
                [&](ValueRange sources, ValueRange inits) {
                  return pullBackTangents(products, ds, tds, sources, inits);
                });
  auto initOf = [&](Weight weight) {
    Value place = places[weight];
    return place && !hides ? place : empty(products.s, compute);
  };
  auto keep = [&](Weight weight, Value tile) {
    weights[weight] = hides ? hide(step, tile, 0.0, places[weight]) : tile;
  };
  keep(Ds, pullBack(products, ds, initOf(Ds)));
  keep(Tds, pullBackTangents(products, ds, tds, region->getArgument(Score),
                             initOf(Tds))
                .front());
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

SmallVector<Value> OnlineAttnJVPGradBuilder::emit() {
  QueryRows queries = {step.getQ(), step.getTq(), step.getDtout(),
                       step.getDout()};
  KeyRows keys = {step.getK(), step.getTk(), step.getV(), step.getTv()};
  Products products;
  for (Value *tile : {&products.s, &products.ts})
    *tile = emptyScores(step.getQ(), step.getK());
  multiplyForScores(queries, keys, products);
  Recomputed tiles = recompute(products, /*hides=*/true, /*places=*/{});
  SmallVector<Value> dcaptures(step.getDcaptures());
  Weights weights;
  auto make = [&](ArrayRef<Weight> wanted) {
    emitWeights(wanted, products, tiles, /*hides=*/true, dcaptures,
                /*places=*/{}, weights);
    for (Weight weight : wanted)
      weights[weight] = round(weights[weight], getFactorOf(weight));
  };
  // The queries are the reduction of dk and dv, the keys that of dq.
  SmallVector<unsigned> keysFirst = {0, 2}, queriesFirst = {2, 0};
  if (!kq)
    std::swap(keysFirst, queriesFirst);
  auto add = [&](Value sum, Weight weight, Value rows,
                 ArrayRef<unsigned> dims) {
    return contract(weights[weight], rows, sum, dims, {2, 1});
  };

  // dv first: what takes its weights to registers need not be there beside the
  // products for cotangents.
  Value dv = step.getDv(), dk = step.getDk(), dq = step.getDq();
  SmallVector<Weight> needed = getNeededWeights();
  make(ArrayRef(needed).take_while(
      [](Weight weight) { return weight == Tp || weight == P; }));
  if (dv)
    dv = add(dv, Tp, step.getDtout(), keysFirst);
  if (dv && step.getDout())
    dv = add(dv, P, step.getDout(), keysFirst);
  if (!needsScoreGradients())
    return getResults(dq, dk, dv, dcaptures);
  for (Value *tile : {&products.dp, &products.tdp})
    *tile = emptyScores(step.getQ(), step.getK());
  multiplyForCotangents(queries, keys, products);
  make({Ds, Tds});
  if (dk) {
    dk = add(dk, Tds, step.getQ(), keysFirst);
    dk = add(dk, Ds, step.getTq(), keysFirst);
  }
  if (dq) {
    dq = add(dq, Tds, step.getK(), queriesFirst);
    dq = add(dq, Ds, step.getTk(), queriesFirst);
  }
  return getResults(dq, dk, dv, dcaptures);
}

Values OnlineAttnJVPGradBuilder::emitRegisterBlock(
    StepPanel &panel, const StepPanel::RegisterBlock &at, ValueRange state) {
  const StepPanel::Group &group = at.group;
  // Products, of one vector of queries if the other sees no key.
  Values tiles;
  for (unsigned i = 0, count = needsScoreGradients() ? 4 : 2; i < count; ++i)
    tiles.push_back(emptyRegisterBlock(group));
  tiles = panel.forSeeing(at, [&](const StepPanel::Queries &queries) {
    StepPanel::Queries own = queries;
    own.column = panel.getOffset(group, queries);
    auto ofQueries = [&](Value rows) {
      return rows ? panel.sliceRows(rows, queries) : Value();
    };
    auto ofKeys = [&](Value rows) { return panel.sliceRows(rows, at.row); };
    auto place = [&](unsigned number) {
      return number < tiles.size() ? panel.sliceColumns(tiles[number], own)
                                   : Value();
    };
    QueryRows queryRows = {ofQueries(step.getQ()), ofQueries(step.getTq()),
                           ofQueries(step.getDtout()),
                           ofQueries(step.getDout())};
    KeyRows keyRows = {ofKeys(step.getK()), ofKeys(step.getTk()),
                       ofKeys(step.getV()), ofKeys(step.getTv())};
    Products made = {place(0), place(1), place(2), place(3)};
    multiplyForScores(queryRows, keyRows, made);
    if (needsScoreGradients())
      multiplyForCotangents(queryRows, keyRows, made);
    Values next, parts = {made.s, made.ts, made.dp, made.tdp};
    for (auto [part, tile] : llvm::zip(parts, tiles))
      next.push_back(panel.insertColumns(part, tile, own));
    return next;
  });
  Products products = {tiles[0], tiles[1], Value(), Value()};
  if (tiles.size() > 2) {
    products.dp = tiles[2];
    products.tdp = tiles[3];
  }

  // Weights, in the tiles that other products read if they are not rounded for
  // these.
  SmallVector<WeightTile> weights =
      placeRegisterBlock(at, state.take_front(getNeededWeights().size()));
  OwningOpRef<OnlineAttnJVPGradOp> part = panel.cut(step, group, at.row);
  auto emit = [&](bool hides) {
    OnlineAttnJVPGradBuilder of(*part, b);
    SmallVector<Value> places, dcaptures;
    for (const WeightTile &tile : weights)
      places.push_back(viewRegisterBlock(panel, group, tile));
    ValueRange sums = state.drop_front(weights.size());
    for (Value sum : sums)
      dcaptures.push_back(panel.sliceColumns(sum, group));
    Weights made, placeOf = toWeights(places);
    of.emitWeights(getNeededWeights(), products,
                   of.recompute(products, hides, placeOf), hides, dcaptures,
                   placeOf, made);
    Values next;
    for (auto [tile, weight] : llvm::zip_equal(weights, getNeededWeights()))
      next.push_back(insertRegisterBlock(panel, made[weight], tile));
    for (auto [sum, own] : llvm::zip_equal(sums, dcaptures))
      next.push_back(panel.insertColumns(own, sum, group));
    return next;
  };
  return emitTiles(panel, at, weights, emit);
}

SmallVector<Value>
OnlineAttnJVPGradBuilder::emitPanel(CPUScheduleAttr schedule) {
  StepPanel panel(b, schedule, step, getExtents(b, step.getK())[0]);
  Value scores = emptyScores(step.getQ(), step.getK());
  Values state;
  for (Weight weight : getNeededWeights())
    state.push_back(tensor::EmptyOp::create(b, getExtents(b, scores),
                                            elementOf(getFactorOf(weight))));
  size_t numWeights = state.size();
  llvm::append_range(state, step.getDcaptures());
  state = panel.forEachRegisterBlock(
      state, [&](const StepPanel::RegisterBlock &at, ValueRange state) {
        return emitRegisterBlock(panel, at, state);
      });
  Weights weights = toWeights(ArrayRef(state).take_front(numWeights));
  auto add = [&](Value sum, Weight weight, Value rows, auto addTo) {
    return sum && rows ? (panel.*addTo)(weights[weight], rows, sum) : sum;
  };
  constexpr auto toKeys = &StepPanel::addToKeys;
  constexpr auto toQueries = &StepPanel::addToQueries;
  Value dv = add(step.getDv(), Tp, step.getDtout(), toKeys);
  dv = add(dv, P, step.getDout(), toKeys);
  Value dk = add(step.getDk(), Tds, step.getQ(), toKeys);
  dk = add(dk, Ds, step.getTq(), toKeys);
  Value dq = add(step.getDq(), Tds, step.getK(), toQueries);
  dq = add(dq, Ds, step.getTk(), toQueries);
  return getResults(dq, dk, dv, ArrayRef(state).drop_front(numWeights));
}
