//===- ScoreBand.cpp - The part of scores that a mask leaves --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreBand.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/Body.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

static RankedTensorType tileType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

/// The input that a value of a body is an element of, if that is a tile with
/// one element for each column.
static Value getColumns(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody())
    return {};
  OpOperand *operand = op.getMatchingOpOperand(argument);
  MLIRContext *context = op.getContext();
  auto ofColumn = AffineMap::get(
      2, 0, {getAffineConstantExpr(0, context), getAffineDimExpr(1, context)},
      context);
  auto type = dyn_cast<RankedTensorType>(operand->get().getType());
  if (!op.isDpsInput(operand) || !type || !type.hasStaticShape() ||
      op.getMatchingIndexingMap(operand) != ofColumn)
    return {};
  return operand->get();
}

std::optional<ScoreBand> ScoreBand::get(linalg::GenericOp op) {
  auto isInside = [&](Value value) {
    return value && value.getParentBlock() == op.getBody();
  };
  std::optional<ScoreBand> band;
  for (auto hide : op.getBody()->getOps<HideOp>()) {
    ScoreBand next = {getColumns(op, hide.getLo()),
                      getColumns(op, hide.getHi()), hide.getK0(),
                      hide.getWhole()};
    auto row = hide.getKey().getDefiningOp<linalg::IndexOp>();
    if (!row || row.getDim() != 0 || !next.lo || !next.hi ||
        isInside(next.firstKey) || isInside(next.whole) ||
        (band && !(*band == next)))
      return std::nullopt;
    band = next;
  }
  return band;
}

Value ScoreBand::emitRow(ImplicitLocOpBuilder &b, Value limits,
                         Value column) const {
  Value zero = IndexBuilder{b}.constant(0);
  Value key = tensor::ExtractOp::create(b, limits, ValueRange{zero, column});
  return arith::SubIOp::create(b, key, firstKey);
}

std::pair<Value, Value> ScoreBand::emitRowsOfAll(ImplicitLocOpBuilder &b,
                                                 Value first, Value last,
                                                 Value numRows) const {
  IndexBuilder in{b, b.getI32Type()};
  Value begin = emitRow(b, lo, last), end = emitRow(b, hi, first);
  if (!whole)
    return {begin, end};
  return {in.select(whole, in.constant(0), begin),
          in.select(whole, numRows, end)};
}

linalg::GenericOp varlen::getUnrounded(Value tile) {
  auto op = tile.getDefiningOp<linalg::GenericOp>();
  if (op && op.getNumDpsInputs() != 0 &&
      isa<arith::TruncFOp>(op.getBody()->front()))
    op = op.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  return op;
}

/// What the body of an operation makes its first result by, if that is an `Op`.
template <typename Op> static Op getResultOp(linalg::GenericOp op) {
  return op.getBody()->getTerminator()->getOperand(0).getDefiningOp<Op>();
}

linalg::GenericOp varlen::getZeroMask(Value tile) {
  int64_t rows = tileType(tile).getDimSize(0);
  linalg::GenericOp op = getUnrounded(tile);
  if (!op || (ShapedType::isStatic(rows) && rows % kGranule != 0))
    return {};
  auto weight = getResultOp<WeightOp>(op);
  if (weight) {
    auto score = dyn_cast<BlockArgument>(weight.getScore());
    if (!score || score.getOwner() != op.getBody())
      return {};
    OpOperand *scores = op.getMatchingOpOperand(score);
    op = op.getMatchingIndexingMap(scores).isIdentity()
             ? scores->get().getDefiningOp<linalg::GenericOp>()
             : linalg::GenericOp();
  }
  auto hide = op ? getResultOp<HideOp>(op) : HideOp();
  if (!hide || !ScoreBand::get(op))
    return {};
  Value hidden = hide.getHidden();
  bool isZero = weight ? matchPattern(hidden, m_NegInfFloat())
                       : matchPattern(hidden, m_AnyZeroFloat());
  return isZero ? op : linalg::GenericOp();
}

bool varlen::isMaskOfKeys(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2 ||
      !op.isAllParallelLoops() || op.getNumDpsInputs() != 3)
    return false;
  std::optional<ScoreBand> band = ScoreBand::get(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return band && op.getInputs()[1] == band->lo &&
         op.getInputs()[2] == band->hi && maps[0].isIdentity() &&
         maps[3].isIdentity();
}

Value varlen::emitMaskOfRows(ImplicitLocOpBuilder &b, linalg::GenericOp mask,
                             Value tile, Value lo, Value hi, Value row) {
  auto masked = cast<linalg::GenericOp>(
      mlir::clone(b, mask, tile.getType(), {tile, lo, hi, tile}));
  moveIndices(b, masked, row);
  return masked->getResult(0);
}
