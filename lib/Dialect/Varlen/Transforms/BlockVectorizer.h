//===- BlockVectorizer.h - Tile operations to loops of vectors --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-tiles. The lanes of a vector are the columns of a
// tile; loops run over its rows. Tile operations over the same rows are fused
// into one loop, so a row is loaded, computed with and stored once; a
// contraction keeps rows x vectors accumulators in registers; a reduction over
// rows is a loop-carried vector. A tile with more columns than registers hold
// is done in chunks of columns.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_BLOCKVECTORIZER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_BLOCKVECTORIZER_H

#include "ScoreBand.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace mlir::varlen {

/// Scratch tiles of one piece of work. Blocks of tile operations never overlap
/// in time and keep nothing in scratch, so they share it.
class ScratchPool {
public:
  ScratchPool(Block *body, CPUScheduleAttr schedule)
      : body(body), schedule(schedule) {}

  /// Memory for a tile of at least (panel size) columns in the given order;
  /// rows are at most kv_block where they are dynamic. `inUse` counts the tiles
  /// of each kind that are in use.
  Value get(RankedTensorType tile, TileOrder order,
            DenseMap<Type, unsigned> &inUse) {
    int64_t rows =
        tile.isDynamicDim(0) ? schedule.getKvBlock() : tile.getDimSize(0);
    int64_t columns = std::max(tile.getDimSize(1), schedule.getPanelSize());
    auto type = MemRefType::get(getTileMemoryShape(order, rows, columns),
                                tile.getElementType());
    SmallVector<Value> &tiles = pool[type];
    unsigned taken = inUse[type]++;
    if (taken == tiles.size()) {
      auto builder = OpBuilder::atBlockBegin(body);
      tiles.push_back(
          memref::AllocOp::create(builder, body->getParentOp()->getLoc(), type,
                                  /*alignment=*/builder.getI64IntegerAttr(64)));
    }
    return tiles[taken];
  }

private:
  Block *body;
  CPUScheduleAttr schedule;
  llvm::MapVector<MemRefType, SmallVector<Value>> pool;
};

/// Vectorizes the tile operations of one block, in their order.
class BlockVectorizer {
public:
  BlockVectorizer(Block &block, CPUScheduleAttr schedule, ScratchPool &scratch)
      : block(block), schedule(schedule), scratch(scratch),
        b(block.getParentOp()->getLoc(), block.getParentOp()->getContext()) {}

  LogicalResult run();

private:
  using Vectors = Values;

  /// Whether a tile holds one value per column: a statistic.
  static bool isStatistic(Value tile) {
    return cast<RankedTensorType>(tile.getType()).getDimSize(0) == 1;
  }
  static bool isReduction(linalg::LinalgOp op) {
    return op.getNumReductionLoops() != 0 && !isa<linalg::ContractOp>(op);
  }
  int64_t numVectors(Value tile) const {
    return cast<RankedTensorType>(tile.getType()).getDimSize(1) /
           schedule.getLanes();
  }
  VectorType vectorType(Type element) const {
    return VectorType::get({schedule.getLanes()}, element);
  }

  /// What the rest relies on; see BlockVectorizerCheck.cpp.
  /// Of a bufferization.to_tensor or varlen.to_tile.
  LogicalResult checkRead(Operation *op);
  LogicalResult check(bufferization::MaterializeInDestinationOp op);
  LogicalResult check(linalg::LinalgOp op);
  LogicalResult checkContract(linalg::ContractOp op);
  LogicalResult checkGeneric(linalg::GenericOp op);
  LogicalResult checkBody(linalg::GenericOp op);
  /// Whether a value is a tile that this block reads or computes.
  bool isTile(Value value) const;
  /// Whether a tile has rows to read, now or once it is computed.
  bool isReadable(Value tile) const;

  OpFoldResult rowsOf(Value tile);
  Value index(int64_t value);
  Value offset(Value base, int64_t plus);
  Value constantVector(TypedAttr scalar);
  Value broadcast(Value scalar);
  /// The place of a vector of the chunk in a row of (perColumn * columns)
  /// elements.
  Value column(int64_t vector, int64_t perColumn = 1);
  Value load(Value memref, Value row, int64_t vector);
  void store(Value value, Value memref, Value row, int64_t vector);
  /// `tile` in memory in this order; null if it is not there.
  Value find(Value tile, TileOrder order) const;

  /// The vectors of a statistic that is not pending in the open group.
  Vectors statistic(Value tile);
  bool isPending(Value tile) const;
  bool canJoin(linalg::LinalgOp op);
  void emitStatistic(linalg::GenericOp op);
  LogicalResult flush();
  SmallVector<TileOrder> neededOrders(Value tile);
  void assignBuffers();
  Vectors emitRows(Value row, int64_t rows, ValueRange accumulators);
  void emitStore(Value tile, const TileCopy &copy, Value row, int64_t rows);
  Vectors operandRows(Value tile, Value row, int64_t rows);
  Vectors emitContract(linalg::ContractOp op, Value row, int64_t rows);
  /// One vector that the body of an operation is emitted for.
  struct Place {
    Vectors arguments;
    Value row;
    int64_t vector;
  };
  Vectors emitBody(linalg::LinalgOp op, ArrayRef<Place> places);
  void emitOperation(Operation &inner, const Place &place, IRMapping &mapping);
  Value asVector(Value value) {
    return isa<VectorType>(value.getType()) ? value : broadcast(value);
  }
  /// The loop over the group's rows; returns what its reductions end with.
  Vectors emitLoop(int64_t rows, Vectors carried);
  Value getGroupRows() {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), groupRows);
  }
  /// Rows at once where `width` vectors of columns are.
  int64_t getRowsAtOnce(int64_t width);
  /// `emit` for `count` vectors of columns from vector `first` on, with their
  /// part of `carried`, which has all vectors of one reduction after the other.
  void emitPart(int64_t first, int64_t count, Vectors &carried,
                function_ref<Vectors(Vectors)> emit);
  /// The part of score tiles that a mask leaves.
  struct Band : ScoreBand {
    /// Whether products read what is in the band by vectors of its columns, and
    /// not by scalars: each vector has edges of its own then.
    bool isByVectors = false;
  };
  /// From a position to before another one.
  struct Range {
    Value begin, end;
  };
  /// Some vectors of the columns, and the rows that they are computed for.
  struct Segment {
    int64_t first, count;
    Range rows;
  };
  /// The loop over some of the group's rows, in steps of `rows`.
  Vectors emitLoop(int64_t rows, const Range &range, const Vectors &carried);
  /// The loops over chunks of at most `width` vectors of the group's columns,
  /// over some of its rows or all; `carried` has all vectors of one reduction
  /// after the other.
  Vectors emitChunks(int64_t width, Vectors carried,
                     std::optional<Range> range = std::nullopt);

  std::optional<Band> findBand() const;
  bool isBanded(Value tile) const;
  bool isReadInBand(Value tile) const;
  bool isNeededInBand(linalg::LinalgOp op) const;
  Value loadLimit(Value limits, Value column, Value ifWhole);
  /// The keys that some of the columns `first` to `last` see, of `total`.
  Range emitKeysOf(Value first, Value last, Value total, int64_t multiple);
  /// The columns that see some of `rows` keys from `row` on.
  Range emitColumnsOf(Value row, int64_t rows, int64_t multiple);
  /// What a product with a banded left factor has to be summed over for `rows`
  /// rows from `row` on: outside it that factor is zero.
  Range emitDepth(linalg::ContractOp op, Value row, int64_t rows, Value total,
                  int64_t multiple);
  bool isCutByRows() const;
  /// Those of `rows` that all columns see.
  Range emitSeen(const Range &rows);
  /// The loop over the rows of `all` before and behind those of `seen`.
  Vectors emitAround(int64_t rows, const Range &all, const Range &seen,
                     Vectors carried);
  /// The loops over all rows in their order: before, of and behind those that
  /// all columns see.
  Vectors emitInOrder(int64_t rows, const Range &all, const Range &seen,
                      Vectors carried);
  /// The loop of emitAround, and then that over those that all columns see.
  Vectors emitAroundSeen(int64_t rows, const Range &all, Vectors carried);
  void emitSegments();
  Vectors emitBand(Vectors carried);

  /// Whether a product with `tile` as its right factor is one of pairs.
  bool hasPairs(Value tile) const {
    return schedule.getKv() == KVStorage::Pairs &&
           cast<RankedTensorType>(tile.getType()).getElementType().isBF16();
  }
  /// How a product reads its factors: the left one by scalars (or pairs of
  /// them), the right one by vectors of columns.
  std::array<TileOrder, 2> getFactorOrders(linalg::ContractOp op) const;

  Block &block;
  CPUScheduleAttr schedule;
  ScratchPool &scratch;
  ImplicitLocOpBuilder b;

  /// Where a tile lies in memory: tiles loaded from there, and stored ones.
  DenseMap<Value, SmallVector<TileCopy, 2>> buffers;
  /// The one band of the block's score tiles.
  std::optional<Band> band;
  /// Of a band that is read by vectors, in ascending order of the rows of each
  /// vector.
  SmallVector<Segment> segments;
  /// Tiles that are a constant all over.
  DenseMap<Value, Value> fills;
  /// Statistics in registers.
  DenseMap<Value, Vectors> statistics;
  /// Buffers that came from the pool, and how many of each type.
  DenseSet<Value> fromScratch;
  DenseMap<Type, unsigned> taken;

  /// Operations over the same rows, to become one loop.
  SmallVector<linalg::LinalgOp> group;
  OpFoldResult groupRows;
  /// Whether the group is needed in the band only.
  bool isGroupBanded = false;
  /// Tiles of the group that must be in memory after its loop.
  SmallVector<Value> stored;
  /// The chunk of columns being emitted: `chunkVectors` vectors from vector
  /// `chunkFirst` on, and `chunkColumn` columns later where it is not null.
  int64_t chunkFirst = 0, chunkVectors = 0;
  Value chunkColumn;
  /// Rows at hand in the loop body being emitted.
  DenseMap<Value, Vectors> rowValues;
  /// Whether all columns see the rows of the loop being emitted.
  bool isSeenByAll = false;
  /// Whether that loop has no rows where nothing is hidden.
  bool isAtEdge = false;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_BLOCKVECTORIZER_H
