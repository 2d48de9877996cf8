//===- Kernel.cpp - The kernel dialect ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/InliningUtils.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

#include "varlen/Dialect/Kernel/IR/KernelDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "varlen/Dialect/Kernel/IR/KernelTypes.cpp.inc"

namespace {
/// Every op of the dialect may be inlined anywhere.
struct KernelInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// Instructions are legal wherever those of the nvvm dialect are. Passes that
/// collect the patterns of all dialects have the one that makes PTX, too, and
/// would do so before the executor could have them.
struct KernelToLLVMInterface : ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;
  void
  populateConvertToLLVMConversionPatterns(ConversionTarget &target,
                                          LLVMTypeConverter &,
                                          RewritePatternSet &) const final {
    target.addLegalOp<WgmmaOp, WgmmaWaitOp, PublishMapOp>();
  }
};
} // namespace

void KernelDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "varlen/Dialect/Kernel/IR/KernelTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "varlen/Dialect/Kernel/IR/KernelOps.cpp.inc"
      >();
  addInterfaces<KernelInlinerInterface, KernelToLLVMInterface>();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether something of such extents has at most `most` elements. Their product
/// may not fit 64 bits.
static bool hasAtMost(int64_t most, ArrayRef<int64_t> shape) {
  for (int64_t extent : shape) {
    if (extent > most)
      return false;
    most /= extent;
  }
  return true;
}

bool kernel::isSharedTile(Type type) {
  auto mem = dyn_cast<MemRefType>(type);
  return mem && mem.getRank() == 3 && mem.hasStaticShape() &&
         mem.getLayout().isIdentity() &&
         gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(mem) &&
         (mem.getElementType().isF16() || mem.getElementType().isBF16()) &&
         mem.getDimSize(0) > 0 && mem.getDimSize(1) > 0 &&
         mem.getDimSize(1) % 8 == 0 && mem.getDimSize(2) == kSlabColumns &&
         hasAtMost((kTooManyBytes - 1) / 2, mem.getShape());
}

bool kernel::areSharedNumbers(Type type) {
  auto mem = dyn_cast<MemRefType>(type);
  return mem && mem.getRank() == 1 && mem.hasStaticShape() &&
         mem.getLayout().isIdentity() &&
         gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(mem) &&
         (mem.getElementType().isInteger(32) ||
          mem.getElementType().isInteger(64)) &&
         mem.getDimSize(0) > 0 &&
         hasAtMost(1024 * 8 / mem.getElementTypeBitWidth(), mem.getShape());
}

/// Shared memory without a layout of its own.
static MemRefType getSharedType(ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(
      element.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  return MemRefType::get(shape, element, AffineMap(), space);
}

MemRefType kernel::getSharedNumbersType(int64_t count, Type element) {
  return getSharedType({count}, element);
}

SmallVector<MemRefType> kernel::getSharedTileTypes(RankedTensorType tile) {
  bool isSplit = tile.getElementType().isF32();
  Type element =
      isSplit ? BFloat16Type::get(tile.getContext()) : tile.getElementType();
  int64_t slabs = llvm::divideCeilSigned(tile.getDimSize(1), kSlabColumns);
  return SmallVector<MemRefType>(
      isSplit ? kPlanes : 1,
      getSharedType({slabs, tile.getDimSize(0), kSlabColumns}, element));
}

int64_t kernel::getSharedRows(MemRefType tile) { return tile.getDimSize(1); }

int64_t kernel::getSharedColumns(MemRefType tile) {
  return tile.getDimSize(0) * kSlabColumns;
}

bool kernel::isQuantised(Type element) {
  return element.isInteger(8) || isa<Float8E4M3FNType>(element);
}

bool kernel::isGlobal(Type type) {
  auto mem = dyn_cast<MemRefType>(type);
  if (!mem || mem.getRank() < 1 || mem.getRank() > 4 ||
      gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(mem))
    return false;
  Type element = mem.getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32() &&
      !element.isInteger(32) && !kernel::isQuantised(element))
    return false;
  return mem.isLastDimUnitStride();
}

bool kernel::areTensorMaps(Type type) {
  auto mem = dyn_cast<MemRefType>(type);
  return mem && mem.getRank() == 2 && mem.getLayout().isIdentity() &&
         !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(mem) &&
         mem.getElementType().isInteger(8) &&
         mem.getDimSize(1) == kTensorMapBytes;
}

bool kernel::isTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 && tensor.hasStaticShape();
}

/// As many as a multiprocessor has.
static constexpr int64_t kMaxRegisters = 1 << 16;

bool kernel::isInRegisters(VectorType vector) {
  return !vector.isScalable() && hasAtMost(kMaxRegisters, vector.getShape());
}

bool kernel::isFragment(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getRank() != 4 || !isInRegisters(vector))
    return false;
  auto isExtent = [&](unsigned outer, unsigned inner) {
    return vector.getDimSize(inner) == 2 ||
           (vector.getDimSize(inner) == 1 && vector.getDimSize(outer) == 1);
  };
  return isExtent(0, 2) && isExtent(1, 3) &&
         (vector.getDimSize(2) == 2 || vector.getDimSize(3) == 2);
}

bool kernel::isAccumulator(Type type) {
  auto registers = dyn_cast<LLVM::LLVMStructType>(type);
  if (!registers || registers.isIdentified())
    return false;
  size_t count = registers.getBody().size();
  return count >= 4 && count <= 128 && count % 4 == 0 &&
         llvm::all_of(registers.getBody(),
                      [](Type member) { return member.isF32(); });
}

bool kernel::isRowStatistic(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getDimSize(isa<VectorType>(type) ? 3 : 1) == 1;
}

bool kernel::isColumnStatistic(Type type) {
  auto shaped = cast<ShapedType>(type);
  return !isRowStatistic(type) &&
         shaped.getDimSize(isa<VectorType>(type) ? 2 : 0) == 1;
}

bool kernel::isStatistic(Type type) {
  return isRowStatistic(type) || isColumnStatistic(type);
}

bool kernel::isSharedByColumns(RankedTensorType tile, int64_t warps) {
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1);
  return rows % (16 * warps) != 0 && rows > 0 && rows % 8 == 0 && columns > 0 &&
         columns % (16 * warps) == 0;
}

VectorType kernel::getFragmentType(RankedTensorType tile, int64_t warps) {
  if (!isTile(tile) || !VectorType::isValidElementType(tile.getElementType()))
    return {};
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1);
  if (isSharedByColumns(tile, warps))
    std::swap(rows, columns);
  if (rows == 0 || columns == 0 || (rows != 1 && rows % (16 * warps) != 0) ||
      (columns != 1 && columns % 8 != 0))
    return {};
  int64_t shape[] = {rows == 1 ? 1 : rows / (16 * warps),
                     columns == 1 ? 1 : columns / 8, rows == 1 ? 1 : 2,
                     columns == 1 ? 1 : 2};
  if (!hasAtMost(kMaxRegisters, shape))
    return {};
  return VectorType::get(shape, tile.getElementType());
}

LogicalResult PendingType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  VectorType fragment) {
  if (isFragment(fragment) && !isStatistic(fragment))
    return success();
  return emitError() << "expected the fragment of a tile, vector<M x N x 2 x "
                        "2>, of at most 65536 elements, got "
                     << fragment;
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MemRefType> slot) {
  if (slot.empty())
    return emitError() << "expected at least one shared tile in a slot";
  for (MemRefType tile : slot)
    if (!isSharedTile(tile) && !areSharedNumbers(tile))
      return emitError()
             << "expected slots of shared tiles (memref<SLABS x R x 64 x T, "
                "#gpu.address_space<workgroup>>, T f16 or bf16, R a positive "
                "multiple of 8, less than 2^31 bytes) and numbers (memref<N x "
                "T, #gpu.address_space<workgroup>>, T i32 or i64, at most 1024 "
                "bytes), got "
             << tile;
  return success();
}
