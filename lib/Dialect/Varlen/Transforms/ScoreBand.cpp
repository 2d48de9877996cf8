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

/// Whether a value of a body is the number of a row.
static bool isRow(Value value) {
  auto cast = value.getDefiningOp<arith::IndexCastOp>();
  auto row = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : nullptr;
  return row && row.getDim() == 0;
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
    if (!isRow(hide.getKey()) || !next.lo || !next.hi ||
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

bool mlir::varlen::hidesByLimits(linalg::GenericOp op) {
  return op->hasAttr(kBandAttrName) && ScoreBand::get(op);
}

std::optional<APFloat> mlir::varlen::getHidden(linalg::GenericOp op) {
  for (auto hide : op.getBody()->getOps<HideOp>()) {
    APFloat value(0.0);
    if (matchPattern(hide.getHidden(), m_ConstantFloat(&value)))
      return value;
  }
  return std::nullopt;
}

linalg::GenericOp mlir::varlen::getBandOp(Value tile) {
  auto op = tile.getDefiningOp<linalg::GenericOp>();
  if (op && op.getNumDpsInputs() != 0 &&
      isa<arith::TruncFOp>(op.getBody()->front()))
    op = op.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  return op && op->hasAttr(kBandAttrName) ? op : linalg::GenericOp();
}

linalg::GenericOp mlir::varlen::getMask(Value tile) {
  int64_t rows = tileType(tile).getDimSize(0);
  if (!ShapedType::isDynamic(rows) && rows % kGranule != 0)
    return {};
  linalg::GenericOp op = getBandOp(tile);
  if (!op || hidesByLimits(op))
    return op;
  return getMask(op.getInputs()[0]);
}

bool varlen::isMaskOfKeys(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2 ||
      !op.isAllParallelLoops() || !hidesByLimits(op) ||
      op.getNumDpsInputs() != 3)
    return false;
  ScoreBand band = *ScoreBand::get(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return op.getInputs()[1] == band.lo && op.getInputs()[2] == band.hi &&
         maps[0].isIdentity() && maps[3].isIdentity();
}

Value varlen::emitMaskOfRows(ImplicitLocOpBuilder &b, linalg::GenericOp mask,
                             Value tile, Value lo, Value hi, Value row) {
  auto masked = cast<linalg::GenericOp>(
      mlir::clone(b, mask, tile.getType(), {tile, lo, hi, tile}));
  masked->removeAttr(kBandAttrName);
  moveIndices(b, masked, row);
  return masked->getResult(0);
}
