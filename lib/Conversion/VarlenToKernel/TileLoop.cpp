//===- TileLoop.cpp - Tile loops as persistent kernels --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows that are read at a tile for its loop over blocks are copied to shared
// memory before that, those of a block to a slot of a ring, stages ahead; what
// is used outside of that loop, and numbers of rows, are loaded where they are.
// The loop over blocks, if there is one, becomes two: blocks that the mask
// or the end of a sequence cuts, on which steps have limits, then the others.
// Nothing here depends on what the tiles own.
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"

#include "TileBuilder.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

class TileLoop : TileBuilder {
public:
  TileLoop(ImplicitLocOpBuilder &b, ForTilesOp loop, GPUScheduleAttr schedule,
           const TileLoopContext &context)
      : TileBuilder(b, loop, schedule, context.batch), context(context),
        ofQueries(loop.getTileType().getAxis() == Axis::Queries) {}

  LogicalResult verify();
  LogicalResult emit();

private:
  LogicalResult verifyBlocks();
  /// The rows of a block.
  struct BlockRows {
    Value row, head, first;
  };

  template <typename Step> LogicalResult verifyStep(Step step);

  // Tiles and blocks.
  std::pair<Tile, MaskRange<Value>> decode(const GPUWorkTiles &work,
                                           Value entry);
  std::pair<Tile, MaskRange<Value>> decodeKeys(const GPUWorkTiles &work,
                                               Value entry);
  /// The sequence without the queries at its ends that see no key: a
  /// probability of 0 does not hide a NaN that they have.
  Sequence dropBlindQueries(Sequence sequence);
  BlockRows getBlockRows(Value i, bool masked);
  /// The keys that each query sees: of the tile, R x 1, or of a block, relative
  /// to the first key of the tile, 1 x C.
  SmallVector<Value> getTileLimits();
  /// Where queries of the tile, or of a block, are among the keys.
  Value getTilePositions();
  Value getBlockPositions(Value q0);
  SmallVector<Value> getBlockLimits(Value q0);

  // The body.
  void emitTile(Value entry);
  State emitStep(Value i, bool masked, ValueRange slot, ValueRange state);
  State emitSeenStep(Value i, bool masked, ValueRange slot, ValueRange state);
  /// Whether iteration i has a key that a query may see, as far as the score
  /// region says so; null if it does not.
  Value mayBeVisible(Value i, bool masked);
  /// Loads rows, or numbers of them, from memory to registers.
  void emitLoad(ReadOp read, kernel::RowsOperands rows);
  Value emitStored(WriteOp write, unsigned number, Type to);
  void emitWrite(WriteOp write);
  template <typename Step> void emitStep(Step step, Value i, bool masked);
  kernel::RowsOperands rowsOf(const Tile &tile, Value valid) {
    return {ofQueries ? tile.sequence.qRow : tile.sequence.kRow, tile.kvHead,
            tile.first, ofQueries ? group : index.constant(1), valid};
  }

  // Shared memory.
  /// Planes of an f32 tile, whose sum it is.
  int64_t planes() { return element.isF32() ? kernel::kPlanes : 1; }
  SmallVector<MemRefType> sharedTypes(RankedTensorType tile);
  void allocate();
  void mapShared(ReadOp read, ValueRange memory) {
    map.map(read.getResult(0),
            kernel::TileOp::create(b, read.getResult(0).getType(), memory)
                .getResult());
  }
  /// The planes of tile `number` of a slot.
  ValueRange ofSlot(ValueRange slot, int64_t number) {
    return slot.slice(number * planes(), planes());
  }

  const TileLoopContext &context;
  bool ofQueries;
  /// Of the rows in shared memory.
  FloatType element;
  /// Null if there are none.
  ForBlocksOp blocks;
  int64_t blockSize;
  /// Reads of rows to shared memory, at the tile and at a block.
  SmallVector<ReadOp> tileReads, blockReads;

  Value ring;
  DenseMap<Operation *, SmallVector<Value>> shared;
  /// The tile, decoded again behind its loops: registers are scarce in them.
  Tile tile;
  Blocks visited;
  SmallVector<Value> limits;
  Value positions;
  /// From values of the loop to those of the kernel.
  IRMapping map;
};

} // namespace

//===----------------------------------------------------------------------===//
// What can be converted
//===----------------------------------------------------------------------===//

/// That rows of that type are on a GPU what they are in memory.
static LogicalResult verifyElement(ReadOp read, Type element) {
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  if (element.isF64() || type.getElementType() != element ||
      cast<MemRefType>(read.getSource().getType()).getElementType() != element)
    return read.emitOpError("expected rows of one element type, f16, bf16 or "
                            "f32, as they are in memory, got ")
           << read.getSource().getType() << " as " << type;
  return success();
}

/// The same of rows in shared memory, which has to be able to hold them.
static LogicalResult verifyShared(ReadOp read, Type element) {
  if (failed(verifyElement(read, element)))
    return failure();
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  // Planes of f32 have 16 bits, too.
  Type narrow =
      element.isF32() ? BFloat16Type::get(read.getContext()) : element;
  if (!kernel::isSharedTile(kernel::getSharedTileType(
          type.getDimSize(0), type.getDimSize(1), narrow)))
    return read.emitOpError("expected a multiple of 8 rows, of less than 2^31 "
                            "bytes, in shared memory, got ")
           << type;
  return success();
}

/// That all numbers of rows that are not in use are one.
static LogicalResult verifyNumbers(ReadOp read) {
  if (!read.getOtherwise() || llvm::all_equal(*read.getOtherwise()))
    return success();
  return read.emitOpError("expected one number for rows that are not in use, "
                          "got several");
}

LogicalResult TileLoop::verify() {
  for (Operation &op : *loop.getBody()) {
    if (auto next = dyn_cast<ForBlocksOp>(op)) {
      if (blocks)
        return next.emitOpError("expected one loop over blocks for each tile");
      blocks = next;
    } else if (!isPure(&op) && !isa<ReadOp, WriteOp, YieldOp>(op)) {
      return op.emitOpError("is not known to tile loops on a GPU");
    }
  }
  if (blocks && failed(verifyBlocks()))
    return failure();
  for (ReadOp read : loop.getBody()->getOps<ReadOp>()) {
    if (!read.isOfVectors())
      continue;
    // Shared memory is read by steps.
    auto isInBlocks = [&](Operation *user) {
      return blocks && blocks->isProperAncestor(user);
    };
    if (llvm::none_of(read->getUsers(), isInBlocks)) {
      if (failed(verifyElement(
              read, getElementTypeOrSelf(read.getSource().getType()))))
        return failure();
      continue;
    }
    for (Operation *user : read->getUsers())
      if (!isInBlocks(user))
        return user->emitOpError("expected rows of a tile to be used in its "
                                 "loop over blocks or outside of it, got both");
    tileReads.push_back(read);
  }
  for (ReadOp read : llvm::concat<ReadOp>(tileReads, blockReads))
    if (failed(verifyShared(read, element)))
      return failure();
  WalkResult result = loop.walk([&](Operation *op) {
    return WalkResult(
        TypeSwitch<Operation *, LogicalResult>(op)
            .Case<OnlineAttnOp, OnlineAttnGradOp>(
                [&](auto step) { return verifyStep(step); })
            .Case([&](ReadOp read) { return verifyNumbers(read); })
            .Default(success()));
  });
  return failure(result.wasInterrupted());
}

LogicalResult TileLoop::verifyBlocks() {
  blockSize = blocks.getBlockType().getSize();
  if (ofQueries == blocks.getBlockType().getByHead())
    return blocks.emitOpError("expected blocks of keys, or of queries by_head");
  for (Operation &op : *blocks.getBody()) {
    auto read = dyn_cast<ReadOp>(op);
    if (read ? read.getTile() != blocks.getBlock()
             : !isPure(&op) && !isa<YieldOp>(op))
      return op.emitOpError("expected reads of the block and steps in a loop "
                            "over blocks on a GPU");
    if (read && read.isOfVectors())
      blockReads.push_back(read);
  }
  if (blockReads.empty())
    return blocks.emitOpError("expected reads of the rows of a block, got "
                              "none");
  element =
      cast<FloatType>(cast<MemRefType>(blockReads.front().getSource().getType())
                          .getElementType());
  return success();
}

/// The score region of the steps of a loop; null if there is none.
static Block *getScore(ForBlocksOp blocks) {
  Block *score = nullptr;
  blocks->walk([&](Operation *op) {
    TypeSwitch<Operation *>(op).Case<OnlineAttnOp, OnlineAttnGradOp>(
        [&](auto step) { score = step.getScoreBody(); });
  });
  return score;
}

template <typename Step> LogicalResult TileLoop::verifyStep(Step step) {
  Value queries = loop.getTile(), keys = blocks.getBlock();
  if (!ofQueries)
    std::swap(queries, keys);
  if (step.getQueries() == queries && step.getKeys() == keys)
    return success();
  return step.emitOpError("expected a step at the tile and the block of its "
                          "loops");
}

//===----------------------------------------------------------------------===//
// Tiles and blocks
//===----------------------------------------------------------------------===//

TileBuilder::Sequence TileLoop::dropBlindQueries(Sequence sequence) {
  Value zero = index.constant(0);
  MaskRange<Value> queries = sequence.mask.emitQueriesOf(
      index, zero, index.sub(sequence.kUsed, index.constant(1)),
      sequence.qUsed);
  sequence.qRow = index.add(sequence.qRow, queries.begin);
  sequence.mask.shift(index, queries.begin);
  sequence.qUsed = index.max(index.sub(queries.end, queries.begin), zero);
  return sequence;
}

std::pair<TileBuilder::Tile, MaskRange<Value>>
TileLoop::decodeKeys(const GPUWorkTiles &work, Value entry) {
  Entry decoded = decodeEntry(work, entry);
  Tile tile;
  tile.sequence = dropBlindQueries(decodeSequence(decoded.sequence));
  const Sequence &sequence = tile.sequence;
  tile.kvHead = decoded.kvHead;
  tile.first = index.mul(decoded.tile, tileRows);
  Value zero = index.constant(0);
  tile.rows = index.min(index.sub(sequence.kRows, tile.first),
                        index.constant(tileRows));
  // A tile has a row, but maybe none in use.
  tile.usedRows = tile.rows;
  if (batch.getSequsedK())
    tile.usedRows = index.min(
        index.max(index.sub(sequence.kUsed, tile.first), zero), tile.rows);
  Value last =
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1));
  MaskRange<Value> range =
      sequence.mask.emitQueriesOf(index, tile.first, last, sequence.qUsed);
  // Not even a key: no query.
  if (batch.getSequsedK())
    range.end = index.select(index.less(zero, tile.usedRows), range.end, zero);
  return {tile, range};
}

std::pair<TileBuilder::Tile, MaskRange<Value>>
TileLoop::decode(const GPUWorkTiles &work, Value entry) {
  return ofQueries ? decodeQueries(work, entry) : decodeKeys(work, entry);
}

/// Of blocks of queries, those of one head of the group come after those of
/// another; masked iterations of all heads come first.
TileLoop::BlockRows TileLoop::getBlockRows(Value i, bool masked) {
  if (ofQueries)
    return {tile.sequence.kRow, tile.kvHead,
            index.cast(blockStart(visited, i, masked, blockSize))};
  if (getConstantIntValue(group) == 1)
    return {tile.sequence.qRow, tile.kvHead,
            index.cast(blockStart(visited, i, masked, blockSize))};
  Value heads = narrow.cast(group), one = narrow.constant(1);
  Value begin = narrow.mul(visited.masked, heads);
  Value inside = narrow.sub(visited.total, visited.masked);
  Value beyond = narrow.sub(i, begin), count = inside;
  Value isMasked;
  if (masked) {
    isMasked = narrow.less(i, begin);
    beyond = narrow.select(isMasked, i, beyond);
    count = narrow.select(isMasked, visited.masked, inside);
  }
  count = narrow.max(count, one);
  Value member = narrow.div(beyond, count);
  Value number = narrow.rem(beyond, count);
  // In the order of iterations of one head.
  Value skipped = visited.masked;
  if (masked)
    skipped = narrow.select(isMasked, narrow.constant(0), skipped);
  number = narrow.add(number, skipped);
  Value head = index.add(index.mul(tile.kvHead, group), index.cast(member));
  return {tile.sequence.qRow, head,
          index.cast(blockStart(visited, number, masked, blockSize))};
}

SmallVector<Value> TileLoop::getTileLimits() {
  return perPosition(
      0, tileRows, 2, [&](ImplicitLocOpBuilder &inner, Value row) {
        IndexBuilder at{inner}, narrow{inner, inner.getI32Type()};
        Value query = at.div(at.add(tile.first, row), group);
        MaskRange<Value> keys = tile.sequence.mask.emitKeysOf(
            at, query, query, tile.sequence.kUsed);
        return SmallVector<Value>{narrow.cast(keys.begin),
                                  narrow.cast(keys.end)};
      });
}

Value TileLoop::getTilePositions() {
  return perPosition(0, tileRows, 1,
                     [&](ImplicitLocOpBuilder &inner, Value row) {
                       IndexBuilder at{inner};
                       Value query = at.div(at.add(tile.first, row), group);
                       return SmallVector<Value>{
                           tile.sequence.mask.emitPosition(at, query)};
                     })
      .front();
}

Value TileLoop::getBlockPositions(Value q0) {
  return perPosition(
             1, blockSize, 1,
             [&](ImplicitLocOpBuilder &inner, Value column) {
               IndexBuilder at{inner};
               return SmallVector<Value>{
                   tile.sequence.mask.emitPosition(at, at.add(q0, column))};
             })
      .front();
}

SmallVector<Value> TileLoop::getBlockLimits(Value q0) {
  // What differs from query to query has 32 bits, however long sequences are.
  const Sequence &sequence = tile.sequence;
  SequenceMask mask = sequence.mask;
  mask.shift(index, q0, tile.first);
  mask.emitCast(index, narrow);
  Value keys = narrow.cast(index.sub(sequence.kUsed, tile.first));
  Value queries = narrow.cast(
      index.min(index.sub(sequence.qUsed, q0), index.constant(blockSize)));
  return perPosition(
      1, blockSize, 2, [&](ImplicitLocOpBuilder &inner, Value position) {
        IndexBuilder at{inner, inner.getI32Type()};
        Value column = at.cast(position), zero = at.constant(0);
        Value begin = mask.emitBound(at, MaskSide::Begin, column);
        Value end = mask.emitBound(at, MaskSide::End, column);
        Value last = end ? at.min(end, keys) : keys;
        // A query past the end sees nothing.
        last = at.select(at.less(column, queries), last, zero);
        return SmallVector<Value>{begin ? begin : zero, last};
      });
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SmallVector<MemRefType> TileLoop::sharedTypes(RankedTensorType tile) {
  Type type = element.isF32() ? b.getBF16Type() : Type(element);
  return SmallVector<MemRefType>(
      planes(),
      kernel::getSharedTileType(tile.getDimSize(0), tile.getDimSize(1), type));
}

void TileLoop::allocate() {
  auto typesOf = [&](ReadOp read) {
    return sharedTypes(cast<RankedTensorType>(read.getResult(0).getType()));
  };
  for (ReadOp read : tileReads)
    for (MemRefType type : typesOf(read))
      shared[read].push_back(kernel::AllocOp::create(b, type));
  SmallVector<MemRefType> slot;
  for (ReadOp read : blockReads)
    llvm::append_range(slot, typesOf(read));
  ring = kernel::RingOp::create(b, kernel::RingType::get(b.getContext(), slot),
                                schedule.getStages());
}

//===----------------------------------------------------------------------===//
// Numbers of rows, and writes
//===----------------------------------------------------------------------===//

void TileLoop::emitLoad(ReadOp read, kernel::RowsOperands rows) {
  Value memory = context.scratch.lookupOrDefault(read.getSource());
  auto type = cast<MemRefType>(memory.getType());
  // A number for each head is there for whatever row.
  if (type.getRank() == 1)
    rows.row = index.constant(0);
  double otherwise = read.getOtherwise() ? read.getOtherwise()->front() : 0.0;
  auto load =
      kernel::LoadOp::create(b, read.getResultTypes(), memory, rows,
                             constant(type.getElementType(), otherwise));
  map.map(read.getResults(), load.getResults());
}

/// The value as `write` stores it: what rows that are not in use have
/// accumulated may be NaN.
Value TileLoop::emitStored(WriteOp write, unsigned number, Type to) {
  Value value = map.lookup(write.getValues()[number]);
  auto type = cast<RankedTensorType>(value.getType());
  Type from = type.getElementType();
  double otherwise = write.getOtherwise()[number];
  Value empty = tensor::EmptyOp::create(b, type.getShape(), to);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto stored = linalg::GenericOp::create(
      b, TypeRange{empty.getType()}, ValueRange{value}, ValueRange{empty}, maps,
      iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        auto constant = [&](double value) -> Value {
          return arith::ConstantOp::create(nested, loc,
                                           nested.getFloatAttr(from, value));
        };
        Value row = linalg::IndexOp::create(nested, loc, 0);
        Value isUsed = arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::slt, row, tile.usedRows);
        Value x = arguments[0];
        if (auto factor = write.getFactor())
          x = arith::MulFOp::create(nested, loc, x,
                                    constant(factor->convertToDouble()));
        x = arith::SelectOp::create(nested, loc, isUsed, x,
                                    constant(otherwise));
        if (to != from)
          x = arith::TruncFOp::create(nested, loc, to, x);
        linalg::YieldOp::create(nested, loc, x);
      });
  return stored.getResult(0);
}

void TileLoop::emitWrite(WriteOp write) {
  Value memory = context.scratch.lookupOrDefault(write.getDestination());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  SmallVector<Value> stored;
  for (unsigned i = 0; i < write.getValues().size(); ++i)
    stored.push_back(emitStored(write, i, element));
  kernel::StoreOp::create(b, stored, memory, rowsOf(tile, tile.rows));
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

template <typename Step>
void TileLoop::emitStep(Step step, Value i, bool masked) {
  SmallVector<Value> bounds;
  Value k0;
  if (masked && ofQueries) {
    bounds = limits;
    k0 = blockStart(visited, i, masked, blockSize);
  } else if (masked) {
    bounds = getBlockLimits(getBlockRows(i, masked).first);
    k0 = narrow.constant(0);
  }
  SmallVector<Value, 1> position, firstKey;
  if (readsPositions(step.getScoreBody())) {
    position.push_back(ofQueries
                           ? positions
                           : getBlockPositions(getBlockRows(i, masked).first));
    firstKey.push_back(ofQueries ? blockStart(visited, i, masked, blockSize)
                                 : narrow.cast(tile.first));
  }
  // What the score region maps is of this copy alone.
  IRMapping values = map;
  auto copy = cast<Step>(b.clone(*step, values));
  map.map(step.getResults(), copy.getResults());
  copy.getQueriesMutable().clear();
  copy.getKeysMutable().clear();
  copy.getPositionMutable().assign(position);
  copy.getFirstKeyMutable().assign(firstKey);
  if (!masked)
    return;
  copy.getLoMutable().assign(bounds[0]);
  copy.getHiMutable().assign(bounds[1]);
  copy.getK0Mutable().assign(k0);
}

Value TileLoop::mayBeVisible(Value i, bool masked) {
  Block *score = getScore(blocks);
  if (!getVisible(score))
    return {};
  BlockRows rows = getBlockRows(i, masked);
  Value one = index.constant(1);
  auto last = [&](Value first, Value count) {
    return index.sub(index.add(first, count), one);
  };
  PositionRange ofTile = {tile.first, last(tile.first, tile.usedRows)};
  PositionRange ofBlock = {rows.first,
                           last(rows.first, index.constant(blockSize))};
  PositionRange queries = ofBlock, keys = ofTile;
  if (ofQueries) {
    queries = {index.div(ofTile.first, group), index.div(ofTile.last, group)};
    keys = ofBlock;
  }
  auto position = [&](Value query) {
    return index.cast(tile.sequence.mask.emitPosition(index, query));
  };
  return emitMayBeVisible(
      index, score, {position(queries.first), position(queries.last)}, keys);
}

TileBuilder::State TileLoop::emitStep(Value i, bool masked, ValueRange slot,
                                      ValueRange state) {
  auto emit = [&] { return emitSeenStep(i, masked, slot, state); };
  Value may = mayBeVisible(i, masked);
  if (!may)
    return emit();
  return State(emitChoice(b, may, emit, [&] { return State(state); }));
}

TileBuilder::State TileLoop::emitSeenStep(Value i, bool masked, ValueRange slot,
                                          ValueRange state) {
  map.map(blocks.getIterArgs(), state);
  // Views, next to what they are for.
  for (ReadOp read : tileReads)
    mapShared(read, shared[read]);
  for (auto [number, read] : llvm::enumerate(blockReads))
    mapShared(read, ofSlot(slot, number));
  for (Operation &op : blocks.getBody()->without_terminator())
    TypeSwitch<Operation *>(&op)
        .Case([&](ReadOp read) {
          if (read.isOfVectors())
            return;
          // Scratch has rows to read on in, whatever the sequence has.
          BlockRows rows = getBlockRows(i, masked);
          emitLoad(read, {rows.row, rows.head, rows.first, index.constant(1),
                          index.constant(blockSize)});
        })
        .Case<OnlineAttnOp, OnlineAttnGradOp>(
            [&](auto step) { emitStep(step, i, masked); })
        .Default([&](Operation *other) { b.clone(*other, map); });
  return llvm::map_to_vector(blocks.getYielded(),
                             [&](Value value) { return map.lookup(value); });
}

void TileLoop::emitTile(Value entry) {
  MaskRange<Value> met;
  std::tie(tile, met) = decode(context.work, entry);
  std::optional<Pipeline> pipeline;
  auto fetch = [&](Value i, bool masked, ValueRange slot) {
    BlockRows rows = getBlockRows(i, masked);
    Value used = ofQueries ? tile.sequence.kUsed : tile.sequence.qUsed;
    Value valid = rowsOfBlock(used, rows.first, blockSize, masked);
    for (auto [number, read] : llvm::enumerate(blockReads))
      kernel::CopyOp::create(
          b, read.getSource(),
          {rows.row, rows.head, rows.first, index.constant(1), valid},
          ofSlot(slot, number));
  };
  auto step = [&](Value i, bool masked, ValueRange slot, ValueRange state) {
    return emitStep(i, masked, slot, state);
  };
  if (blocks) {
    visited = getBlocks(met, blockSize);
    Value heads = ofQueries ? narrow.constant(1) : narrow.cast(group);
    pipeline.emplace(Pipeline{ring, narrow.mul(visited.masked, heads),
                              narrow.mul(visited.total, heads), fetch, step});
    emitPrefetch(*pipeline, [&] {
      for (ReadOp read : tileReads)
        kernel::CopyOp::create(b, read.getSource(), rowsOf(tile, tile.usedRows),
                               shared[read]);
    });
  }
  for (Operation &op : loop.getBody()->without_terminator())
    TypeSwitch<Operation *>(&op)
        .Case([&](ReadOp read) {
          if (!shared.contains(read))
            emitLoad(read, rowsOf(tile, tile.usedRows));
        })
        .Case([&](WriteOp write) { emitWrite(write); })
        .Case([&](ForBlocksOp) {
          if (ofQueries)
            limits = getTileLimits();
          if (ofQueries && readsPositions(getScore(blocks)))
            positions = getTilePositions();
          State state =
              llvm::map_to_vector(blocks.getInits(), [&](Value value) {
                return map.lookup(value);
              });
          map.map(blocks.getResults(), emitSteps(*pipeline, state));
          tile = decode(context.work, entry).first;
        })
        .Default([&](Operation *other) { b.clone(*other, map); });
}

LogicalResult TileLoop::emit() {
  return emitPersistent(
      context.work,
      [&] {
        if (blocks)
          allocate();
      },
      [&](Value entry) { emitTile(entry); });
}

LogicalResult varlen::convertTileLoop(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      GPUScheduleAttr schedule,
                                      const TileLoopContext &context) {
  TileLoop converter(b, loop, schedule, context);
  if (failed(converter.verify()))
    return failure();
  return converter.emit();
}
