//===- PlanOperators.cpp - What a launch plan computes --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Launch/LaunchPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::varlen;

/// The text of an operator, and the function that it is of numbers of this
/// type.
#define OPERATOR_OF(type, name, operation, text)                               \
  {name, operation, #text, [](int64_t c, int64_t l, int64_t r) -> int64_t {    \
     type C = c, L = l, R = r;                                                 \
     (void)C, (void)L, (void)R;                                                \
     return text;                                                              \
   }}
#define OPERATOR(name, operation, text)                                        \
  OPERATOR_OF(int64_t, name, operation, text)
/// Overflow wraps around.
#define WRAPPING(name, operation, text)                                        \
  OPERATOR_OF(uint64_t, name, operation, text)
static constexpr PlanOperator operators[] = {
    WRAPPING("add", "arith.addi", L + R),
    WRAPPING("sub", "arith.subi", L - R),
    WRAPPING("mul", "arith.muli", L *R),
    OPERATOR("udiv", "arith.divui", (int64_t)((uint64_t)L / (uint64_t)R)),
    OPERATOR("sdiv", "arith.divsi", L / R),
    OPERATOR("urem", "arith.remui", (int64_t)((uint64_t)L % (uint64_t)R)),
    OPERATOR("srem", "arith.remsi", L % R),
    OPERATOR("lshr", "arith.shrui", (int64_t)((uint64_t)L >> R)),
    OPERATOR("smin", "arith.minsi", L < R ? L : R),
    OPERATOR("smax", "arith.maxsi", L > R ? L : R),
    OPERATOR("umin", "arith.minui", (uint64_t)L < (uint64_t)R ? L : R),
    OPERATOR("umax", "arith.maxui", (uint64_t)L > (uint64_t)R ? L : R),
    OPERATOR("and", "arith.andi", L &R),
    OPERATOR("or", "arith.ori", L | R),
    OPERATOR("xor", "arith.xori", L ^ R),
    OPERATOR("eq", "", L == R),
    OPERATOR("ne", "", L != R),
    OPERATOR("slt", "", L < R),
    OPERATOR("sle", "", L <= R),
    OPERATOR("sgt", "", L > R),
    OPERATOR("sge", "", L >= R),
    OPERATOR("ult", "", (uint64_t)L < (uint64_t)R),
    OPERATOR("ule", "", (uint64_t)L <= (uint64_t)R),
    OPERATOR("ugt", "", (uint64_t)L > (uint64_t)R),
    OPERATOR("uge", "", (uint64_t)L >= (uint64_t)R),
    OPERATOR("select", "arith.select", C ? L : R),
};
#undef WRAPPING
#undef OPERATOR
#undef OPERATOR_OF

const PlanOperator *varlen::getPlanOperator(Operation *op) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  const auto *found = llvm::find_if(operators, [&](const PlanOperator &one) {
    return compare ? one.name == stringifyCmpIPredicate(compare.getPredicate())
                   : one.operation == op->getName().getStringRef();
  });
  return found == std::end(operators) ? nullptr : found;
}

const PlanOperator *varlen::lookupPlanOperator(StringRef name) {
  const auto *found = llvm::find_if(
      operators, [&](const PlanOperator &one) { return one.name == name; });
  return found == std::end(operators) ? nullptr : found;
}

StringRef PlanOperator::checkRight(const PlanOperand &operand) const {
  bool isConstant = operand.kind == PlanOperand::Kind::Constant;
  if (name == "lshr" &&
      !(isConstant && operand.number >= 0 && operand.number < 64))
    return "shifts of 64 bits by a constant";
  // The least number has no quotient by -1.
  if (llvm::is_contained({"udiv", "sdiv", "urem", "srem"}, name) &&
      !(isConstant && operand.number != 0 && operand.number != -1))
    return "a divisor that is a constant";
  return "";
}
