//===- VarlenToKernel.cpp - Tile loops to kernels of a GPU ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AppendKernels.h"
#include "TileLoopConverter.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"
#include "varlen/Support/MergeConstants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTVARLENTOKERNEL
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Null if there is none.
static GPUScheduleAttr getSchedule(ForTilesOp loop) {
  return loop->getAttrOfType<GPUScheduleAttr>(kScheduleAttrName);
}

namespace {
/// Converts the loops over tiles of one batch.
class BatchConverter {
public:
  BatchConverter(const BatchLoops &found, OpBuilder &builder)
      : found(found), batch(found.batch), b(batch.getLoc(), builder), index{b} {
  }

  LogicalResult convert();

private:
  struct List {
    TileType type;
    std::optional<KeyParts> parts;
    ListTilesOp op;
    bool isOf(ForTilesOp loop) const {
      return type == loop.getTileType() && parts == getKeyParts(loop);
    }
  };

  /// Whether the loops are what a GPU has code for.
  LogicalResult verify();
  LogicalResult emitLists();
  LogicalResult emitList(List &list);
  void emitScratch(RowsOp rows);
  LogicalResult emitSums(ForTilesOp loop);
  GPUPartStates emitStates(ForTilesOp loop, List &list);
  LogicalResult convert(ForTilesOp loop);
  List &getList(ForTilesOp loop);
  /// How many of the first loops, so many, are over the tiles of a list.
  int64_t countLoops(const List &list, size_t first) {
    return llvm::count_if(ArrayRef(found.loops).take_front(first),
                          [&](ForTilesOp loop) { return list.isOf(loop); });
  }

  const BatchLoops &found;
  BatchOp batch;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
  /// The first has checked cu_seqlens for the others.
  SmallVector<List> lists;
  Value sequences;
  IRMapping scratch;
  /// What the tiles of one loop add up; null if none does.
  GPUOrderedSums sums;
};
} // namespace

LogicalResult BatchConverter::verify() {
  if (batch->getParentOfType<gpu::LaunchOp>())
    return batch.emitOpError("is in a kernel, which cannot launch others: "
                             "expected attention in host code");
  for (ForTilesOp loop : found.loops) {
    Axis axis = loop.getTileType().getAxis();
    if (axis == Axis::Keys && batch.getBlockTable())
      return loop.emitOpError("expected tiles of queries in a batch with a "
                              "block_table, got ")
             << loop.getTileType();
    if (axis == Axis::Sequences)
      return loop.emitOpError("expected tiles of queries, keys or heads on a "
                              "GPU, got ")
             << loop.getTileType();
    // A row of a table is summed by those who own its query, or its key.
    WalkResult result = loop.walk([&](StepOpInterface step) {
      for (BlockArgument table : step.getGradientTables()) {
        bool ofKeys = isOfKeys(table);
        if (ofKeys == (axis == Axis::Keys))
          continue;
        step->emitOpError("expected gradients of tables")
            << (ofKeys ? " of keys" : "") << " in a loop over tiles of "
            << (ofKeys ? "keys" : "queries") << " on a GPU, got tiles "
            << loop.getTileType();
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    if (axis != Axis::Heads && !getSchedule(loop))
      return loop.emitOpError("expected a #varlen.gpu_schedule under ")
             << kScheduleAttrName;
  }
  return success();
}

BatchConverter::List &BatchConverter::getList(ForTilesOp loop) {
  // Heads have no list: any says whether cu_seqlens are good.
  if (loop.getTileType().getAxis() == Axis::Heads)
    return lists.front();
  return *llvm::find_if(lists,
                        [&](const List &list) { return list.isOf(loop); });
}

/// The list of tiles; if one of their loops hides keys, that one says how long
/// tiles take.
LogicalResult BatchConverter::emitList(List &list) {
  Value checked = lists.empty() ? Value() : lists.front().op.getCount();
  int64_t loops = countLoops(list, found.loops.size());
  list.op = ListTilesOp::create(b, list.type, batch.getBatch(), loops,
                                list.parts, checked);
  for (ForTilesOp loop : found.loops) {
    if (!list.isOf(loop))
      continue;
    TileLoopContext context{batch, sequences, /*list=*/{}, /*number=*/0,
                            scratch};
    TileLoopConverter converter(b, loop, getSchedule(loop), context);
    if (failed(converter.verify()))
      return failure();
    if (getOrderedSum(loop))
      list.op.setLastFirst(true);
    std::optional<bool> byHead = converter.weighsByHead();
    if (!byHead)
      continue;
    if (list.op.getLastFirst())
      return loop.emitOpError("expected tiles that are added up in their order "
                              "without a score region that hides keys");
    // Parts are of one length, whatever of them is hidden.
    if (list.parts)
      return loop.emitOpError("expected keys in one part beside a score region "
                              "that hides keys on a GPU");
    list.op.setByHead(*byHead);
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> types(3, b.getIndexType());
    SmallVector<Location> locations(3, b.getLoc());
    Block *body =
        b.createBlock(&list.op.getWeights(), /*insertPt=*/{}, types, locations);
    Value work = converter.emitWeight(
        {body->getArgument(0), body->getArgument(1), body->getArgument(2)});
    YieldOp::create(b, work);
    break;
  }
  return success();
}

LogicalResult BatchConverter::emitLists() {
  for (ForTilesOp loop : found.loops) {
    if (loop.getTileType().getAxis() == Axis::Heads ||
        llvm::any_of(lists, [&](const List &list) { return list.isOf(loop); }))
      continue;
    List list{loop.getTileType(), getKeyParts(loop), /*op=*/{}};
    if (failed(emitList(list)))
      return failure();
    lists.push_back(list);
  }
  if (lists.empty())
    return batch.emitOpError(
        "expected a loop over tiles of queries or keys, got none");
  return success();
}

/// Hq x T x values. A block of rows that are read at the end of a sequence may
/// read on in what comes behind.
void BatchConverter::emitScratch(RowsOp rows) {
  int64_t ahead = 0;
  for (Operation *user : rows->getUsers())
    if (auto read = dyn_cast<ReadOp>(user))
      if (int64_t size = read.getTile().getType().getSize();
          ShapedType::isStatic(size))
        ahead = std::max(ahead, size);
  Value heads = index.mul(batch.getKvHeads(), batch.getGroup());
  std::optional<int64_t> count = getConstantIntValue(heads);
  SmallVector<Value> extents;
  if (!count)
    extents.push_back(heads);
  extents.push_back(index.add(batch.getTq(), ahead));
  RowsType type = rows.getType();
  Value memory = memref::AllocOp::create(
      b,
      MemRefType::get({count.value_or(ShapedType::kDynamic),
                       ShapedType::kDynamic, type.getColumns()},
                      type.getElement()),
      extents);
  scratch.map(rows.getRows(), memory);
}

/// Memory of all blocks of queries of a loop of keys: as many as rows have room
/// for, and one of each sequence that is not whole.
LogicalResult BatchConverter::emitSums(ForTilesOp loop) {
  AddInOrderOp add = getOrderedSum(loop);
  if (!add)
    return success();
  if (sums.sums || loop == found.loops.front())
    return loop.emitOpError("expected one loop that adds up tiles in their "
                            "order, behind another loop");
  auto part = cast<RankedTensorType>(add.getPart().getType());
  Value slots = index.add(index.div(batch.getTq(), part.getDimSize(0)),
                          index.add(sequences, 1));
  slots = index.mul(slots, index.mul(batch.getKvHeads(), batch.getGroup()));
  auto allocate = [&](Type element, int64_t numbers) -> Value {
    return memref::AllocOp::create(
        b, MemRefType::get({ShapedType::kDynamic}, element),
        index.mul(slots, numbers));
  };
  sums = {allocate(b.getF32Type(), part.getNumElements()),
          allocate(b.getI32Type(), getSchedule(loop).getWarps())};
  return success();
}

GPUPartStates BatchConverter::emitStates(ForTilesOp loop, List &list) {
  Value items = index.mul(index.dim(list.op.getList(), 0), batch.getKvHeads());
  Value rows = index.mul(items, list.parts->pairs);
  auto parts = *loop.getBody()->getOps<ForPartsOp>().begin();
  GPUPartStates states;
  int64_t numbers = 0;
  Type compute;
  for (Value value : parts.getStates()) {
    auto type = cast<RankedTensorType>(value.getType());
    compute = type.getElementType();
    Value memory;
    if (int64_t columns = type.getDimSize(1); columns == 1)
      ++numbers;
    else
      memory = memref::AllocOp::create(
          b, MemRefType::get({ShapedType::kDynamic, 1, columns}, compute),
          rows);
    states.tiles.push_back(memory);
  }
  if (numbers > 0)
    states.numbers = memref::AllocOp::create(
        b, MemRefType::get({1, ShapedType::kDynamic, numbers}, compute), rows);
  return states;
}

LogicalResult BatchConverter::convert(ForTilesOp loop) {
  size_t place = llvm::find(found.loops, loop) - found.loops.begin();
  List &list = getList(loop);
  bool isOfHeads = loop.getTileType().getAxis() == Axis::Heads;
  int64_t number = isOfHeads ? 0 : countLoops(list, place);
  TileLoopContext context{batch, sequences, list.op, number, scratch};
  if (isOfHeads)
    return convertHeadSums(b, loop, context);
  GPUPartStates states;
  if (list.parts) {
    states = emitStates(loop, list);
    context.states = &states;
  }
  if (getOrderedSum(loop))
    context.sums = &sums;
  else if (loop == found.loops.front())
    context.cleared = sums.counters;
  TileLoopConverter converter(b, loop, getSchedule(loop), context);
  if (failed(converter.verify()) || failed(converter.emit()))
    return failure();
  states.tiles.push_back(states.numbers);
  for (Value memory : states.tiles)
    if (memory)
      memref::DeallocOp::create(b, memory);
  return success();
}

LogicalResult BatchConverter::convert() {
  if (failed(verify()))
    return failure();
  b.setInsertionPointAfter(batch);
  sequences = emitSequenceCount(index, batch);
  if (failed(emitLists()))
    return failure();
  for (RowsOp op : found.rows)
    emitScratch(op);
  for (ForTilesOp loop : found.loops)
    if (failed(emitSums(loop)))
      return failure();
  for (ForTilesOp loop : found.loops) {
    b.setInsertionPoint(loop);
    if (failed(convert(loop)))
      return failure();
  }
  b.setInsertionPointAfter(found.loops.back());
  for (RowsOp op : found.rows)
    memref::DeallocOp::create(b, scratch.lookup(op.getRows()));
  for (Value memory : {sums.sums, sums.counters})
    if (memory)
      memref::DeallocOp::create(b, memory);
  for (const List &list : lists)
    for (Value memory : list.op->getResults())
      memref::DeallocOp::create(b, memory);
  return success();
}

namespace {
struct ConvertVarlenToKernel
    : varlen::impl::ConvertVarlenToKernelBase<ConvertVarlenToKernel> {
  void runOnOperation() override {
    SmallVector<AppendOp> appends;
    getOperation()->walk([&](AppendOp op) { appends.push_back(op); });
    for (AppendOp op : appends) {
      if (failed(AppendKernels(op).emit()))
        return signalPassFailure();
      ++numAppends;
    }
    llvm::SetVector<FunctionOpInterface> functions;
    FailureOr<unsigned> loops = convertTileLoops(
        getOperation(), [&](const BatchLoops &found, OpBuilder &builder) {
          functions.insert(found.batch->getParentOfType<FunctionOpInterface>());
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
