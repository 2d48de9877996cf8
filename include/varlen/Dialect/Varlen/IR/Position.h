//===- Position.h - Arithmetic on positions of rows -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on positions that either computes with constants or emits IR, so
// that one formula serves both.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_POSITION_H
#define VARLEN_DIALECT_VARLEN_IR_POSITION_H

#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// The position of a row in its sequence, or a distance of two: a number that
/// is known, or a value of the program.
class Position {
public:
  Position(int64_t number = 0) : number(number) {}
  /// Implicit, as a function on positions is called with either. A null value
  /// is 0.
  Position(Value value) : value(value) {}

  bool isKnown() const { return !value; }
  int64_t getNumber() const { return number; }
  Value getValue() const { return value; }

private:
  int64_t number = 0;
  Value value;
};

/// Arithmetic on positions. Numbers give numbers, and wrap around as values do;
/// an operation is emitted for what is not known.
class PositionBuilder {
public:
  /// For numbers alone.
  PositionBuilder() = default;
  PositionBuilder(IndexBuilder &index) : index(&index) {}

  Position add(Position lhs, Position rhs);
  Position sub(Position lhs, Position rhs);
  Position mul(Position lhs, int64_t rhs);
  /// The quotient by a positive number, rounded down.
  Position floorDiv(Position lhs, int64_t rhs);
  Position min(Position lhs, Position rhs);
  Position max(Position lhs, Position rhs);
  /// At least lo and at most hi.
  Position clamp(Position position, int64_t lo, int64_t hi) {
    return max(min(position, hi), lo);
  }
  /// `position` in the program.
  Value emit(Position position);

private:
  IndexBuilder *index = nullptr;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_POSITION_H
