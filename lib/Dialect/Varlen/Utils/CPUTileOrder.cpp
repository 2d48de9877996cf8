//===- CPUTileOrder.cpp - How a tile lies in memory -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/CPUTileOrder.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

/// The layout that maps (r, c) to its place in memory.
static AffineMap getLayout(TileOrder order, MLIRContext *context) {
  AffineExpr r = getAffineDimExpr(0, context), c = getAffineDimExpr(1, context);
  auto map = [&](ArrayRef<AffineExpr> place) {
    return AffineMap::get(2, 0, place, context);
  };
  switch (order) {
  case TileOrder::Rows:
    return map({r, c});
  case TileOrder::Columns:
    return map({c, r});
  case TileOrder::RowPairs:
    return map({r.floorDiv(2), c * 2 + r % 2});
  case TileOrder::ColumnPairs:
    return map({c.floorDiv(2), r * 2 + c % 2});
  }
  llvm_unreachable("an order of none of these kinds");
}

static int64_t times(int64_t extent, int64_t factor) {
  return ShapedType::isDynamic(extent) ? extent : extent * factor;
}

static int64_t half(int64_t extent) {
  return ShapedType::isDynamic(extent) ? extent : extent / 2;
}

SmallVector<int64_t> varlen::getTileMemoryShape(TileOrder order, int64_t rows,
                                                int64_t columns) {
  switch (order) {
  case TileOrder::Rows:
    return {rows, columns};
  case TileOrder::Columns:
    return {columns, rows};
  case TileOrder::RowPairs:
    return {half(rows), times(columns, 2)};
  case TileOrder::ColumnPairs:
    return {half(columns), times(rows, 2)};
  }
  llvm_unreachable("an order of none of these kinds");
}

/// The extents of the tile that lies in a memref in this order.
static SmallVector<int64_t> getTileShape(const TileCopy &copy) {
  ArrayRef<int64_t> shape = cast<MemRefType>(copy.memref.getType()).getShape();
  switch (copy.order) {
  case TileOrder::Rows:
    return {shape[0], shape[1]};
  case TileOrder::Columns:
    return {shape[1], shape[0]};
  case TileOrder::RowPairs:
    return {times(shape[0], 2), half(shape[1])};
  case TileOrder::ColumnPairs:
    return {half(shape[1]), times(shape[0], 2)};
  }
  llvm_unreachable("an order of none of these kinds");
}

Value varlen::emitTile(ImplicitLocOpBuilder &b, ArrayRef<TileCopy> copies) {
  SmallVector<Value> meanings;
  for (const TileCopy &copy : copies) {
    if (copy.order == TileOrder::Rows) {
      meanings.push_back(copy.memref);
      continue;
    }
    auto type = cast<MemRefType>(copy.memref.getType());
    auto meaning = MemRefType::get(getTileShape(copy), type.getElementType(),
                                   getLayout(copy.order, b.getContext()));
    meanings.push_back(
        UnrealizedConversionCastOp::create(b, meaning, copy.memref)
            .getResult(0));
  }
  Value buffer = meanings.front();
  auto type = cast<MemRefType>(buffer.getType());
  if (meanings.size() > 1)
    buffer = UnrealizedConversionCastOp::create(b, type, meanings).getResult(0);
  return bufferization::ToTensorOp::create(
      b, RankedTensorType::get(type.getShape(), type.getElementType()), buffer,
      /*restrict=*/true);
}

SmallVector<TileCopy> varlen::getTileCopies(Value buffer) {
  auto isTileMemory = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && memref.getRank() == 2;
  };
  if (!isTileMemory(buffer.getType()))
    return {};
  auto type = llvm::cast<MemRefType>(buffer.getType());
  auto cast = buffer.getDefiningOp<UnrealizedConversionCastOp>();
  if (!cast)
    return {{TileOrder::Rows, buffer}};
  SmallVector<TileCopy> copies;
  if (cast.getNumOperands() > 1) {
    for (Value copy : cast.getOperands()) {
      SmallVector<TileCopy> more = getTileCopies(copy);
      if (more.empty() ||
          getElementTypeOrSelf(copy.getType()) != type.getElementType() ||
          failed(verifyCompatibleShape(copy.getType(), type)))
        return {};
      llvm::append_range(copies, more);
    }
    return copies;
  }
  Type from =
      cast.getNumOperands() == 1 ? cast.getOperand(0).getType() : Type();
  if (!from || !isTileMemory(from) ||
      llvm::cast<MemRefType>(from).getElementType() != type.getElementType())
    return {};
  for (TileOrder order :
       {TileOrder::Columns, TileOrder::RowPairs, TileOrder::ColumnPairs}) {
    TileCopy copy{order, cast.getOperand(0)};
    if (type.getLayout().getAffineMap() ==
            getLayout(order, cast.getContext()) &&
        type.getShape() == ArrayRef(getTileShape(copy)))
      return {copy};
  }
  return {};
}
