//===- TileListBuilder.cpp - Kernels of the list of a batch ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread a sequence finds its work and number of tiles; merge passes sort
// sequences by work and add up tiles as they go; one thread a tile finds its
// sequence in these sums. A sequence with an error has more work than any other
// can have, so after sorting the first error is the first of the list, for
// every thread to see, and none writes.
//
// One CTA does all of it in shared memory where the table of the sequences fits
// there. Otherwise each of the steps is a launch, in which no thread waits for
// another.
//
//===----------------------------------------------------------------------===//

#include "TileListBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::varlen;

/// Sorted runs that one launch makes one. With more, there are fewer launches,
/// whose latency is what short lists take, and each thread searches longer.
static constexpr int64_t kLaunchRuns = 16;
/// The same of a pass of one CTA, between which there is a barrier only.
static constexpr int64_t kCTARuns = 2;

/// Segments that one CTA sorts, a thread each: as many as threads can be in it.
/// Their table takes half of the shared memory that a kernel has without asking
/// for more.
static constexpr int64_t kCTASegments = 1024;

PackedRows varlen::emitKeyRows(IndexBuilder &index, BatchOp batch, Value s) {
  if (batch.getBlockTable())
    return {index.constant(0), batch.getTk()};
  return emitPackedRows(index, batch.getCuK(), s, batch.getTk());
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

TileListBuilder::Sequence TileListBuilder::sequence(Value s) {
  Sequence result;
  result.q = emitPackedRows(index, op.getCuQ(), s, tq);
  result.k = emitKeyRows(index, op, s);
  auto rows = [&](const PackedRows &packed) {
    return index.sub(packed.end, packed.begin);
  };
  Value other = rows(ofQueries ? result.k : result.q);
  Value used = ofQueries ? op.getSequsedK() : op.getSequsedQ();
  result.work = emitUsed(index, used, s, sequences, other);
  Value own = ofQueries ? index.mul(rows(result.q), group) : rows(result.k);
  result.tiles = index.ceilDiv(own, size);
  if (!parts)
    return result;
  Value count = emitPartCount(index, *parts, s, sequences, own, result.work);
  Value hasParts = index.less(1, count);
  result.tiles = index.select(hasParts, count, result.tiles);
  result.work =
      index.select(hasParts, index.constant(parts->keys), result.work);
  return result;
}

std::string TileListBuilder::getName() {
  StringRef function = op->getParentOfType<func::FuncOp>().getName();
  return (function + (ofQueries ? "_tiles" : "_key_tiles")).str();
}

void TileListBuilder::emitThreads(const Twine &suffix, Value extent,
                                  function_ref<void(Value)> body) {
  emitLaunchOfThreads(b, getName() + suffix, extent, body);
}

void TileListBuilder::emitWarps(const Twine &suffix, Value extent,
                                function_ref<void(Value, Value)> body) {
  emitLaunchOfWarps(b, getName() + suffix, extent, body);
}

void TileListBuilder::emitStore(Value value, Value memref, ValueRange at) {
  IndexBuilder element{b, cast<MemRefType>(memref.getType()).getElementType()};
  memref::StoreOp::create(b, element.cast(value), memref, at);
}

Value TileListBuilder::load(Value parity, Field field, Value at) {
  return IndexBuilder{b, at.getType()}.load(
      table, {index.cast(parity), index.constant(field), index.cast(at)});
}

void TileListBuilder::store(Value value, Value parity, Field field, Value at) {
  emitStore(value, table,
            {index.cast(parity), index.constant(field), index.cast(at)});
}

int64_t TileListBuilder::getFault() {
  return llvm::maxIntN(
      cast<MemRefType>(table.getType()).getElementTypeBitWidth());
}

Value TileListBuilder::emitIsBad() {
  return checked ? index.less(index.load(checked, index.constant(0)), 0)
                 : index.less(0, extents.code);
}

void TileListBuilder::emitSegment(Value i) {
  Value zero = index.constant(0), fault = index.constant(getFault());
  ValueRange found = emitChoice(
      b, emitIsBad(), [&] { return Values{fault, zero}; },
      [&] {
        Sequence segment = sequence(i);
        Value work = hasWeights ? zero : segment.work, tiles = segment.tiles;
        if (!checked) {
          // Numbers of an entry that is not checked yet may be anything.
          if (!hasWeights)
            work = index.min(index.max(work, 0), getFault() - 1);
          GPUFault found = checkEntries(i, segment);
          work = index.select(found.wrong, fault, work);
          if (hasWeights)
            tiles = index.select(found.wrong, zero, tiles);
        }
        return Values{work, tiles};
      });
  store(found[0], zero, Work, i);
  store(i, zero, Number, i);
  store(found[1], zero, Tiles, i);
}

void TileListBuilder::emitSegments() {
  if (!hasWeights)
    return emitThreads("_segments", segments, [&](Value i) { emitSegment(i); });
  emitThreads("_segments", bound, [&](Value i) {
    emitStore(index.constant(0), slots, i);
    emitIf(b, index.less(i, segments), [&] { emitSegment(i); });
  });
}

void TileListBuilder::emitMerge(Value i, Value run, int64_t runs, Value from) {
  IndexBuilder at{b, i.getType()};
  Value all = at.cast(segments);
  Value zero = at.constant(0);
  Value group = at.mul(run, runs);
  Value begin = at.sub(i, at.rem(i, group));
  Value end = at.min(at.add(begin, group), all);
  Value own = at.sub(i, at.rem(i, run));
  Value work = load(from, Work, i);
  ValueRange found = emitLoop(
      b, begin, end, run, {begin, zero}, [&](Value other, ValueRange sums) {
        // Segments of equal work stay in order. Of its own run, those up to
        // this one are before it, itself included.
        Value isOwn = at.equal(other, own);
        Value next = at.add(i, 1);
        Value bound = at.select(at.less(other, own), at.sub(work, 1), work);
        Value last = at.min(at.add(other, run), all);
        Value past =
            emitSearch(b, at.select(isOwn, next, other),
                       at.select(isOwn, next, last), [&](Value middle) {
                         return at.less(bound, load(from, Work, middle));
                       });
        Value tiles = load(from, Tiles, at.max(at.sub(past, 1), other));
        Value some = at.select(at.less(other, past), tiles, zero);
        return Values{at.add(sums[0], at.sub(past, other)),
                      at.add(sums[1], some)};
      });
  Value to = at.sub(1, from), place = at.sub(found[0], 1);
  store(work, to, Work, place);
  store(load(from, Number, i), to, Number, place);
  store(found[1], to, Tiles, place);
}

Value TileListBuilder::emitSort(
    Type type, int64_t runs,
    function_ref<void(function_ref<void(Value)>)> emitPass) {
  IndexBuilder at{b, type};
  return emitWhile(
             b, {at.constant(1), at.constant(0)},
             [&](ValueRange state) {
               return at.less(state[0], at.cast(segments));
             },
             [&](ValueRange state) {
               Value run = state[0], from = state[1];
               emitPass([&](Value i) { emitMerge(i, run, runs, from); });
               return Values{at.mul(run, runs), at.sub(1, from)};
             })
      .back();
}

void TileListBuilder::emitTile(Value i, Value lane, Value sorted) {
  Value zero = index.constant(0);
  Value last = index.sub(segments, 1);
  Value isBad = index.equal(load(sorted, Work, zero), getFault());
  Value count =
      index.select(isBad, index.constant(-1), load(sorted, Tiles, last));
  Value isFirst = index.equal(i, 0);
  if (hasWeights)
    isFirst = index.both(isFirst, index.equal(lane, 0));
  emitIf(b, isFirst, [&] {
    emitStore(count, memory.count, zero);
    for (int64_t loop = 0, loops = list.getLoops(); loop < loops; ++loop)
      emitStore(zero, memory.count, index.constant(1 + loop));
    if (!checked)
      emitIf(b, isBad, [&] { emitFault(load(sorted, Number, zero)); });
  });
  emitIf(b, index.less(i, count), [&] {
    auto isBefore = [&](Value at) {
      return index.lessEqual(load(sorted, Tiles, at), i);
    };
    Value segment = emitSearch(b, zero, last, isBefore);
    auto tilesBefore = [&] {
      Value before = load(sorted, Tiles, index.max(index.sub(segment, 1), 0));
      return index.select(index.less(0, segment), before, zero);
    };
    auto put = [&](Value number, Value tile, Value at) {
      emitStore(number, memory.list, {at, zero});
      emitStore(tile, memory.list, {at, index.constant(1)});
    };
    if (hasWeights) {
      Value before = tilesBefore(), tile = index.sub(i, before);
      Value number = load(sorted, Number, segment);
      Value tiles = index.sub(load(sorted, Tiles, segment), before);
      Value at = index.add(before, emitRank(number, tile, tiles, lane));
      emitIf(b, index.equal(lane, 0), [&] { put(number, tile, at); });
      return;
    }
    // The last rows of a causal sequence see the most keys, and its first keys
    // are seen by the most rows.
    Value tile = ofQueries || list.getLastFirst()
                     ? index.sub(index.sub(load(sorted, Tiles, segment), 1), i)
                     : index.sub(i, tilesBefore());
    Value number = load(sorted, Number, segment);
    put(number, tile, i);
    if (parts)
      emitIf(b, index.equal(tile, 0),
             [&] { emitStore(i, memory.firstParts, number); });
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void TileListBuilder::emitInOneCTA() {
  // All numbers of a batch without an error have 32 bits, and searches are half
  // as long.
  Type type = b.getI32Type();
  auto space = gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  auto shared =
      MemRefType::get({2, NumFields, kCTASegments}, type, AffineMap(), space);
  emitLaunch(
      b, getName() + "_in_one_cta", index.constant(1), kCTASegments,
      [&](Value, Value, Value thread) {
        auto launch = cast<gpu::LaunchOp>(b.getInsertionBlock()->getParentOp());
        llvm::SaveAndRestore inSharedMemory(
            table, Value(launch.addWorkgroupAttribution(shared, b.getLoc())));
        Value isSegment = index.less(thread, segments);
        emitIf(b, isSegment, [&] { emitSegment(thread); });
        gpu::BarrierOp::create(b);
        Value i = IndexBuilder{b, type}.cast(thread);
        auto emitPass = [&](function_ref<void(Value)> emitMergeOf) {
          emitIf(b, isSegment, [&] { emitMergeOf(i); });
          gpu::BarrierOp::create(b);
        };
        Value sorted = index.cast(emitSort(type, kCTARuns, emitPass));
        emitLoop(b, thread, bound, kCTASegments,
                 [&](Value tile) { emitTile(tile, /*lane=*/Value(), sorted); });
      });
}

void TileListBuilder::emitInManyCTAs() {
  emitSegments();
  if (hasWeights)
    emitWeights();
  auto emitPass = [&](function_ref<void(Value)> emitMergeOf) {
    emitThreads("_merge", segments, emitMergeOf);
  };
  Value sorted = emitSort(b.getIndexType(), kLaunchRuns, emitPass);
  if (hasWeights)
    emitWarps("", bound,
              [&](Value i, Value lane) { emitTile(i, lane, sorted); });
  else
    emitThreads("", bound,
                [&](Value i) { emitTile(i, /*lane=*/Value(), sorted); });
}

FailureOr<SmallVector<Value>> TileListBuilder::emit() {
  if (!checked) {
    FailureOr<Value> record = emitStatusRecord(b, op);
    if (failed(record))
      return failure();
    status = *record;
    extents = checkExtents();
    emitPages();
  }
  // Each segment rounds up once, its tiles or its parts; with bad cu_seqlens
  // nothing is written.
  segments = index.max(index.add(sequences, 1), 1);
  Value rows = ofQueries ? index.mul(tq, group) : tk;
  bound = index.add(index.div(rows, size), segments);
  if (parts) {
    // Sequences may share pages, of which each has tk rows.
    Value keys = op.getBlockTable() ? index.mul(sequences, tk) : tk;
    bound = index.add(bound, index.div(keys, parts->keys));
  }
  auto allocate = [&](Type type, ValueRange sizes) -> Value {
    return memref::AllocOp::create(b, cast<MemRefType>(type), sizes);
  };
  memory.list = allocate(list.getList().getType(), bound);
  memory.count = allocate(list.getCount().getType(), {});
  if (parts)
    memory.firstParts = allocate(list.getFirstParts().getType(), segments);
  table = allocate(
      MemRefType::get({2, NumFields, ShapedType::kDynamic}, b.getI64Type()),
      segments);
  if (hasWeights) {
    slots = allocate(MemRefType::get({ShapedType::kDynamic}, b.getI32Type()),
                     bound);
    emitInManyCTAs();
  } else {
    emitIfOnHost(b, index.lessEqual(segments, kCTASegments),
                 [&] { emitInOneCTA(); });
    emitIfOnHost(b, index.less(kCTASegments, segments),
                 [&] { emitInManyCTAs(); });
  }
  memref::DeallocOp::create(b, table);
  if (hasWeights)
    memref::DeallocOp::create(b, slots);
  if (strayPages)
    memref::DeallocOp::create(b, strayPages);
  SmallVector<Value> results = {memory.list, memory.count};
  if (parts)
    results.push_back(memory.firstParts);
  return results;
}
