//===- VarlenToCPU.cpp - Tile loops to loops of a CPU ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadSums.h"
#include "QueryLoopConverter.h"
#include "SequenceTileConverter.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"
#include "varlen/Support/MergeConstants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTVARLENTOCPU
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Rows of a work tile of keys that no item has.
static constexpr int64_t kKeysAtOnce = 1024;

/// The element type of the rows that the step of a loop reads; without a step
/// that of the first values that are read.
static FloatType getElement(TileLoop loop) {
  if (loop.step)
    return cast<FloatType>(
        elementOf(StepFactors::getSource(loop.step.getFactors().front())));
  for (auto read : loop.body->getOps<ReadOp>())
    return cast<FloatType>(getElementTypeOrSelf(read.getResult(0)));
  return Float32Type::get(loop.tiles.getContext());
}

namespace {
/// Converts the loops over tiles of one batch.
class BatchConverter {
public:
  BatchConverter(const BatchLoops &found, OpBuilder &builder)
      : found(found), batch(found.batch), b(batch.getLoc(), builder), index{b},
        queries{batch.getCuQ(), batch.getSequsedQ(), batch.getTq()},
        keys{batch.getCuK(), batch.getSequsedK(), batch.getTk()} {}

  LogicalResult convert();

private:
  /// One side of the batch.
  struct Side {
    Value cu, used, rows;
  };

  /// `count`, or 0 if an extent breaks a rule: then there is nothing to be
  /// done.
  Value unlessWrong(Value count) {
    return wrong ? index.select(wrong, index.constant(0), count) : count;
  }
  void emitScratch(RowsOp rows);
  /// A list of tiles of `size` rows of one side.
  Value emitList(const Side &rows, const Side &others, Value offset,
                 Value kvHeads, Value group, MaskAttrInterface mask,
                 int64_t size);
  /// The lanes of the first loop of the batch that has a schedule.
  int64_t getLanes() {
    for (ForTilesOp loop : found.loops)
      if (auto schedule =
              loop->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName))
        return schedule.getLanes();
    return 1;
  }
  Value emitHeads() { return index.mul(batch.getKvHeads(), batch.getGroup()); }
  LogicalResult convert(ForTilesOp loop);
  void convertQueries(const TileLoopForms &forms, const CPUTileBuilder &common);
  void convertSequences(TileLoop loop, const CPUTileBuilder &common);
  LogicalResult convertHeads(ForTilesOp loop);

  const BatchLoops &found;
  BatchOp batch;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
  Side queries, keys;
  /// Whether an extent breaks a rule; null if none can.
  Value wrong;
  SmallVector<Value> lists;
  RowScratchMap scratch;
};
} // namespace

void BatchConverter::emitScratch(RowsOp rows) {
  // A panel of the last row may end behind it.
  int64_t ahead = 0;
  for (ForTilesOp loop : found.loops)
    if (auto schedule = loop->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName))
      ahead = std::max(ahead, schedule.getPanelSize());
  RowsType type = rows.getType();
  RowScratch &memory = scratch[rows.getRows()];
  memory.group = batch.getGroup();
  Value columns = index.add(index.mul(batch.getTq(), batch.getGroup()), ahead);
  for (int64_t i = 0; i < type.getColumns(); ++i)
    memory.memory.push_back(memref::AllocOp::create(
        b,
        MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                        type.getElement()),
        ValueRange{batch.getKvHeads(), columns},
        /*alignment=*/b.getI64IntegerAttr(64)));
}

Value BatchConverter::emitList(const Side &rows, const Side &others,
                               Value offset, Value kvHeads, Value group,
                               MaskAttrInterface mask, int64_t size) {
  auto type = MemRefType::get({ShapedType::kDynamic, WorkTilesOp::NumColumns},
                              b.getI64Type());
  lists.push_back(WorkTilesOp::create(
      b, type, rows.cu, others.cu, rows.used, others.used, offset,
      batch.getBlockTable(), batch.getNumPages(), batch.getPageRows(),
      rows.rows, others.rows, unlessWrong(kvHeads), group, mask, size));
  return lists.back();
}

void BatchConverter::convertQueries(const TileLoopForms &forms,
                                    const CPUTileBuilder &common) {
  TileLoop loop = forms.many;
  // Without keys all heads of a token come one after the other, as in memory.
  Value kvHeads = batch.getKvHeads(), group = batch.getGroup();
  if (!loop.blocks) {
    group = emitHeads();
    kvHeads = index.constant(1);
  }
  Value list = emitList(queries, keys, batch.getQOffset(), kvHeads, group,
                        batch.getMask(), loop.tiles.getTileType().getSize());
  QueryLoopConverter(forms, common).emit(list, group);
}

void BatchConverter::convertSequences(TileLoop loop,
                                      const CPUTileBuilder &common) {
  SequenceTileConverter converter(loop, common);
  Value ofKeys = emitList(keys, queries, /*offset=*/Value(), batch.getKvHeads(),
                          index.constant(1), MaskAttr::getFull(b.getContext()),
                          kKeysAtOnce);
  converter.emitUnseenKeys(ofKeys);
  Value items = emitList(queries, keys, batch.getQOffset(), batch.getKvHeads(),
                         batch.getGroup(), batch.getMask(),
                         std::numeric_limits<int64_t>::max());
  converter.emit(items);
}

LogicalResult BatchConverter::convertHeads(ForTilesOp loop) {
  FailureOr<SumRowsOp> sum = findHeadSum(loop);
  if (failed(sum))
    return failure();
  if (lists.empty())
    return loop.emitOpError(
        "expected a loop over the rows of the heads before");
  // Rows without a tile: cu_seqlens are bad, and nothing is written.
  Value zero = index.constant(0);
  Value tiles = index.dim(lists.front(), 0);
  Value isGood = index.either(index.less(zero, tiles),
                              index.lessEqual(batch.getTq(), zero));
  Value heads = index.select(isGood, unlessWrong(emitHeads()), zero);
  if (auto terms = scratch.find(sum->getRows()); terms != scratch.end())
    emitScratchSums(b, *sum, heads, batch.getTq(), terms->second);
  else
    emitTableSums(b, *sum, heads, batch.getTq(), getLanes());
  return success();
}

LogicalResult BatchConverter::convert(ForTilesOp loop) {
  Axis axis = loop.getTileType().getAxis();
  if (axis == Axis::Heads)
    return convertHeads(loop);
  auto schedule = loop->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
  if (!schedule)
    return loop.emitOpError("expected a #varlen.cpu_schedule under ")
           << kScheduleAttrName;
  FailureOr<TileLoopForms> forms = verifyTileLoop(loop, schedule);
  if (failed(forms))
    return failure();
  ImplicitLocOpBuilder builder(loop.getLoc(), b);
  CPUTileBuilder common(builder, schedule, getElement(forms->many), scratch,
                        {batch.getBlockTable(), batch.getPageRows()});
  if (axis == Axis::Sequences)
    convertSequences(forms->many, common);
  else
    convertQueries(*forms, common);
  return success();
}

LogicalResult BatchConverter::convert() {
  b.setInsertionPointAfter(batch);
  if (batch.getRule()) {
    FailureOr<Value> report = emitExtentReport(
        b, batch, batch.getRule(), batch.getValue(), batch.getBound());
    if (failed(report))
      return failure();
    wrong = *report;
  }
  for (RowsOp op : found.rows)
    emitScratch(op);
  for (ForTilesOp loop : found.loops) {
    b.setInsertionPoint(loop);
    if (failed(convert(loop)))
      return failure();
  }
  for (RowsOp op : found.rows)
    for (Value buffer : scratch[op.getRows()].memory)
      memref::DeallocOp::create(b, buffer);
  for (Value list : lists)
    memref::DeallocOp::create(b, list);
  return success();
}

namespace {
struct ConvertVarlenToCPU
    : varlen::impl::ConvertVarlenToCPUBase<ConvertVarlenToCPU> {
  void runOnOperation() override {
    SetVector<FunctionOpInterface> functions;
    getOperation()->walk([&](BatchOp batch) {
      if (auto function = batch->getParentOfType<FunctionOpInterface>())
        functions.insert(function);
    });
    FailureOr<unsigned> loops = convertTileLoops(
        getOperation(), [](const BatchLoops &found, OpBuilder &builder) {
          return BatchConverter(found, builder).convert();
        });
    if (failed(loops))
      return signalPassFailure();
    numConverted += *loops;
    for (FunctionOpInterface function : functions)
      mergeConstants(function);
  }
};
} // namespace
