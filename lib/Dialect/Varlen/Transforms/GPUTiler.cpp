//===- GPUTiler.cpp - Attention on buffers as a GPU kernel ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A persistent kernel: each CTA takes tiles from the list until it is through.
// A tile is block_m (query row, head of the group) pairs of one sequence and
// kv head. It meets the kv blocks that its mask cuts first, then those wholly
// inside, in one pipeline of copies.
//
//===----------------------------------------------------------------------===//

#include "GPUTiler.h"

#include "GPUWorkTiles.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

class GPUTiler {
public:
  GPUTiler(AttnOp op, GPUScheduleAttr schedule, OpBuilder &builder)
      : op(op), schedule(schedule), b(op.getLoc(), builder), index{b},
        narrow{b, b.getI32Type()}, element(op.getElementType()),
        compute(op.getComputeType()), blockM(schedule.getBlockM()),
        blockN(schedule.getKvBlock()), stages(schedule.getStages()),
        qkColumns(llvm::alignTo(op.getHeadDim(), 16)),
        vColumns(llvm::alignTo(op.getValueHeadDim(), 16)) {}

  LogicalResult emit();

private:
  /// A tile of work: its place in memory and the keys that its rows see.
  struct Tile {
    Value kvHead;
    /// First packed row of the sequence, and the first pair of the tile in it.
    Value qRow, first;
    /// Pairs of the tile in memory, and those of them that are in use.
    Value rows, usedRows;
    Value kRow, kRows, diagonal;
    /// The kv blocks, in the order of iterations: `left` masked ones, then
    /// those up to number `masked` on the other side, then the others, up to
    /// `total`. Iteration i visits block i plus the base of its part. These are
    /// alive in the inner loop, where registers are scarce: 32 bits each.
    Value left, masked, total, leftBase, rightBase, insideBase;
  };
  struct KeyRange {
    Value begin, end;
  };
  /// acc, m and l.
  using State = SmallVector<Value>;
  using RowBody = function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                  Value row, ValueRange)>;

  Tile decode(Value entry);
  void setKeyBlocks(Tile &tile);
  KeyRange visible(OpBuilder &builder, Location loc, const Tile &tile,
                   Value position);
  void emitTile(Value entry);
  State initialState(const Tile &tile);
  /// The first key that a row sees, and the one after the last, R x 1.
  SmallVector<Value> limits(const Tile &tile);
  void emitFetch(const Tile &tile, Value i, bool masked);
  State emitSteps(const Tile &tile, bool masked, State state);
  void emitEpilogue(const Tile &tile, const State &state);

  /// The first key of iteration i, which is past the masked ones or may be
  /// among them.
  Value keyAt(const Tile &tile, Value i, bool masked);
  kernel::RowsOperands rowsOf(const Tile &tile, Value valid) {
    return {tile.qRow, tile.kvHead, tile.first, group, valid};
  }
  RankedTensorType tileType(int64_t columns, Type type) {
    return RankedTensorType::get({blockM, columns}, type);
  }
  /// Results with one value a row; the body gets the index of the row and the
  /// inputs' values.
  SmallVector<Value> perRow(ValueRange inputs, ArrayRef<Type> types,
                            RowBody body);
  Value fill(double value, int64_t columns);
  Value constant(OpBuilder &builder, Location loc, double value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(compute, value));
  }
  /// The element type of tiles in shared memory, and how many add up to one.
  Type sharedElement() { return element.isF32() ? b.getBF16Type() : element; }
  int64_t planes() { return element.isF32() ? kernel::kPlanes : 1; }
  SmallVector<MemRefType> sharedTypes(int64_t rows, int64_t columns) {
    return SmallVector<MemRefType>(
        planes(), kernel::getSharedTileType(rows, columns, sharedElement()));
  }
  void emitIf(Value condition, function_ref<void()> body);

  AttnOp op;
  GPUScheduleAttr schedule;
  ImplicitLocOpBuilder b;
  IndexBuilder index, narrow;
  FloatType element, compute;
  int64_t blockM, blockN, stages, qkColumns, vColumns;

  Value tq, sequences, kvHeads, group;
  GPUWorkTiles work;
  SmallVector<Value> qShared;
  Value ring;
};

} // namespace

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

void GPUTiler::emitIf(Value condition, function_ref<void()> body) {
  scf::IfOp::create(b, condition, [&](OpBuilder &nested, Location) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(nested.saveInsertionPoint());
    body();
    scf::YieldOp::create(b);
  });
}

Value GPUTiler::fill(double value, int64_t columns) {
  Value empty =
      tensor::EmptyOp::create(b, ArrayRef<int64_t>{blockM, columns}, compute);
  return linalg::FillOp::create(b, constant(b, b.getLoc(), value), empty)
      .getResult(0);
}

SmallVector<Value> GPUTiler::perRow(ValueRange inputs, ArrayRef<Type> types,
                                    RowBody body) {
  // One generic a result: a fragment conversion wants it so, and what they
  // share is common to both afterwards.
  SmallVector<Value> results;
  for (auto [number, type] : llvm::enumerate(types)) {
    Value empty =
        tensor::EmptyOp::create(b, ArrayRef<int64_t>{blockM, 1}, type);
    SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(2));
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, TypeRange{empty.getType()}, inputs, ValueRange{empty}, maps,
        iterators,
        [&, number = number](OpBuilder &nested, Location loc,
                             ValueRange arguments) {
          Value row = linalg::IndexOp::create(nested, loc, 0);
          linalg::YieldOp::create(
              nested, loc,
              body(nested, loc, row, arguments.drop_back())[number]);
        });
    results.push_back(generic.getResult(0));
  }
  return results;
}

Value GPUTiler::keyAt(const Tile &tile, Value i, bool masked) {
  Value base = tile.insideBase;
  if (masked)
    base = narrow.select(
        narrow.less(i, tile.left), tile.leftBase,
        narrow.select(narrow.less(i, tile.masked), tile.rightBase, base));
  return narrow.mul(narrow.add(base, i), blockN);
}

GPUTiler::KeyRange GPUTiler::visible(OpBuilder &builder, Location loc,
                                     const Tile &tile, Value position) {
  ImplicitLocOpBuilder nested(loc, builder);
  IndexBuilder at{nested};
  MaskAttr mask = op.getMask();
  Value diagonal = at.add(position, tile.diagonal), zero = at.constant(0);
  auto bound = [](int64_t side) { return std::min(side, VARLEN_MAX_WINDOW); };
  KeyRange keys{zero, tile.kRows};
  if (mask.getLeft() >= 0)
    keys.begin =
        at.max(at.sub(diagonal, at.constant(bound(mask.getLeft()))), zero);
  if (mask.getRight() >= 0)
    keys.end = at.min(
        at.max(at.add(diagonal, bound(mask.getRight()) + 1), zero), tile.kRows);
  return keys;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

GPUTiler::Tile GPUTiler::decode(Value entry) {
  Value number = index.div(entry, kvHeads);
  Value s = index.load(work.list, {number, index.constant(0)});
  Value block = index.load(work.list, {number, index.constant(1)});
  PackedRows q = emitPackedRows(index, op.getCuQ(), s, tq);
  // The rows past the last sequence see no key.
  PackedRows k =
      emitPackedRows(index, op.getCuK(), s, index.load(op.getCuK(), sequences));
  Value zero = index.constant(0), isSequence = index.less(s, sequences);
  Value qRows = index.sub(q.end, q.begin);

  Tile tile;
  tile.kvHead = index.rem(entry, kvHeads);
  tile.qRow = q.begin;
  tile.first = index.mul(block, blockM);
  tile.rows = index.min(index.sub(index.mul(qRows, group), tile.first),
                        index.constant(blockM));
  Value usedQ = emitUsed(index, op.getSequsedQ(), s, sequences, qRows);
  usedQ = index.select(isSequence, usedQ, zero);
  tile.usedRows =
      index.min(index.max(index.sub(index.mul(usedQ, group), tile.first), zero),
                tile.rows);
  tile.kRow = k.begin;
  tile.kRows = emitUsed(index, op.getSequsedK(), s, sequences,
                        index.sub(k.end, k.begin));
  tile.diagonal = zero;
  if (op.getMask().getAlignment() == Alignment::BottomRight)
    tile.diagonal = index.sub(tile.kRows, usedQ);
  if (op.getQOffset()) {
    // Bounded before and after the sum, which therefore does not overflow.
    auto clamp = [&](Value value) {
      return index.max(index.min(value, index.constant(VARLEN_MAX_DIAGONAL)),
                       index.constant(-VARLEN_MAX_DIAGONAL));
    };
    Value offset = emitUsed(index, op.getQOffset(), s, sequences, zero);
    tile.diagonal = clamp(index.add(tile.diagonal, clamp(offset)));
  }
  setKeyBlocks(tile);
  return tile;
}

/// Bounds grow with the position of a row, so the first and the last row of
/// the tile bound those of all.
void GPUTiler::setKeyBlocks(Tile &tile) {
  Value zero = index.constant(0);
  Value last = index.max(
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1)), zero);
  KeyRange top = visible(b, b.getLoc(), tile, index.div(tile.first, group));
  KeyRange bottom = visible(b, b.getLoc(), tile, index.div(last, group));
  // Not even a row: no key.
  Value end = index.select(index.less(zero, tile.usedRows), bottom.end, zero);
  Value first = index.div(top.begin, index.constant(blockN));
  Value past = index.max(index.ceilDiv(end, blockN), first);
  // A tile whose range of keys is empty visits no block.
  past = index.select(index.less(top.begin, end), past, first);
  auto within = [&](Value value, Value lo) {
    return index.max(index.min(value, past), lo);
  };
  // Blocks that every row sees whole.
  Value inside = within(index.ceilDiv(bottom.begin, blockN), first);
  Value right = within(index.div(top.end, index.constant(blockN)), inside);

  Value left = index.sub(inside, first);
  Value masked = index.add(left, index.sub(past, right));
  tile.left = narrow.cast(left);
  tile.masked = narrow.cast(masked);
  tile.total = narrow.cast(index.sub(past, first));
  tile.leftBase = narrow.cast(first);
  tile.rightBase = narrow.cast(index.sub(right, left));
  tile.insideBase = narrow.cast(index.sub(inside, masked));
}

SmallVector<Value> GPUTiler::limits(const Tile &tile) {
  Type i32 = b.getI32Type();
  return perRow(
      {}, {i32, i32},
      [&](OpBuilder &nested, Location loc, Value row, ValueRange) {
        ImplicitLocOpBuilder inner(loc, nested);
        IndexBuilder at{inner};
        Value pair = at.add(tile.first, row);
        KeyRange keys = visible(nested, loc, tile, at.div(pair, group));
        auto narrow = [&](Value key) -> Value {
          return arith::IndexCastOp::create(nested, loc, i32, key);
        };
        return SmallVector<Value>{narrow(keys.begin), narrow(keys.end)};
      });
}

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

/// A sink is a logit seen before any key; rows that belong to no sequence have
/// none, see the epilogue.
GPUTiler::State GPUTiler::initialState(const Tile &tile) {
  Value acc = fill(0.0, vColumns);
  if (!op.getSink())
    return {acc, fill(OnlineAttnOp::getInitialM(), 1), fill(0.0, 1)};
  Value zero = index.constant(0);
  kernel::RowsOperands rows = {zero, tile.kvHead, tile.first, group, tile.rows};
  Value sink = kernel::LoadOp::create(b, tileType(1, compute), op.getSink(),
                                      rows, constant(b, b.getLoc(), 0.0))
                   .getResult(0);
  auto state =
      perRow(sink, {compute, compute},
             [&](OpBuilder &nested, Location loc, Value, ValueRange arguments) {
               Value x = arith::MulFOp::create(nested, loc, arguments[0],
                                               constant(nested, loc, M_LOG2E));
               Value top = math::CeilOp::create(nested, loc, x);
               Value m = arith::MaxNumFOp::create(
                   nested, loc, top,
                   constant(nested, loc, OnlineAttnOp::getInitialM()));
               Value difference = arith::SubFOp::create(nested, loc, x, m);
               Value l = math::Exp2Op::create(nested, loc, difference);
               return SmallVector<Value>{m, l};
             });
  return {acc, state[0], state[1]};
}

/// Fetches the kv block of iteration i, if there is one.
void GPUTiler::emitFetch(const Tile &tile, Value i, bool masked) {
  emitIf(narrow.less(i, tile.total), [&] {
    auto slot = kernel::RingAcquireOp::create(b, ring, i);
    Value k0 = index.cast(keyAt(tile, i, masked));
    kernel::RowsOperands rows = {tile.kRow, tile.kvHead, k0, index.constant(1),
                                 index.sub(tile.kRows, k0)};
    ValueRange memory = slot.getResults();
    kernel::CopyOp::create(b, op.getK(), rows, memory.take_front(planes()));
    kernel::CopyOp::create(b, op.getV(), rows, memory.drop_front(planes()));
  });
  kernel::RingCommitOp::create(b, ring);
}

/// The steps on the masked kv blocks, or on the others.
GPUTiler::State GPUTiler::emitSteps(const Tile &tile, bool masked,
                                    State state) {
  SmallVector<Value> bounds;
  if (masked)
    bounds = limits(tile);
  auto loop = scf::ForOp::create(
      b, masked ? narrow.constant(0) : tile.masked,
      masked ? tile.masked : tile.total, narrow.constant(1), state,
      [&](OpBuilder &, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(i.getParentBlock());
        auto slot = kernel::RingWaitOp::create(b, ring, i, stages - 2);
        emitFetch(tile, narrow.add(i, stages - 1), masked);
        auto tileOf = [&](ValueRange memory, int64_t rows, int64_t columns) {
          return kernel::TileOp::create(
              b, RankedTensorType::get({rows, columns}, element), memory);
        };
        ValueRange memory = slot.getResults();
        Value q = tileOf(qShared, blockM, qkColumns);
        Value k = tileOf(memory.take_front(planes()), blockN, qkColumns);
        Value v = tileOf(memory.drop_front(planes()), blockN, vColumns);
        Value lo, hi, k0;
        if (masked) {
          lo = bounds[0];
          hi = bounds[1];
          k0 = keyAt(tile, i, masked);
        }
        auto step = OnlineAttnOp::create(
            b, q, k, v, lo, hi, k0, /*whole=*/Value(), carried[0], carried[1],
            carried[2], b.getF64FloatAttr(*op.getScaleValue()),
            OrientationAttr::get(b.getContext(), Orientation::QK));
        kernel::RingReleaseOp::create(b, ring, i);
        scf::YieldOp::create(b, step.getResults());
      });
  return loop.getResults();
}

void GPUTiler::emitEpilogue(const Tile &tile, const State &state) {
  auto isUsed = [&](OpBuilder &nested, Location loc, Value row) -> Value {
    return arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt, row,
                                 tile.usedRows);
  };
  // 0 for a row without a key, and for one that is in no sequence.
  Value factor = perRow(
      state[2], compute,
      [&](OpBuilder &nested, Location loc, Value row, ValueRange arguments) {
        Value zero = constant(nested, loc, 0.0);
        Value inverse = arith::DivFOp::create(
            nested, loc, constant(nested, loc, 1.0), arguments[0]);
        Value some = arith::CmpFOp::create(
            nested, loc, arith::CmpFPredicate::ONE, arguments[0], zero);
        some =
            arith::AndIOp::create(nested, loc, some, isUsed(nested, loc, row));
        return SmallVector<Value>{
            arith::SelectOp::create(nested, loc, some, inverse, zero)};
      })[0];
  Value lse = perRow(
      {state[1], state[2]}, compute,
      [&](OpBuilder &nested, Location loc, Value row, ValueRange arguments) {
        Value log = math::Log2Op::create(nested, loc, arguments[1]);
        Value sum = arith::AddFOp::create(nested, loc, arguments[0], log);
        Value value = arith::MulFOp::create(nested, loc, sum,
                                            constant(nested, loc, M_LN2));
        Value none =
            constant(nested, loc, -std::numeric_limits<double>::infinity());
        return SmallVector<Value>{arith::SelectOp::create(
            nested, loc, isUsed(nested, loc, row), value, none)};
      })[0];
  Value empty =
      tensor::EmptyOp::create(b, ArrayRef<int64_t>{blockM, vColumns}, element);
  AffineMap identity = b.getMultiDimIdentityMap(2);
  AffineMap row =
      AffineMap::get(2, 0, {b.getAffineDimExpr(0), b.getAffineConstantExpr(0)},
                     b.getContext());
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  Value out =
      linalg::GenericOp::create(
          b, TypeRange{empty.getType()}, ValueRange{state[0], factor},
          ValueRange{empty}, ArrayRef<AffineMap>{identity, row, identity},
          iterators,
          [&](OpBuilder &nested, Location loc, ValueRange arguments) {
            // What a row of no sequence has accumulated may be NaN.
            Value zero = constant(nested, loc, 0.0);
            Value none = arith::CmpFOp::create(
                nested, loc, arith::CmpFPredicate::OEQ, arguments[1], zero);
            Value x =
                arith::MulFOp::create(nested, loc, arguments[0], arguments[1]);
            x = arith::SelectOp::create(nested, loc, none, zero, x);
            if (element != compute)
              x = arith::TruncFOp::create(nested, loc, element, x);
            linalg::YieldOp::create(nested, loc, x);
          })
          .getResult(0);
  kernel::RowsOperands rows = rowsOf(tile, tile.rows);
  kernel::StoreOp::create(b, out, op.getOutBuffer(), rows);
  kernel::StoreOp::create(b, lse, op.getLseBuffer(), rows);
}

void GPUTiler::emitTile(Value entry) {
  Tile tile = decode(entry);
  emitIf(narrow.less(narrow.constant(0), tile.total), [&] {
    // The tile before may still be read.
    gpu::BarrierOp::create(b);
    kernel::CopyOp::create(b, op.getQ(), rowsOf(tile, tile.usedRows), qShared);
    for (int64_t i = 0; i < stages - 1; ++i)
      emitFetch(tile, narrow.constant(i), /*masked=*/true);
  });
  State state = initialState(tile);
  state = emitSteps(tile, /*masked=*/true, state);
  state = emitSteps(tile, /*masked=*/false, state);
  emitEpilogue(tile, state);
}

LogicalResult GPUTiler::emit() {
  auto dim = [&](Value memref, int64_t dim) -> Value {
    return b.createOrFold<memref::DimOp>(memref, index.constant(dim));
  };
  tq = dim(op.getQ(), 0);
  // Without heads there is nothing to do, and nothing to divide by either.
  kvHeads = index.max(dim(op.getK(), 1), index.constant(1));
  group = index.max(index.div(dim(op.getQ(), 1), kvHeads), index.constant(1));
  sequences = index.sub(dim(op.getCuQ(), 0), index.constant(1));
  FailureOr<GPUWorkTiles> tiles = emitGPUWorkTiles(b, op, group, blockM);
  if (failed(tiles))
    return failure();
  work = *tiles;

  FailureOr<func::FuncOp> multiprocessors = getRuntimeFunction(
      op->getParentOfType<ModuleOp>(), op, "varlen_gpu_multiprocessors",
      b.getFunctionType({}, b.getI64Type()));
  if (failed(multiprocessors))
    return failure();
  Value processors = index.cast(
      func::CallOp::create(b, *multiprocessors, ValueRange{}).getResult(0));
  Value most = index.mul(dim(work.list, 0), kvHeads);
  Value blocks = index.min(index.mul(processors, schedule.getCtas()), most);
  emitLaunch(
      b, op->getParentOfType<func::FuncOp>().getName() + "_attn",
      index.max(blocks, index.constant(1)), schedule.getWarps() * 32,
      [&](Value block, Value blocks, Value) {
        for (MemRefType type : sharedTypes(blockM, qkColumns))
          qShared.push_back(kernel::AllocOp::create(b, type));
        auto slot = sharedTypes(blockN, qkColumns);
        llvm::append_range(slot, sharedTypes(blockN, vColumns));
        ring = kernel::RingOp::create(
            b, kernel::RingType::get(b.getContext(), slot), stages);
        Value count =
            index.mul(index.load(work.count, index.constant(0)), kvHeads);
        scf::ForOp::create(b, block, count, blocks, ValueRange{},
                           [&](OpBuilder &, Location, Value entry, ValueRange) {
                             OpBuilder::InsertionGuard guard(b);
                             b.setInsertionPointToEnd(entry.getParentBlock());
                             emitTile(entry);
                             scf::YieldOp::create(b);
                           });
      });
  memref::DeallocOp::create(b, work.list);
  memref::DeallocOp::create(b, work.count);
  return success();
}

LogicalResult varlen::tileForGPU(AttnOp op, GPUScheduleAttr schedule,
                                 OpBuilder &builder) {
  return GPUTiler(op, schedule, builder).emit();
}
