//===- TileMemory.cpp - Tiles in memory, and rows that are copied there ---===//
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
// Copies
//===----------------------------------------------------------------------===//

static SmallVector<TileCopy> getTileCopies(OperandRange copies,
                                           ArrayAttr orders) {
  SmallVector<TileCopy> result;
  for (auto [memref, order] :
       llvm::zip_equal(copies, orders.getAsRange<TileOrderAttr>()))
    result.push_back({order.getValue(), memref});
  return result;
}

static std::pair<SmallVector<Value>, ArrayAttr>
splitCopies(OpBuilder &builder, ArrayRef<TileCopy> copies) {
  SmallVector<Value> memory;
  SmallVector<Attribute> orders;
  for (const TileCopy &copy : copies) {
    memory.push_back(copy.memref);
    orders.push_back(TileOrderAttr::get(builder.getContext(), copy.order));
  }
  return {memory, builder.getArrayAttr(orders)};
}

static LogicalResult verifyOrders(Operation *op, OperandRange copies,
                                  ArrayAttr orders) {
  if (!copies.empty() && copies.size() == orders.size())
    return success();
  return op->emitOpError("expected an order for each copy, and one copy at "
                         "least, got ")
         << orders.size() << " orders for " << copies.size() << " copies";
}

static LogicalResult verifyCopies(Operation *op, ArrayRef<TileCopy> copies,
                                  RankedTensorType tile) {
  int64_t extents[] = {tile.getDimSize(0), tile.getDimSize(1)};
  SmallVector<TileOrder> seen;
  for (auto [order, memref] : copies) {
    if (llvm::is_contained(seen, order))
      return op->emitOpError("expected one copy of each order, got several of ")
             << stringifyTileOrder(order);
    seen.push_back(order);
    int64_t inPairs = extents[isTransposed(order)];
    if (isPaired(order) && ShapedType::isStatic(inPairs) && inPairs % 2 != 0)
      return op->emitOpError("expected an even number of ")
             << (isTransposed(order) ? "columns" : "rows") << " for "
             << stringifyTileOrder(order) << ", got " << tile;
    auto type = cast<MemRefType>(memref.getType());
    auto wanted =
        MemRefType::get(getTileMemoryShape(order, extents[0], extents[1]),
                        tile.getElementType());
    if (type.getElementType() != tile.getElementType() ||
        failed(verifyCompatibleShape(type, wanted)))
      return op->emitOpError("expected ")
             << wanted << " for the " << stringifyTileOrder(order) << " of "
             << tile << ", got " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ToTileOp
//===----------------------------------------------------------------------===//

void ToTileOp::build(OpBuilder &builder, OperationState &state,
                     RankedTensorType tile, ArrayRef<TileCopy> copies) {
  auto [memory, orders] = splitCopies(builder, copies);
  build(builder, state, tile, memory, orders);
}

SmallVector<TileCopy> ToTileOp::getTileCopies() {
  return ::getTileCopies(getCopies(), getOrders());
}

LogicalResult ToTileOp::verify() {
  if (failed(verifyOrders(*this, getCopies(), getOrders())))
    return failure();
  return verifyCopies(*this, getTileCopies(), getTile().getType());
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

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The tile whose copy in that order has this type.
static RankedTensorType getTileOf(TileOrder order, MemRefType copy) {
  SmallVector<int64_t> shape(copy.getShape());
  if (isPaired(order) && ShapedType::isStatic(shape[0]))
    shape[0] *= 2;
  if (isPaired(order) && ShapedType::isStatic(shape[1]))
    shape[1] /= 2;
  if (isTransposed(order))
    std::swap(shape[0], shape[1]);
  return RankedTensorType::get(shape, copy.getElementType());
}

/// That the rows of memory have a static size, and are in pages if there is a
/// table of these.
static LogicalResult verifyRows(Operation *op, Value memory,
                                Value blockTable = {}, bool isOnePage = false) {
  auto type = cast<MemRefType>(memory.getType());
  int64_t rank = blockTable ? 4 : 3;
  if (type.getRank() != rank)
    return op->emitOpError("expected memory of rank ")
           << rank << (blockTable ? " with" : " without") << " pages, got "
           << type;
  if (type.isDynamicDim(rank - 1))
    return op->emitOpError("expected rows of a static size, got ") << type;
  if (isOnePage && !blockTable)
    return op->emitOpError("expected pages where one_page is, got none");
  return success();
}

void ReadRowsOp::build(OpBuilder &builder, OperationState &state, Value memory,
                       Value row, Value head, Value first, Value group,
                       Value valid, Value blockTable, bool onePage,
                       ArrayRef<TileCopy> copies) {
  auto [scratch, orders] = splitCopies(builder, copies);
  build(builder, state, memory, row, head, first, group, valid, blockTable,
        onePage, scratch, orders);
}

SmallVector<TileCopy> ReadRowsOp::getTileCopies() {
  return ::getTileCopies(getCopies(), getOrders());
}

LogicalResult ReadRowsOp::verify() {
  if (failed(verifyRows(*this, getMemory(), getBlockTable(), getOnePage())) ||
      failed(verifyOrders(*this, getCopies(), getOrders())))
    return failure();
  SmallVector<TileCopy> copies = getTileCopies();
  auto [order, first] = copies.front();
  RankedTensorType tile = getTileOf(order, cast<MemRefType>(first.getType()));
  if (failed(verifyCopies(*this, copies, tile)))
    return failure();
  int64_t columns = tile.getDimSize(1),
          size = getMemory().getType().getDimSize(
              getMemory().getType().getRank() - 1);
  if (columns < size)
    return emitOpError("expected a static number of columns, ")
           << size << " at least, got " << tile;
  Type from = getMemory().getType().getElementType(),
       to = tile.getElementType();
  if (from != to && !isa<FloatType>(to))
    return emitOpError("expected copies of floats, or of the elements of "
                       "memory, ")
           << from << ", got " << to;
  return success();
}

LogicalResult LoadRowsOp::verify() {
  if (failed(verifyRows(*this, getMemory(), getBlockTable(), getOnePage())))
    return failure();
  MemRefType memory = getMemory().getType();
  auto wanted =
      RankedTensorType::get({ShapedType::kDynamic, memory.getShape().back()},
                            memory.getElementType());
  if (getTile().getType() != wanted)
    return emitOpError("expected ") << wanted << ", rows of " << memory
                                    << ", got " << getTile().getType();
  return success();
}

LogicalResult
LoadRowsOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back({getAsOpFoldResult(getValid()),
                    builder.getIndexAttr(getTile().getType().getDimSize(1))});
  return success();
}

LogicalResult PrefetchRowsOp::verify() {
  return verifyRows(*this, getMemory(), getBlockTable(), getOnePage());
}

/// That rows of scratch have all columns of those of memory.
LogicalResult WriteRowsOp::verify() {
  if (failed(verifyRows(*this, getMemory())))
    return failure();
  int64_t columns = getScratch().getType().getDimSize(1),
          size = getMemory().getType().getDimSize(2);
  if (columns < size)
    return emitOpError("expected a static number of columns, ")
           << size << " at least, got " << getScratch().getType();
  return success();
}

LogicalResult FillRowsOp::verify() { return verifyRows(*this, getMemory()); }

//===----------------------------------------------------------------------===//
// ReadWorkOp
//===----------------------------------------------------------------------===//

LogicalResult ReadWorkOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           ValueRange operands, DictionaryAttr,
                                           OpaqueProperties, RegionRange,
                                           SmallVectorImpl<Type> &types) {
  Type type = operands.front().getType();
  auto list = dyn_cast<MemRefType>(type);
  if (!list || list.getRank() != 2 || list.isDynamicDim(1))
    return emitOptionalError(location,
                             "expected a list of a static number of fields, "
                             "got ",
                             type);
  types.assign(list.getDimSize(1), IndexType::get(context));
  return success();
}
