//===- TensorMaps.cpp - Copies by tensor maps -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMaps.h"

#include "MemRefAddress.h"
#include "RowLocator.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/IR/NVVMIntrinsicUtils.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Bytes of an element.
static constexpr int64_t kElementBytes = 2;
/// 16 bytes, of which addresses and strides are multiples.
static constexpr int64_t kChunk = 8;

bool kernel::canHaveMap(MemRefType source) {
  Type element = source.getElementType();
  return source.getRank() == 3 && (element.isF16() || element.isBF16()) &&
         source.getShape().back() % kChunk == 0 &&
         areRowsAligned(source, kChunk);
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

namespace {
/// Sets the fields of a map in shared memory (PTX ISA, tensormap.replace).
class MapFields {
public:
  MapFields(ThreadBuilder &b, Value map) : b(b), map(map) {}

  void set(StringRef field, Value value) { emit(field, {map, value}); }
  void set(StringRef field, int64_t value) { set(field, b.constant(value)); }
  /// The field of a dimension.
  void set(StringRef field, int64_t dimension, Value value) {
    emit(field, {map, b.constant(dimension), value});
  }

private:
  void emit(StringRef field, ValueRange arguments) {
    std::string name = ("llvm.nvvm.tensormap.replace." + field + ".p3").str();
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr(name), arguments);
  }

  ThreadBuilder &b;
  Value map;
};
} // namespace

/// Memory T x H x D, of which a box has some rows of a head and 64 columns.
/// Dimensions count from the innermost one.
static void setFields(ThreadBuilder &b, TensorMapOp op, Value scratch) {
  IndexBuilder wide{b, b.getI64Type()}, narrow{b, b.getI32Type()};
  Value source = op.getSource();
  MemRefType type = op.getSource().getType();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, source);
  auto bytes = [&](Value elements) {
    return wide.mul(wide.cast(elements), kElementBytes);
  };
  MapFields fields(b, scratch);
  Value base =
      LLVM::PtrToIntOp::create(b, b.getI64Type(), getAddress(b, source));
  fields.set("global.address", wide.add(base, bytes(metadata.getOffset())));
  fields.set("rank", type.getRank() - 1);
  // Rows in use are counted in 32 bits, however many there are.
  Value rows =
      wide.min(wide.dim(source, 0), std::numeric_limits<int32_t>::max());
  Value extents[] = {narrow.dim(source, 2), narrow.dim(source, 1),
                     narrow.cast(rows)};
  int64_t box[] = {kSlabColumns, 1, static_cast<int64_t>(op.getRows())};
  for (int64_t dimension = 0; dimension < type.getRank(); ++dimension) {
    fields.set("box.dim", dimension, b.constant(box[dimension]));
    fields.set("global.dim", dimension, extents[dimension]);
    fields.set("element.stride", dimension, b.constant(1));
  }
  fields.set("global.stride", 0, bytes(metadata.getStrides()[1]));
  fields.set("global.stride", 1, bytes(metadata.getStrides()[0]));
  using llvm::nvvm::TensormapElemType;
  auto element = type.getElementType().isF16() ? TensormapElemType::F16
                                               : TensormapElemType::BF16;
  fields.set("elemtype", static_cast<int64_t>(element));
  fields.set("interleave.layout",
             static_cast<int64_t>(
                 llvm::nvvm::TensormapInterleaveLayout::NO_INTERLEAVE));
  fields.set(
      "swizzle.mode",
      static_cast<int64_t>(llvm::nvvm::TensormapSwizzleMode::SWIZZLE_128B));
  fields.set("fill.mode",
             static_cast<int64_t>(llvm::nvvm::TensormapFillMode::ZERO_FILL));
}

int64_t kernel::getMapsAtOnce(gpu::GPUFuncOp kernel, int64_t count) {
  return std::min(count, getCopyingThreads(kernel).count / kWarpLanes);
}

/// Where the map is.
static Value getPlace(ThreadBuilder &b, TensorMapOp op) {
  IndexBuilder index{b};
  Value i = arith::IndexCastOp::create(b, b.getI64Type(),
                                       index.mul(op.getI(), kTensorMapBytes));
  return advance(b, getAddress(b, op.getMemory()), b.getI8Type(), i);
}

/// By the warp that has the threads from `first` on; with `isReused` it makes
/// another map in the same place after this one.
static void makeMap(ThreadBuilder &b, TensorMapOp op, Value scratch,
                    Value place, int64_t first, bool isReused) {
  Value lane = b.add(b.thread(), -first);
  auto isBelow = [&](int64_t bound) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane,
                                 b.constant(bound));
  };
  auto syncWarp = [&] { NVVM::SyncWarpOp::create(b, b.constant(-1)); };
  emitIf(b, isBelow(kWarpLanes), [&] {
    static_assert(kTensorMapBytes == 4 * kWarpLanes, "a word for each lane");
    LLVM::StoreOp::create(b, b.constant(0),
                          advance(b, scratch, b.getI32Type(), lane));
    syncWarp();
    emitIf(b, isBelow(1), [&] { setFields(b, op, scratch); });
    syncWarp();
    Value global = LLVM::AddrSpaceCastOp::create(
        b,
        LLVM::LLVMPointerType::get(
            b.getContext(),
            static_cast<unsigned>(NVVM::NVVMMemorySpace::Global)),
        place);
    PublishMapOp::create(b, scratch, global);
    if (isReused)
      syncWarp();
  });
}

void kernel::lowerTensorMaps(gpu::GPUFuncOp kernel, ArrayRef<TensorMapOp> maps,
                             Value scratch) {
  int64_t first = getCopyingThreads(kernel).first;
  int64_t atOnce = getMapsAtOnce(kernel, maps.size());
  SmallVector<Value> places;
  for (auto [number, map] : llvm::enumerate(maps)) {
    TensorMapOp op = map;
    ThreadBuilder b(op.getLoc(), op);
    Value place = getPlace(b, op);
    int64_t warp = number % atOnce;
    makeMap(b, op,
            advance(b, getAddress(b, scratch), b.getI8Type(),
                    int32_t(warp * kTensorMapBytes)),
            place, first + warp * kWarpLanes,
            /*isReused=*/number + atOnce < maps.size());
    op.replaceAllUsesWith(place);
    places.push_back(place);
  }
  // The first warp copies by them, and acquires what the others have made.
  TensorMapOp last = maps.back();
  ThreadBuilder b(last.getLoc(), last);
  gpu::BarrierOp::create(b);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                            b.add(b.thread(), -first), b.constant(kWarpLanes));
  emitIf(b, isFirst, [&] {
    for (Value place : places)
      NVVM::FenceProxyAcquireOp::create(b, NVVM::MemScopeKind::GPU, place,
                                        b.constant(kTensorMapBytes));
  });
  for (TensorMapOp op : maps)
    op->erase();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void kernel::emitIfAsks(ThreadBuilder &b, gpu::GPUFuncOp kernel,
                        function_ref<void()> body) {
  IndexBuilder narrow{b, b.getI32Type()};
  emitIf(b, narrow.equal(b.thread(), getCopyingThreads(kernel).first), body);
}

void kernel::lowerCopyByMap(gpu::GPUFuncOp kernel, CopyByMapOp op,
                            Value mbarrier) {
  ThreadBuilder b(op.getLoc(), op);
  IndexBuilder narrow{b, b.getI32Type()};
  auto slot = cast<MemRefType>(op.getSlot().getType());
  int64_t boxes = slot.getDimSize(0);
  int64_t boxBytes = getSharedRows(slot) * kRowBytes;
  Value row = narrow.cast(op.getRow()), head = narrow.cast(op.getHead());
  Value memory = getAddress(b, op.getSlot());
  emitIfAsks(b, kernel, [&] {
    NVVM::MBarrierExpectTxOp::create(b, mbarrier, b.constant(boxes * boxBytes));
    for (int64_t box = 0; box < boxes; ++box)
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          b, advance(b, memory, b.getI8Type(), int32_t(box * boxBytes)),
          op.getMap(), ValueRange{b.constant(box * kSlabColumns), head, row},
          mbarrier, /*im2colOffsets=*/ValueRange{}, /*multicastMask=*/Value(),
          /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
          /*isCTAOnly=*/true, /*group=*/nullptr, /*predicate=*/Value());
  });
  op->erase();
}
