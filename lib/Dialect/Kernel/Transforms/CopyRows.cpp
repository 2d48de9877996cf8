//===- CopyRows.cpp - Rows of global memory to shared tiles ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is cut into chunks of 8 elements, 16 bytes of the shared tile. The
// threads of a CTA take the chunks of as many rows at once as they are enough
// for, so a thread keeps its column from row to row.
//
//===----------------------------------------------------------------------===//

#include "CopyRows.h"

#include "MemRefAddress.h"
#include "RowLocator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Elements of a chunk.
static constexpr int64_t kChunk = 8;
/// Bytes of a row of a slab.
static constexpr int64_t kRowBytes = 128;
/// Rows of a thread that are on their way at once where each takes registers.
static constexpr int64_t kRowsInFlight = 2;

static bool isMultiple(int64_t value, int64_t of) {
  return !ShapedType::isDynamic(value) && value % of == 0;
}

/// Whether chunks of the source may be read by vectors of its type.
static bool hasWholeChunks(CopyOp copy) {
  auto source = cast<MemRefType>(copy.getSource().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(source.getStridesAndOffset(strides, offset)))
    return false;
  // A dynamic head count times a whole head_dim is whole, too: what identity
  // layouts do not say, their innermost extent does.
  int64_t size = source.getDimSize(2);
  if (!isMultiple(size, kChunk))
    return false;
  if (source.getLayout().isIdentity())
    return true;
  return isMultiple(strides[0], kChunk) && isMultiple(strides[1], kChunk) &&
         isMultiple(offset, kChunk);
}

int64_t kernel::getThreadsPerRow(CopyOp copy) {
  auto source = cast<MemRefType>(copy.getSource().getType());
  return llvm::PowerOf2Ceil(llvm::alignTo(source.getDimSize(2), 16) / kChunk);
}

bool kernel::canCopyAsync(CopyOp copy) {
  return copy.getSlot().size() == 1 && hasWholeChunks(copy);
}

namespace {

/// Emits the copies of chunks, some at a time; what their copy is, says a
/// callback.
class Chunks {
public:
  Chunks(ImplicitLocOpBuilder &b, CopyOp copy, int64_t threads);

  struct Chunk {
    /// Whether the row exists, and the chunk in it, if chunks are whole.
    Value exists;
    /// Of the chunk's first element, and its column in the row.
    Value address, column;
    /// Byte offset in the slot: the same for all rows of a thread (if rows are
    /// far enough apart), and the row's.
    Value offset;
    int64_t rowOffset;
  };
  enum class Order { Unrolled, Looped };
  /// `body` copies what it gets: a thread's chunks one after the other or, in a
  /// loop if there are more, kRowsInFlight of them.
  void forEach(Order order, function_ref<void(ArrayRef<Chunk>)> body);

  /// The element of the source after `chunk.address` by `distance`.
  Value at(const Chunk &chunk, int64_t distance) {
    return LLVM::GEPOp::create(b, chunk.address.getType(), element,
                               chunk.address,
                               ArrayRef<LLVM::GEPArg>{int32_t(distance)});
  }
  /// Where the chunk goes.
  Value inSlot(Value slot, const Chunk &chunk) {
    auto gep = [&](Value address, LLVM::GEPArg offset) -> Value {
      return LLVM::GEPOp::create(b, address.getType(), b.getI8Type(), address,
                                 ArrayRef<LLVM::GEPArg>{offset});
    };
    return gep(gep(slot, chunk.offset), int32_t(chunk.rowOffset));
  }

private:
  Value i32(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value i64(Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
  }
  /// Whether a constant is between the rows of a tile.
  bool isEven() { return getConstantIntValue(copy.getGroup()) == 1; }
  Value rowAddress(Value row);
  void emitIf(Value condition, function_ref<void()> body);
  void emitLoop(int64_t bound, int64_t step, function_ref<void(Value)> body);

  ImplicitLocOpBuilder &b;
  CopyOp copy;
  int64_t threads, rows, headDim;
  Type element;
  Value source;
  SmallVector<Value> strides;
};

} // namespace

Chunks::Chunks(ImplicitLocOpBuilder &b, CopyOp copy, int64_t threads)
    : b(b), copy(copy), threads(threads) {
  auto type = cast<MemRefType>(copy.getSource().getType());
  auto slot = cast<MemRefType>(copy.getSlot()[0].getType());
  rows = getSharedRows(slot);
  headDim = type.getDimSize(2);
  element = type.getElementType();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, copy.getSource());
  SmallVector<int64_t> known;
  int64_t offset;
  (void)type.getStridesAndOffset(known, offset);
  auto value = [&](int64_t constant, Value dynamic) -> Value {
    if (ShapedType::isDynamic(constant))
      return i64(dynamic);
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(constant));
  };
  for (auto [constant, dynamic] : llvm::zip(known, metadata.getStrides()))
    strides.push_back(value(constant, dynamic));
  source = LLVM::AddrSpaceCastOp::create(
      b,
      LLVM::LLVMPointerType::get(
          b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global)),
      getAddress(b, copy.getSource()));
  source = LLVM::GEPOp::create(
      b, source.getType(), element, source,
      ArrayRef<LLVM::GEPArg>{value(offset, metadata.getOffset())});
}

/// A loop that LLVM does not unroll.
void Chunks::emitLoop(int64_t bound, int64_t step,
                      function_ref<void(Value)> body) {
  auto loop =
      scf::ForOp::create(b, i32(0), i32(bound), i32(step), ValueRange(),
                         [&](OpBuilder &nested, Location, Value i, ValueRange) {
                           OpBuilder::InsertionGuard guard(b);
                           b.restoreInsertionPoint(nested.saveInsertionPoint());
                           body(i);
                           scf::YieldOp::create(b);
                         });
  MLIRContext *context = b.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {},
                                              {}, {}, {}, {}, {}, {}, {}, {},
                                              {}, {}));
}

void Chunks::emitIf(Value condition, function_ref<void()> body) {
  scf::IfOp::create(b, condition, [&](OpBuilder &nested, Location) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(nested.saveInsertionPoint());
    body();
    scf::YieldOp::create(b);
  });
}

/// The first element of the source row that tile row `row` stands for.
Value Chunks::rowAddress(Value row) {
  RowPlace at =
      locateRow(b, copy.getRows(),
                arith::ExtUIOp::create(b, b.getI64Type(), row).getResult());
  Value element = b.createOrFold<arith::AddIOp>(
      b.createOrFold<arith::MulIOp>(at.row, strides[0]),
      b.createOrFold<arith::MulIOp>(at.head, strides[1]));
  return LLVM::GEPOp::create(b, source.getType(), this->element, source,
                             ArrayRef<LLVM::GEPArg>{element});
}

void Chunks::forEach(Order order, function_ref<void(ArrayRef<Chunk>)> body) {
  // Columns that a contraction reads: 16 elements at a time.
  int64_t chunks = llvm::alignTo(headDim, 16) / kChunk;
  int64_t across = getThreadsPerRow(copy);
  int64_t rowsAtOnce = threads / across;
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  thread = arith::IndexCastUIOp::create(b, b.getI32Type(), thread);
  Value chunk = b.createOrFold<arith::RemUIOp>(thread, i32(across));
  Value firstRow = b.createOrFold<arith::DivUIOp>(thread, i32(across));
  Value column = b.createOrFold<arith::MulIOp>(chunk, i32(kChunk));
  auto less = [&](Value lhs, int64_t rhs) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lhs, i32(rhs));
  };

  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value valid = arith::MaxSIOp::create(b, copy.getValid(), zero);
  valid =
      arith::MinSIOp::create(b, valid, arith::ConstantIndexOp::create(b, rows));
  Value left = arith::SubIOp::create(
      b, arith::IndexCastOp::create(b, b.getI32Type(), valid), firstRow);
  // Whole tiles need no comparison of rows.
  bool isWhole = getConstantIntValue(copy.getValid()) >= rows;
  Value inRow = arith::ConstantIntOp::create(b, 1, 1);
  if (headDim % 16 != 0 && hasWholeChunks(copy)) {
    inRow = less(column, headDim);
    left = arith::SelectOp::create(b, inRow, left, i32(0));
  }
  auto gep = [&](Value address, LLVM::GEPArg offset) -> Value {
    return LLVM::GEPOp::create(b, address.getType(), element, address,
                               ArrayRef<LLVM::GEPArg>{offset});
  };
  Value firstAddress = gep(rowAddress(firstRow), column);
  Value inSlab = chunk, slabOffset = i32(0);
  if (across > kRowBytes / 16) {
    inSlab = b.createOrFold<arith::AndIOp>(chunk, i32(7));
    Value slab = b.createOrFold<arith::ShRUIOp>(chunk, i32(3));
    slabOffset = b.createOrFold<arith::MulIOp>(slab, i32(rows * kRowBytes));
  }

  // The thread's row `base` + `distance` after its first. With `distance` only
  // constants vary or, where rows are not evenly spaced, addresses.
  auto getChunk = [&](Value base, int64_t distance) -> Chunk {
    Value start = b.createOrFold<arith::AddIOp>(firstRow, base);
    Value row = b.createOrFold<arith::AddIOp>(start, i32(distance));
    // Chunk c of row r lies at c ^ (r mod 8) of its slab. Where the rows of a
    // thread are multiples of 8 apart, that is the same for all.
    Value phase = b.createOrFold<arith::AndIOp>(
        rowsAtOnce % 8 == 0 ? firstRow : row, i32(7));
    Value offset = b.createOrFold<arith::MulIOp>(
        b.createOrFold<arith::XOrIOp>(inSlab, phase), i32(16));
    offset = b.createOrFold<arith::AddIOp>(offset, slabOffset);
    offset = b.createOrFold<arith::AddIOp>(
        offset, b.createOrFold<arith::MulIOp>(start, i32(kRowBytes)));
    Value sinceFirst = b.createOrFold<arith::AddIOp>(base, i32(distance));
    Value exists =
        isWhole ? inRow
                : Value(arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                              left, sinceFirst));
    Value address;
    if (isEven()) {
      auto times = [&](Value rows) {
        return b.createOrFold<arith::MulIOp>(
            strides[0], b.createOrFold<arith::ExtUIOp>(b.getI64Type(), rows));
      };
      address = gep(gep(firstAddress, times(base)), times(i32(distance)));
    } else {
      address = gep(rowAddress(row), column);
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
    Value none = i32(0);
    int64_t whole = rows / rowsAtOnce * rowsAtOnce, done = 0;
    int64_t step = rowsAtOnce * (order == Order::Looped ? kRowsInFlight : 1);
    if (order == Order::Looped && whole > step) {
      done = whole / step * step;
      emitLoop(done, step, [&](Value base) { emitBatch(base, 0, step); });
    }
    for (; done < whole; done += step)
      emitBatch(none, done, std::min(done + step, whole));
    if (whole != rows)
      emitIf(less(firstRow, rows - whole),
             [&] { emitBatch(none, whole, rows); });
  };
  Value takesPart;
  if (across != chunks)
    takesPart = less(chunk, chunks);
  if (threads % across != 0) {
    Value hasRow = less(firstRow, rowsAtOnce);
    takesPart =
        takesPart ? Value(arith::AndIOp::create(b, takesPart, hasRow)) : hasRow;
  }
  if (takesPart)
    emitIf(takesPart, emitRows);
  else
    emitRows();
}

void kernel::emitCopyAsync(ImplicitLocOpBuilder &b, CopyOp copy,
                           int64_t threads) {
  Chunks chunks(b, copy, threads);
  Value slot = getAddress(b, copy.getSlot()[0]);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  chunks.forEach(Chunks::Order::Unrolled, [&](ArrayRef<Chunks::Chunk> batch) {
    for (const Chunks::Chunk &chunk : batch) {
      // Of 16 bytes, as many are read; the others are zero.
      Value size = b.createOrFold<arith::SelectOp>(chunk.exists, constant(16),
                                                   constant(0));
      Value destination = chunks.inSlot(slot, chunk);
      NVVM::CpAsyncOp::create(
          b, destination, chunk.address, b.getI32IntegerAttr(16),
          NVVM::LoadCacheModifierKindAttr::get(b.getContext(),
                                               NVVM::LoadCacheModifierKind::CG),
          size);
    }
  });
}

/// Elements of the chunk as a vector; 0 where there is none.
static Value loadChunk(ImplicitLocOpBuilder &b, CopyOp copy, Chunks &chunks,
                       const Chunks::Chunk &chunk) {
  auto source = cast<MemRefType>(copy.getSource().getType());
  int64_t headDim = source.getDimSize(2);
  // What is not split is moved as bits: a host that runs the kernel may have no
  // registers for narrow floats.
  Type element = source.getElementType();
  if (copy.getSlot().size() == 1)
    element = b.getIntegerType(element.getIntOrFloatBitWidth());
  auto type = VectorType::get({kChunk}, element);
  auto guarded = [&](Value condition, Type type,
                     function_ref<Value()> load) -> Value {
    auto yield = [&](function_ref<Value()> value) {
      return [&, value](OpBuilder &nested, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(nested.saveInsertionPoint());
        scf::YieldOp::create(b, value());
      };
    };
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return scf::IfOp::create(b, condition, yield(load),
                             yield([&] { return zero; }))
        .getResult(0);
  };
  auto exists = [&](int64_t distance) -> Value {
    Value bound =
        arith::ConstantOp::create(b, b.getI32IntegerAttr(headDim - distance));
    return arith::AndIOp::create(
        b, chunk.exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, chunk.column,
                              bound));
  };
  if (hasWholeChunks(copy))
    return guarded(chunk.exists, type, [&]() -> Value {
      return LLVM::LoadOp::create(b, type, chunk.address, /*alignment=*/16);
    });
  Value elements = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t i = 0; i < kChunk; ++i) {
    Value value = guarded(exists(i), element, [&]() -> Value {
      return LLVM::LoadOp::create(b, element, chunks.at(chunk, i));
    });
    Value position = arith::ConstantOp::create(b, b.getI32IntegerAttr(i));
    elements = LLVM::InsertElementOp::create(b, elements, value, position);
  }
  return elements;
}

void kernel::emitCopyThroughRegisters(ImplicitLocOpBuilder &b, CopyOp copy,
                                      int64_t threads) {
  Chunks chunks(b, copy, threads);
  SmallVector<Value> slots;
  for (Value slot : copy.getSlot())
    slots.push_back(getAddress(b, slot));
  auto shared = cast<MemRefType>(copy.getSlot()[0].getType());
  auto narrow = VectorType::get({kChunk}, shared.getElementType());
  chunks.forEach(Chunks::Order::Looped, [&](ArrayRef<Chunks::Chunk> batch) {
    // All loads of a batch are on their way before the first is waited for.
    SmallVector<Value> loaded;
    for (const Chunks::Chunk &chunk : batch)
      loaded.push_back(loadChunk(b, copy, chunks, chunk));
    for (auto [rest, chunk] : llvm::zip(loaded, batch))
      for (Value slot : slots) {
        Value term = rest;
        if (slots.size() > 1) {
          // The next term is what rounding this one has left.
          term = arith::TruncFOp::create(b, narrow, rest);
          Value wide = arith::ExtFOp::create(b, rest.getType(), term);
          rest = arith::SubFOp::create(b, rest, wide);
        }
        Value destination = chunks.inSlot(slot, chunk);
        LLVM::StoreOp::create(b, term, destination, /*alignment=*/16);
      }
  });
}
