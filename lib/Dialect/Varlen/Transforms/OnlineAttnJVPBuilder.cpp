//===- OnlineAttnJVPBuilder.cpp - Tangents of a step as linalg ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineAttnJVPBuilder.h"

#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

OnlineAttnJVPBuilder::Tiles
OnlineAttnJVPBuilder::multiply(const Tiles &queries, const Tiles &keys,
                               const Tiles &scores) {
  Value own = products(queries.own, keys.own, scores.own);
  Value tangent = products(queries.tangent, keys.own, scores.tangent);
  return {own, addProducts(queries.own, keys.tangent, tangent)};
}

OnlineAttnJVPBuilder::Tiles
OnlineAttnJVPBuilder::scoreTiles(OnlineAttnJVPOp at, const Tiles &products) {
  Block *region = at.getScoreBody();
  if (!changesScores(region) && !getVisible(region))
    return products;
  SmallVector<Value> more = {products.tangent};
  llvm::append_range(more, at.getTcaptures());
  SmallVector<Value> inits = {empty(products.own, compute),
                              empty(products.own, compute)};
  SmallVector<Value> results = overScoresTiles(
      at, products.own, more, inits,
      [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange more,
          TableLookup lookup) {
        Value score = emitScore(inner, region, point);
        Value tangent =
            withTangents(region, at.getWrtCaptures(), point, more, lookup,
                         [&](const ScorePoint &tangents) {
                           return SmallVector<Value>{emitScoreJVP(
                               inner, inner.getLoc(), region, point, tangents)};
                         })
                .front();
        return SmallVector<Value>{
            unlessHidden(inner, region, point, score, -kInfinity).front(),
            unlessHidden(inner, region, point, tangent, 0.0).front()};
      });
  return {results[0], results[1]};
}

OnlineAttnJVPBuilder::Tiles OnlineAttnJVPBuilder::hideTiles(OnlineAttnJVPOp at,
                                                            const Tiles &scores,
                                                            Tiles inits) {
  return {hide(at, scores.own, -kInfinity, inits.own),
          hide(at, scores.tangent, 0.0, inits.tangent)};
}

Value OnlineAttnJVPBuilder::weighTangents(Value p, Value tangents) {
  double scale = step.getScale().convertToDouble();
  return elementwise(
      {p, tangents}, empty(tangents, compute),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        Value tangent = args[1];
        if (scale != 1.0)
          tangent = arith::MulFOp::create(
              inner, tangent,
              arith::ConstantOp::create(inner,
                                        inner.getFloatAttr(compute, scale)));
        return arith::MulFOp::create(inner, args[0], tangent);
      });
}

Value OnlineAttnJVPBuilder::sumAsRead(OnlineAttnJVPOp at, Value exact,
                                      Value kept, Value read, Value sum) {
  auto extend = [&](ImplicitLocOpBuilder &inner, Value x) -> Value {
    return isRounded ? arith::ExtFOp::create(inner, compute, x).getResult() : x;
  };
  if (!getFactor(at.getScoreBody()))
    return reduce(
        read, sum, [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
          return arith::AddFOp::create(inner, args[1], extend(inner, args[0]));
        });
  return reduce({read, kept, exact}, sum,
                [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
                  Value error = arith::SubFOp::create(
                      inner, extend(inner, args[0]), args[1]);
                  Value term = arith::AddFOp::create(inner, args[2], error);
                  return arith::AddFOp::create(inner, args[3], term);
                });
}

SmallVector<Value> OnlineAttnJVPBuilder::emit() {
  Value m = step.getM(), v = step.getV();
  auto emptyTile = [&] { return emptyScores(step.getQ(), step.getK()); };
  Tiles s = multiply({step.getQ(), step.getTq()}, {step.getK(), step.getTk()},
                     {emptyTile(), emptyTile()});
  s = hideTiles(step, scoreTiles(step, s));
  Reference to = getReference(m, largest(s.own, m));
  Value alpha = rescaling(m, to);

  Value p = weights(s.own, to.factor, to.minus);
  Value tp = weighTangents(p, s.tangent);
  auto sum = [&](Value before, Value terms) {
    return endSum(before, alpha,
                  reduce(terms, beginSum(before, alpha), bodyOfSum));
  };
  Value l = sum(step.getL(), p), tl = sum(step.getTl(), tp);

  // The second products want both factors in one type.
  p = round(multiplyByFactor(step, p), v);
  Value kept = multiplyByFactor(step, tp), read = round(kept, v);
  Value tlRounded = step.getTlRounded();
  if (tlRounded)
    tlRounded =
        endSum(tlRounded, alpha,
               sumAsRead(step, tp, kept, read, beginSum(tlRounded, alpha)));
  auto add = [&](Value weights, Value values, Value acc) {
    return kq ? contract(values, weights, acc, {2, 0}, {2, 1})
              : contract(weights, values, acc, {0, 2}, {2, 1});
  };
  Value acc = add(p, v, beginSum(step.getAcc(), alpha));
  Value tacc = add(read, v, beginSum(step.getTacc(), alpha));
  tacc = add(p, step.getTv(), tacc);
  SmallVector<Value> state = {endSum(step.getAcc(), alpha, acc), to.m, l,
                              endSum(step.getTacc(), alpha, tacc), tl};
  if (tlRounded)
    state.push_back(tlRounded);
  return state;
}

Values OnlineAttnJVPBuilder::emitRegisterBlock(
    StepPanel &panel, const StepPanel::RegisterBlock &at, ValueRange state) {
  return panel.forSeeing(at, [&](const StepPanel::Queries &queries) {
    OwningOpRef<OnlineAttnJVPOp> part = panel.cut(step, queries, at.row);
    Tiles tiles = {state[0], state[1]};
    auto slice = [&] {
      return Tiles{panel.sliceRegisterBlock(tiles.own, at.row, queries),
                   panel.sliceRegisterBlock(tiles.tangent, at.row, queries)};
    };
    auto insert = [&](const Tiles &s) {
      SmallVector<OpFoldResult> offsets = {at.row, queries.column};
      return Tiles{panel.insert(s.own, tiles.own, offsets),
                   panel.insert(s.tangent, tiles.tangent, offsets)};
    };
    Tiles s = multiply({panel.sliceRows(step.getQ(), queries),
                        panel.sliceRows(step.getTq(), queries)},
                       {panel.sliceRows(step.getK(), at.row),
                        panel.sliceRows(step.getTk(), at.row)},
                       slice());
    s = scoreTiles(*part, s);
    if (queries.width == at.group.width) {
      tiles = insert(s);
      Values chosen = Values(emitChoice(
          b, panel.isSeen(at), [&] { return Values{tiles.own, tiles.tangent}; },
          [&] {
            Tiles own = slice();
            Tiles hidden = insert(hideTiles(*part, own, own));
            return Values{hidden.own, hidden.tangent};
          }));
      tiles = {chosen[0], chosen[1]};
      s = slice();
    } else {
      s = hideTiles(*part, s, s);
      tiles = insert(s);
    }
    Value top = raise(panel.sliceColumns(state[2], queries), s.own);
    return Values{tiles.own, tiles.tangent,
                  panel.insertColumns(top, state[2], queries)};
  });
}

Values OnlineAttnJVPBuilder::emitWeights(StepPanel &panel,
                                         const StepPanel::Group &group,
                                         const Reference &to,
                                         ValueRange state) {
  Value p = state[0], tp = state[1], l = state[2], tl = state[3];
  // Sums, and p * ts, take p as it is: where that is rounded, both stay in the
  // place of the scores, which nothing reads any more.
  Tiles wide = isRounded ? Tiles{state[4], state[5]} : Tiles{p, tp};
  Value tlRounded = step.getTlRounded() ? state.back() : Value();
  for (const StepPanel::Queries &queries : group.vectors) {
    OwningOpRef<OnlineAttnJVPOp> cut =
        panel.cut(step, queries, queries.keys.begin);
    // Before the sums of the weights, so that one loop computes all of it.
    Value scores = panel.sliceSeen(wide.own, queries),
          tscores = panel.sliceSeen(wide.tangent, queries);
    Value weight = weights(scores, panel.sliceColumns(to.factor, queries),
                           panel.sliceColumns(to.minus, queries));
    Value tangent = weighTangents(weight, tscores);
    Value kept = multiplyByFactor(*cut, weight);
    Value keptTangent = multiplyByFactor(*cut, tangent);
    Value read = round(kept, step.getV()),
          readTangent = round(keptTangent, step.getV());
    auto add = [&](Value sums, function_ref<Value(Value)> addTo) {
      Value added = addTo(panel.sliceColumns(sums, queries));
      return panel.insertColumns(added, sums, queries);
    };
    l = add(l, [&](Value sum) { return reduce(weight, sum, bodyOfSum); });
    tl = add(tl, [&](Value sum) { return reduce(tangent, sum, bodyOfSum); });
    if (tlRounded)
      tlRounded = add(tlRounded, [&](Value sum) {
        return sumAsRead(*cut, tangent, keptTangent, readTangent, sum);
      });
    if (isRounded)
      wide = {panel.insertSeen(weight, wide.own, queries),
              panel.insertSeen(tangent, wide.tangent, queries)};
    p = panel.insertSeen(read, p, queries);
    tp = panel.insertSeen(readTangent, tp, queries);
    if (!isRounded)
      wide = {p, tp};
  }
  Values next = {p, tp, l, tl};
  if (isRounded)
    next.append({wide.own, wide.tangent});
  if (tlRounded)
    next.push_back(tlRounded);
  return next;
}

SmallVector<Value> OnlineAttnJVPBuilder::emitPanel(CPUScheduleAttr schedule) {
  Value m = step.getM(), v = step.getV();
  StepPanel panel(b, schedule, step, getExtents(b, step.getK())[0]);
  Values state = {emptyScores(step.getQ(), step.getK()),
                  emptyScores(step.getQ(), step.getK()),
                  fill(-kInfinity, empty(m, compute))};
  state = panel.forEachRegisterBlock(
      state, [&](const StepPanel::RegisterBlock &at, ValueRange state) {
        return emitRegisterBlock(panel, at, state);
      });
  Tiles scores = {state[0], state[1]};
  Reference to = getReference(m, state[2]);
  Value alpha = rescaling(m, to);

  // The second products want both factors in one type.
  Tiles weights = scores;
  auto narrow = [&]() -> Value {
    return tensor::EmptyOp::create(b, getExtents(b, scores.own), elementOf(v));
  };
  if (isRounded)
    weights = {narrow(), narrow()};
  // acc and tacc, then what makes them.
  Values sums = {step.getAcc(),
                 step.getTacc(),
                 weights.own,
                 weights.tangent,
                 beginSum(step.getL(), alpha),
                 beginSum(step.getTl(), alpha)};
  if (isRounded)
    sums.append({scores.own, scores.tangent});
  if (Value before = step.getTlRounded())
    sums.push_back(beginSum(before, alpha));
  sums = panel.forEachGroup(
      sums, [&](const StepPanel::Group &group, ValueRange state) {
        Values made = emitWeights(panel, group, to, state.drop_front(2));
        Value p = made[0], tp = made[1];
        Value factor = panel.sliceColumns(alpha, group);
        auto add = [&](Value acc, ArrayRef<std::pair<Value, Value>> factors) {
          return panel.forEachRows(acc, group, [&](Value row, Value part) {
            Value sum = beginSum(part, factor);
            for (auto [values, weights] : factors)
              sum = panel.addGroup(group, values, row, weights, sum);
            return endSum(part, factor, sum);
          });
        };
        Values next = {add(state[0], {{v, p}}),
                       add(state[1], {{v, tp}, {step.getTv(), p}})};
        llvm::append_range(next, made);
        return next;
      });
  SmallVector<Value> next = {sums[0], to.m, endSum(step.getL(), alpha, sums[4]),
                             sums[1], endSum(step.getTl(), alpha, sums[5])};
  if (Value before = step.getTlRounded())
    next.push_back(endSum(before, alpha, sums.back()));
  return next;
}
