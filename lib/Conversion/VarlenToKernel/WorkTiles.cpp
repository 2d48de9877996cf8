//===- WorkTiles.cpp - The work tiles of a batch, on a GPU ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few launches, in none of which a thread waits for another: one thread a
// sequence finds its work and number of tiles; merge passes sort sequences by
// work and add up tiles as they go; one thread a tile finds its sequence in
// these sums. A sequence with an error has more work than any other can have,
// so after sorting the first error is the first of the list, for every thread
// to see, and none writes.
//
//===----------------------------------------------------------------------===//

#include "WorkTiles.h"

#include "BatchChecks.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

/// Threads of a block of the kernels that make the list.
static constexpr int64_t kThreads = 128;

/// Sorted runs that one launch makes one. With more, there are fewer launches,
/// whose latency is what short lists take, and each thread searches longer.
static constexpr int64_t kRuns = 16;

/// Work of a sequence with an error, and more than that of any without.
static constexpr int64_t kFault = std::numeric_limits<int64_t>::max();

std::string varlen::getKernelName(ForTilesOp loop) {
  return (loop->getParentOfType<func::FuncOp>().getName() + "_" +
          loop.getName())
      .str();
}

PackedRows varlen::emitPackedRows(IndexBuilder &index, Value cu, Value s,
                                  Value end) {
  Value last =
      index.sub(index.b.createOrFold<memref::DimOp>(cu, index.constant(0)),
                index.constant(1));
  Value next = index.load(cu, index.min(index.add(s, 1), last));
  return {index.load(cu, s), index.select(index.less(s, last), next, end)};
}

Value varlen::emitUsed(IndexBuilder &index, Value used, Value s,
                       Value sequences, Value otherwise) {
  if (!used)
    return otherwise;
  return emitChoice(
             index.b, index.less(s, sequences),
             [&] { return Values{index.load(used, s)}; },
             [&] { return Values{otherwise}; })
      .front();
}

namespace {

/// Code of the kernel; every method emits at the builder's place.
class ListBuilder {
public:
  ListBuilder(ImplicitLocOpBuilder &b, const GPUBatch &batch, TileType tile,
              const GPUWorkTiles *checked)
      : b(b), index{b}, op(batch.op), group(op.getGroup()),
        ofQueries(tile.getAxis() == Axis::Queries), size(tile.getSize()),
        checked(checked), tq(op.getTq()), tk(op.getTk()),
        sequences(batch.sequences), checks(b, batch) {}

  FailureOr<GPUWorkTiles> emit();

private:
  /// What the table has of each segment: its work, its number, and, behind it
  /// in its sorted run, how many tiles there are so far.
  enum Field { Work, Number, Tiles, NumFields };
  struct Sequence {
    PackedRows q, k;
    /// How long a tile takes: rows in use on the other side. And the tiles.
    Value work, tiles;
  };
  Sequence sequence(Value s);

  /// A launch of a kernel for the numbers from 0 to `extent`, a thread each.
  void emitThreads(const Twine &suffix, Value extent,
                   function_ref<void(Value)> body);
  /// The first position of [lo, hi) of which `isBefore` does not hold, or hi.
  /// It holds of no position behind one of which it does not.
  Value emitSearch(Value lo, Value hi, function_ref<Value(Value)> isBefore);

  Value load(Value parity, Field field, Value at) {
    return index.load(table, {parity, index.constant(field), at});
  }
  void store(Value value, Value parity, Field field, Value at) {
    emitStore(value, table, {parity, index.constant(field), at});
  }
  /// Stores an index as an integer of the type of `memref`.
  void emitStore(Value value, Value memref, ValueRange at);

  void emitSegments();
  /// Sorts; the half of the table where the result is.
  Value emitSort();
  /// Merges the runs of `run` segments, in the half `from` of the table, to the
  /// other: the new place of segment `i`.
  void emitMerge(Value i, Value run, Value from);
  /// The tile `i`, if there is one.
  void emitTile(Value i, Value sorted, const GPUWorkTiles &work);
  void emitFault(Value segment);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  BatchOp op;
  Value group;
  bool ofQueries;
  int64_t size;
  const GPUWorkTiles *checked;
  Value tq, tk, sequences, status;
  BatchChecks checks;
  /// What is wrong with extents. The host knows it, a kernel reports it.
  GPUFault extents;
  /// The sequences, and the rows past the last.
  Value segments;
  /// Two halves of NumFields x segments: what a pass reads, and what it writes.
  Value table;
};

} // namespace

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

ListBuilder::Sequence ListBuilder::sequence(Value s) {
  Sequence result;
  result.q = emitPackedRows(index, op.getCuQ(), s, tq);
  result.k = emitPackedRows(index, op.getCuK(), s, tk);
  auto rows = [&](const PackedRows &packed) {
    return index.sub(packed.end, packed.begin);
  };
  Value other = rows(ofQueries ? result.k : result.q);
  Value used = ofQueries ? op.getSequsedK() : op.getSequsedQ();
  result.work = emitUsed(index, used, s, sequences, other);
  Value own = ofQueries ? index.mul(rows(result.q), group) : rows(result.k);
  result.tiles = index.ceilDiv(own, size);
  return result;
}

void ListBuilder::emitThreads(const Twine &suffix, Value extent,
                              function_ref<void(Value)> body) {
  StringRef function = op->getParentOfType<func::FuncOp>().getName();
  StringRef list = ofQueries ? "_tiles" : "_key_tiles";
  emitLaunch(b, function + list + suffix, index.ceilDiv(extent, kThreads),
             kThreads, [&](Value block, Value, Value thread) {
               Value i = index.add(index.mul(block, kThreads), thread);
               emitIf(b, index.less(i, extent), [&] { body(i); });
             });
}

Value ListBuilder::emitSearch(Value lo, Value hi,
                              function_ref<Value(Value)> isBefore) {
  return emitWhile(
             b, {lo, hi},
             [&](ValueRange range) { return index.less(range[0], range[1]); },
             [&](ValueRange range) {
               Value middle =
                   index.div(index.add(range[0], range[1]), index.constant(2));
               Value before = isBefore(middle);
               Value next = index.add(middle, 1);
               return Values{index.select(before, next, range[0]),
                             index.select(before, range[1], middle)};
             })
      .front();
}

void ListBuilder::emitStore(Value value, Value memref, ValueRange at) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  memref::StoreOp::create(b, arith::IndexCastOp::create(b, type, value), memref,
                          at);
}

void ListBuilder::emitSegments() {
  emitThreads("_segments", segments, [&](Value i) {
    Value zero = index.constant(0), fault = index.constant(kFault);
    Value bad = checked ? index.less(index.load(checked->count, zero), zero)
                        : index.less(zero, extents.code);
    ValueRange found = emitChoice(
        b, bad, [&] { return Values{fault, zero}; },
        [&] {
          Sequence segment = sequence(i);
          Value work = segment.work;
          if (!checked) {
            // Numbers of an entry that is not checked yet may be anything.
            work = index.min(index.max(work, zero), index.constant(kFault - 1));
            GPUFault found = checks.ofEntries(i, segment.q, segment.k);
            work = index.select(found.wrong, fault, work);
          }
          return Values{work, segment.tiles};
        });
    store(found[0], zero, Work, i);
    store(i, zero, Number, i);
    store(found[1], zero, Tiles, i);
  });
}

void ListBuilder::emitMerge(Value i, Value run, Value from) {
  Value zero = index.constant(0);
  Value group = index.mul(run, kRuns);
  Value begin = index.sub(i, index.rem(i, group));
  Value end = index.min(index.add(begin, group), segments);
  Value own = index.sub(i, index.rem(i, run));
  Value work = load(from, Work, i);
  ValueRange found = emitLoop(
      b, begin, end, run, {begin, zero}, [&](Value other, ValueRange sums) {
        // Segments of equal work stay in order. Of its own run, those up to
        // this one are before it, itself included.
        Value isOwn = index.equal(other, own);
        Value next = index.add(i, 1);
        Value bound = index.select(index.less(other, own),
                                   index.sub(work, index.constant(1)), work);
        Value last = index.min(index.add(other, run), segments);
        Value past = emitSearch(
            index.select(isOwn, next, other), index.select(isOwn, next, last),
            [&](Value at) { return index.less(bound, load(from, Work, at)); });
        Value tiles = load(
            from, Tiles, index.max(index.sub(past, index.constant(1)), other));
        Value some = index.select(index.less(other, past), tiles, zero);
        return Values{index.add(sums[0], index.sub(past, other)),
                      index.add(sums[1], some)};
      });
  Value to = index.sub(index.constant(1), from);
  Value at = index.sub(found[0], index.constant(1));
  store(work, to, Work, at);
  store(load(from, Number, i), to, Number, at);
  store(found[1], to, Tiles, at);
}

Value ListBuilder::emitSort() {
  return emitWhile(
             b, {index.constant(1), index.constant(0)},
             [&](ValueRange state) { return index.less(state[0], segments); },
             [&](ValueRange state) {
               Value run = state[0], from = state[1];
               emitThreads("_merge", segments,
                           [&](Value i) { emitMerge(i, run, from); });
               return Values{index.mul(run, kRuns),
                             index.sub(index.constant(1), from)};
             })
      .back();
}

/// Stores what is wrong, of which `segment` is the first instance.
void ListBuilder::emitFault(Value segment) {
  // Lists that are too short have no entries to be looked at.
  emitIf(
      b, index.less(index.constant(0), extents.code),
      [&] { emitStatus(b, status, extents); },
      [&] {
        Sequence faulty = sequence(segment);
        emitStatus(b, status, checks.ofEntries(segment, faulty.q, faulty.k));
      });
}

void ListBuilder::emitTile(Value i, Value sorted, const GPUWorkTiles &work) {
  Value zero = index.constant(0), one = index.constant(1);
  Value last = index.sub(segments, one);
  Value isBad = index.equal(load(sorted, Work, zero), index.constant(kFault));
  Value count =
      index.select(isBad, index.constant(-1), load(sorted, Tiles, last));
  emitIf(b, index.equal(i, zero), [&] {
    emitStore(count, work.count, zero);
    if (!checked)
      emitIf(b, isBad, [&] { emitFault(load(sorted, Number, zero)); });
  });
  emitIf(b, index.less(i, count), [&] {
    auto isBefore = [&](Value at) {
      return index.lessEqual(load(sorted, Tiles, at), i);
    };
    Value segment = emitSearch(zero, last, isBefore);
    // The last rows of a causal sequence see the most keys, and its first keys
    // are seen by the most rows.
    Value tile;
    if (ofQueries) {
      tile = index.sub(index.sub(load(sorted, Tiles, segment), one), i);
    } else {
      Value before =
          load(sorted, Tiles, index.max(index.sub(segment, one), zero));
      tile =
          index.sub(i, index.select(index.less(zero, segment), before, zero));
    }
    emitStore(load(sorted, Number, segment), work.list, {i, zero});
    emitStore(tile, work.list, {i, one});
  });
}

FailureOr<GPUWorkTiles> ListBuilder::emit() {
  if (!checked) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    FailureOr<func::FuncOp> getStatus = getRuntimeFunction(
        op->getParentOfType<ModuleOp>(), op, "varlen_gpu_status_buffer",
        b.getFunctionType({}, pointer));
    if (failed(getStatus))
      return failure();
    status = func::CallOp::create(b, *getStatus, ValueRange{}).getResult(0);
    extents = checks.ofExtents();
  }
  // Each segment rounds up once; with bad cu_seqlens nothing is written.
  segments = index.max(index.add(sequences, 1), index.constant(1));
  Value rows = ofQueries ? index.mul(tq, group) : tk;
  Value bound = index.add(index.div(rows, index.constant(size)), segments);
  auto allocate = [&](MemRefType type, ValueRange sizes) -> Value {
    return memref::AllocOp::create(b, type, sizes);
  };
  Value list = allocate(
      MemRefType::get({ShapedType::kDynamic, 2}, b.getI32Type()), bound);
  Value count = allocate(MemRefType::get({1}, b.getI64Type()), {});
  GPUWorkTiles work{list, count};
  table = allocate(
      MemRefType::get({2, NumFields, ShapedType::kDynamic}, b.getI64Type()),
      segments);
  emitSegments();
  Value sorted = emitSort();
  emitThreads("", bound, [&](Value i) { emitTile(i, sorted, work); });
  memref::DeallocOp::create(b, table);
  return work;
}

GPUBatch varlen::emitGPUBatch(ImplicitLocOpBuilder &b, BatchOp op) {
  IndexBuilder index{b};
  Value entries = b.createOrFold<memref::DimOp>(op.getCuQ(), index.constant(0));
  return {op, index.sub(entries, index.constant(1))};
}

void GPUWorkTiles::free(ImplicitLocOpBuilder &b) const {
  memref::DeallocOp::create(b, list);
  memref::DeallocOp::create(b, count);
}

FailureOr<GPUWorkTiles> varlen::emitGPUWorkTiles(ImplicitLocOpBuilder &b,
                                                 const GPUBatch &batch,
                                                 TileType tile,
                                                 const GPUWorkTiles *checked) {
  return ListBuilder(b, batch, tile, checked).emit();
}
