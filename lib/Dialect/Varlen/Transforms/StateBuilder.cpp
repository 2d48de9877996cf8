//===- StateBuilder.cpp - The state of queries as linalg ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::varlen;

Value StateBuilder::largest(Value scores, Value m) {
  return reduce(scores, fill(-kInfinity, empty(m, compute)),
                bodyOf<arith::MaxNumFOp>);
}

Value StateBuilder::raise(Value m, Value scores) {
  return elementwise({m, largest(scores, m)}, /*init=*/m,
                     bodyOf<arith::MaxNumFOp>);
}

StateBuilder::Reference StateBuilder::getReference(Value m, Value other,
                                                   int64_t threshold) {
  Value most = perQuery(
      {m, other}, [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        Value larger = arith::MaxNumFOp::create(inner, args);
        if (threshold == 0)
          return larger;
        return reference.emitKept(inner, args[0], larger, threshold);
      });
  Value factor =
      perQuery(most, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        return reference.emitFactor(inner, args[0]);
      });
  Value minus =
      perQuery({most, factor},
               [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
                 return arith::NegFOp::create(
                     inner, reference.emitReference(inner, args[0], args[1]));
               });
  return {most, factor, minus};
}

Value StateBuilder::rescaling(Value m, const Reference &to) {
  // A rounded p asks for no exact quotient of these, which takes less.
  return perQuery(
      {m, to.m, to.factor, to.minus},
      [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        if (isRounded) {
          Value x = arith::SubFOp::create(inner, args[0], args[1]);
          return exp2(inner, arith::MulFOp::create(inner, x, args[2]));
        }
        Value before = reference.emitReference(
            inner, args[0], reference.emitFactor(inner, args[0]));
        return exp2(inner, arith::AddFOp::create(inner, before, args[3]));
      });
}

Value StateBuilder::multiply(Value tile, Value factor) {
  return elementwise({tile, factor}, /*init=*/tile, bodyOf<arith::MulFOp>);
}

Value StateBuilder::beginSum(Value before, Value alpha) {
  return isApart() ? fill(0.0, empty(before, compute))
                   : multiply(before, alpha);
}

Value StateBuilder::endSum(Value before, Value alpha, Value sum) {
  if (!isApart())
    return sum;
  return elementwise({before, alpha, sum}, /*init=*/before,
                     bodyOf<math::FmaOp>);
}

Value StateBuilder::weights(Value scores, Value factor, Value minus) {
  return elementwise({scores, factor, minus}, empty(scores, compute),
                     [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                       return weight(inner, args);
                     });
}
