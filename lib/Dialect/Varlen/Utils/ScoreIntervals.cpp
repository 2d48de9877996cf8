//===- ScoreIntervals.cpp - What a score region hides of a block ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each number of the region has an interval that holds its values for all
// queries and keys of a block, each condition whether it may be true and
// whether it may be false. What is computed by an operation that has no rule
// may be anything, and so may what might not fit its type.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

#include "NumberIntervals.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

class ConditionEmitter {
public:
  ConditionEmitter(IndexBuilder &index, Block *score,
                   const NumberRange &queries, const NumberRange &keys,
                   ArrayRef<NumberRange> captures,
                   ArrayRef<NumberRange> lookups);

  BlockVisibility getVisibility() {
    Condition condition = conditions.lookup(visible);
    return {condition.mayBeTrue, condition.mayBeFalse};
  }
  /// The first operation that nothing is known of; null if there is none.
  Operation *getUnknown() { return unknown; }

private:
  /// Null stands for what may be.
  struct Condition {
    Value mayBeTrue, mayBeFalse;

    explicit operator bool() const { return mayBeTrue || mayBeFalse; }
  };

  Condition decide(Operation &op);
  Condition compare(arith::CmpIOp op);
  Condition compare(arith::CmpFOp op);
  /// Of intervals: whether some number of one may be before some number of the
  /// other, and whether some may not be.
  template <typename Op, typename Predicate>
  Condition isBefore(Predicate before, Predicate notBefore, NumberRange a,
                     NumberRange b) {
    return {make<Op>(before, a.low, b.high),
            make<Op>(notBefore, a.high, b.low)};
  }
  /// Whether two may be equal, and whether they may differ.
  template <typename Op, typename Predicate>
  Condition isEqual(Predicate atMost, Predicate differs, NumberRange a,
                    NumberRange b) {
    // Different unless both are one number, the same.
    return {
        both(make<Op>(atMost, a.low, b.high), make<Op>(atMost, b.low, a.high)),
        either(make<Op>(differs, a.low, b.high),
               make<Op>(differs, a.high, b.low))};
  }
  template <typename Op, typename Predicate>
  Value make(Predicate predicate, Value lhs, Value rhs) {
    return index.b.createOrFold<Op>(predicate, lhs, rhs);
  }
  Condition isNot(Condition a) { return {a.mayBeFalse, a.mayBeTrue}; }
  /// One of a and b, by a third.
  Condition choose(Condition by, Condition a, Condition b) {
    return {either(both(by.mayBeTrue, a.mayBeTrue),
                   both(by.mayBeFalse, b.mayBeTrue)),
            either(both(by.mayBeTrue, a.mayBeFalse),
                   both(by.mayBeFalse, b.mayBeFalse))};
  }
  Condition constant(bool value) {
    auto number = [&](bool x) -> Value {
      return arith::ConstantOp::create(index.b, index.b.getBoolAttr(x));
    };
    return {number(value), number(!value)};
  }
  /// Both, or either, where null is true.
  Value both(Value a, Value b) {
    return !a ? b : !b ? a : index.b.createOrFold<arith::AndIOp>(a, b);
  }
  Value either(Value a, Value b) {
    return a && b ? index.b.createOrFold<arith::OrIOp>(a, b) : Value();
  }

  IndexBuilder &index;
  Value visible;
  NumberIntervals numbers;
  DenseMap<Value, Condition> conditions;
  Operation *unknown = nullptr;
};

} // namespace

ConditionEmitter::ConditionEmitter(IndexBuilder &index, Block *score,
                                   const NumberRange &queries,
                                   const NumberRange &keys,
                                   ArrayRef<NumberRange> captures,
                                   ArrayRef<NumberRange> lookups)
    : index(index), visible(getVisible(score)), numbers(index) {
  numbers.setPosition(score->getArgument(QueryPosition), queries,
                      -kFarthestPosition);
  numbers.setPosition(score->getArgument(KeyPosition), keys, 0);
  for (auto [argument, range] :
       llvm::zip_equal(getNumberArguments(score), captures))
    if (range.low)
      numbers.setCapture(argument, range);
  DenseSet<Operation *> known;
  if (!lookups.empty())
    for (auto [lookup, range] :
         llvm::zip_equal(getVisibilityLookups(score), lookups))
      if (range.low) {
        numbers.setCapture(lookup.getEntry(), range);
        known.insert(lookup);
      }
  SetVector<Value> sources = getSources(visible);
  for (Operation &op : score->without_terminator()) {
    if (op.getNumResults() != 1 || !sources.contains(op.getResult(0)) ||
        known.contains(&op))
      continue;
    Value result = op.getResult(0);
    bool isKnown;
    if (result.getType().isInteger(1)) {
      numbers.inferRange(op);
      Condition condition = decide(op);
      if (std::optional<APInt> value = numbers.getConstant(result))
        condition = constant(value->isOne());
      conditions[result] = condition;
      isKnown = static_cast<bool>(condition);
    } else {
      Condition by;
      if (auto select = dyn_cast<arith::SelectOp>(op))
        by = conditions.lookup(select.getCondition());
      isKnown = numbers.emit(op, by.mayBeTrue, by.mayBeFalse);
    }
    if (!isKnown && !unknown)
      unknown = &op;
  }
}

ConditionEmitter::Condition ConditionEmitter::compare(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  CmpIPredicate predicate = op.getPredicate();
  if (op.getLhs().getType().isInteger(1)) {
    Condition a = conditions.lookup(op.getLhs()),
              b = conditions.lookup(op.getRhs());
    if (predicate == CmpIPredicate::eq)
      return choose(a, b, isNot(b));
    if (predicate == CmpIPredicate::ne)
      return choose(a, isNot(b), b);
    return {};
  }
  std::optional<NumberRange> l = numbers.get(op.getLhs()),
                             r = numbers.get(op.getRhs());
  if (!l || !r)
    return {};
  // Unsigned numbers are in the order of signed ones where they have no sign.
  bool isUnsigned = predicate >= CmpIPredicate::ult;
  if (isUnsigned && !(numbers.isNonNegative(op.getLhs()) &&
                      numbers.isNonNegative(op.getRhs())))
    return {};
  auto less = [&](const NumberRange &a, const NumberRange &b) {
    return isBefore<arith::CmpIOp>(CmpIPredicate::slt, CmpIPredicate::sge, a,
                                   b);
  };
  auto atMost = [&](const NumberRange &a, const NumberRange &b) {
    return isBefore<arith::CmpIOp>(CmpIPredicate::sle, CmpIPredicate::sgt, a,
                                   b);
  };
  auto equal = [&] {
    return isEqual<arith::CmpIOp>(CmpIPredicate::sle, CmpIPredicate::ne, *l,
                                  *r);
  };
  switch (predicate) {
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    return less(*l, *r);
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    return atMost(*l, *r);
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    return less(*r, *l);
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    return atMost(*r, *l);
  case CmpIPredicate::eq:
    return equal();
  case CmpIPredicate::ne:
    return isNot(equal());
  }
  llvm_unreachable("all predicates have a case");
}

/// Numbers of an interval are no NaN. Bounds are NaN where it may be anything:
/// unordered predicates say that either may be.
ConditionEmitter::Condition ConditionEmitter::compare(arith::CmpFOp op) {
  using arith::CmpFPredicate;
  std::optional<NumberRange> l = numbers.get(op.getLhs()),
                             r = numbers.get(op.getRhs());
  if (!l || !r)
    return {};
  auto less = [&](const NumberRange &a, const NumberRange &b) {
    return isBefore<arith::CmpFOp>(CmpFPredicate::ULT, CmpFPredicate::UGE, a,
                                   b);
  };
  auto atMost = [&](const NumberRange &a, const NumberRange &b) {
    return isBefore<arith::CmpFOp>(CmpFPredicate::ULE, CmpFPredicate::UGT, a,
                                   b);
  };
  auto equal = [&] {
    return isEqual<arith::CmpFOp>(CmpFPredicate::ULE, CmpFPredicate::UNE, *l,
                                  *r);
  };
  switch (op.getPredicate()) {
  case CmpFPredicate::OLT:
  case CmpFPredicate::ULT:
    return less(*l, *r);
  case CmpFPredicate::OLE:
  case CmpFPredicate::ULE:
    return atMost(*l, *r);
  case CmpFPredicate::OGT:
  case CmpFPredicate::UGT:
    return less(*r, *l);
  case CmpFPredicate::OGE:
  case CmpFPredicate::UGE:
    return atMost(*r, *l);
  case CmpFPredicate::OEQ:
  case CmpFPredicate::UEQ:
    return equal();
  case CmpFPredicate::ONE:
  case CmpFPredicate::UNE:
    return isNot(equal());
  case CmpFPredicate::ORD:
    return {Value(), make<arith::CmpFOp>(CmpFPredicate::UNO, l->low, r->low)};
  case CmpFPredicate::UNO:
    return {make<arith::CmpFOp>(CmpFPredicate::UNO, l->low, r->low), Value()};
  case CmpFPredicate::AlwaysTrue:
    return constant(true);
  case CmpFPredicate::AlwaysFalse:
    return constant(false);
  }
  llvm_unreachable("all predicates have a case");
}

ConditionEmitter::Condition ConditionEmitter::decide(Operation &op) {
  if (auto compared = dyn_cast<arith::CmpIOp>(op))
    return compare(compared);
  if (auto compared = dyn_cast<arith::CmpFOp>(op))
    return compare(compared);
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op))
    return {};
  Condition a = conditions.lookup(op.getOperand(0)),
            b = conditions.lookup(op.getOperand(1));
  if (isa<arith::AndIOp>(op))
    return {both(a.mayBeTrue, b.mayBeTrue), either(a.mayBeFalse, b.mayBeFalse)};
  if (isa<arith::OrIOp>(op))
    return {either(a.mayBeTrue, b.mayBeTrue), both(a.mayBeFalse, b.mayBeFalse)};
  if (isa<arith::XOrIOp>(op))
    return choose(a, isNot(b), b);
  return choose(a, b, conditions.lookup(op.getOperand(2)));
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

bool varlen::visibilityReadsCapture(Block *score, unsigned capture) {
  return score &&
         dependsOn(getVisible(score), getNumberArguments(score)[capture]);
}

bool varlen::isByQuery(LookupOp lookup) {
  auto argument = dyn_cast<BlockArgument>(lookup.getIndex());
  return argument && argument.getArgNumber() == QueryPosition;
}

SmallVector<LookupOp> varlen::getVisibilityLookups(Block *score) {
  SmallVector<LookupOp> lookups;
  SetVector<Value> sources = getSources(getVisible(score));
  if (score)
    for (auto lookup : score->getOps<LookupOp>()) {
      auto table = dyn_cast<BlockArgument>(lookup.getTable());
      bool isByKey = lookup.getIndex() == score->getArgument(KeyPosition);
      if (sources.contains(lookup.getEntry()) && table && isOfKeys(table) &&
          (isByKey || isByQuery(lookup)))
        lookups.push_back(lookup);
    }
  return lookups;
}

NumberRange varlen::emitCaptureRange(ImplicitLocOpBuilder &b, Value low,
                                     Value high) {
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(low.getType(), value));
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value x, double bound) {
    return arith::CmpFOp::create(b, predicate, x, constant(bound));
  };
  Value isKnown = arith::AndIOp::create(
      b, compare(arith::CmpFPredicate::OGE, low, -kMostOfCapture),
      compare(arith::CmpFPredicate::OLE, high, kMostOfCapture));
  Value nan = constant(std::numeric_limits<double>::quiet_NaN());
  return {arith::SelectOp::create(b, isKnown, low, nan),
          arith::SelectOp::create(b, isKnown, high, nan)};
}

NumberRange varlen::emitCaptureRange(ImplicitLocOpBuilder &b, Value count,
                                     function_ref<Value(Value)> load) {
  IndexBuilder index{b};
  Value one = index.constant(1), first = load(index.constant(0));
  ValueRange range = emitLoop(
      b, one, count, one, {first, first}, [&](Value i, ValueRange range) {
        Value number = load(i);
        return Values{arith::MinimumFOp::create(b, range[0], number),
                      arith::MaximumFOp::create(b, range[1], number)};
      });
  return emitCaptureRange(b, range[0], range[1]);
}

BlockVisibility varlen::emitVisibility(IndexBuilder &index, Block *score,
                                       const NumberRange &queries,
                                       const NumberRange &keys,
                                       ArrayRef<NumberRange> captures,
                                       ArrayRef<NumberRange> lookups) {
  return ConditionEmitter(index, score, queries, keys, captures, lookups)
      .getVisibility();
}

namespace {
/// What can be told of any block.
struct AnyBlock {
  Operation *unknown;
  bool canHide;
};
} // namespace

/// Emits the intervals of one, which are thrown away.
static AnyBlock analyzeAnyBlock(Block *score, bool hasLookups) {
  Operation *op = score->getParentOp();
  Block emitted;
  ImplicitLocOpBuilder b(op->getLoc(), op->getContext());
  b.setInsertionPointToStart(&emitted);
  auto rangeOf = [&](Type type) -> NumberRange {
    return {emitted.addArgument(type, op->getLoc()),
            emitted.addArgument(type, op->getLoc())};
  };
  SmallVector<NumberRange> captures, lookups;
  for (Value capture : getNumberArguments(score))
    captures.push_back(rangeOf(capture.getType()));
  if (hasLookups)
    for (LookupOp lookup : getVisibilityLookups(score))
      lookups.push_back(rangeOf(lookup.getType()));
  IndexBuilder index{b, b.getI32Type()};
  ConditionEmitter emitter(index, score, rangeOf(index.type),
                           rangeOf(index.type), captures, lookups);
  return {emitter.getUnknown(), bool(emitter.getVisibility().mayBeVisible)};
}

Operation *varlen::findUnknownVisibility(Block *score, bool hasLookups) {
  return getVisible(score) ? analyzeAnyBlock(score, hasLookups).unknown
                           : nullptr;
}

bool varlen::canHideBlocks(Block *score, bool hasLookups) {
  return getVisible(score) && analyzeAnyBlock(score, hasLookups).canHide;
}
