//===- CopyRows.cpp - Rows of global memory to shared tiles ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is cut into chunks of 8 elements, 16 bytes of the shared tile. The
// threads that copy take the chunks of as many rows at once as they are enough
// for, so a thread keeps its column from row to row.
//
//===----------------------------------------------------------------------===//

#include "CopyRows.h"

#include "MemRefAddress.h"
#include "RowLocator.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Elements of a chunk.
static constexpr int64_t kChunk = 8;
/// Rows of a thread that are on their way at once where each takes registers,
/// and of quantised rows, which take a quarter of those of f32.
static constexpr int64_t kRowsInFlight = 2;
static constexpr int64_t kQuantisedRowsInFlight = 8;
/// Rows of a thread whose pages are looked up before the first of them is
/// copied.
static constexpr int64_t kLookupsInFlight = 4;

/// Whether chunks of the source may be read by vectors of its type.
static bool hasWholeChunks(CopyOp copy) {
  MemRefType source = copy.getSource().getType();
  return source.getShape().back() % kChunk == 0 &&
         areRowsAligned(source, kChunk);
}

int64_t kernel::getThreadsPerRow(CopyOp copy) {
  int64_t columns = copy.getSource().getType().getShape().back();
  return llvm::PowerOf2Ceil(llvm::alignTo(columns, 16) / kChunk);
}

/// Whether the rows are quantised ones.
static bool readsBytes(CopyOp copy) {
  return kernel::isQuantised(copy.getSource().getType().getElementType());
}

/// The elements in memory as types of LLVM know them.
static Type getStoredElement(CopyOp copy) {
  Type element = copy.getSource().getType().getElementType();
  return readsBytes(copy) ? IntegerType::get(copy.getContext(), 8) : element;
}

bool kernel::canCopyAsync(CopyOp copy) {
  return copy.getSlot().size() == 1 && hasWholeChunks(copy) &&
         !readsBytes(copy);
}

bool kernel::canCopyBytesAsync(CopyOp copy) {
  return readsBytes(copy) && hasWholeChunks(copy) &&
         copy.getSlot()[0].getDefiningOp<RingAcquireOp>() &&
         !getRoles(copy->getParentOfType<gpu::GPUFuncOp>());
}

namespace {

/// Emits the copies of chunks, some at a time; what their copy is, says a
/// callback.
class Chunks {
public:
  /// What is done with them: widening has no source.
  enum class Use { CopyAsync, CopyThroughRegisters, Widen };
  Chunks(ThreadBuilder &b, CopyOp copy, ThreadRange threads, Use use);

  struct Chunk {
    /// Whether the row exists, and the chunk in it, if chunks are whole. Null,
    /// as the address, without a source.
    Value exists;
    /// Index of the chunk's first element, and its column in the row.
    Value address, column;
    /// Byte offset in the slot: the same for all rows of a thread (if rows are
    /// far enough apart), and the row's.
    Value offset;
    int64_t rowOffset;
  };
  enum class Order { Unrolled, Looped };
  /// `body` copies what it gets: a thread's chunks one after the other, a few
  /// if their pages are looked up, or, in a loop if there are more,
  /// as many of them as may be in flight.
  void forEach(Order order, function_ref<void(ArrayRef<Chunk>)> body);

  /// Where the chunk goes.
  Value inSlot(Value slot, const Chunk &chunk) {
    Value first = advance(b, slot, b.getI8Type(), chunk.offset);
    return advance(b, first, b.getI8Type(), int32_t(chunk.rowOffset));
  }
  SmallVector<Value> inSlots(ArrayRef<Value> slots, const Chunk &chunk) {
    return llvm::map_to_vector(slots,
                               [&](Value slot) { return inSlot(slot, chunk); });
  }

private:
  /// Whether a constant is between the rows of a tile.
  bool isEven() {
    return getConstantIntValue(copy.getGroup()) == 1 &&
           (!copy.getBlockTable() || copy.getOnePage());
  }
  Value addressOf(Value row, Value column);
  void emitLoop(int64_t bound, int64_t step, function_ref<void(Value)> body);

  ThreadBuilder &b;
  /// Of i64.
  IndexBuilder wide{b, b.getI64Type()};
  CopyOp copy;
  ThreadRange threads;
  Use use;
  int64_t rows, headDim;
  Type element;
  Value source;
  SmallVector<Value> strides;
};

} // namespace

Chunks::Chunks(ThreadBuilder &b, CopyOp copy, ThreadRange threads, Use use)
    : b(b), copy(copy), threads(threads), use(use) {
  MemRefType type = copy.getSource().getType();
  rows = getSharedRows(cast<MemRefType>(copy.getSlot()[0].getType()));
  headDim = type.getShape().back();
  element = getStoredElement(copy);
  if (use == Use::Widen)
    return;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, copy.getSource());
  auto [known, offset] = type.getStridesAndOffset();
  auto value = [&](int64_t constant, Value dynamic) {
    return ShapedType::isDynamic(constant) ? wide.cast(dynamic)
                                           : wide.constant(constant);
  };
  for (auto [constant, dynamic] : llvm::zip(known, metadata.getStrides()))
    strides.push_back(value(constant, dynamic));
  source = LLVM::AddrSpaceCastOp::create(
      b,
      LLVM::LLVMPointerType::get(
          b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global)),
      getAddress(b, copy.getSource()));
  source = advance(b, source, element, value(offset, metadata.getOffset()));
}

/// A loop that LLVM does not unroll.
void Chunks::emitLoop(int64_t bound, int64_t step,
                      function_ref<void(Value)> body) {
  Operation *loop = varlen::emitLoop(b, b.constant(0), b.constant(bound),
                                     b.constant(step), body);
  MLIRContext *context = b.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {},
                                              {}, {}, {}, {}, {}, {}, {}, {},
                                              {}, {}));
}

/// The element in `column` of the source row that tile row `row` stands for.
/// Where the copy takes no registers, the distance from the source is one sum:
/// copies of several sources with the same strides share it. A pointer to the
/// thread's column of each source would be kept in two registers instead, from
/// tile to tile.
Value Chunks::addressOf(Value row, Value column) {
  SmallVector<Value> place =
      locateRow(b, copy.getRows(), copy.getSource(),
                arith::ExtUIOp::create(b, b.getI64Type(), row).getResult());
  Value distance = wide.constant(0);
  // The last one is of columns.
  for (auto [number, stride] : llvm::zip_first(place, strides))
    distance = wide.add(distance, wide.mul(number, stride));
  if (use != Use::CopyAsync)
    return advance(b, advance(b, source, element, distance), element, column);
  column = b.createOrFold<arith::ExtUIOp>(b.getI64Type(), column);
  return advance(b, source, element, wide.add(distance, column));
}

void Chunks::forEach(Order order, function_ref<void(ArrayRef<Chunk>)> body) {
  // Columns that a contraction reads: 16 elements at a time.
  int64_t chunks = llvm::alignTo(headDim, 16) / kChunk;
  int64_t across = getThreadsPerRow(copy);
  int64_t rowsAtOnce = threads.count / across;
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  thread = arith::IndexCastUIOp::create(b, b.getI32Type(), thread);
  thread = b.add(thread, -threads.first);
  Value chunk = b.rem(thread, across), firstRow = b.div(thread, across);
  Value column = b.mul(chunk, kChunk);
  auto less = [&](Value lhs, int64_t rhs) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lhs,
                                 b.constant(rhs));
  };

  // What a source has: the rows behind the first one of the thread, if not all
  // exist, and where that lies, if rows are evenly spaced.
  Value left, inRow, firstAddress;
  bool isWhole = true;
  if (use != Use::Widen) {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value valid = arith::MaxSIOp::create(b, copy.getValid(), zero);
    valid = arith::MinSIOp::create(b, valid,
                                   arith::ConstantIndexOp::create(b, rows));
    left = arith::SubIOp::create(
        b, arith::IndexCastOp::create(b, b.getI32Type(), valid), firstRow);
    // Whole tiles need no comparison of rows.
    isWhole = getConstantIntValue(copy.getValid()) >= rows;
    inRow = arith::ConstantIntOp::create(b, 1, 1);
    if (headDim % 16 != 0 && hasWholeChunks(copy)) {
      inRow = less(column, headDim);
      left = arith::SelectOp::create(b, inRow, left, b.constant(0));
    }
    if (isEven())
      firstAddress = addressOf(firstRow, column);
  }
  Value inSlab = chunk, slabOffset = b.constant(0);
  if (across > kRowBytes / 16) {
    inSlab = b.bitAnd(chunk, 7);
    slabOffset = b.mul(b.bitAnd(chunk, -8), rows * kRowBytes / 8);
  }

  // The thread's row `base` + `distance` after its first. With `distance` only
  // constants vary or, where rows are not evenly spaced, addresses.
  auto getChunk = [&](Value base, int64_t distance) -> Chunk {
    Value start = b.add(firstRow, base), row = b.add(start, distance);
    // Chunk c of row r lies at c ^ (r mod 8) of its slab. Where the rows of a
    // thread are multiples of 8 apart, that is the same for all.
    Value phase = b.bitAnd(rowsAtOnce % 8 == 0 ? firstRow : row, 7);
    Value offset = b.add(b.mul(b.bitXor(inSlab, phase), 16), slabOffset);
    offset = b.add(offset, b.mul(start, kRowBytes));
    if (use == Use::Widen)
      return {Value(), Value(), column, offset, distance * kRowBytes};
    Value exists = inRow;
    if (!isWhole)
      exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, left,
                                     b.add(base, distance));
    Value address;
    if (isEven()) {
      auto skip = [&](Value from, Value rows) {
        rows = b.createOrFold<arith::ExtUIOp>(b.getI64Type(), rows);
        return advance(b, from, element, wide.mul(*(strides.end() - 3), rows));
      };
      address = skip(skip(firstAddress, base), b.constant(distance));
    } else {
      address = addressOf(row, column);
    }
    return {exists, address, column, offset, distance * kRowBytes};
  };
  auto emitBatch = [&](Value base, int64_t begin, int64_t end) {
    SmallVector<Chunk> batch;
    for (int64_t distance = begin; distance < end; distance += rowsAtOnce)
      batch.push_back(getChunk(base, distance));
    body(batch);
  };
  auto emitRows = [&] {
    Value none = b.constant(0);
    int64_t whole = rows / rowsAtOnce * rowsAtOnce, done = 0;
    int64_t step = rowsAtOnce;
    if (order == Order::Looped)
      step *= readsBytes(copy) ? kQuantisedRowsInFlight : kRowsInFlight;
    else if (copy.getBlockTable() && !isEven())
      step *= kLookupsInFlight;
    if (order == Order::Looped && whole > step) {
      done = whole / step * step;
      emitLoop(done, step, [&](Value base) { emitBatch(base, 0, step); });
    }
    for (; done < whole; done += step)
      emitBatch(none, done, std::min(done + step, whole));
    if (whole != rows)
      emitIf(b, less(firstRow, rows - whole),
             [&] { emitBatch(none, whole, rows); });
  };
  Value takesPart;
  if (across != chunks)
    takesPart = less(chunk, chunks);
  if (threads.count % across != 0) {
    Value hasRow = less(firstRow, rowsAtOnce);
    takesPart =
        takesPart ? Value(arith::AndIOp::create(b, takesPart, hasRow)) : hasRow;
  }
  if (takesPart)
    emitIf(b, takesPart, emitRows);
  else
    emitRows();
}

void kernel::emitCopyAsync(ThreadBuilder &b, CopyOp copy, ThreadRange threads) {
  Chunks chunks(b, copy, threads, Chunks::Use::CopyAsync);
  Value slot = getAddress(b, copy.getSlot()[0]);
  // Less than 16 bytes go by way of the first-level cache.
  int32_t bytes = kChunk * getStoredElement(copy).getIntOrFloatBitWidth() / 8;
  auto cache = NVVM::LoadCacheModifierKindAttr::get(
      b.getContext(), bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                  : NVVM::LoadCacheModifierKind::CA);
  chunks.forEach(Chunks::Order::Unrolled, [&](ArrayRef<Chunks::Chunk> batch) {
    for (const Chunks::Chunk &chunk : batch) {
      // Of these bytes, as many are read; the others are zero.
      Value size = b.createOrFold<arith::SelectOp>(
          chunk.exists, b.constant(bytes), b.constant(0));
      Value destination = chunks.inSlot(slot, chunk);
      NVVM::CpAsyncOp::create(b, destination, chunk.address,
                              b.getI32IntegerAttr(bytes), cache, size);
    }
  });
}

/// Elements of the chunk as a vector; 0 where there is none.
static Value loadChunk(ThreadBuilder &b, CopyOp copy,
                       const Chunks::Chunk &chunk) {
  MemRefType source = copy.getSource().getType();
  int64_t headDim = source.getShape().back();
  // What is not split is moved as bits: a host that runs the kernel may have no
  // registers for narrow floats.
  Type element = getStoredElement(copy);
  if (copy.getSlot().size() == 1)
    element = b.getIntegerType(element.getIntOrFloatBitWidth());
  auto type = VectorType::get({kChunk}, element);
  auto guarded = [&](Value condition, Type type,
                     function_ref<Value()> load) -> Value {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return emitChoice(
               b, condition, [&] { return Values{load()}; },
               [&] { return Values{zero}; })
        .front();
  };
  auto exists = [&](int64_t distance) -> Value {
    Value bound = b.constant(headDim - distance);
    return arith::AndIOp::create(
        b, chunk.exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, chunk.column,
                              bound));
  };
  if (hasWholeChunks(copy) && readsBytes(copy)) {
    // Two words go through the branch, not eight bytes.
    auto words = VectorType::get({kChunk / 4}, b.getI32Type());
    Value loaded = guarded(chunk.exists, words, [&]() -> Value {
      return LLVM::LoadOp::create(b, words, chunk.address, /*alignment=*/8);
    });
    return LLVM::BitcastOp::create(b, type, loaded);
  }
  if (hasWholeChunks(copy))
    return guarded(chunk.exists, type, [&]() -> Value {
      return LLVM::LoadOp::create(b, type, chunk.address, /*alignment=*/16);
    });
  Value elements = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t i = 0; i < kChunk; ++i) {
    Value value = guarded(exists(i), element, [&]() -> Value {
      return LLVM::LoadOp::create(
          b, element,
          advance(b, chunk.address, getStoredElement(copy), int32_t(i)));
    });
    elements = LLVM::InsertElementOp::create(b, elements, value, b.constant(i));
  }
  return elements;
}

/// Elements of a quantised chunk as f32, which f16 and bf16 have, too.
static Value widenChunk(ThreadBuilder &b, CopyOp copy, Value bits) {
  Type element = copy.getSource().getType().getElementType();
  auto wide = VectorType::get({kChunk}, b.getF32Type());
  if (element.isInteger())
    return arith::SIToFPOp::create(b, wide, bits);
  Value numbers =
      arith::BitcastOp::create(b, VectorType::get({kChunk}, element), bits);
  return arith::ExtFOp::create(b, wide, numbers);
}

/// Stores elements of a chunk to its slots: in each what rounding to those
/// before has left.
static void storeChunk(ThreadBuilder &b, CopyOp copy, Value bits,
                       ValueRange addresses) {
  auto shared = cast<MemRefType>(copy.getSlot()[0].getType());
  auto narrow = VectorType::get({kChunk}, shared.getElementType());
  Value rest = readsBytes(copy) ? widenChunk(b, copy, bits) : bits;
  for (Value address : addresses) {
    Value term = rest;
    if (rest.getType() != bits.getType() || addresses.size() > 1)
      term = arith::TruncFOp::create(b, narrow, rest);
    if (addresses.size() > 1) {
      // The next term is what rounding this one has left.
      Value wide = arith::ExtFOp::create(b, rest.getType(), term);
      rest = arith::SubFOp::create(b, rest, wide);
    }
    LLVM::StoreOp::create(b, term, address, /*alignment=*/16);
  }
}

void kernel::emitCopyThroughRegisters(ThreadBuilder &b, CopyOp copy,
                                      ThreadRange threads) {
  Chunks chunks(b, copy, threads, Chunks::Use::CopyThroughRegisters);
  SmallVector<Value> slots;
  for (Value slot : copy.getSlot())
    slots.push_back(getAddress(b, slot));
  chunks.forEach(Chunks::Order::Looped, [&](ArrayRef<Chunks::Chunk> batch) {
    // All loads of a batch are on their way before the first is waited for.
    SmallVector<Value> loaded;
    for (const Chunks::Chunk &chunk : batch)
      loaded.push_back(loadChunk(b, copy, chunk));
    for (auto [bits, chunk] : llvm::zip(loaded, batch))
      storeChunk(b, copy, bits, chunks.inSlots(slots, chunk));
  });
}

void kernel::emitWidening(ThreadBuilder &b, CopyOp copy, ValueRange slot,
                          ThreadRange threads) {
  Chunks chunks(b, copy, threads, Chunks::Use::Widen);
  SmallVector<Value> slots;
  for (Value memory : slot)
    slots.push_back(getAddress(b, memory));
  auto type = VectorType::get({kChunk}, b.getI8Type());
  chunks.forEach(Chunks::Order::Looped, [&](ArrayRef<Chunks::Chunk> batch) {
    SmallVector<SmallVector<Value>> places;
    SmallVector<Value> loaded;
    for (const Chunks::Chunk &chunk : batch) {
      places.push_back(chunks.inSlots(slots, chunk));
      loaded.push_back(LLVM::LoadOp::create(b, type, places.back().front(),
                                            /*alignment=*/8));
    }
    for (auto [bits, place] : llvm::zip(loaded, places))
      storeChunk(b, copy, bits, place);
  });
}
