//===- Position.cpp - Arithmetic on positions of rows ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Position.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::varlen;

/// In unsigned arithmetic: a signed one must not wrap around.
static int64_t wrap(uint64_t number) { return static_cast<int64_t>(number); }
static uint64_t bits(Position position) { return position.getNumber(); }

static bool areKnown(Position lhs, Position rhs) {
  return lhs.isKnown() && rhs.isKnown();
}

Value PositionBuilder::emit(Position position) {
  assert(index && "expected numbers without a builder");
  return position.isKnown() ? index->constant(position.getNumber())
                            : position.getValue();
}

Position PositionBuilder::add(Position lhs, Position rhs) {
  if (areKnown(lhs, rhs))
    return wrap(bits(lhs) + bits(rhs));
  return index->add(emit(lhs), emit(rhs));
}

Position PositionBuilder::sub(Position lhs, Position rhs) {
  if (areKnown(lhs, rhs))
    return wrap(bits(lhs) - bits(rhs));
  return index->sub(emit(lhs), emit(rhs));
}

Position PositionBuilder::mul(Position lhs, int64_t rhs) {
  if (lhs.isKnown())
    return wrap(bits(lhs) * static_cast<uint64_t>(rhs));
  return index->mul(emit(lhs), rhs);
}

Position PositionBuilder::floorDiv(Position lhs, int64_t rhs) {
  if (lhs.isKnown())
    return llvm::divideFloorSigned(lhs.getNumber(), rhs);
  return index->floorDiv(emit(lhs), rhs);
}

Position PositionBuilder::min(Position lhs, Position rhs) {
  if (areKnown(lhs, rhs))
    return std::min(lhs.getNumber(), rhs.getNumber());
  return index->min(emit(lhs), emit(rhs));
}

Position PositionBuilder::max(Position lhs, Position rhs) {
  if (areKnown(lhs, rhs))
    return std::max(lhs.getNumber(), rhs.getNumber());
  return index->max(emit(lhs), emit(rhs));
}
