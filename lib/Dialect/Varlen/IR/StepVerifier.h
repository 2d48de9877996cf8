//===- StepVerifier.h - What operations of steps have in common  -*- C++
//-*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_STEPVERIFIER_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_STEPVERIFIER_H

#include "AttentionInterface.h"
#include "TileVerifier.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

namespace mlir::varlen::detail {

template <typename Step> void setInputsOf(Step step, const StepInputs &inputs) {
  auto assign = [](MutableOperandRange operand, Value value) {
    operand.assign(value ? ValueRange(value) : ValueRange());
  };
  assign(step.getQueriesMutable(), {});
  assign(step.getKeysMutable(), {});
  assign(step.getLoMutable(), inputs.lo);
  assign(step.getHiMutable(), inputs.hi);
  assign(step.getK0Mutable(), inputs.k0);
  assign(step.getSeenBeginMutable(), inputs.seenBegin);
  assign(step.getSeenEndMutable(), inputs.seenEnd);
  assign(step.getPositionMutable(), inputs.position);
  assign(step.getFirstKeyMutable(), inputs.firstKey);
  step.getTablesMutable().assign(inputs.tables);
  step.getRowsMutable().assign(inputs.rows);
}

template <typename Step>
void setGradientInputsOf(Step step, const StepInputs &inputs) {
  step.getDtablesMutable().assign(inputs.dtables);
  step.getDrowsMutable().assign(inputs.drows);
}

template <typename Step> LogicalResult verifyLimits(Step op) {
  if (static_cast<bool>(op.getLo()) != static_cast<bool>(op.getHi()) ||
      static_cast<bool>(op.getLo()) != static_cast<bool>(op.getK0()))
    return op.emitOpError(
               "expected all of the limits lo, hi and k0 or none, got ")
           << (op.getLo() ? 1 : 0) + (op.getHi() ? 1 : 0) + (op.getK0() ? 1 : 0)
           << " of 3";
  if (static_cast<bool>(op.getSeenBegin()) !=
      static_cast<bool>(op.getSeenEnd()))
    return op.emitOpError("expected both ends of the keys that are seen, got 1 "
                          "of 2");
  if (op.getSeenBegin() && !op.getLo())
    return op.emitOpError("expected limits beside 'seen', got none");
  if (!op.getQueries())
    return success();
  if (op.getLo())
    return op.emitOpError("expected either limits or tiles, got both");
  Axis queries = op.getQueries().getType().getAxis(),
       keys = op.getKeys().getType().getAxis();
  if ((queries != Axis::Queries && queries != Axis::Sequences) ||
      keys != Axis::Keys)
    return op.emitOpError("expected tiles of queries and keys, got ")
           << stringifyAxis(queries) << " and " << stringifyAxis(keys);
  return success();
}

/// That tables of a step are memory of an attention, or views with rows beside.
template <typename Step>
LogicalResult verifyTables(Step op, StringRef name, ValueRange tables,
                           ValueRange rows) {
  size_t wanted = op.getQueries() ? 0 : tables.size();
  if (rows.size() != wanted)
    return op.emitOpError("expected rows of ")
           << wanted << " " << name << ", those of a step without tiles, got "
           << rows.size();
  for (Value table : tables) {
    auto type = cast<MemRefType>(table.getType());
    if (type.getElementType() != op.getComputeType())
      return op.emitOpError("expected ")
             << name << " of " << op.getComputeType() << ", got "
             << type.getElementType();
    if (!op.getQueries() && type.getRank() != 2)
      return op.emitOpError("expected ")
             << name << " of rank 2 beside rows, got " << type;
  }
  return success();
}

/// The score region, and the tiles that it reads.
template <typename Step> LogicalResult verifyScoreOf(Step op, int64_t queries) {
  FloatType compute = op.getComputeType();
  // Of tables there may be tangents, too.
  size_t numTables = op.getTables().size(),
         own = getTableArguments(op.getScoreBody()).size(),
         count = StepOpInterface(op).getTableArguments().size();
  size_t tangents = std::min(count - own, numTables);
  unsigned captures = op.getCaptures().size() + numTables - tangents;
  if (failed(verifyScore(op, op.getScoreBody(), compute, captures)))
    return failure();
  if (count != numTables)
    return op.emitOpError("expected ")
           << count << " tables, as many as the score region looks up in, got "
           << numTables;
  if (failed(verifyTables(op, "tables", op.getTables(), op.getRows())))
    return failure();
  if (op.getPosition() && (op.getQueries() || !op.getScoreBody()))
    return op.emitOpError("expected positions beside a score region of a step "
                          "without tiles");
  if (!op.getPosition() && !op.getQueries() &&
      readsPositions(op.getScoreBody()))
    return op.emitOpError("expected positions or tiles beside a score region "
                          "that reads positions");
  SmallVector<NamedValue> rows = {{"position", op.getPosition()}};
  for (Value capture : op.getCaptures()) {
    rows.push_back({"a capture", capture});
    if (elementOf(capture) != compute)
      return op.emitOpError("expected captures of ")
             << compute << ", got " << elementOf(capture);
  }
  for (Value ofTable : op.getRows())
    rows.push_back({"rows", ofTable});
  return verifyRowStats(op, op.getOrientation(), rows, queries);
}

/// The arguments of the score region that are tables among the captures of
/// these numbers.
template <typename Step>
SmallVector<BlockArgument> getTablesAmong(Step op, ArrayRef<int64_t> captures) {
  SmallVector<BlockArgument> tables;
  Block *score = op.getScoreBody();
  for (int64_t number : captures)
    if (number >= 0 && isTable(score, number))
      tables.push_back(score->getArgument(Captures + number));
  return tables;
}

/// An attribute that numbers captures.
struct NamedCaptures {
  StringRef name;
  ArrayRef<int64_t> numbers;
};

/// The captures of a step that have tangents.
template <typename Step> NamedCaptures getTangentCaptures(Step op) {
  return {"wrt_captures", op.getWrtCaptures()};
}
/// Gradients of some of them may be another step's.
inline NamedCaptures getTangentCaptures(OnlineAttnJVPGradOp op) {
  return {"tangent_captures", op.getTangentCaptures()};
}

/// The tables that a score region looks up in, and those that have tangents.
template <typename Step>
SmallVector<BlockArgument> getTablesAndTangents(Step op) {
  SmallVector<BlockArgument> tables = getTableArguments(op.getScoreBody());
  llvm::append_range(tables,
                     getTablesAmong(op, getTangentCaptures(op).numbers));
  return tables;
}

/// The extent of dimensions of tiles, of those that there are, that must agree;
/// dynamic where none says more.
inline int64_t getCommonExtentAt(ArrayRef<std::pair<Value, unsigned>> places) {
  SmallVector<int64_t> extents;
  for (auto [tile, dim] : places)
    if (tile)
      extents.push_back(shaped(tile).getDimSize(dim));
  return getCommonExtent(extents);
}

/// That each tangent, the first of a pair, has the type of what it is one of.
inline LogicalResult
verifyTangentTypes(Operation *op,
                   ArrayRef<std::pair<NamedValue, NamedValue>> tangents) {
  for (auto [tangent, of] : tangents)
    if (tangent.value.getType() != of.value.getType())
      return op->emitOpError("expected ")
             << tangent.name << " of the type of " << of.name << ", "
             << of.value.getType() << ", got " << tangent.value.getType();
  return success();
}

/// The captures that have tangents, which are numbers like `statistic` or
/// further tables.
template <typename Step>
LogicalResult verifyTangentsOfCaptures(Step op, NamedValue statistic) {
  NamedCaptures captures = getTangentCaptures(op);
  size_t ofTables = getTablesAmong(op, captures.numbers).size();
  if (failed(verifyCaptureNumbers(op, captures.numbers,
                                  op.getCaptures().size() +
                                      op.getTables().size() - ofTables,
                                  captures.name)) ||
      failed(verifyFactorCaptures(op, op.getScoreBody(), captures.numbers)))
    return failure();
  size_t wanted = captures.numbers.size() - ofTables;
  if (op.getTcaptures().size() != wanted)
    return op.emitOpError("expected tcaptures for each of the ")
           << wanted << " " << captures.name << " that are no tables, got "
           << op.getTcaptures().size();
  for (Value tangent : op.getTcaptures())
    if (tangent.getType() != statistic.value.getType())
      return op.emitOpError("expected tcaptures of the type of ")
             << statistic.name << ", " << statistic.value.getType() << ", got "
             << tangent.getType();
  return success();
}

} // namespace mlir::varlen::detail

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_STEPVERIFIER_H
