//===- OnlineAttnJVPGradBuilder.h - Second derivatives ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPGRADBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPGRADBUILDER_H

#include "GradientStepBuilder.h"
#include "StepPanel.h"

#include <array>

namespace mlir::varlen {

/// Writes `varlen.online_attn_jvp_grad`; emit() returns the new dq, dk, dv and
/// gradients of captures that are no tables.
class OnlineAttnJVPGradBuilder
    : public GradientStepBuilder<OnlineAttnJVPGradOp> {
public:
  using GradientStepBuilder::GradientStepBuilder;

  SmallVector<Value> emit();
  /// The step in register blocks of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// The rows of queries; dout may be null.
  struct QueryRows {
    Value q, tq, dtout, dout;
  };
  struct KeyRows {
    Value k, tk, v, tv;
  };
  /// Score tiles: products of q and k and of dtout and v, and the tangents of
  /// both, of which those of scores have no scale. Without gradients of scores
  /// dp and tdp are null.
  struct Products {
    Value s, ts, dp, tdp;
  };
  /// Score tiles that products are made of.
  enum Weight : unsigned { Tp, P, Ds, Tds };
  static constexpr unsigned kNumWeights = Tds + 1;
  /// One for each weight; null for those that no gradient is made of.
  using Weights = std::array<Value, kNumWeights>;

  /// The weights that gradients are made of: tp, with a dout p, of dv; ds and
  /// tds of the others.
  SmallVector<Weight> getNeededWeights();
  /// What is given for each of these.
  Weights toWeights(ValueRange needed);
  /// The rows that a weight has the type of: its products are with these.
  Value getFactorOf(Weight weight) {
    return weight == Tp || weight == P ? step.getDtout() : step.getQ();
  }
  /// Adds products to s and ts, and to dp and tdp, of which the first of a tile
  /// replaces what it has.
  void multiplyForScores(const QueryRows &queries, const KeyRows &keys,
                         Products &tiles);
  void multiplyForCotangents(const QueryRows &queries, const KeyRows &keys,
                             Products &tiles);
  /// What weights are made of beside products: p, 0 where a key is hidden if it
  /// `hides`, the tangents of scores, and factors, which may be null.
  struct Recomputed {
    Value p, ts, factors;
  };
  Recomputed recompute(const Products &products, bool hides,
                       const Weights &places);
  /// Sets the weights that are wanted, before they are rounded, in `places`
  /// where there are any, 0 where a key is hidden, if `hides`; with ds and tds,
  /// which come together, adds the gradients of captures to `dcaptures`.
  void emitWeights(ArrayRef<Weight> wanted, const Products &products,
                   const Recomputed &tiles, bool hides,
                   MutableArrayRef<Value> dcaptures, const Weights &places,
                   Weights &weights);
  /// The factor of probabilities of the score region as a tile; null without
  /// one.
  Value emitFactors(Value products);
  /// The tangents of scores.
  Value emitScoreTangents(const Products &products);
  /// Pulls the cotangents of scores back through the score region, to `init`.
  Value pullBack(const Products &products, Value dscores, Value init);
  /// The tangents of such, of arguments of the region or of lookups in it.
  SmallVector<Value> pullBackTangents(const Products &products, Value dscores,
                                      Value tdscores, ValueRange sources,
                                      ValueRange inits);
  /// The weights of a register block, and the gradients of captures.
  Values emitRegisterBlock(StepPanel &panel, const StepPanel::RegisterBlock &at,
                           ValueRange state);
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPGRADBUILDER_H
