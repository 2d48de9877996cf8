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

#include "GPUTileBuilder.h"
#include "GPUTiler.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// What the kernels of one attn_grad share.
class GradTileBuilder : protected GPUTileBuilder {
public:
  GradTileBuilder(ImplicitLocOpBuilder &b, AttnGradOp op,
                  GPUScheduleAttr schedule, const GPUBatch &batch,
                  Value statistics)
      : GPUTileBuilder(b, op, schedule, batch), grad(op),
        statistics(statistics) {}

protected:
  std::string kernelName(StringRef suffix) {
    return (grad->getParentOfType<func::FuncOp>().getName() + suffix).str();
  }
  /// lse2 and delta of the rows, as R x 1 or 1 x C.
  ValueRange loadStatistics(ArrayRef<int64_t> shape,
                            kernel::RowsOperands rows) {
    auto type = RankedTensorType::get(shape, compute);
    return kernel::LoadOp::create(b, TypeRange{type, type}, statistics, rows,
                                  constant(b, b.getLoc(), 0.0))
        .getResults();
  }
  FloatAttr getScale() { return b.getF64FloatAttr(*op.getScaleValue()); }
  /// Rows of `sum`, times `factor`, as rows of a gradient. Those from `used` on
  /// are 0: what they have accumulated may be NaN.
  void emitStore(Value sum, double factor, Value used, Value gradient,
                 kernel::RowsOperands rows);

  AttnGradOp grad;
  /// Hq x T x (lse2, delta).
  Value statistics;
};

/// dq: a tile of queries meets the keys that it sees.
class QueryGradTiler : GradTileBuilder {
public:
  using GradTileBuilder::GradTileBuilder;
  LogicalResult emit(const GPUWorkTiles &work);

private:
  void emitTile(const GPUWorkTiles &work, Value entry);

  SmallVector<Value> qShared, doutShared;
  Value ring;
};

/// dk, dv or both: a block of keys meets the queries that see it, of one head
/// of the group after the other.
class KeyGradTiler : GradTileBuilder {
public:
  KeyGradTiler(ImplicitLocOpBuilder &b, AttnGradOp op, GPUScheduleAttr schedule,
               const GPUBatch &batch, Value statistics, bool ofKeys,
               bool ofValues)
      : GradTileBuilder(b, op, schedule, batch, statistics), ofKeys(ofKeys),
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

/// The host's side, and the kernels without tensor cores.
class GradTiler : GradTileBuilder {
public:
  GradTiler(ImplicitLocOpBuilder &b, AttnGradOp op,
            GPUGradScheduleAttr schedule)
      : GradTileBuilder(b, op, schedule.getDq(), emitGPUBatch(b, op), Value()),
        schedules(schedule) {}
  LogicalResult emit();

private:
  LogicalResult emitStatistics(const GPUWorkTiles &work);
  void emitPairs(const QueryTile &tile, Value thread);
  /// sum_d dout[d] * out[d], in every lane of those that share the row.
  Value dot(Value row, Value head, Value lane, int64_t lanes, int64_t width);
  Value sumOfLanes(Value value, int64_t lanes);
  void emitSinkGradient(const GPUWorkTiles &work);

  GPUGradScheduleAttr schedules;
};

} // namespace

void GradTileBuilder::emitStore(Value sum, double factor, Value used,
                                Value gradient, kernel::RowsOperands rows) {
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
        rowStatistics[1], lo, hi, k0, /*whole=*/Value(), /*dq=*/state[0],
        /*dk=*/Value(), /*dv=*/Value(), getScale(),
        OrientationAttr::get(b.getContext(), Orientation::QK));
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
  emitStore(state[0], *op.getScaleValue(), stored.usedRows, grad.getDq(),
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

KeyGradTiler::KeyTile KeyGradTiler::decode(const GPUWorkTiles &work,
                                           Value entry) {
  Entry decoded = decodeEntry(work, entry);
  KeyTile tile;
  tile.sequence = decodeSequence(decoded.sequence);
  const Sequence &sequence = tile.sequence;
  tile.kvHead = decoded.kvHead;
  tile.first = index.mul(decoded.tile, blockN);
  Value zero = index.constant(0);
  tile.rows =
      index.min(index.sub(sequence.kRows, tile.first), index.constant(blockN));
  tile.usedRows = index.min(
      index.max(index.sub(sequence.kUsed, tile.first), zero), tile.rows);

  // Query i sees keys from i + diagonal - left to i + diagonal + right, so key
  // j is seen from query j - diagonal - right to j - diagonal + left.
  MaskAttr mask = op.getMask();
  auto within = [&](Value query) {
    return index.min(index.max(query, zero), sequence.qUsed);
  };
  Value top = index.sub(tile.first, sequence.diagonal);
  Value bottom = index.add(top, index.sub(tile.usedRows, index.constant(1)));
  Range range{zero, zero, sequence.qUsed, sequence.qUsed};
  if (mask.getRight() >= 0) {
    Value right = index.constant(boundOf(mask.getRight()));
    range.begin = within(index.sub(top, right));
    range.wholeBegin = within(index.sub(bottom, right));
  }
  if (mask.getLeft() >= 0) {
    int64_t left = boundOf(mask.getLeft()) + 1;
    range.wholeEnd = within(index.add(top, left));
    range.end = within(index.add(bottom, left));
  }
  // Not even a key: no query.
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
  MaskAttr mask = op.getMask();
  Value diagonal = index.add(q0, sequence.diagonal), begin, end;
  if (mask.getLeft() >= 0)
    begin =
        relative(index.sub(diagonal, index.constant(boundOf(mask.getLeft()))));
  if (mask.getRight() >= 0)
    end = relative(index.add(diagonal, boundOf(mask.getRight()) + 1));
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
        hi, k0, /*whole=*/Value(), /*dq=*/Value(),
        ofKeys ? state.front() : Value(), ofValues ? state.back() : Value(),
        getScale(), OrientationAttr::get(b.getContext(), Orientation::KQ));
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
    emitStore(state.front(), *op.getScaleValue(), stored.usedRows, grad.getDk(),
              rows);
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
// lse2 and delta
//===----------------------------------------------------------------------===//

/// Elements of a row that a lane reads at once.
static int64_t getChunk(MemRefType type) {
  int64_t width = 128 / type.getElementTypeBitWidth();
  return type.getLayout().isIdentity() && type.getDimSize(2) % width == 0
             ? width
             : 1;
}

Value GradTiler::sumOfLanes(Value value, int64_t lanes) {
  Value width = arith::ConstantIntOp::create(b, 32, 32);
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    Value offset = arith::ConstantIntOp::create(b, distance, 32);
    Value other =
        gpu::ShuffleOp::create(b, value, offset, width, gpu::ShuffleMode::XOR)
            .getShuffleResult();
    value = arith::AddFOp::create(b, value, other);
  }
  return value;
}

Value GradTiler::dot(Value row, Value head, Value lane, int64_t lanes,
                     int64_t width) {
  int64_t chunks = op.getValueHeadDim() / width;
  auto wide = VectorType::get(width, compute);
  Value sum = arith::ConstantOp::create(b, b.getZeroAttr(wide));
  for (int64_t base = 0; base < chunks; base += lanes) {
    Value chunk = index.add(lane, base);
    auto add = [&]() -> Value {
      Value column = index.mul(chunk, width);
      auto load = [&](Value memory) -> Value {
        Value x = vector::LoadOp::create(
            b, VectorType::get(width, element), memory,
            ValueRange{row, head, column}, /*nontemporal=*/false,
            llvm::MaybeAlign(width * element.getWidth() / 8));
        return element == compute ? x : arith::ExtFOp::create(b, wide, x);
      };
      return math::FmaOp::create(b, load(grad.getDout()), load(grad.getOut()),
                                 sum);
    };
    if (base + lanes <= chunks) {
      sum = add();
      continue;
    }
    auto yield = [&](function_ref<Value()> value) {
      return [&, value](OpBuilder &nested, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(nested.saveInsertionPoint());
        scf::YieldOp::create(b, value());
      };
    };
    sum = scf::IfOp::create(b, index.less(chunk, index.constant(chunks)),
                            yield(add), yield([&] { return sum; }))
              .getResult(0);
  }
  Value total = vector::ExtractOp::create(b, sum, 0);
  for (int64_t i = 1; i < width; ++i)
    total =
        arith::AddFOp::create(b, total, vector::ExtractOp::create(b, sum, i));
  return sumOfLanes(total, lanes);
}

void GradTiler::emitPairs(const QueryTile &tile, Value thread) {
  int64_t width = std::min(getChunk(cast<MemRefType>(grad.getDout().getType())),
                           getChunk(cast<MemRefType>(grad.getOut().getType())));
  int64_t lanes =
      std::min<int64_t>(32, llvm::PowerOf2Ceil(op.getValueHeadDim() / width));
  int64_t atOnce = schedule.getWarps() * 32 / lanes;
  Value lane = index.rem(thread, index.constant(lanes));
  Value member = index.div(thread, index.constant(lanes));
  scf::ForOp::create(
      b, index.constant(0), index.constant(blockM), index.constant(atOnce),
      ValueRange{}, [&](OpBuilder &, Location, Value base, ValueRange) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(base.getParentBlock());
        // All lanes of a warp have to take part: those past the end do so with
        // the last pair.
        Value number = index.add(base, member);
        Value last = index.sub(tile.rows, index.constant(1));
        Value pair = index.add(tile.first, index.min(number, last));
        Value row = index.add(tile.sequence.qRow, index.div(pair, batch.group));
        Value head = index.add(index.mul(tile.kvHead, batch.group),
                               index.rem(pair, batch.group));
        Value delta = dot(row, head, lane, lanes, width);
        Value lse =
            memref::LoadOp::create(b, grad.getLse(), ValueRange{head, row});
        if (grad.getDlse())
          delta = arith::SubFOp::create(
              b, delta,
              memref::LoadOp::create(b, grad.getDlse(), ValueRange{head, row}));
        // A row that sees nothing has no probability, and no gradient.
        auto constantOf = [&](double value) {
          return constant(b, b.getLoc(), value);
        };
        const double infinity = std::numeric_limits<double>::infinity();
        Value sees = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, lse,
                                           constantOf(-infinity));
        sees =
            arith::AndIOp::create(b, sees, index.less(number, tile.usedRows));
        Value lse2 = arith::MulFOp::create(b, lse, constantOf(M_LOG2E));
        lse2 = arith::SelectOp::create(b, sees, lse2, constantOf(infinity));
        delta = arith::SelectOp::create(b, sees, delta, constantOf(0.0));
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                              index.constant(0));
        isFirst =
            arith::AndIOp::create(b, isFirst, index.less(number, tile.rows));
        emitIf(isFirst, [&] {
          Value both = vector::FromElementsOp::create(
              b, VectorType::get(2, compute), ValueRange{lse2, delta});
          vector::StoreOp::create(b, both, statistics,
                                  ValueRange{head, row, index.constant(0)},
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(2 * compute.getWidth() / 8));
        });
        scf::YieldOp::create(b);
      });
}

LogicalResult GradTiler::emitStatistics(const GPUWorkTiles &work) {
  return emitPersistent(
      kernelName("_delta"), work, [] {},
      [&](Value entry) {
        Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
        emitPairs(decodeQueryTile(work, entry), thread);
      });
}

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

/// A warp to a head: rows in order for each lane, then the lanes. A list of no
/// tile in spite of rows is one of bad cu_seqlens, with which nobody writes.
void GradTiler::emitSinkGradient(const GPUWorkTiles &work) {
  Value heads =
      b.createOrFold<memref::DimOp>(grad.getSink(), index.constant(0));
  emitLaunch(
      b, kernelName("_dsink"), index.max(heads, index.constant(1)), 32,
      [&](Value head, Value, Value thread) {
        Value zero = index.constant(0);
        Value isGood = b.createOrFold<arith::OrIOp>(
            index.less(zero, index.load(work.count, zero)),
            index.less(batch.tq, index.constant(1)));
        Value isHead = index.less(head, heads);
        emitIf(b.createOrFold<arith::AndIOp>(isHead, isGood), [&] {
          Value sink = memref::LoadOp::create(b, grad.getSink(), head);
          auto constantOf = [&](double value) {
            return constant(b, b.getLoc(), value);
          };
          Value sink2 = arith::MulFOp::create(b, sink, constantOf(M_LOG2E));
          auto loop = scf::ForOp::create(
              b, thread, batch.tq, index.constant(32),
              ValueRange{constantOf(0.0)},
              [&](OpBuilder &, Location, Value row, ValueRange sum) {
                OpBuilder::InsertionGuard guard(b);
                b.setInsertionPointToEnd(row.getParentBlock());
                auto load = [&](int64_t which) -> Value {
                  return memref::LoadOp::create(
                      b, statistics,
                      ValueRange{head, row, index.constant(which)});
                };
                Value x = arith::SubFOp::create(b, sink2, load(0));
                Value p = math::Exp2Op::create(b, x);
                Value minusP = arith::NegFOp::create(b, p);
                Value next = math::FmaOp::create(b, minusP, load(1), sum[0]);
                scf::YieldOp::create(b, next);
              });
          Value total = sumOfLanes(loop.getResult(0), 32);
          // A sink of -inf takes no part, whatever delta is.
          Value isNone = arith::CmpFOp::create(
              b, arith::CmpFPredicate::OEQ, sink,
              constantOf(-std::numeric_limits<double>::infinity()));
          total = arith::SelectOp::create(b, isNone, constantOf(0.0), total);
          Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                thread, index.constant(0));
          emitIf(isFirst, [&] {
            memref::StoreOp::create(b, total, grad.getDsink(), head);
          });
        });
      });
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

LogicalResult GradTiler::emit() {
  GPUScheduleAttr keys = schedules.getDk(), values = schedules.getDv();
  auto queryTiles = emitGPUWorkTiles(b, op, batch, TilesOf::Queries, blockM);
  auto keyTiles =
      emitGPUWorkTiles(b, op, batch, TilesOf::Keys, keys.getKvBlock());
  if (failed(queryTiles) || failed(keyTiles))
    return failure();
  // A block of queries at the end of a sequence reads on in what comes behind.
  int64_t readAhead =
      std::max(keys.getBlockM(), values ? values.getBlockM() : 0);
  int64_t heads = op.getQueryHeads();
  SmallVector<Value> extents;
  if (ShapedType::isDynamic(heads))
    extents.push_back(b.createOrFold<memref::DimOp>(op.getQ(), 1));
  extents.push_back(index.add(batch.tq, readAhead));
  statistics = memref::AllocOp::create(
      b, MemRefType::get({heads, ShapedType::kDynamic, 2}, compute), extents);
  if (failed(emitStatistics(*queryTiles)))
    return failure();
  QueryGradTiler queries(b, grad, schedules.getDq(), batch, statistics);
  if (failed(queries.emit(*queryTiles)))
    return failure();
  KeyGradTiler first(b, grad, keys, batch, statistics, /*ofKeys=*/true,
                     /*ofValues=*/!values);
  if (failed(first.emit(values ? "_dk" : "_dkv", *keyTiles)))
    return failure();
  if (values) {
    KeyGradTiler second(b, grad, values, batch, statistics, /*ofKeys=*/false,
                        /*ofValues=*/true);
    if (failed(second.emit("_dv", *keyTiles)))
      return failure();
  }
  if (grad.getSink())
    emitSinkGradient(*queryTiles);
  memref::DeallocOp::create(b, statistics);
  queryTiles->free(b);
  keyTiles->free(b);
  return success();
}

LogicalResult varlen::tileForGPU(AttnGradOp op, GPUGradScheduleAttr schedule,
                                 OpBuilder &builder) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  return GradTiler(b, op, schedule).emit();
}
