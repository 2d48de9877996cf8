//===- BlockVectorizerBand.cpp - What need not be computed ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask leaves a band of a score tile and makes the rest zero. Loops over
// scores stop at its edges, and so do the sums of products with them: nobody
// reads what lies outside, so nobody writes it.
//
// A chunk of columns is computed for the keys that one of them sees. Both are
// rounded outwards to multiples of kGranule, so that what a product reads is
// there: it rounds to divisors of that.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

/// The band outside of which `tile` is zero.
std::optional<BlockVectorizer::Band>
BlockVectorizer::getBand(Value tile) const {
  auto op = tile.getDefiningOp<linalg::GenericOp>();
  // Zeros stay zeros as they are rounded.
  if (op && op.getNumDpsInputs() != 0 &&
      isa<arith::TruncFOp>(op.getBody()->front()))
    op = op.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  if (!op || !op->hasAttr(kBandAttrName))
    return std::nullopt;
  Band band{op.getInputs()[1], op.getInputs()[2], nullptr, nullptr};
  if (!find(band.lo, TileOrder::Rows) || !find(band.hi, TileOrder::Rows))
    return std::nullopt;
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
  if (!band.firstKey)
    return std::nullopt;
  return band;
}

/// Whether nobody needs what `tile` has outside of the band.
bool BlockVectorizer::isReadInBand(Value tile, const Band &band) const {
  return llvm::all_of(tile.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<tensor::DimOp>(user))
      return true;
    if (isa<linalg::ContractOp>(user))
      return use.getOperandNumber() == 0 && getBand(tile) == band;
    auto op = dyn_cast<linalg::GenericOp>(user);
    if (!op || isReduction(cast<linalg::LinalgOp>(user)))
      return false;
    return op->hasAttr(kBandAttrName) ? getBand(op->getResult(0)) == band
                                      : isReadInBand(op->getResult(0), band);
  });
}

/// The band that is all that anybody needs of the group's results, if there is
/// one.
std::optional<BlockVectorizer::Band> BlockVectorizer::getGroupBand() {
  std::optional<Band> band;
  for (linalg::LinalgOp op : group)
    if (op->hasAttr(kBandAttrName))
      band = getBand(op->getResult(0));
  std::optional<int64_t> rows = getConstantIntValue(groupRows);
  if (!band || (rows && *rows % kGranule != 0))
    return std::nullopt;
  bool isEnough = llvm::all_of(group, [&](linalg::LinalgOp op) {
    return !isReduction(op) && isReadInBand(op->getResult(0), *band);
  });
  return isEnough ? band : std::nullopt;
}

/// The row of the tile at which a limit of a column lies.
Value BlockVectorizer::loadLimit(const Band &band, Value limits, Value column) {
  Value key = memref::LoadOp::create(b, find(limits, TileOrder::Rows),
                                     ValueRange{index(0), column});
  key = arith::SubIOp::create(b, key, band.firstKey);
  return arith::IndexCastOp::create(b, b.getIndexType(), key);
}

BlockVectorizer::Range BlockVectorizer::emitKeysOf(const Band &band,
                                                   Value first, Value last,
                                                   Value total,
                                                   int64_t multiple) {
  IndexBuilder at{b};
  auto clamp = [&](Value row) {
    return at.min(at.max(row, at.constant(0)), total);
  };
  return {at.roundDown(clamp(loadLimit(band, band.lo, first)), multiple),
          at.roundUp(clamp(loadLimit(band, band.hi, last)), multiple)};
}

BlockVectorizer::Range BlockVectorizer::emitColumnsOf(const Band &band,
                                                      Value row, int64_t rows,
                                                      int64_t multiple) {
  IndexBuilder at{b};
  int64_t lanes = schedule.getLanes();
  Type i32 = b.getI32Type();
  // How many columns have a limit of at most the key of a row: the first ones,
  // for limits do not fall.
  auto count = [&](Value limits, Value row) {
    Value key = arith::AddIOp::create(b, band.firstKey,
                                      arith::IndexCastOp::create(b, i32, row));
    key = broadcast(key);
    Value sum = at.constant(0);
    for (int64_t n = 0, e = numVectors(limits); n < e; ++n) {
      Value vector = vector::LoadOp::create(
          b, vectorType(i32), find(limits, TileOrder::Rows),
          ValueRange{index(0), index(n * lanes)});
      Value mask =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, vector, key);
      auto bits = VectorType::get({1}, b.getIntegerType(lanes));
      mask = vector::ExtractOp::create(
          b, vector::BitCastOp::create(b, bits, mask), 0);
      mask = math::CtPopOp::create(b, mask);
      sum = at.add(
          sum,
          arith::IndexCastUIOp::create(b, b.getIndexType(), mask).getResult());
    }
    return sum;
  };
  return {at.roundDown(count(band.hi, row), multiple),
          at.roundUp(count(band.lo, offset(row, rows - 1)), multiple)};
}

BlockVectorizer::Range BlockVectorizer::emitChunkRows(Value total) {
  int64_t lanes = schedule.getLanes();
  int64_t columns = numVectors(group[0]->getResult(0)) * lanes;
  int64_t first = chunkFirst * lanes;
  int64_t end = first + chunkVectors * lanes;
  first = first / kGranule * kGranule;
  end = std::min<int64_t>(llvm::alignTo(end, kGranule), columns);
  return emitKeysOf(*groupBand, index(first), index(end - 1), total, kGranule);
}

BlockVectorizer::Range BlockVectorizer::emitDepth(linalg::ContractOp op,
                                                  Value row, int64_t rows,
                                                  Value total,
                                                  int64_t multiple) {
  std::optional<Band> band = getBand(op.getInputs()[0]);
  if (!band || isKnownTrue(band->whole))
    return {index(0), total};
  bool isOverColumns = op.getIndexingMapsArray()[0].getDimPosition(0) == 0;
  return isOverColumns
             ? emitColumnsOf(*band, row, rows, multiple)
             : emitKeysOf(*band, row, offset(row, rows - 1), total, multiple);
}
