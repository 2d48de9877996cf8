//===- TableMemory.cpp - Tables of score regions in memory ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
  auto metadata = memref::ExtractStridedMetadataOp::create(index.b, memory);
  return {metadata.getBaseBuffer(), metadata.getConstifiedMixedOffset(),
          metadata.getConstifiedMixedSizes(),
          metadata.getConstifiedMixedStrides()};
}

static Value toValue(IndexBuilder index, OpFoldResult number) {
  return getValueOrCreateConstantIndexOp(index.b, index.b.getLoc(), number);
}

Value varlen::emitTableView(IndexBuilder index, Value table,
                            BlockArgument argument, Value firstKey,
                            Value keys) {
  Layout layout = getLayout(index, table);
  if (isOfKeys(argument)) {
    layout.offset =
        index.add(toValue(index, layout.offset),
                  index.mul(firstKey, toValue(index, layout.strides.back())));
    layout.sizes.back() = keys;
  }
  // As many rows as there are elements before the last row, and that one.
  Value rows = index.constant(1);
  for (auto [size, stride] :
       llvm::zip_equal(ArrayRef(layout.sizes).drop_back(),
                       ArrayRef(layout.strides).drop_back()))
    rows = index.add(rows, index.mul(index.sub(toValue(index, size), 1),
                                     toValue(index, stride)));
  layout.sizes = {rows, layout.sizes.back()};
  layout.strides = {index.b.getIndexAttr(1), layout.strides.back()};
  return memref::ReinterpretCastOp::create(index.b, layout.base, layout.offset,
                                           layout.sizes, layout.strides);
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

/// What was computed from memory that holds nothing yet, as the scores of
/// padding may be, is no one number: each comparison of a clamp could take it
/// for another one, and be optimised away.
static Value freeze(ImplicitLocOpBuilder &b, Value entry) {
  auto vector = dyn_cast<VectorType>(entry.getType());
  if (!vector || vector.getRank() == 1)
    return LLVM::FreezeOp::create(b, entry);
  auto flat = VectorType::get(vector.getNumElements(), vector.getElementType());
  Value frozen =
      LLVM::FreezeOp::create(b, vector::ShapeCastOp::create(b, flat, entry));
  return vector::ShapeCastOp::create(b, vector, frozen);
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
  auto constant = [&](int64_t value) {
    return createScalarOrSplatConstant(b, b.getLoc(), entry.getType(),
                                       APInt(32, value, /*isSigned=*/true));
  };
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  Value last;
  if (std::optional<int64_t> count = getConstantIntValue(layout.sizes[1]))
    last = constant(std::min(*count - 1, most));
  else
    last = splat(arith::IndexCastOp::create(
        b, b.getI32Type(),
        index.min(index.sub(cast<Value>(layout.sizes[1]), 1), most)));
  entry = arith::MaxSIOp::create(b, freeze(b, entry), constant(0));
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
  Value last = index.mul(index.sub(toValue(index, layout.sizes[1]), 1),
                         toValue(index, layout.strides[1]));
  layout.sizes = {index.add(toValue(index, layout.sizes[0]), last)};
  layout.strides = {index.b.getIndexAttr(1)};
  return memref::ReinterpretCastOp::create(index.b, layout.base, layout.offset,
                                           layout.sizes, layout.strides);
}
