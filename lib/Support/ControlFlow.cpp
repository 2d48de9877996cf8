//===- ControlFlow.cpp - Loops and branches of a builder ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::varlen;

/// Has `b` emit `body` where `nested` would.
static void emitInside(ImplicitLocOpBuilder &b, OpBuilder &nested,
                       function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(b);
  b.restoreInsertionPoint(nested.saveInsertionPoint());
  body();
}

static scf::ForOp emitFor(ImplicitLocOpBuilder &b, Value from, Value to,
                          Value step, ValueRange inits,
                          function_ref<Values(Value, ValueRange)> body) {
  return scf::ForOp::create(
      b, from, to, step, inits,
      [&](OpBuilder &nested, Location, Value iv, ValueRange carried) {
        emitInside(b, nested,
                   [&] { scf::YieldOp::create(b, body(iv, carried)); });
      });
}

ValueRange varlen::emitLoop(ImplicitLocOpBuilder &b, Value from, Value to,
                            Value step, ValueRange inits,
                            function_ref<Values(Value, ValueRange)> body) {
  return emitFor(b, from, to, step, inits, body).getResults();
}

Operation *varlen::emitLoop(ImplicitLocOpBuilder &b, Value from, Value to,
                            Value step, function_ref<void(Value)> body) {
  return emitFor(b, from, to, step, {}, [&](Value iv, ValueRange) -> Values {
    body(iv);
    return {};
  });
}

void varlen::emitLoop(ImplicitLocOpBuilder &b, Value from, Value to,
                      int64_t step, function_ref<void(Value)> body) {
  emitLoop(b, from, to, arith::ConstantIndexOp::create(b, step), body);
}

Operation *varlen::emitForall(ImplicitLocOpBuilder &b, Value count,
                              function_ref<void(Value)> body) {
  auto loop = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{count},
                                    ValueRange{}, std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar(0));
  return loop;
}

Value varlen::emitSum(ImplicitLocOpBuilder &b, Value from, Value to, Value step,
                      Value zero, function_ref<Value(Value)> termOf) {
  ValueRange sum =
      emitLoop(b, from, to, step, {zero, zero}, [&](Value i, ValueRange state) {
        Value term = arith::SubFOp::create(b, termOf(i), state[1]);
        Value next = arith::AddFOp::create(b, state[0], term);
        Value lost = arith::SubFOp::create(
            b, arith::SubFOp::create(b, next, state[0]), term);
        return Values{next, lost};
      });
  return sum.front();
}

ValueRange varlen::emitWhile(ImplicitLocOpBuilder &b, ValueRange inits,
                             function_ref<Value(ValueRange)> condition,
                             function_ref<Values(ValueRange)> body) {
  return scf::WhileOp::create(
             b, inits.getTypes(), inits,
             [&](OpBuilder &nested, Location, ValueRange values) {
               emitInside(b, nested, [&] {
                 scf::ConditionOp::create(b, condition(values), values);
               });
             },
             [&](OpBuilder &nested, Location, ValueRange values) {
               emitInside(b, nested,
                          [&] { scf::YieldOp::create(b, body(values)); });
             })
      .getResults();
}

Operation *varlen::emitIf(ImplicitLocOpBuilder &b, Value condition,
                          function_ref<void()> then,
                          function_ref<void()> otherwise) {
  auto inside = [&](function_ref<void()> body) {
    return [&b, body](OpBuilder &nested, Location) {
      emitInside(b, nested, [&] {
        body();
        scf::YieldOp::create(b);
      });
    };
  };
  if (otherwise)
    return scf::IfOp::create(b, condition, inside(then), inside(otherwise));
  return scf::IfOp::create(b, condition, inside(then));
}

ValueRange varlen::emitChoice(ImplicitLocOpBuilder &b, Value condition,
                              function_ref<Values()> then,
                              function_ref<Values()> otherwise) {
  auto inside = [&](function_ref<Values()> body) {
    return [&b, body](OpBuilder &nested, Location) {
      emitInside(b, nested, [&] { scf::YieldOp::create(b, body()); });
    };
  };
  return scf::IfOp::create(b, condition, inside(then), inside(otherwise))
      .getResults();
}
