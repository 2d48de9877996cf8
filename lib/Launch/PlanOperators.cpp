//===- PlanOperators.cpp - What a launch plan computes --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Launch/LaunchPlan.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::varlen;

/// The text of an operator, and the function that it is.
#define OPERATOR(name, text)                                                   \
  {name, #text, [](int64_t C, int64_t L, int64_t R) -> int64_t {               \
     (void)C, (void)L, (void)R;                                                \
     return text;                                                              \
   }}
static constexpr PlanOperator operators[] = {
    OPERATOR("add", L + R),
    OPERATOR("sub", L - R),
    OPERATOR("mul", L *R),
    OPERATOR("udiv", (int64_t)((uint64_t)L / (uint64_t)R)),
    OPERATOR("sdiv", L / R),
    OPERATOR("urem", (int64_t)((uint64_t)L % (uint64_t)R)),
    OPERATOR("srem", L % R),
    OPERATOR("lshr", (int64_t)((uint64_t)L >> R)),
    OPERATOR("smin", L < R ? L : R),
    OPERATOR("smax", L > R ? L : R),
    OPERATOR("umin", (uint64_t)L < (uint64_t)R ? L : R),
    OPERATOR("umax", (uint64_t)L > (uint64_t)R ? L : R),
    OPERATOR("and", L &R),
    OPERATOR("or", L | R),
    OPERATOR("xor", L ^ R),
    OPERATOR("eq", L == R),
    OPERATOR("ne", L != R),
    OPERATOR("slt", L < R),
    OPERATOR("sle", L <= R),
    OPERATOR("sgt", L > R),
    OPERATOR("sge", L >= R),
    OPERATOR("ult", (uint64_t)L < (uint64_t)R),
    OPERATOR("ule", (uint64_t)L <= (uint64_t)R),
    OPERATOR("ugt", (uint64_t)L > (uint64_t)R),
    OPERATOR("uge", (uint64_t)L >= (uint64_t)R),
    OPERATOR("select", C ? L : R),
};
#undef OPERATOR

const PlanOperator &varlen::lookupPlanOperator(StringRef name) {
  return *llvm::find_if(
      operators, [&](const PlanOperator &op) { return op.name == name; });
}
