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
  void emitRotary(int64_t pairs);
  void emitCopy(Value packed, Value cache, Columns columns);

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
  return AppendRunsOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, AppendRunsOp::NumColumns},
                      b.getI64Type()),
      op.getCu(), op.getSequsedK(), op.getBlockTable(), dim(op.getK(), 0),
      dim(op.getV(), 0), dim(op.getKCache(), 0), dim(op.getVCache(), 0),
      dim(op.getKCache(), 1), dim(op.getVCache(), 1),
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

void AppendExpander::emitRotary(int64_t pairs) {
  bool interleaved = op.getInterleaved();
  Columns first = {0, pairs, interleaved ? 2 : 1},
          second = {interleaved ? 1 : pairs, pairs, first.stride};
  Value inputs[] = {viewNew(op.getK(), first), viewNew(op.getK(), second),
                    viewTable(op.getCos()), viewTable(op.getSin())};
  Value outputs[] = {viewCache(op.getKCache(), first),
                     viewCache(op.getKCache(), second)};
  AffineMap ofRows = b.getMultiDimIdentityMap(3);
  AffineMap ofTables =
      AffineMap::getMultiDimMapWithTargets(3, {0, 2}, b.getContext());
  Type element = getElementTypeOrSelf(op.getK());
  auto turn = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    SmallVector<Value> wide =
        llvm::map_to_vector(args.take_front(4), [&](Value x) {
          return convertScalarToDtype(b, loc, x, getComputeType(element),
                                      /*isUnsignedCast=*/false);
        });
    Value x = wide[0], y = wide[1], cos = wide[2], sin = wide[3];
    auto mul = [&](Value lhs, Value rhs) -> Value {
      return arith::MulFOp::create(b, lhs, rhs);
    };
    Value turned[] = {arith::SubFOp::create(b, mul(x, cos), mul(y, sin)),
                      arith::AddFOp::create(b, mul(x, sin), mul(y, cos))};
    for (Value &each : turned)
      each = convertScalarToDtype(b, loc, each, element,
                                  /*isUnsignedCast=*/false);
    linalg::YieldOp::create(b, turned);
  };
  linalg::GenericOp::create(
      b, TypeRange(), inputs, outputs,
      ArrayRef<AffineMap>{ofRows, ofRows, ofTables, ofTables, ofRows, ofRows},
      SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel), turn);
}

void AppendExpander::emitCopy(Value packed, Value cache, Columns columns) {
  linalg::makeMemRefCopyOp(b, b.getLoc(), viewNew(packed, columns),
                           viewCache(cache, columns));
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
  int64_t turned = 0;
  if (op.getCos()) {
    int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
    emitRotary(pairs);
    turned = 2 * pairs;
  }
  if (turned < columnsOf(op.getK()))
    emitCopy(op.getK(), op.getKCache(),
             {turned, columnsOf(op.getK()) - turned});
  emitCopy(op.getV(), op.getVCache(), {0, columnsOf(op.getV())});
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
