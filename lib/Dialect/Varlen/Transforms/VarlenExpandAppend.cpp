//===- VarlenExpandAppend.cpp - New rows of a cache as loops --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/AppendElements.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDAPPEND
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

class AppendExpander {
public:
  explicit AppendExpander(AppendOp op) : op(op), b(op.getLoc(), op) {}

  void run();

private:
  /// Part of the columns of a head: `size` of them from `begin` on.
  struct Columns {
    int64_t begin, size, stride = 1;
  };

  Value emitRuns();
  void emitRun(Value runs, Value number);
  /// Views of the run's rows, rows x Hkv x columns.
  Value viewNew(Value packed, Columns columns);
  Value viewCache(Value cache, Columns columns);
  /// The run's rows of a table, rows x columns.
  Value viewTable(Value table);
  /// The run's scales, rows x Hkv.
  Value viewScales(Value scales);

  /// Columns of a cache that one loop computes, one or two views of them.
  struct Part {
    SmallVector<Value> inputs, outputs;
    SmallVector<AffineMap> maps; // of the inputs
    bool isTurned;
  };
  Part turnedPart(int64_t pairs);
  Part copiedPart(Value packed, Value cache, Columns columns);
  SmallVector<Value> computePart(ImplicitLocOpBuilder &b, const Part &part,
                                 ValueRange elements);
  void emitWrite(const Part &part);
  void emitQuantised(ArrayRef<Part> parts, Value scales);

  AppendOp op;
  ImplicitLocOpBuilder b;
  IndexBuilder index{b};
  /// Numbers of the run that is emitted.
  Value position, row, rows, page, pageRow;
};

} // namespace

Value AppendExpander::emitRuns() {
  auto dim = [&](Value memory, int64_t d) { return index.dim(memory, d); };
  Value cos = op.getCos(), sin = op.getSin();
  SmallVector<Value> ofScales;
  if (op.isQuantised())
    for (Value scale : {op.getKScale(), op.getVScale()})
      ofScales.append({dim(scale, 0), dim(scale, 1)});
  return AppendRunsOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, AppendRunsOp::NumColumns},
                      b.getI64Type()),
      op.getCu(), op.getSequsedK(), op.getBlockTable(), dim(op.getK(), 0),
      dim(op.getV(), 0), dim(op.getKCache(), 0), dim(op.getVCache(), 0),
      dim(op.getKCache(), 1), dim(op.getVCache(), 1), ofScales,
      cos ? dim(cos, 0) : Value(), sin ? dim(sin, 0) : Value());
}

Value AppendExpander::viewNew(Value packed, Columns columns) {
  auto type = cast<MemRefType>(packed.getType());
  SmallVector<OpFoldResult> offsets = {row, b.getIndexAttr(0),
                                       b.getIndexAttr(columns.begin)},
                            sizes = {rows, b.getIndexAttr(type.getDimSize(1)),
                                     b.getIndexAttr(columns.size)},
                            strides = {b.getIndexAttr(1), b.getIndexAttr(1),
                                       b.getIndexAttr(columns.stride)};
  return memref::SubViewOp::create(b, packed, offsets, sizes, strides);
}

Value AppendExpander::viewCache(Value cache, Columns columns) {
  auto type = cast<MemRefType>(cache.getType());
  int64_t heads = type.getDimSize(2);
  Attribute zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {page, pageRow, zero,
                                       b.getIndexAttr(columns.begin)},
                            sizes = {one, rows, b.getIndexAttr(heads),
                                     b.getIndexAttr(columns.size)},
                            strides = {one, one, one,
                                       b.getIndexAttr(columns.stride)};
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, heads, columns.size}, type, offsets, sizes,
      strides);
  return memref::SubViewOp::create(b, view, cache, offsets, sizes, strides);
}

Value AppendExpander::viewTable(Value table) {
  auto type = cast<MemRefType>(table.getType());
  Attribute zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {position, zero},
                            sizes = {rows, b.getIndexAttr(type.getDimSize(1))},
                            strides = {one, one};
  return memref::SubViewOp::create(b, table, offsets, sizes, strides);
}

Value AppendExpander::viewScales(Value scales) {
  auto type = cast<MemRefType>(scales.getType());
  int64_t heads = type.getDimSize(2);
  Attribute zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {page, pageRow, zero},
                            sizes = {one, rows, b.getIndexAttr(heads)},
                            strides = {one, one, one};
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, heads}, type, offsets, sizes, strides);
  return memref::SubViewOp::create(b, view, scales, offsets, sizes, strides);
}

AppendExpander::Part AppendExpander::turnedPart(int64_t pairs) {
  bool interleaved = op.getInterleaved();
  Columns first = {0, pairs, interleaved ? 2 : 1},
          second = {interleaved ? 1 : pairs, pairs, first.stride};
  AffineMap ofRows = b.getMultiDimIdentityMap(3);
  AffineMap ofTables =
      AffineMap::getMultiDimMapWithTargets(3, {0, 2}, b.getContext());
  return {{viewNew(op.getK(), first), viewNew(op.getK(), second),
           viewTable(op.getCos()), viewTable(op.getSin())},
          {viewCache(op.getKCache(), first), viewCache(op.getKCache(), second)},
          {ofRows, ofRows, ofTables, ofTables},
          /*isTurned=*/true};
}

AppendExpander::Part AppendExpander::copiedPart(Value packed, Value cache,
                                                Columns columns) {
  return {{viewNew(packed, columns)},
          {viewCache(cache, columns)},
          {b.getMultiDimIdentityMap(3)},
          /*isTurned=*/false};
}

/// The elements of a cache, in the compute type.
SmallVector<Value> AppendExpander::computePart(ImplicitLocOpBuilder &b,
                                               const Part &part,
                                               ValueRange elements) {
  Type compute = getComputeType(getElementTypeOrSelf(op.getK()));
  auto wide = llvm::map_to_vector(
      elements.take_front(part.inputs.size()), [&](Value x) {
        return convertScalarToDtype(b, b.getLoc(), x, compute,
                                    /*isUnsignedCast=*/false);
      });
  if (!part.isTurned)
    return wide;
  auto [x, y] = emitTurnedPair(b, wide[0], wide[1], wide[2], wide[3]);
  return {x, y};
}

void AppendExpander::emitWrite(const Part &part) {
  if (!part.isTurned) {
    linalg::makeMemRefCopyOp(b, b.getLoc(), part.inputs[0], part.outputs[0]);
    return;
  }
  SmallVector<AffineMap> maps = part.maps;
  maps.append(part.outputs.size(), b.getMultiDimIdentityMap(3));
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    SmallVector<Value> elements = computePart(b, part, args);
    for (Value &each : elements)
      each = convertScalarToDtype(b, loc, each, getElementTypeOrSelf(op.getK()),
                                  /*isUnsignedCast=*/false);
    linalg::YieldOp::create(b, elements);
  };
  linalg::GenericOp::create(
      b, TypeRange(), part.inputs, part.outputs, maps,
      SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel), body);
}

/// Elements are computed twice, for the scales and for the numbers: memory
/// between the two would have to be kept for each run.
void AppendExpander::emitQuantised(ArrayRef<Part> parts, Value scales) {
  Type element = getElementTypeOrSelf(op.getKCache());
  Value view = viewScales(scales);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  linalg::FillOp::create(b, zero, view);
  AffineMap ofScales =
      AffineMap::getMultiDimMapWithTargets(3, {0, 1}, b.getContext());
  SmallVector<utils::IteratorType> parallel(3, utils::IteratorType::parallel),
      reduction = parallel;
  reduction.back() = utils::IteratorType::reduction;
  for (const Part &part : parts) {
    SmallVector<AffineMap> maps = part.maps;
    maps.push_back(ofScales);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      ImplicitLocOpBuilder b(loc, nested);
      Value largest = args.back();
      for (Value x : computePart(b, part, args))
        largest = emitLargestMagnitude(b, largest, x);
      linalg::YieldOp::create(b, largest);
    };
    linalg::GenericOp::create(b, TypeRange(), part.inputs, view, maps,
                              reduction, body);
  }
  auto finish = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    linalg::YieldOp::create(b, emitRowScale(b, args[0], element));
  };
  linalg::GenericOp::create(b, TypeRange(), ValueRange(), view,
                            b.getMultiDimIdentityMap(2),
                            ArrayRef(parallel).drop_back(), finish);
  for (const Part &part : parts) {
    SmallVector<Value> inputs = part.inputs;
    inputs.push_back(view);
    SmallVector<AffineMap> maps = part.maps;
    maps.push_back(ofScales);
    maps.append(part.outputs.size(), b.getMultiDimIdentityMap(3));
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      ImplicitLocOpBuilder b(loc, nested);
      Value scale = args[part.inputs.size()];
      SmallVector<Value> elements = computePart(b, part, args);
      for (Value &each : elements)
        each = emitQuantisedElement(b, each, scale, element);
      linalg::YieldOp::create(b, elements);
    };
    linalg::GenericOp::create(b, TypeRange(), inputs, part.outputs, maps,
                              parallel, body);
  }
}

void AppendExpander::emitRun(Value runs, Value number) {
  auto load = [&](AppendRunsOp::Column column) {
    return index.load(runs, {number, index.constant(column)});
  };
  position = load(AppendRunsOp::Position);
  row = load(AppendRunsOp::Row);
  rows = load(AppendRunsOp::Rows);
  page = load(AppendRunsOp::Page);
  pageRow = load(AppendRunsOp::PageRow);
  auto columnsOf = [](Value packed) {
    return cast<MemRefType>(packed.getType()).getDimSize(2);
  };
  SmallVector<Part> ofKeys;
  auto addKeys = [&](Part part) {
    if (op.isQuantised())
      ofKeys.push_back(std::move(part));
    else
      emitWrite(part);
  };
  int64_t turned = 0;
  if (op.getCos()) {
    int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
    addKeys(turnedPart(pairs));
    turned = 2 * pairs;
  }
  if (turned < columnsOf(op.getK()))
    addKeys(copiedPart(op.getK(), op.getKCache(),
                       {turned, columnsOf(op.getK()) - turned}));
  Part ofValues =
      copiedPart(op.getV(), op.getVCache(), {0, columnsOf(op.getV())});
  if (!op.isQuantised())
    return emitWrite(ofValues);
  emitQuantised(ofKeys, op.getKScale());
  emitQuantised(ofValues, op.getVScale());
}

void AppendExpander::run() {
  Value runs = emitRuns();
  auto forall =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{index.dim(runs, 0)},
                            ValueRange(), std::nullopt);
  b.setInsertionPoint(forall.getTerminator());
  emitRun(runs, forall.getInductionVar(0));
  b.setInsertionPointAfter(forall);
  memref::DeallocOp::create(b, runs);
  op.erase();
}

namespace {
struct VarlenExpandAppend
    : varlen::impl::VarlenExpandAppendBase<VarlenExpandAppend> {
  void runOnOperation() override {
    SmallVector<AppendOp> ops;
    getOperation()->walk([&](AppendOp op) { ops.push_back(op); });
    for (AppendOp op : ops) {
      if (!op.isBufferized()) {
        op.emitOpError("expected memrefs, got tensors; bufferize before");
        return signalPassFailure();
      }
      AppendExpander(op).run();
      ++numExpanded;
    }
  }
};
} // namespace
