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
// Products read what is in the band by scalars or by vectors of its columns.
//
// By scalars (gradients): a chunk of columns is computed for the keys that one
// of them sees. Both are rounded outwards to multiples of kGranule, so that
// what a product reads is there: it rounds to divisors of that.
//
// By vectors (the forward): each vector is computed, and summed over, for the
// keys that one of its columns sees. The rows of a tile are those of the first
// vector alone, of the first two, ..., of all, ..., of the last alone.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

/// The width of chunks of columns at the edge of what is visible: fewer zeros
/// are computed beside a narrow one, but its multipliers wait for loads.
static constexpr int64_t kBandVectors = 2;

//===----------------------------------------------------------------------===//
// What is in the band, and who reads it
//===----------------------------------------------------------------------===//

/// Whether a reduction has the same result without what is hidden.
static bool isOfVisible(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || !getMask(op.getDpsInputs()[0]))
    return false;
  linalg::GenericOp source = getBandOp(op.getDpsInputs()[0]);
  std::optional<APFloat> hidden = APFloat(0.0);
  if (hidesByLimits(source))
    hidden = getHidden(source);
  if (!hidden)
    return false;
  Operation &combiner = op.getBlock()->front();
  return isa<arith::MaxNumFOp>(combiner)
             ? hidden->isInfinity() && hidden->isNegative()
             : isa<arith::AddFOp>(combiner) && hidden->isZero();
}

/// The band of all score tiles of the block, if it is one that loops can
/// follow.
std::optional<BlockVectorizer::Band> BlockVectorizer::findBand() const {
  auto operations = block.getOps<linalg::LinalgOp>();
  if (operations.empty())
    return std::nullopt;
  // Edges are looked up before all loops.
  Operation *first = *operations.begin();
  auto isThere = [&](Value value) {
    Operation *op = value ? value.getDefiningOp() : nullptr;
    return !op || op->getBlock() != &block || op->isBeforeInBlock(first);
  };
  std::optional<Band> found;
  unsigned count = 0;
  for (auto op : block.getOps<linalg::GenericOp>()) {
    if (!hidesByLimits(op))
      continue;
    Band other{ScoreBand::get(op)};
    for (Value limits : {other.lo, other.hi})
      if (!limits.getDefiningOp<bufferization::ToTensorOp>() ||
          !isThere(limits))
        return std::nullopt;
    if (!other.firstKey || !isThere(other.firstKey) || !isThere(other.whole) ||
        (found && !(*found == other)))
      return std::nullopt;
    found = other;
    ++count;
  }
  if (!found)
    return std::nullopt;
  bool isByScalars = false;
  for (auto op : block.getOps<linalg::ContractOp>()) {
    isByScalars |= static_cast<bool>(getMask(op.getInputs()[0]));
    if (!getMask(op.getInputs()[1]))
      continue;
    // Rows of all of them are the same only if one operation hides.
    if (count != 1 || numVectors(op.getInputs()[1]) > schedule.getVectors())
      return std::nullopt;
    found->isByVectors = true;
  }
  if (isByScalars && found->isByVectors)
    return std::nullopt;
  return found;
}

bool BlockVectorizer::isBanded(Value tile) const {
  return band && getMask(tile);
}

/// Whether nobody needs what `tile` has outside of the band.
bool BlockVectorizer::isReadInBand(Value tile) const {
  return llvm::all_of(tile.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<linalg::ContractOp>(user))
      return use.getOperandNumber() == (band->isByVectors ? 1 : 0) &&
             getMask(tile);
    auto op = dyn_cast<linalg::GenericOp>(user);
    if (!op)
      return false;
    if (isReduction(cast<linalg::LinalgOp>(user)))
      return isOfVisible(cast<linalg::LinalgOp>(user));
    // What hides does not look at what it hides.
    return (op->hasAttr(kBandAttrName) && hidesByLimits(op)) ||
           isReadInBand(op->getResult(0));
  });
}

/// Whether the band is all that anybody needs of an operation.
bool BlockVectorizer::isNeededInBand(linalg::LinalgOp op) const {
  if (!band)
    return false;
  if (isReduction(op))
    return isOfVisible(op);
  Value tile = op->getResult(0);
  return isReadInBand(tile) && !tile.use_empty();
}

//===----------------------------------------------------------------------===//
// Where the edges are
//===----------------------------------------------------------------------===//

/// The row of the tile at which a limit of a column lies. Where nothing is
/// hidden limits may be anything.
Value BlockVectorizer::loadLimit(Value limits, Value column, Value ifWhole) {
  Value key = memref::LoadOp::create(b, find(limits, TileOrder::Rows),
                                     ValueRange{index(0), column});
  key = arith::SubIOp::create(b, key, band->firstKey);
  Value row = arith::IndexCastOp::create(b, b.getIndexType(), key);
  if (band->whole)
    row = arith::SelectOp::create(b, band->whole, ifWhole, row);
  return row;
}

BlockVectorizer::Range BlockVectorizer::emitKeysOf(Value first, Value last,
                                                   Value total,
                                                   int64_t multiple) {
  IndexBuilder at{b};
  auto clamp = [&](Value row) {
    return at.min(at.max(row, at.constant(0)), total);
  };
  return {at.roundDown(clamp(loadLimit(band->lo, first, index(0))), multiple),
          at.roundUp(clamp(loadLimit(band->hi, last, total)), multiple)};
}

BlockVectorizer::Range BlockVectorizer::emitColumnsOf(Value row, int64_t rows,
                                                      int64_t multiple) {
  IndexBuilder at{b};
  int64_t lanes = schedule.getLanes();
  Type i32 = b.getI32Type();
  // How many columns have a limit of at most the key of a row: the first ones,
  // for limits do not fall.
  auto count = [&](Value limits, Value row) {
    Value key = arith::AddIOp::create(b, band->firstKey,
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
  return {at.roundDown(count(band->hi, row), multiple),
          at.roundUp(count(band->lo, offset(row, rows - 1)), multiple)};
}

/// Whether a factor of the group ends with the columns that see a row.
bool BlockVectorizer::isCutByRows() const {
  return llvm::any_of(group, [&](linalg::LinalgOp op) {
    return isa<linalg::ContractOp>(op.getOperation()) &&
           isBanded(op.getDpsInputs()[0]) &&
           op.getIndexingMapsArray()[0].getDimPosition(0) == 0;
  });
}

BlockVectorizer::Range BlockVectorizer::emitDepth(linalg::ContractOp op,
                                                  Value row, int64_t rows,
                                                  Value total,
                                                  int64_t multiple) {
  if (!isBanded(op.getInputs()[0]) || isSeenByAll)
    return {index(0), total};
  bool isOverColumns = op.getIndexingMapsArray()[0].getDimPosition(0) == 0;
  return isOverColumns
             ? emitColumnsOf(row, rows, multiple)
             : emitKeysOf(row, offset(row, rows - 1), total, multiple);
}

BlockVectorizer::Range BlockVectorizer::emitSeen(const Range &rows) {
  IndexBuilder at{b};
  auto clamp = [&](Value row, Value from) {
    return at.min(at.max(row, from), rows.end);
  };
  int64_t last = numVectors(band->lo) * schedule.getLanes() - 1;
  Value begin = at.max(loadLimit(band->lo, index(last), rows.begin), index(0));
  Value end = at.max(loadLimit(band->hi, index(0), rows.end), index(0));
  begin = clamp(at.roundUp(begin, kGranule), rows.begin);
  return {begin, clamp(at.roundDown(end, kGranule), begin)};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

BlockVectorizer::Vectors BlockVectorizer::emitAround(int64_t rows,
                                                     const Range &all,
                                                     const Range &seen,
                                                     Vectors carried) {
  isAtEdge = true;
  carried = Vectors(varlen::emitLoop(
      b, index(0), index(2), index(1), carried,
      [&](Value side, ValueRange carried) {
        Value isBehind =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ne, side, index(0));
        auto either = [&](Value behind, Value before) -> Value {
          return arith::SelectOp::create(b, isBehind, behind, before);
        };
        return emitLoop(
            rows,
            Range{either(seen.end, all.begin), either(all.end, seen.begin)},
            Vectors(carried));
      }));
  isAtEdge = false;
  return carried;
}

BlockVectorizer::Vectors BlockVectorizer::emitInOrder(int64_t rows,
                                                      const Range &all,
                                                      const Range &seen,
                                                      Vectors carried) {
  isAtEdge = true;
  carried = emitLoop(rows, {all.begin, seen.begin}, carried);
  isAtEdge = false;
  isSeenByAll = true;
  carried = emitLoop(rows, seen, carried);
  isSeenByAll = false;
  isAtEdge = true;
  carried = emitLoop(rows, {seen.end, all.end}, carried);
  isAtEdge = false;
  return carried;
}

BlockVectorizer::Vectors BlockVectorizer::emitAroundSeen(int64_t rows,
                                                         const Range &all,
                                                         Vectors carried) {
  Range seen = emitSeen(all);
  carried = emitAround(rows, all, seen, carried);
  isSeenByAll = true;
  carried = emitLoop(rows, seen, carried);
  isSeenByAll = false;
  return carried;
}

void BlockVectorizer::emitSegments() {
  IndexBuilder at{b};
  int64_t lanes = schedule.getLanes(), vectors = numVectors(band->lo);
  Value total = getGroupRows();
  SmallVector<Range> rows;
  for (int64_t n = 0; n < vectors; ++n)
    rows.push_back(emitKeysOf(index(n * lanes), index((n + 1) * lanes - 1),
                              total, kGranule));
  // Where no row is of all vectors, the first ones have some more.
  Value begin = rows.back().begin, end = at.max(begin, rows.front().end);
  for (int64_t n = 1; n < vectors; ++n)
    segments.push_back({0, n, {rows[n - 1].begin, rows[n].begin}});
  segments.push_back({0, vectors, {begin, end}});
  for (int64_t n = 1; n < vectors; ++n)
    segments.push_back(
        {n,
         vectors - n,
         {at.max(end, rows[n - 1].end), at.max(end, rows[n].end)}});
}

/// The loops of a group that is needed in the band only.
BlockVectorizer::Vectors BlockVectorizer::emitBand(Vectors carried) {
  bool hides = llvm::any_of(group, [](linalg::LinalgOp op) {
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    return generic && hidesByLimits(generic);
  });
  // A maximum is the same in any order, so what all columns see may come last.
  bool isOrdered = llvm::any_of(group, [](linalg::LinalgOp op) {
    return isReduction(op) && !isa<arith::MaxNumFOp>(op.getBlock()->front());
  });
  int64_t vectors = numVectors(group[0]->getResult(0));
  if (band->isByVectors) {
    if (segments.empty())
      emitSegments();
    for (const Segment &segment : segments) {
      int64_t rows = getRowsAtOnce(segment.count);
      emitPart(segment.first, segment.count, carried, [&](Vectors part) {
        if (segment.count == vectors && hides && !isOrdered)
          return emitAroundSeen(rows, segment.rows, part);
        isAtEdge = segment.count < vectors;
        part = emitLoop(rows, segment.rows, part);
        isAtEdge = false;
        return part;
      });
    }
    return carried;
  }
  // Chunks are looked at one after the other; what all columns see is left out
  // of them, to come last, unless sums have an order.
  Range seen = emitSeen({index(0), getGroupRows()});
  IndexBuilder at{b};
  for (int64_t first = 0; first < vectors; first += kBandVectors) {
    int64_t count = std::min(kBandVectors, vectors - first);
    int64_t rows = getRowsAtOnce(count), lanes = schedule.getLanes();
    int64_t begin = first * lanes / kGranule * kGranule;
    int64_t end = std::min<int64_t>(
        llvm::alignTo((first + count) * lanes, kGranule), vectors * lanes);
    Range keys =
        emitKeysOf(index(begin), index(end - 1), getGroupRows(), kGranule);
    emitPart(first, count, carried, [&](const Vectors &part) {
      auto clamp = [&](Value row) {
        return at.min(at.max(row, keys.begin), keys.end);
      };
      Range inside = {clamp(seen.begin), clamp(seen.end)};
      return isOrdered ? emitInOrder(rows, keys, inside, part)
                       : emitAround(rows, keys, inside, part);
    });
  }
  if (isOrdered)
    return carried;
  isSeenByAll = true;
  carried = emitChunks(schedule.getVectors(), carried, seen);
  isSeenByAll = false;
  return carried;
}
