//===- GradientStepBuilder.h - Steps of gradients as linalg -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GRADIENTSTEPBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GRADIENTSTEPBUILDER_H

#include "StepBuilder.h"
#include "StepPanel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

namespace mlir::varlen {

/// What `varlen.online_attn_grad` and `varlen.online_attn_jvp_grad` share:
/// probabilities recomputed from lse, and the gradients of captures.
template <typename Step> class GradientStepBuilder : public StepBuilder {
public:
  GradientStepBuilder(Step step, OpBuilder &builder)
      : StepBuilder(step, step.getOrientation(), step.getLse(), builder),
        step(step) {}

protected:
  /// Whether some result is made of the gradients of scores.
  bool needsScoreGradients() {
    return step.getDq() || step.getDk() || !step.getWrtCaptures().empty();
  }

  /// The results of the step, of gradients that may be null.
  static SmallVector<Value> getResults(Value dq, Value dk, Value dv,
                                       ValueRange dcaptures) {
    SmallVector<Value> gradients = {dq, dk, dv};
    llvm::erase(gradients, Value());
    llvm::append_range(gradients, dcaptures);
    return gradients;
  }

  /// exp(scale * s - lse), which is at most 1, written to `init` if that is not
  /// null; 0 where a key is hidden, if `hides`.
  Value probabilities(Value products, bool hides, Value init = {}) {
    double scale = step.getScale().convertToDouble();
    bool isNatural = step.getNatural();
    Value s = score(step, products);
    Value c = constant(isNatural ? scale : scale * M_LOG2E);
    Value zero = constant(0.0), log2e = constant(M_LOG2E);
    Value p = elementwise(
        {s, negate(step.getLse())}, init && !hides ? init : empty(s, compute),
        [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          Value x = math::FmaOp::create(inner, args[0], c, args[1]);
          // The scores that made lse were summed in another
          // order.
          x = arith::MinimumFOp::create(inner, x, zero);
          if (isNatural)
            x = arith::MulFOp::create(inner, x, log2e);
          return exp2(inner, x);
        });
    // Hidden by value, not by a score of -inf: lse may be anything there.
    return hides ? hide(step, p, 0.0, init) : p;
  }

  /// Makes score tiles of the gradients of arguments of the score region, or of
  /// lookups in it, and writes them to `inits`.
  using PullBack =
      function_ref<SmallVector<Value>(ValueRange sources, ValueRange inits)>;

  /// Adds to the gradients of captures what the keys of the step do, to those
  /// of numbers in `sums`; nothing of a key that is hidden, if `hides`.
  void addToCaptures(Value products, bool hides, MutableArrayRef<Value> sums,
                     PullBack pullBack) {
    Block *region = step.getScoreBody();
    ValueRange dtables = step.getDtables(), drows = step.getDrows();
    for (int64_t number : step.getWrtCaptures()) {
      if (isTable(region, number)) {
        addToTable(products, number, hides, dtables.front(), drows.front(),
                   pullBack);
        dtables = dtables.drop_front();
        drows = drows.drop_front();
        continue;
      }
      Value argument = region->getArgument(Captures + number);
      Value cotangent = pullBack(argument, empty(products, compute)).front();
      sums.front() =
          reduce(unhidden(cotangent, hides), sums.front(), bodyOfSum);
      sums = sums.drop_front();
    }
  }

  /// A score tile that products of the whole step read, and where a register
  /// block of it is computed: in the tile, or apart if the tile is rounded for
  /// these.
  struct WeightTile {
    Value all, work, row, column;
  };

  Value emptyRegisterBlock(const StepPanel::Group &group) {
    return tensor::EmptyOp::create(
        b, SmallVector<int64_t>{kRegisterBlock, group.width}, compute);
  }

  SmallVector<WeightTile> placeRegisterBlock(const StepPanel::RegisterBlock &at,
                                             ValueRange tiles) {
    Value zero = IndexBuilder{b}.constant(0);
    return llvm::map_to_vector(tiles, [&](Value all) {
      return elementOf(all) == compute
                 ? WeightTile{all, all, at.row, at.group.column}
                 : WeightTile{all, emptyRegisterBlock(at.group), zero, zero};
    });
  }

  Value viewRegisterBlock(StepPanel &panel, const StepPanel::Group &group,
                          const WeightTile &tile) {
    return panel.slice(
        tile.work, {tile.row, tile.column},
        {b.getIndexAttr(kRegisterBlock), b.getIndexAttr(group.width)});
  }

  Value insertRegisterBlock(StepPanel &panel, Value block,
                            const WeightTile &tile) {
    return panel.insert(block, tile.work, {tile.row, tile.column});
  }

  /// What `emit` returns, which begins with where `tiles` are computed: with
  /// limits only where some query of the register block does not see all of its
  /// keys. Tiles that are rounded are written.
  Values emitTiles(StepPanel &panel, const StepPanel::RegisterBlock &at,
                   ArrayRef<WeightTile> tiles,
                   function_ref<Values(bool hides)> emit) {
    Values next = Values(emitChoice(
        b, panel.isSeen(at), [&] { return emit(/*hides=*/false); },
        [&] { return emit(/*hides=*/true); }));
    for (auto [tile, result] : llvm::zip(tiles, next))
      if (tile.all != tile.work)
        result = panel.insert(round(result, tile.all), tile.all,
                              {at.row, at.group.column});
    return next;
  }

  Step step;

private:
  Value unhidden(Value tile, bool hides) {
    return hides ? hide(step, tile, 0.0) : tile;
  }

  /// Adds to the gradient of a table, a capture, what its lookups do.
  void addToTable(Value products, unsigned capture, bool hides, Value gradient,
                  Value rows, PullBack pullBack) {
    Block *region = step.getScoreBody();
    SmallVector<LookupOp> lookups = getScoreLookups(region, capture);
    if (lookups.empty())
      return;
    // The region is computed once for all of them.
    SmallVector<Value> entries, inits;
    for (LookupOp lookup : lookups) {
      entries.push_back(lookup.getEntry());
      inits.push_back(empty(products, compute));
    }
    SmallVector<Value> terms = pullBack(entries, inits);
    for (auto [number, term] : llvm::enumerate(terms)) {
      LookupOp lookup = lookups[number];
      Value values = unhidden(term, hides);
      if (isKeyTable(region, capture)) {
        AddKeysOp::create(b, values, gradient, rows, step.getFirstKey());
        continue;
      }
      Value index = overScores(
          step, products, {}, empty(products, b.getI32Type()),
          [&](ImplicitLocOpBuilder &inner, const ScorePoint &point,
              ValueRange) { return emitIndex(inner, point, lookup); });
      ScatterAddOp::create(b, values, index, gradient, rows);
    }
  }
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GRADIENTSTEPBUILDER_H
