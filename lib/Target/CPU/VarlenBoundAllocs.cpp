//===- VarlenBoundAllocs.cpp - Buffers of loops with static sizes ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENBOUNDALLOCS
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// A constant that the value is never above, if its definition says one.
static std::optional<int64_t> getBound(Value size) {
  APInt number;
  if (matchPattern(size, m_ConstantInt(&number)))
    return number.getSExtValue();
  if (auto dim = size.getDefiningOp<memref::DimOp>()) {
    SmallVector<OpFoldResult> extent;
    if (failed(dim->fold(extent)) || extent.empty())
      return std::nullopt;
    if (auto value = dyn_cast<Value>(extent.front()))
      return value == size ? std::nullopt : getBound(value);
    return getConstantIntValue(extent.front());
  }
  auto min = size.getDefiningOp<arith::MinSIOp>();
  if (!min)
    return std::nullopt;
  std::optional<int64_t> lhs = getBound(min.getLhs()),
                         rhs = getBound(min.getRhs());
  return lhs && rhs ? std::min(*lhs, *rhs) : lhs ? lhs : rhs;
}

/// What there was, as a view of a buffer of a static size.
static bool bound(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  Type element = type.getElementType();
  if (!type.getLayout().isIdentity() || !alloc.getSymbolOperands().empty() ||
      !element.isIntOrFloat())
    return false;
  uint64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  for (OpFoldResult size : alloc.getMixedSizes()) {
    std::optional<int64_t> extent = getConstantIntValue(size);
    if (!extent)
      extent = getBound(cast<Value>(size));
    if (!extent || *extent < 0)
      return false;
    bytes = llvm::SaturatingMultiply(bytes, static_cast<uint64_t>(*extent));
  }
  if (bytes > std::numeric_limits<int64_t>::max())
    return false;
  ImplicitLocOpBuilder b(alloc.getLoc(), alloc);
  Value whole = memref::AllocOp::create(
      b,
      MemRefType::get({static_cast<int64_t>(bytes)}, b.getI8Type(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace()),
      ValueRange{}, alloc.getAlignmentAttr());
  // Who frees the buffer frees all of it.
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (auto dealloc = dyn_cast<memref::DeallocOp>(user))
      dealloc.getMemrefMutable().assign(whole);
  Value view = memref::ViewOp::create(b, type, whole,
                                      arith::ConstantIndexOp::create(b, 0),
                                      alloc.getDynamicSizes());
  alloc->replaceAllUsesWith(ValueRange{view});
  alloc->erase();
  return true;
}

namespace {
struct VarlenBoundAllocs
    : varlen::impl::VarlenBoundAllocsBase<VarlenBoundAllocs> {
  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocs;
    getOperation()->walk([&](memref::AllocOp alloc) {
      if (!alloc.getType().hasStaticShape() &&
          alloc->getParentOfType<scf::ForallOp>())
        allocs.push_back(alloc);
    });
    for (memref::AllocOp alloc : allocs)
      numBounded += bound(alloc);
  }
};
} // namespace
