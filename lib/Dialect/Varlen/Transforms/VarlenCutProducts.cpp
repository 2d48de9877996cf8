//===- VarlenCutProducts.cpp - Products end at the edges of a mask --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which products have something to do with masked scores; ProductCutter writes
// them.
//
//===----------------------------------------------------------------------===//

#include "EnclosingSchedule.h"
#include "ProductCutter.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCUTPRODUCTS
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The mask that the tile goes through, whoever reads it; null if somebody
/// reads what the mask hides.
static linalg::GenericOp getMaskOfReaders(Value tile) {
  linalg::GenericOp mask;
  for (OpOperand &use : tile.getUses()) {
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!reader || !reader.isAllParallelLoops() || !reader.isDpsInput(&use) ||
        !reader.getMatchingIndexingMap(&use).isIdentity())
      return {};
    linalg::GenericOp found = reader;
    if (!ScoreBand::get(reader))
      found = getMaskOfReaders(reader->getResult(0));
    if (!found || (mask && !(ScoreBand::get(mask) == ScoreBand::get(found))))
      return {};
    mask = found;
  }
  return mask;
}

bool ProductCutter::findRole() {
  linalg::GenericOp mask;
  for (Role factor : {Role::Left, Role::Right}) {
    linalg::GenericOp found =
        getZeroMask(op.getInputs()[factor == Role::Left ? 0 : 1]);
    if (!found)
      continue;
    if (mask)
      return false;
    mask = found;
    role = factor;
  }
  if (!mask) {
    mask = getMaskOfReaders(op->getResult(0));
    role = Role::Result;
  }
  if (!mask || mask->getBlock() != op->getBlock())
    return false;
  band = *ScoreBand::get(mask);
  return true;
}

bool ProductCutter::canCut() {
  if (!op.hasPureTensorSemantics() || !findRole())
    return false;
  ArrayAttr maps = op.getIndexingMaps();
  isRowFirst = linalg::MatmulOp::isDefaultIndexingMaps(maps);
  auto result = cast<RankedTensorType>(op.getOutputs().front().getType());
  int64_t numRows = result.getDimSize(0);
  return isThere(band.lo, op) && isThere(band.hi, op) &&
         isThere(band.firstKey, op) && isThere(band.whole, op) &&
         (isRowFirst ||
          linalg::MatmulTransposeAOp::isDefaultIndexingMaps(maps)) &&
         !result.isDynamicDim(1) &&
         (ShapedType::isDynamic(numRows) || numRows % kGranule == 0);
}

/// Moves what an operation reads, but for `tile`, before the product, if that
/// is constants.
static bool hoistOperands(linalg::GenericOp reader, Value tile,
                          Operation *product) {
  SetVector<Value> values;
  getUsedValuesDefinedAbove(reader->getRegions(), values);
  values.insert_range(reader.getInputs());
  for (Value value : values) {
    if (value == tile || isThere(value, product))
      continue;
    Operation *source = value.getDefiningOp();
    if (!source->hasTrait<OpTrait::ConstantLike>())
      return false;
    source->moveBefore(product);
  }
  return true;
}

/// Whether an operation reduces the rows of a tile to their maximum, which
/// begins with a constant.
static bool isMaximum(linalg::GenericOp op) {
  auto fill = op.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  return reducesRows(op) && isa<arith::MaxNumFOp>(op.getBody()->front()) &&
         fill && matchPattern(fill.getInputs()[0], m_Constant());
}

/// Whether the product is masked, possibly after new scores were computed of
/// it, and reduced to the maximum of each column.
bool ProductCutter::findMaximum() {
  score = mask = maximum = {};
  if (role != Role::Result)
    return false;
  Value tile = op->getResult(0);
  linalg::GenericOp reader = getReader(tile), computed;
  if (reader && !isMaskOfKeys(reader) && isElementwise(reader) &&
      reader->getBlock() == op->getBlock() &&
      reader.getResultTypes()[0] == tile.getType()) {
    computed = reader;
    reader = getReader(computed->getResult(0));
    if (!hoistOperands(computed, tile, op))
      return false;
    tile = computed->getResult(0);
  }
  if (!reader || !isMaskOfKeys(reader) || reader.getInputs()[0] != tile)
    return false;
  mask = reader;
  for (Operation *user : mask->getUsers()) {
    auto reader = dyn_cast<linalg::GenericOp>(user);
    if (reader && isMaximum(reader))
      maximum = reader;
  }
  if (!maximum || !hoistOperands(mask, tile, op))
    return false;
  score = computed;
  lowest = maximum.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  return true;
}

namespace {
struct VarlenCutProducts
    : varlen::impl::VarlenCutProductsBase<VarlenCutProducts> {
  void runOnOperation() override {
    SmallVector<std::pair<linalg::ContractOp, CPUScheduleAttr>> products;
    getOperation()->walk([&](linalg::ContractOp op) {
      CPUScheduleAttr schedule = getEnclosingSchedule(op);
      if (!schedule)
        return;
      products.emplace_back(op, schedule);
      if (op.getOutputs()[0].getDefiningOp<bufferization::ToTensorOp>())
        op->setAttr(kAddLastAttrName, UnitAttr::get(op.getContext()));
    });
    DenseSet<Value> readInBand;
    // The last ones first, which look for the masks that the others take in.
    for (auto [op, schedule] : llvm::reverse(products)) {
      ProductCutter cutter(op, schedule, readInBand);
      if (!cutter.canCut())
        continue;
      cutter.cut();
      ++numProducts;
    }
  }
};
} // namespace
