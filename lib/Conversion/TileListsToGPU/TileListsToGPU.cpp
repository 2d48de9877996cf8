//===- TileListsToGPU.cpp - Kernels that list the tiles of a batch --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileListBuilder.h"
#include "varlen/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTTILELISTSTOGPU
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Converts the operations of a module, in host code and in kernels.
class TileListConverter {
public:
  explicit TileListConverter(ModuleOp module) : module(module) {}

  LogicalResult convert();

private:
  /// The batch of an operation, and how many sequences it has, which the host
  /// knows.
  struct Batch {
    BatchOp op;
    Value sequences;
  };
  template <typename OpT> FailureOr<Batch> findBatch(OpT op);

  LogicalResult convert(ListTilesOp op);
  LogicalResult convert(ReadTileOp op);
  LogicalResult convert(ReadSequenceOp op);
  template <typename OpT> LogicalResult convertAll();

  ModuleOp module;
  DenseMap<Operation *, Value> sequencesOf;
};
} // namespace

template <typename OpT>
FailureOr<TileListConverter::Batch> TileListConverter::findBatch(OpT op) {
  BatchOp batch = op.getBatchOp();
  if (!batch)
    return op.emitOpError("expected a batch that a varlen.batch makes");
  Value &sequences = sequencesOf[batch];
  if (!sequences) {
    ImplicitLocOpBuilder b(batch.getLoc(), batch);
    IndexBuilder index{b};
    sequences = emitSequenceCount(index, batch);
  }
  return Batch{batch, sequences};
}

LogicalResult TileListConverter::convert(ListTilesOp op) {
  FailureOr<Batch> batch = findBatch(op);
  if (failed(batch))
    return failure();
  if (op->getParentOfType<gpu::LaunchOp>())
    return op.emitOpError("is in a kernel, which cannot launch others: "
                          "expected host code");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  FailureOr<SmallVector<Value>> results =
      TileListBuilder(b, op, batch->op, batch->sequences).emit();
  if (failed(results))
    return failure();
  op->replaceAllUsesWith(*results);
  op.erase();
  return success();
}

LogicalResult TileListConverter::convert(ReadTileOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  IndexBuilder index{b}, narrow{b, b.getI32Type()};
  Value kvHeads = narrow.cast(op.getKvHeads());
  Value row = index.cast(narrow.div(op.getItem(), kvHeads));
  auto load = [&](int64_t column) {
    return index.load(op.getList(), {row, index.constant(column)});
  };
  Value sequence = load(0), tile = load(1);
  op->replaceAllUsesWith(ValueRange{
      sequence, tile, index.cast(narrow.rem(op.getItem(), kvHeads))});
  op.erase();
  return success();
}

LogicalResult TileListConverter::convert(ReadSequenceOp op) {
  FailureOr<Batch> found = findBatch(op);
  if (failed(found))
    return failure();
  auto [batch, sequences] = *found;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  IndexBuilder index{b};
  // The rows past the last sequence are no queries: as none is in use, none of
  // them sees a key, and no query sees the keys there.
  Value s = op.getSequence();
  PackedRows q = emitPackedRows(index, batch.getCuQ(), s, batch.getTq());
  PackedRows k = emitKeyRows(index, batch, s);
  Value zero = index.constant(0);
  auto used = [&, &sequences = sequences](Value list, Value rows) {
    return emitUsed(index, list, s, sequences, rows);
  };
  bool isPaged = static_cast<bool>(batch.getBlockTable());
  Value qRows = index.sub(q.end, q.begin);
  Value qUsed = index.select(index.less(s, sequences),
                             used(batch.getSequsedQ(), qRows), zero);
  Value kRows = index.sub(k.end, k.begin);
  Value kUsed = used(batch.getSequsedK(), isPaged ? zero : kRows);
  SmallVector<Value> results = {q.begin, qRows, qUsed, isPaged ? s : k.begin,
                                kRows,   kUsed};
  if (op.getOffset())
    results.push_back(used(batch.getQOffset(), zero));
  op->replaceAllUsesWith(results);
  op.erase();
  return success();
}

template <typename OpT> LogicalResult TileListConverter::convertAll() {
  SmallVector<OpT> ops;
  module.walk([&](OpT op) { ops.push_back(op); });
  for (OpT op : ops)
    if (failed(convert(op)))
      return failure();
  return success();
}

LogicalResult TileListConverter::convert() {
  // Lists first: what their weights read is in their kernels then.
  if (failed(convertAll<ListTilesOp>()) || failed(convertAll<ReadTileOp>()) ||
      failed(convertAll<ReadSequenceOp>()))
    return failure();
  module.walk([](BatchOp batch) {
    if (batch->use_empty())
      batch.erase();
  });
  return success();
}

namespace {
struct ConvertTileListsToGPU
    : varlen::impl::ConvertTileListsToGPUBase<ConvertTileListsToGPU> {
  void runOnOperation() override {
    if (failed(TileListConverter(getOperation()).convert()))
      signalPassFailure();
  }
};
} // namespace
