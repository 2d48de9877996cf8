//===- GPUGradTiler.cpp - Gradients of attention as GPU kernels -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every gradient has an owner, and nothing is added to by two: a tile of
// queries its dq, a block of keys its dk and dv. Owners compute the
// probabilities that they need again, each in the orientation in which these
// are at once the first factor of what follows: (query, key) for dq, (key,
// query) for dk and dv.
//
//===----------------------------------------------------------------------===//

#include "GPUGradTileBuilder.h"
#include "GPUTiler.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// What kernels with tensor cores share.
class GradTiler : protected GPUGradTileBuilder {
public:
  using GPUGradTileBuilder::GPUGradTileBuilder;

protected:
  /// lse and delta of the rows, as R x 1 or 1 x C.
  ValueRange loadStatistics(ArrayRef<int64_t> shape,
                            kernel::RowsOperands rows) {
    auto type = RankedTensorType::get(shape, compute);
    return kernel::LoadOp::create(b, TypeRange{type, type}, statistics, rows,
                                  constant(b, b.getLoc(), 0.0))
        .getResults();
  }
  FloatAttr getScale() { return b.getF64FloatAttr(scale); }
  UnitAttr getNatural() { return isNatural ? b.getUnitAttr() : UnitAttr(); }
  /// Rows of `sum`, times `factor`, as rows of a gradient. Those from `used` on
  /// are 0: what they have accumulated may be NaN.
  void emitStore(Value sum, double factor, Value used, Value gradient,
                 kernel::RowsOperands rows);
};

/// dq: a tile of queries meets the keys that it sees.
class QueryGradTiler : GradTiler {
public:
  using GradTiler::GradTiler;
  LogicalResult emit(const GPUWorkTiles &work);

private:
  void emitTile(const GPUWorkTiles &work, Value entry);

  SmallVector<Value> qShared, doutShared;
  Value ring;
};

/// dk, dv or both: a block of keys meets the queries that see it, of one head
/// of the group after the other.
class KeyGradTiler : GradTiler {
public:
  KeyGradTiler(ImplicitLocOpBuilder &b, AttnGradOp op, GPUScheduleAttr schedule,
               const GPUBatch &batch, Value statistics, bool ofKeys,
               bool ofValues)
      : GradTiler(b, op, schedule, batch, statistics), ofKeys(ofKeys),
        ofValues(ofValues) {}
  LogicalResult emit(StringRef suffix, const GPUWorkTiles &work);

private:
  /// kv_block keys of one sequence and kv head.
  struct KeyTile {
    Sequence sequence;
    Value kvHead, first, rows, usedRows;
    /// Those of one head of the group.
    Blocks blocks;
  };
  /// What an iteration visits: a head of the group, and the first row of a
  /// block of queries.
  struct Visit {
    Value head, q0;
  };

  /// The sequence without the queries at its ends that see no key: a
  /// probability of 0 does not hide a NaN that they have.
  Sequence dropBlindQueries(Sequence sequence);
  KeyTile decode(const GPUWorkTiles &work, Value entry);
  /// The masked iterations of all heads come first.
  Visit getVisit(const KeyTile &tile, Value i, bool masked);
  /// The keys that each query of a block sees, from the first of the tile on,
  /// 1 x C.
  SmallVector<Value> getLimits(const KeyTile &tile, Value q0);
  void emitTile(const GPUWorkTiles &work, Value entry);

  bool ofKeys, ofValues;
  SmallVector<Value> kShared, vShared;
  Value ring;
};

} // namespace

void GradTiler::emitStore(Value sum, double factor, Value used, Value gradient,
                          kernel::RowsOperands rows) {
  auto shape = cast<RankedTensorType>(sum.getType()).getShape();
  Value empty = tensor::EmptyOp::create(b, shape, element);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  Value value = linalg::GenericOp::create(
                    b, TypeRange{empty.getType()}, ValueRange{sum},
                    ValueRange{empty}, maps, iterators,
                    [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                      Value row = linalg::IndexOp::create(nested, loc, 0);
                      Value isUsed = arith::CmpIOp::create(
                          nested, loc, arith::CmpIPredicate::slt, row, used);
                      Value x = arguments[0];
                      if (factor != 1.0)
                        x = arith::MulFOp::create(
                            nested, loc, x, constant(nested, loc, factor));
                      x = arith::SelectOp::create(nested, loc, isUsed, x,
                                                  constant(nested, loc, 0.0));
                      if (element != compute)
                        x = arith::TruncFOp::create(nested, loc, element, x);
                      linalg::YieldOp::create(nested, loc, x);
                    })
                    .getResult(0);
  kernel::StoreOp::create(b, value, gradient, rows);
}

//===----------------------------------------------------------------------===//
// dq
//===----------------------------------------------------------------------===//

void QueryGradTiler::emitTile(const GPUWorkTiles &work, Value entry) {
  QueryTile tile = decodeQueryTile(work, entry);
  SmallVector<Value> limits;
  ValueRange rowStatistics;
  auto fetch = [&](Value i, bool masked, ValueRange slot) {
    emitFetchKeys(tile, i, masked, slot);
  };
  auto step = [&](Value i, bool masked, ValueRange slot, ValueRange state) {
    Value lo, hi, k0;
    if (masked) {
      lo = limits[0];
      hi = limits[1];
      k0 = blockStart(tile.blocks, i, masked, blockN);
    }
    auto online = OnlineAttnGradOp::create(
        b, tileOf(qShared, blockM, qkColumns),
        tileOf(ofSlot(slot, 0), blockN, qkColumns),
        tileOf(ofSlot(slot, 1), blockN, vColumns),
        tileOf(doutShared, blockM, vColumns), rowStatistics[0],
        rowStatistics[1], lo, hi, k0, /*whole=*/Value(),
        /*queries=*/Value(), /*keys=*/Value(), /*dq=*/state[0],
        /*dk=*/Value(), /*dv=*/Value(), getScale(),
        OrientationAttr::get(b.getContext(), Orientation::QK), getNatural());
    return llvm::to_vector_of<Value>(online.getResults());
  };
  Pipeline pipeline{ring, tile.blocks.masked, tile.blocks.total, fetch, step};
  emitPrefetch(pipeline, [&] {
    kernel::RowsOperands rows = rowsOf(tile, tile.usedRows);
    kernel::CopyOp::create(b, op.getQ(), rows, qShared);
    kernel::CopyOp::create(b, grad.getDout(), rows, doutShared);
  });
  rowStatistics = loadStatistics({blockM, 1}, rowsOf(tile, tile.usedRows));
  limits = getLimits(tile);
  State state = emitSteps(pipeline, {fill(0.0, blockM, qkColumns)});
  // Decoded again: registers are scarce in the loops.
  QueryTile stored = decodeQueryTile(work, entry);
  emitStore(state[0], scale, stored.usedRows, grad.getDq(),
            rowsOf(stored, stored.rows));
}

LogicalResult QueryGradTiler::emit(const GPUWorkTiles &work) {
  auto prepare = [&] {
    qShared = allocate(blockM, qkColumns);
    doutShared = allocate(blockM, vColumns);
    ring = allocateRing(blockN, {qkColumns, vColumns});
  };
  return emitPersistent(kernelName("_dq"), work, prepare,
                        [&](Value entry) { emitTile(work, entry); });
}

//===----------------------------------------------------------------------===//
// dk and dv
//===----------------------------------------------------------------------===//

GPUTileBuilder::Sequence KeyGradTiler::dropBlindQueries(Sequence sequence) {
  Value zero = index.constant(0);
  MaskRange queries = emitQueriesOf(
      index, sequence.window, zero,
      index.sub(sequence.kUsed, index.constant(1)), sequence.qUsed);
  auto shift = [&](Value &value) {
    if (value)
      value = index.add(value, queries.begin);
  };
  shift(sequence.qRow);
  shift(sequence.window.begin);
  shift(sequence.window.end);
  sequence.qUsed = index.max(index.sub(queries.end, queries.begin), zero);
  return sequence;
}

KeyGradTiler::KeyTile KeyGradTiler::decode(const GPUWorkTiles &work,
                                           Value entry) {
  Entry decoded = decodeEntry(work, entry);
  KeyTile tile;
  tile.sequence = dropBlindQueries(decodeSequence(decoded.sequence));
  const Sequence &sequence = tile.sequence;
  tile.kvHead = decoded.kvHead;
  tile.first = index.mul(decoded.tile, blockN);
  Value zero = index.constant(0);
  tile.rows =
      index.min(index.sub(sequence.kRows, tile.first), index.constant(blockN));
  // A tile has a row, but maybe none in use.
  tile.usedRows = tile.rows;
  if (op.getSequsedK())
    tile.usedRows = index.min(
        index.max(index.sub(sequence.kUsed, tile.first), zero), tile.rows);

  Value last =
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1));
  MaskRange range =
      emitQueriesOf(index, sequence.window, tile.first, last, sequence.qUsed);
  // Not even a key: no query.
  if (op.getSequsedK())
    range.end = index.select(index.less(zero, tile.usedRows), range.end, zero);
  tile.blocks = getBlocks(range, blockM);
  return tile;
}

KeyGradTiler::Visit KeyGradTiler::getVisit(const KeyTile &tile, Value i,
                                           bool masked) {
  const Blocks &blocks = tile.blocks;
  if (getConstantIntValue(batch.group) == 1)
    return {tile.kvHead, index.cast(blockStart(blocks, i, masked, blockM))};
  Value group = narrow.cast(batch.group), one = narrow.constant(1);
  Value begin = narrow.mul(blocks.masked, group);
  Value inside = narrow.sub(blocks.total, blocks.masked);
  Value beyond = narrow.sub(i, begin), count = inside;
  Value isMasked;
  if (masked) {
    isMasked = narrow.less(i, begin);
    beyond = narrow.select(isMasked, i, beyond);
    count = narrow.select(isMasked, blocks.masked, inside);
  }
  count = narrow.max(count, one);
  Value member = narrow.div(beyond, count);
  Value number = narrow.rem(beyond, count);
  // In the order of iterations of one head.
  Value skipped = blocks.masked;
  if (masked)
    skipped = narrow.select(isMasked, narrow.constant(0), skipped);
  number = narrow.add(number, skipped);
  Value head =
      index.add(index.mul(tile.kvHead, batch.group), index.cast(member));
  return {head, index.cast(blockStart(blocks, number, masked, blockM))};
}

SmallVector<Value> KeyGradTiler::getLimits(const KeyTile &tile, Value q0) {
  // Relative to the first key of the tile, so that what differs from query to
  // query has 32 bits, however long sequences are.
  const Sequence &sequence = tile.sequence;
  auto relative = [&](Value key) {
    Value most = index.constant(int64_t(1) << 30);
    Value distance = index.sub(key, tile.first);
    return narrow.cast(index.max(index.min(distance, most),
                                 index.sub(index.constant(0), most)));
  };
  Value begin, end;
  if (sequence.window.begin)
    begin = relative(index.add(q0, sequence.window.begin));
  if (sequence.window.end)
    end = relative(index.add(q0, sequence.window.end));
  Value keys = relative(sequence.kUsed);
  Value queries = narrow.cast(
      index.min(index.sub(sequence.qUsed, q0), index.constant(blockM)));
  Type i32 = b.getI32Type();
  return perPosition(
      1, blockM, {}, {i32, i32},
      [&](OpBuilder &nested, Location loc, Value position, ValueRange) {
        ImplicitLocOpBuilder inner(loc, nested);
        IndexBuilder at{inner, i32};
        Value column = at.cast(position), zero = at.constant(0);
        Value last = end ? at.min(at.add(column, end), keys) : keys;
        // A query past the end sees nothing.
        last = at.select(at.less(column, queries), last, zero);
        return SmallVector<Value>{begin ? at.add(column, begin) : zero, last};
      });
}

void KeyGradTiler::emitTile(const GPUWorkTiles &work, Value entry) {
  KeyTile tile = decode(work, entry);
  const Sequence &sequence = tile.sequence;
  auto rowsOf = [&](const Visit &visit, Value valid) -> kernel::RowsOperands {
    return {sequence.qRow, visit.head, visit.q0, index.constant(1), valid};
  };
  auto fetch = [&](Value i, bool masked, ValueRange slot) {
    Visit visit = getVisit(tile, i, masked);
    auto rows =
        rowsOf(visit, rowsOfBlock(sequence.qUsed, visit.q0, blockM, masked));
    kernel::CopyOp::create(b, op.getQ(), rows, ofSlot(slot, 0));
    kernel::CopyOp::create(b, grad.getDout(), rows, ofSlot(slot, 1));
  };
  auto step = [&](Value i, bool masked, ValueRange slot, ValueRange state) {
    Visit visit = getVisit(tile, i, masked);
    // There are as many rows of statistics, whatever the sequence has.
    ValueRange columns =
        loadStatistics({1, blockM}, rowsOf(visit, index.constant(blockM)));
    Value lo, hi, k0;
    if (masked) {
      auto limits = getLimits(tile, visit.q0);
      lo = limits[0];
      hi = limits[1];
      k0 = narrow.constant(0);
    }
    // Without dk, which needs dp, nothing reads v.
    Value v;
    if (ofKeys)
      v = tileOf(vShared, blockN, vColumns);
    else
      v = tensor::EmptyOp::create(b, ArrayRef{blockN, vColumns}, element);
    auto online = OnlineAttnGradOp::create(
        b, tileOf(ofSlot(slot, 0), blockM, qkColumns),
        tileOf(kShared, blockN, qkColumns), v,
        tileOf(ofSlot(slot, 1), blockM, vColumns), columns[0], columns[1], lo,
        hi, k0, /*whole=*/Value(),
        /*queries=*/Value(), /*keys=*/Value(), /*dq=*/Value(),
        ofKeys ? state.front() : Value(), ofValues ? state.back() : Value(),
        getScale(), OrientationAttr::get(b.getContext(), Orientation::KQ),
        getNatural());
    return llvm::to_vector_of<Value>(online.getResults());
  };
  Value group = narrow.cast(batch.group);
  Pipeline pipeline{ring, narrow.mul(tile.blocks.masked, group),
                    narrow.mul(tile.blocks.total, group), fetch, step};
  kernel::RowsOperands rows = {sequence.kRow, tile.kvHead, tile.first,
                               index.constant(1), tile.usedRows};
  emitPrefetch(pipeline, [&] {
    kernel::CopyOp::create(b, op.getK(), rows, kShared);
    if (ofKeys)
      kernel::CopyOp::create(b, op.getV(), rows, vShared);
  });
  State state;
  if (ofKeys)
    state.push_back(fill(0.0, blockN, qkColumns));
  if (ofValues)
    state.push_back(fill(0.0, blockN, vColumns));
  state = emitSteps(pipeline, state);
  // Decoded again: registers are scarce in the loops.
  KeyTile stored = decode(work, entry);
  rows = {stored.sequence.kRow, stored.kvHead, stored.first, index.constant(1),
          stored.rows};
  if (ofKeys)
    emitStore(state.front(), scale, stored.usedRows, grad.getDk(), rows);
  if (ofValues)
    emitStore(state.back(), 1.0, stored.usedRows, grad.getDv(), rows);
}

LogicalResult KeyGradTiler::emit(StringRef suffix, const GPUWorkTiles &work) {
  auto prepare = [&] {
    kShared = allocate(blockN, qkColumns);
    if (ofKeys)
      vShared = allocate(blockN, vColumns);
    ring = allocateRing(blockM, {qkColumns, vColumns});
  };
  return emitPersistent(kernelName(suffix), work, prepare,
                        [&](Value entry) { emitTile(work, entry); });
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

LogicalResult varlen::tileForGPU(AttnGradOp op, GPUGradScheduleAttr schedule,
                                 OpBuilder &builder) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  GPUBatch batch = emitGPUBatch(b, op);
  GPUScheduleAttr queries = schedule.getDq(), keys = schedule.getDk(),
                  values = schedule.getDv();
  auto queryTiles =
      emitGPUWorkTiles(b, op, batch, TilesOf::Queries, queries.getBlockM());
  if (failed(queryTiles))
    return failure();
  auto keyTiles = emitGPUWorkTiles(b, op, batch, TilesOf::Keys,
                                   keys.getKvBlock(), &*queryTiles);
  if (failed(keyTiles))
    return failure();
  // A block of queries at the end of a sequence reads on in what comes behind.
  int64_t readAhead =
      std::max(keys.getBlockM(), values ? values.getBlockM() : 0);
  int64_t heads = op.getQueryHeads();
  SmallVector<Value> extents;
  if (ShapedType::isDynamic(heads))
    extents.push_back(b.createOrFold<memref::DimOp>(op.getQ(), 1));
  extents.push_back(index.add(batch.tq, readAhead));
  Value statistics = memref::AllocOp::create(
      b, MemRefType::get({heads, ShapedType::kDynamic, 2}, op.getComputeType()),
      extents);
  GPUGradRows rows(b, op, queries, batch, statistics);
  if (failed(rows.emitStatistics(*queryTiles)) ||
      failed(
          QueryGradTiler(b, op, queries, batch, statistics).emit(*queryTiles)))
    return failure();
  KeyGradTiler first(b, op, keys, batch, statistics, /*ofKeys=*/true,
                     /*ofValues=*/!values);
  if (failed(first.emit(values ? "_dk" : "_dkv", *keyTiles)))
    return failure();
  if (values) {
    KeyGradTiler second(b, op, values, batch, statistics, /*ofKeys=*/false,
                        /*ofValues=*/true);
    if (failed(second.emit("_dv", *keyTiles)))
      return failure();
  }
  if (op.getSink())
    rows.emitSinkGradient(*queryTiles);
  memref::DeallocOp::create(b, statistics);
  queryTiles->free(b);
  keyTiles->free(b);
  return success();
}
