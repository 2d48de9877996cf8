//===- TileMemory.cpp - Tiles in memory -----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

static bool isTransposed(TileOrder order) {
  return order == TileOrder::Columns || order == TileOrder::ColumnPairs;
}

static bool isPaired(TileOrder order) {
  return order == TileOrder::RowPairs || order == TileOrder::ColumnPairs;
}

SmallVector<int64_t> varlen::getTileMemoryShape(TileOrder order, int64_t rows,
                                                int64_t columns) {
  SmallVector<int64_t> shape = {rows, columns};
  if (isTransposed(order))
    std::swap(shape[0], shape[1]);
  if (isPaired(order) && ShapedType::isStatic(shape[0]))
    shape[0] /= 2;
  if (isPaired(order) && ShapedType::isStatic(shape[1]))
    shape[1] *= 2;
  return shape;
}

//===----------------------------------------------------------------------===//
// ToTileOp
//===----------------------------------------------------------------------===//

void ToTileOp::build(OpBuilder &builder, OperationState &state,
                     RankedTensorType tile, ArrayRef<TileCopy> copies) {
  SmallVector<Attribute> orders;
  for (const TileCopy &copy : copies) {
    state.addOperands(copy.memref);
    orders.push_back(TileOrderAttr::get(builder.getContext(), copy.order));
  }
  state.getOrAddProperties<Properties>().orders = builder.getArrayAttr(orders);
  state.addTypes(tile);
}

SmallVector<TileCopy> ToTileOp::getTileCopies() {
  SmallVector<TileCopy> result;
  for (auto [memref, order] :
       llvm::zip_equal(getCopies(), getOrders().getAsRange<TileOrderAttr>()))
    result.push_back({order.getValue(), memref});
  return result;
}

LogicalResult ToTileOp::verify() {
  if (getCopies().empty() || getCopies().size() != getOrders().size())
    return emitOpError("expected an order for each copy, and one copy at "
                       "least, got ")
           << getOrders().size() << " orders for " << getCopies().size()
           << " copies";
  RankedTensorType tile = getTile().getType();
  int64_t extents[] = {tile.getDimSize(0), tile.getDimSize(1)};
  SmallVector<TileOrder> seen;
  for (auto [order, memref] : getTileCopies()) {
    if (llvm::is_contained(seen, order))
      return emitOpError("expected one copy of each order, got several of ")
             << stringifyTileOrder(order);
    seen.push_back(order);
    int64_t inPairs = extents[isTransposed(order)];
    if (isPaired(order) && ShapedType::isStatic(inPairs) && inPairs % 2 != 0)
      return emitOpError("expected an even number of ")
             << (isTransposed(order) ? "columns" : "rows") << " for "
             << stringifyTileOrder(order) << ", got " << tile;
    auto type = cast<MemRefType>(memref.getType());
    auto wanted =
        MemRefType::get(getTileMemoryShape(order, extents[0], extents[1]),
                        tile.getElementType());
    if (type.getElementType() != tile.getElementType() ||
        failed(verifyCompatibleShape(type, wanted)))
      return emitOpError("expected ")
             << wanted << " for the " << stringifyTileOrder(order) << " of "
             << tile << ", got " << type;
  }
  return success();
}

LogicalResult ToTileOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto [order, memref] = getTileCopies().front();
  SmallVector<OpFoldResult> &shape = shapes.emplace_back();
  for (auto [axis, extent] : llvm::enumerate(getTile().getType().getShape())) {
    if (ShapedType::isStatic(extent)) {
      shape.push_back(b.getIndexAttr(extent));
      continue;
    }
    int64_t dim = isTransposed(order) ? 1 - axis : axis;
    Value size = memref::DimOp::create(b, memref, dim);
    if (isPaired(order)) {
      Value two = arith::ConstantIndexOp::create(b, 2);
      size = dim == 0 ? arith::MulIOp::create(b, size, two).getResult()
                      : arith::DivUIOp::create(b, size, two).getResult();
    }
    shape.push_back(size);
  }
  return success();
}
