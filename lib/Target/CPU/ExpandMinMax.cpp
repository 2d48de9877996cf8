//===- ExpandMinMax.cpp - Maxima and minima as one comparison -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x86 has one instruction for `x > y ? x : y`, which is y if either is a NaN.
// LLVM adds two to it for a maximum that ignores NaNs, unless it sees that y is
// none, and it does not look through the loop that carries y.
//
//===----------------------------------------------------------------------===//

#include "LegalizeForCPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

/// Whether a floating-point value, scalar or vector, is known to be no NaN. A
/// value that a loop carries is assumed to be none while the analysis looks at
/// what the loop yields. What may be a NaN under such an assumption may be one
/// without it, so that is remembered; what rests on one that was wrong is not.
class NaNAnalysis {
public:
  bool isNeverNaN(Value value) {
    size_t before = assumed.size();
    if (check(value))
      return true;
    forget(before);
    return false;
  }

private:
  bool check(Value value) {
    auto [entry, isNew] = known.try_emplace(value, true);
    if (!isNew)
      return entry->second;
    assumed.push_back(value);
    bool result = inspect(value);
    known[value] = result;
    return result;
  }

  /// Forgets what was found to be a number after the first `count` values.
  void forget(size_t count) {
    for (; assumed.size() > count; assumed.pop_back())
      if (known.lookup(assumed.back()))
        known.erase(assumed.back());
  }

  bool inspect(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop || argument == loop.getInductionVar())
        return false;
      return checkCarried(loop,
                          argument.getArgNumber() - loop.getNumInductionVars());
    }
    unsigned number = cast<OpResult>(value).getResultNumber();
    return llvm::TypeSwitch<Operation *, bool>(value.getDefiningOp())
        .Case([&](arith::ConstantOp op) { return isNumber(op.getValue()); })
        .Case<arith::MaxNumFOp, arith::MinNumFOp>(
            [&](auto op) { return checkEither(op.getLhs(), op.getRhs()); })
        .Case<arith::MaximumFOp, arith::MinimumFOp>(
            [&](auto op) { return check(op.getLhs()) && check(op.getRhs()); })
        .Case([&](arith::SelectOp op) {
          return check(op.getTrueValue()) && check(op.getFalseValue());
        })
        .Case<vector::BroadcastOp, vector::ExtractOp>(
            [&](auto op) { return check(op.getSource()); })
        .Case([&](vector::ShuffleOp op) {
          return check(op.getV1()) && check(op.getV2());
        })
        .Case([&](scf::ForOp op) { return checkCarried(op, number); })
        .Case([&](scf::IfOp op) {
          return check(op.thenYield().getOperand(number)) &&
                 check(op.elseYield().getOperand(number));
        })
        .Default(false);
  }

  bool checkCarried(scf::ForOp loop, unsigned number) {
    return check(loop.getInitArgs()[number]) &&
           check(loop.getYieldedValues()[number]);
  }

  bool checkEither(Value lhs, Value rhs) {
    size_t before = assumed.size();
    if (check(rhs))
      return true;
    forget(before);
    return check(lhs);
  }

  static bool isNumber(Attribute attr) {
    if (auto splat = dyn_cast<SplatElementsAttr>(attr))
      attr = splat.getSplatValue<Attribute>();
    auto number = dyn_cast<FloatAttr>(attr);
    return number && !number.getValue().isNaN();
  }

  DenseMap<Value, bool> known;
  SmallVector<Value> assumed;
};

/// `x` where it compares with `y`, else `y`.
struct MinMax {
  Operation *op;
  Value x, y;
  arith::CmpFPredicate predicate;
};

} // namespace

static std::optional<MinMax> getMinMax(Operation *op, NaNAnalysis &analysis) {
  bool isMax = isa<arith::MaxNumFOp, arith::MaximumFOp>(op);
  auto predicate =
      isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op)) {
    // y is what is left where x is a NaN.
    Value x = op->getOperand(0), y = op->getOperand(1);
    if (analysis.isNeverNaN(y))
      return MinMax{op, x, y, predicate};
    if (analysis.isNeverNaN(x))
      return MinMax{op, y, x, predicate};
    return std::nullopt;
  }
  if (!isa<arith::MaximumFOp, arith::MinimumFOp>(op))
    return std::nullopt;
  // A NaN of y remains, and so does the sign of its zero: a bound that is a
  // zero has to be the one that loses against the other.
  APFloat bound(0.0);
  for (unsigned number : {1, 0}) {
    Value value = op->getOperand(number);
    if (matchPattern(value, m_ConstantFloat(&bound)) && !bound.isNaN() &&
        (!bound.isZero() || bound.isNegative() == isMax))
      return MinMax{op, value, op->getOperand(1 - number), predicate};
  }
  return std::nullopt;
}

void varlen::expandMinMax(ModuleOp module) {
  // All are looked at before the first one changes: the analysis knows maxima
  // and minima, and not what they become.
  SmallVector<MinMax> operations;
  NaNAnalysis analysis;
  module.walk([&](Operation *op) {
    if (std::optional<MinMax> found = getMinMax(op, analysis))
      operations.push_back(*found);
  });
  // By value, which one that is rewritten before may have replaced.
  IRMapping replaced;
  for (const MinMax &found : operations) {
    ImplicitLocOpBuilder b(found.op->getLoc(), found.op);
    Value x = replaced.lookupOrDefault(found.x);
    Value y = replaced.lookupOrDefault(found.y);
    Value isX = arith::CmpFOp::create(b, found.predicate, x, y);
    Value result = arith::SelectOp::create(b, isX, x, y);
    replaced.map(found.op->getResult(0), result);
    found.op->getResult(0).replaceAllUsesWith(result);
    found.op->erase();
  }
}
