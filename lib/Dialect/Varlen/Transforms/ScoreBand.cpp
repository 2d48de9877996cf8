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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

static RankedTensorType tileType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

bool mlir::varlen::hidesByLimits(linalg::GenericOp op) {
  auto isLimit = [](Value tile) {
    RankedTensorType type = tileType(tile);
    return type.getDimSize(0) == 1 && type.getElementType().isInteger(32);
  };
  return op->hasAttr(kBandAttrName) && op.getNumDpsInputs() == 3 &&
         isLimit(op.getInputs()[1]) && isLimit(op.getInputs()[2]);
}

std::optional<APFloat> mlir::varlen::getHidden(linalg::GenericOp op) {
  for (auto select : op.getBody()->getOps<arith::SelectOp>()) {
    APFloat value(0.0);
    if (matchPattern(select.getFalseValue(), m_ConstantFloat(&value)))
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

ScoreBand ScoreBand::get(linalg::GenericOp op) {
  ScoreBand band;
  band.lo = op.getInputs()[1];
  band.hi = op.getInputs()[2];
  auto isOutside = [&](Value value) {
    return value.getParentBlock() != op.getBody();
  };
  for (Operation &inner : *op.getBody()) {
    if (auto key = dyn_cast<arith::AddIOp>(inner);
        key && key.getType().isInteger(32) && isOutside(key.getRhs()))
      band.firstKey = key.getRhs();
    else if (auto select = dyn_cast<arith::SelectOp>(inner);
             select && isOutside(select.getCondition()))
      band.whole = select.getCondition();
  }
  return band;
}

bool varlen::isMaskOfKeys(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2 ||
      !op.isAllParallelLoops() || !hidesByLimits(op) ||
      !ScoreBand::get(op).firstKey)
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return maps[0].isIdentity() && maps[3].isIdentity() &&
         !maps[1].isFunctionOfDim(0) && !maps[2].isFunctionOfDim(0);
}

Value varlen::emitMaskOfRows(ImplicitLocOpBuilder &b, linalg::GenericOp mask,
                             Value tile, Value lo, Value hi, Value row) {
  auto masked = cast<linalg::GenericOp>(b.clone(*mask));
  masked->removeAttr(kBandAttrName);
  for (auto [operand, value] : llvm::zip_equal(
           masked.getInputsMutable(), SmallVector<Value>{tile, lo, hi}))
    operand.set(value);
  masked.getOutputsMutable()[0].set(tile);
  masked->getResult(0).setType(cast<RankedTensorType>(tile.getType()));
  moveIndices(b, masked, row);
  return masked->getResult(0);
}
