//===- TableMemory.cpp - Tables of score regions in memory ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Where the elements of a memref are.
struct Layout {
  Value base;
  OpFoldResult offset;
  SmallVector<OpFoldResult> sizes, strides;
};
} // namespace

static Layout getLayout(IndexBuilder index, Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(index.b, memory);
  auto [strides, offset] = type.getStridesAndOffset();
  Layout layout{metadata.getBaseBuffer(), metadata.getOffset(), {}, {}};
  if (ShapedType::isStatic(offset))
    layout.offset = index.b.getIndexAttr(offset);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    layout.sizes.push_back(
        type.isDynamicDim(dim)
            ? OpFoldResult(metadata.getSizes()[dim])
            : OpFoldResult(index.b.getIndexAttr(type.getDimSize(dim))));
    layout.strides.push_back(
        ShapedType::isDynamic(strides[dim])
            ? OpFoldResult(metadata.getStrides()[dim])
            : OpFoldResult(index.b.getIndexAttr(strides[dim])));
  }
  return layout;
}

static Value toValue(IndexBuilder index, OpFoldResult number) {
  return getValueOrCreateConstantIndexOp(index.b, index.b.getLoc(), number);
}

/// The base of `layout` with other sizes and strides.
static Value emitCast(IndexBuilder index, Type element, const Layout &layout) {
  auto [shape, sizes] = decomposeMixedValues(layout.sizes);
  auto [strides, strideValues] = decomposeMixedValues(layout.strides);
  auto [offsets, offsetValues] = decomposeMixedValues({layout.offset});
  auto type = MemRefType::get(
      shape, element,
      StridedLayoutAttr::get(index.b.getContext(), offsets.front(), strides));
  return memref::ReinterpretCastOp::create(
      index.b, type, layout.base, layout.offset, layout.sizes, layout.strides);
}

/// The memory of a table, in `layout`, as rows that begin at each element.
static Value emitRows(IndexBuilder index, Value table, Layout layout) {
  // As many rows as there are elements before the last row, and that one.
  Value rows = index.constant(1);
  for (auto [size, stride] :
       llvm::zip_equal(ArrayRef(layout.sizes).drop_back(),
                       ArrayRef(layout.strides).drop_back()))
    rows = index.add(
        rows, index.mul(index.sub(toValue(index, size), index.constant(1)),
                        toValue(index, stride)));
  layout.sizes = {rows, layout.sizes.back()};
  layout.strides = {index.b.getIndexAttr(1), layout.strides.back()};
  return emitCast(index, cast<MemRefType>(table.getType()).getElementType(),
                  layout);
}

Value varlen::emitTableView(IndexBuilder index, Value table) {
  return emitRows(index, table, getLayout(index, table));
}

Value varlen::emitKeyTableView(IndexBuilder index, Value table, Value first,
                               Value count) {
  Layout layout = getLayout(index, table);
  layout.offset =
      index.add(toValue(index, layout.offset),
                index.mul(first, toValue(index, layout.strides.back())));
  layout.sizes.back() = count;
  return emitRows(index, table, layout);
}

SmallVector<Value> varlen::emitTableStrides(IndexBuilder index, Value table) {
  Layout layout = getLayout(index, table);
  return llvm::map_to_vector(
      ArrayRef(layout.strides).drop_back(),
      [&](OpFoldResult stride) { return toValue(index, stride); });
}

Value varlen::emitTableRow(IndexBuilder index, ValueRange strides, Value head,
                           Value query) {
  Value row = index.mul(head, strides[0]);
  if (strides.size() == 2)
    row = index.add(row, index.mul(query, strides[1]));
  return arith::IndexCastOp::create(index.b, index.b.getI64Type(), row);
}

Value varlen::emitTableOffset(IndexBuilder index, Value view, Value row,
                              Value entry) {
  ImplicitLocOpBuilder &b = index.b;
  Layout layout = getLayout(index, view);
  auto vector = dyn_cast<VectorType>(entry.getType());
  auto like = [&](Type element) {
    return vector ? Type(vector.clone(element)) : element;
  };
  auto splat = [&](Value value) -> Value {
    return vector ? vector::BroadcastOp::create(
                        b, vector.clone(value.getType()), value)
                        .getResult()
                  : value;
  };
  auto constant = [&](TypedAttr value) -> Value {
    if (vector)
      value = DenseElementsAttr::get(vector.clone(value.getType()),
                                     Attribute(value));
    return arith::ConstantOp::create(b, value);
  };
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  Value last;
  if (std::optional<int64_t> count = getConstantIntValue(layout.sizes[1]))
    last = constant(
        b.getI32IntegerAttr(static_cast<int32_t>(std::min(*count - 1, most))));
  else
    last = splat(arith::IndexCastOp::create(
        b, b.getI32Type(),
        index.min(index.sub(cast<Value>(layout.sizes[1]), index.constant(1)),
                  index.constant(most))));
  entry = arith::MaxSIOp::create(b, entry, constant(b.getI32IntegerAttr(0)));
  entry = arith::MinSIOp::create(b, entry, last);
  // Not negative: no sign is extended.
  entry = arith::ExtUIOp::create(b, like(b.getI64Type()), entry);
  if (!isConstantIntValue(layout.strides[1], 1))
    entry = arith::MulIOp::create(
        b, entry,
        splat(arith::IndexCastOp::create(b, b.getI64Type(),
                                         toValue(index, layout.strides[1]))));
  return arith::AddIOp::create(b, row, entry);
}

Value varlen::emitFlatTable(IndexBuilder index, Value view) {
  Layout layout = getLayout(index, view);
  Value last =
      index.mul(index.sub(toValue(index, layout.sizes[1]), index.constant(1)),
                toValue(index, layout.strides[1]));
  layout.sizes = {index.add(toValue(index, layout.sizes[0]), last)};
  layout.strides = {index.b.getIndexAttr(1)};
  return emitCast(index, cast<MemRefType>(view.getType()).getElementType(),
                  layout);
}
