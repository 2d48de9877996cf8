//===- OnlineAttnBuilder.cpp - A step of online softmax as linalg ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineAttnBuilder.h"

#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

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

Values OnlineAttnBuilder::emitRegisterBlock(StepPanel &panel,
                                            const StepPanel::RegisterBlock &at,
                                            ValueRange state) {
  return panel.forSeeing(at, [&](const StepPanel::Queries &queries) {
    OwningOpRef<OnlineAttnOp> part = panel.cut(step, queries, at.row);
    Value tile = state[0], top = panel.sliceColumns(state[1], queries);
    Value s = products(panel.sliceRows(step.getQ(), queries),
                       panel.sliceRows(step.getK(), at.row),
                       panel.sliceRegisterBlock(tile, at.row, queries));
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
                   return Values{insert(hidden(
                       panel.sliceRegisterBlock(tile, at.row, queries)))};
                 })
                 .front();
      s = panel.sliceRegisterBlock(tile, at.row, queries);
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
    Value part = weights(panel.sliceSeen(isRounded ? scores : p, queries),
                         panel.sliceColumns(to.factor, queries),
                         panel.sliceColumns(to.minus, queries));
    // Before the sum of the weights, so that one loop computes all of it.
    Value kept = multiplyByFactor(*cut, part);
    if (Value scale = step.getVScale())
      kept = scaleKeys(
          kept,
          panel.slice(scale, {queries.keys.begin, b.getIndexAttr(0)},
                      {panel.getLength(queries.keys), b.getIndexAttr(1)}),
          empty(kept, compute));
    Value added = reduce(part, panel.sliceColumns(sum, queries), bodyOfSum);
    sum = panel.insertColumns(added, sum, queries);
    p = panel.insertSeen(round(kept, step.getV()), p, queries);
  }
  return {p, sum};
}

SmallVector<Value> OnlineAttnBuilder::emitPanel(CPUScheduleAttr schedule) {
  Value m = step.getM(), acc = step.getAcc();
  StepPanel panel(b, schedule, step, getExtents(b, step.getK())[0]);
  Value scores = emptyScores(step.getQ(), step.getK());
  Values state = {scores, fill(-kInfinity, empty(m, compute))};
  state = panel.forEachRegisterBlock(
      state, [&](const StepPanel::RegisterBlock &at, ValueRange state) {
        return emitRegisterBlock(panel, at, state);
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
