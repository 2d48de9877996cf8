//===- ScoreIntervals.cpp - What a score region hides of a block ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each integer of the region has an interval that holds its values for all
// queries and keys of a block, each condition whether it may be true and
// whether it may be false. What is computed by an operation that has no rule
// may be anything, and so may what might wrap around in 32 bits: intervals
// carry how large their numbers are at most.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

class IntervalEmitter {
public:
  IntervalEmitter(IndexBuilder &index, Block *score,
                  const PositionRange &queries, const PositionRange &keys)
      : index(index), score(score) {
    integers[score->getArgument(QueryPosition)] = {queries.first, queries.last,
                                                   kFarthestPosition};
    integers[score->getArgument(KeyPosition)] = {keys.first, keys.last,
                                                 kFarthestPosition};
  }

  /// Whether the condition may be true; null if nobody can tell.
  Value emit(Value condition) {
    for (Operation &op : score->without_terminator())
      emit(op);
    auto found = conditions.find(condition);
    return found == conditions.end() ? Value() : found->second.mayBeTrue;
  }

private:
  struct Interval {
    Value low, high;
    /// No number is farther from 0.
    int64_t most;
  };
  /// Null stands for what may be.
  struct Condition {
    Value mayBeTrue, mayBeFalse;
  };

  void emit(Operation &op);
  std::optional<Interval> compute(Operation &op);
  std::optional<Condition> decide(Operation &op);
  std::optional<Interval> divide(const Interval &value, Value divisor,
                                 bool isFloor);
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(index.b, predicate, lhs, rhs);
  }
  /// Both, or either, where null is true.
  Value both(Value a, Value b) {
    return !a ? b : !b ? a : arith::AndIOp::create(index.b, a, b).getResult();
  }
  Value either(Value a, Value b) {
    return a && b ? arith::OrIOp::create(index.b, a, b).getResult() : Value();
  }

  IndexBuilder &index;
  Block *score;
  DenseMap<Value, Interval> integers;
  DenseMap<Value, Condition> conditions;
};

} // namespace

std::optional<IntervalEmitter::Interval>
IntervalEmitter::divide(const Interval &value, Value divisor, bool isFloor) {
  APInt number;
  if (!matchPattern(divisor, m_ConstantInt(&number)) ||
      number.getSExtValue() <= 0)
    return std::nullopt;
  // Both kinds grow with the dividend.
  auto quotient = [&](Value x) -> Value {
    if (isFloor)
      return index.floorDiv(x, number.getSExtValue());
    return index.b.createOrFold<arith::DivSIOp>(
        x, index.constant(number.getSExtValue()));
  };
  return Interval{quotient(value.low), quotient(value.high), value.most};
}

std::optional<IntervalEmitter::Interval>
IntervalEmitter::compute(Operation &op) {
  APInt constant;
  if (matchPattern(&op, m_ConstantInt(&constant))) {
    Value number = index.constant(constant.getSExtValue());
    return Interval{number, number, std::abs(constant.getSExtValue())};
  }
  if (op.getNumOperands() != 2)
    return std::nullopt;
  auto l = integers.find(op.getOperand(0)), r = integers.find(op.getOperand(1));
  if (l == integers.end() || r == integers.end())
    return std::nullopt;
  const Interval &a = l->second, &b = r->second;
  int64_t sum = a.most + b.most;
  return llvm::TypeSwitch<Operation *, std::optional<Interval>>(&op)
      .Case([&](arith::AddIOp) {
        return Interval{index.add(a.low, b.low), index.add(a.high, b.high),
                        sum};
      })
      .Case([&](arith::SubIOp) {
        return Interval{index.sub(a.low, b.high), index.sub(a.high, b.low),
                        sum};
      })
      .Case([&](arith::MinSIOp) {
        return Interval{index.min(a.low, b.low), index.min(a.high, b.high),
                        std::max(a.most, b.most)};
      })
      .Case([&](arith::MaxSIOp) {
        return Interval{index.max(a.low, b.low), index.max(a.high, b.high),
                        std::max(a.most, b.most)};
      })
      .Case([&](arith::DivSIOp) {
        return divide(a, op.getOperand(1), /*isFloor=*/false);
      })
      .Case([&](arith::FloorDivSIOp) {
        return divide(a, op.getOperand(1), /*isFloor=*/true);
      })
      .Default(std::nullopt);
}

std::optional<IntervalEmitter::Condition>
IntervalEmitter::decide(Operation &op) {
  if (auto compared = dyn_cast<arith::CmpIOp>(op)) {
    auto l = integers.find(compared.getLhs()),
         r = integers.find(compared.getRhs());
    if (l == integers.end() || r == integers.end())
      return std::nullopt;
    const Interval &a = l->second, &b = r->second;
    auto less = [&](const Interval &x, const Interval &y, bool orEqual) {
      // The smallest of one and the largest of the other, and the reverse.
      return Condition{compare(orEqual ? arith::CmpIPredicate::sle
                                       : arith::CmpIPredicate::slt,
                               x.low, y.high),
                       compare(orEqual ? arith::CmpIPredicate::sgt
                                       : arith::CmpIPredicate::sge,
                               x.high, y.low)};
    };
    switch (compared.getPredicate()) {
    case arith::CmpIPredicate::slt:
      return less(a, b, /*orEqual=*/false);
    case arith::CmpIPredicate::sle:
      return less(a, b, /*orEqual=*/true);
    case arith::CmpIPredicate::sgt:
      return less(b, a, /*orEqual=*/false);
    case arith::CmpIPredicate::sge:
      return less(b, a, /*orEqual=*/true);
    case arith::CmpIPredicate::eq:
    case arith::CmpIPredicate::ne: {
      Value meet = both(compare(arith::CmpIPredicate::sle, a.low, b.high),
                        compare(arith::CmpIPredicate::sle, b.low, a.high));
      // Different unless both are one number, the same.
      Value differ = either(compare(arith::CmpIPredicate::ne, a.low, b.high),
                            compare(arith::CmpIPredicate::ne, a.high, b.low));
      if (compared.getPredicate() == arith::CmpIPredicate::eq)
        return Condition{meet, differ};
      return Condition{differ, meet};
    }
    default:
      return std::nullopt;
    }
  }
  if (!isa<arith::AndIOp, arith::OrIOp>(op))
    return std::nullopt;
  // Of what is unknown null says that it may be either.
  Condition a = conditions.lookup(op.getOperand(0)),
            b = conditions.lookup(op.getOperand(1));
  if (isa<arith::AndIOp>(op))
    return Condition{both(a.mayBeTrue, b.mayBeTrue),
                     either(a.mayBeFalse, b.mayBeFalse)};
  return Condition{either(a.mayBeTrue, b.mayBeTrue),
                   both(a.mayBeFalse, b.mayBeFalse)};
}

void IntervalEmitter::emit(Operation &op) {
  if (op.getNumResults() != 1)
    return;
  Value result = op.getResult(0);
  if (result.getType().isInteger(1)) {
    if (std::optional<Condition> condition = decide(op))
      conditions[result] = *condition;
    return;
  }
  if (!result.getType().isInteger(32))
    return;
  std::optional<Interval> interval = compute(op);
  if (interval && interval->most <= std::numeric_limits<int32_t>::max())
    integers[result] = *interval;
}

Value varlen::emitMayBeVisible(IndexBuilder &index, Block *score,
                               const PositionRange &queries,
                               const PositionRange &keys) {
  Value visible = getVisible(score);
  return visible ? IntervalEmitter(index, score, queries, keys).emit(visible)
                 : Value();
}

Operation *varlen::findUnknownVisibility(Block *score) {
  Value visible = getVisible(score);
  if (!visible)
    return nullptr;
  llvm::SetVector<Value> reached;
  reached.insert(visible);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (!op || op->hasTrait<OpTrait::ConstantLike>())
      continue;
    bool isQuotient = isa<arith::DivSIOp, arith::FloorDivSIOp>(op) &&
                      matchPattern(op->getOperand(1), m_Constant());
    if (!isQuotient &&
        !isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
             arith::CmpIOp, arith::AndIOp, arith::OrIOp>(op))
      return op;
    reached.insert_range(op->getOperands());
  }
  return nullptr;
}
