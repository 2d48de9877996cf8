//===- ConvertVarlenToRuntime.cpp - Work lists from the runtime -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cstddef>

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTVARLENTORUNTIME
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

// A row of the list is a varlen_work_tile.
static_assert(offsetof(varlen_work_tile, q_row) == 8 * WorkTilesOp::QRow &&
              offsetof(varlen_work_tile, first) == 8 * WorkTilesOp::First &&
              offsetof(varlen_work_tile, rows) == 8 * WorkTilesOp::Rows &&
              offsetof(varlen_work_tile, kv_head) == 8 * WorkTilesOp::KvHead &&
              offsetof(varlen_work_tile, k_row) == 8 * WorkTilesOp::KRow &&
              offsetof(varlen_work_tile, k_rows) == 8 * WorkTilesOp::KRows &&
              offsetof(varlen_work_tile, queries) == 8 * WorkTilesOp::Queries &&
              offsetof(varlen_work_tile, offset) == 8 * WorkTilesOp::Offset &&
              offsetof(varlen_work_tile, k_begin) == 8 * WorkTilesOp::KBegin &&
              offsetof(varlen_work_tile, k_end) == 8 * WorkTilesOp::KEnd &&
              sizeof(varlen_work_tile) == 8 * WorkTilesOp::NumColumns);
// One of work items is a varlen_work_item, which begins with a tile.
static_assert(offsetof(varlen_work_item, tile) == 0 &&
              offsetof(varlen_work_item, kind) == 8 * SplitTilesOp::Kind &&
              offsetof(varlen_work_item, few) == 8 * SplitTilesOp::Few &&
              offsetof(varlen_work_item, slot) == 8 * SplitTilesOp::Slot &&
              sizeof(varlen_work_item) == 8 * SplitTilesOp::NumColumns &&
              offsetof(varlen_work_items, items) == 0 &&
              offsetof(varlen_work_items, first_merge) == 8 &&
              offsetof(varlen_work_items, slots) == 16 &&
              offsetof(varlen_work_items, few_slots) == 24 &&
              sizeof(varlen_work_items) == 32);
// One of runs is a varlen_append_run.
static_assert(
    offsetof(varlen_append_run, sequence) == 8 * AppendRunsOp::Sequence &&
    offsetof(varlen_append_run, position) == 8 * AppendRunsOp::Position &&
    offsetof(varlen_append_run, row) == 8 * AppendRunsOp::Row &&
    offsetof(varlen_append_run, rows) == 8 * AppendRunsOp::Rows &&
    offsetof(varlen_append_run, page) == 8 * AppendRunsOp::Page &&
    offsetof(varlen_append_run, page_row) == 8 * AppendRunsOp::PageRow &&
    sizeof(varlen_append_run) == 8 * AppendRunsOp::NumColumns);

namespace {

/// The functions of a module that say to the runtime what a mask does.
class MaskFunctions {
public:
  explicit MaskFunctions(ModuleOp module) : symbols(module) {}

  /// A varlen_mask_fn.
  func::FuncOp get(Location loc, MaskAttrInterface mask);

private:
  SymbolTable symbols;
  DenseMap<MaskAttrInterface, func::FuncOp> functions;
};

/// Turns an operation that makes a list of work into a call of the runtime.
class ListLowering {
protected:
  explicit ListLowering(Operation *op)
      : op(op), b(op->getLoc(), op), converter(op->getContext()),
        pointer(LLVM::LLVMPointerType::get(op->getContext())) {}

  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64);
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(b, b.getI64Type(), index);
  }
  Value makeContiguous(Value list);
  void pushList(Value list, bool isOptional);
  /// The address, or another one if that is null.
  Value notNull(Value address);
  /// Adds address, extents and row stride of a table of pages.
  void pushTable(Value table, bool isOptional);
  /// Adds the address of a null pointer that the runtime may replace.
  Value pushResult();
  /// The address of the first element of a list.
  Value addressOf(Value list);
  /// Adds the address of `words` words of memory that the runtime writes to.
  Value pushResultMemory(int64_t words);
  /// What a function of the runtime returns.
  FailureOr<Value> call(StringRef name, ValueRange arguments, Type result);
  /// The number of rows that the function returns: none if that is negative.
  FailureOr<Value> call(StringRef name);
  /// A memref of that type, `count` rows of columns at `rows`.
  Value wrap(MemRefType type, Value rows, Value count);
  /// An error if memory of the runtime cannot be the result of that type.
  LogicalResult verifyResult(MemRefType type, int64_t columns);

  Operation *op;
  ImplicitLocOpBuilder b;
  LLVMTypeConverter converter;
  Type pointer;
  SmallVector<Value> arguments;
  /// Contiguous copies, to be freed after the call.
  SmallVector<Value> copies;
};

/// varlen.work_tiles.
class WorkTilesLowering : ListLowering {
public:
  WorkTilesLowering(WorkTilesOp op, MaskFunctions &masks)
      : ListLowering(op), op(op), masks(masks) {}

  LogicalResult lower();

private:
  int64_t getIndexBytes() {
    return op.getCuQ().getType().getElementTypeBitWidth() / 8;
  }
  void pushMask();
  /// Whether the table of pages may be used, an i1.
  FailureOr<Value> checkTable();
  /// The number of tiles.
  FailureOr<Value> count();

  WorkTilesOp op;
  MaskFunctions &masks;
};

/// varlen.split_tiles.
class SplitTilesLowering : ListLowering {
public:
  explicit SplitTilesLowering(SplitTilesOp op) : ListLowering(op), op(op) {}

  LogicalResult lower();

private:
  SplitTilesOp op;
};

/// varlen.append_runs.
class AppendRunsLowering : ListLowering {
public:
  explicit AppendRunsLowering(AppendRunsOp op) : ListLowering(op), op(op) {}

  LogicalResult lower();

private:
  AppendRunsOp op;
};

} // namespace

func::FuncOp MaskFunctions::get(Location loc, MaskAttrInterface mask) {
  func::FuncOp &function = functions[mask];
  if (function)
    return function;
  Builder types(loc.getContext());
  SmallVector<Type> arguments(5, types.getI64Type());
  Type pointer = LLVM::LLVMPointerType::get(loc.getContext());
  arguments.push_back(pointer);
  function = func::FuncOp::create(loc, "mask_bounds",
                                  types.getFunctionType(arguments, {}));
  function.setPrivate();
  symbols.insert(function);
  auto b = ImplicitLocOpBuilder::atBlockBegin(loc, function.addEntryBlock());
  IndexBuilder index{b, b.getI64Type()};
  Value queries = function.getArgument(0), keys = function.getArgument(1);
  SequenceMask sequence(index, mask, queries, keys, function.getArgument(2));
  MaskRange<Value> range = sequence.emitKeysOf(index, function.getArgument(3),
                                               function.getArgument(4), keys);
  Value begin = function.getArgument(5);
  Value end = LLVM::GEPOp::create(b, pointer, b.getI64Type(), begin,
                                  ArrayRef<LLVM::GEPArg>{1});
  LLVM::StoreOp::create(b, range.begin, begin);
  LLVM::StoreOp::create(b, range.end, end);
  func::ReturnOp::create(b);
  return function;
}

//===----------------------------------------------------------------------===//
// What several operations need
//===----------------------------------------------------------------------===//

Value ListLowering::addressOf(Value list) {
  auto type = cast<MemRefType>(list.getType());
  Value descriptor =
      UnrealizedConversionCastOp::create(b, converter.convertType(type), list)
          .getResult(0);
  return MemRefDescriptor(descriptor)
      .bufferPtr(b, op->getLoc(), converter, type);
}

Value ListLowering::pushResultMemory(int64_t words) {
  // In the entry block: a loop around the call must not grow the stack.
  auto function = op->getParentOfType<func::FuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.front());
  arguments.push_back(
      LLVM::AllocaOp::create(b, pointer, b.getI64Type(), i64(words)));
  return arguments.back();
}

/// The runtime reads plain C arrays.
Value ListLowering::makeContiguous(Value list) {
  auto type = cast<MemRefType>(list.getType());
  if (type.isLastDimUnitStride())
    return list;
  auto copyType = MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<Value> sizes;
  if (!type.hasStaticShape())
    sizes.push_back(memref::DimOp::create(b, list, 0));
  Value copy = memref::AllocOp::create(b, copyType, sizes);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value size = memref::DimOp::create(b, list, 0);
  scf::ForOp::create(b, zero, size, one, ValueRange(),
                     [&](OpBuilder &nested, Location loc, Value i, ValueRange) {
                       Value x = memref::LoadOp::create(nested, loc, list, i);
                       memref::StoreOp::create(nested, loc, x, copy, i);
                       scf::YieldOp::create(nested, loc);
                     });
  copies.push_back(copy);
  return copy;
}

/// What is empty may have no address, which would say that there is none: it
/// gets another one, which nothing is read from.
Value ListLowering::notNull(Value address) {
  Value none = LLVM::ZeroOp::create(b, pointer);
  Value isNone =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, address, none);
  Value any = LLVM::IntToPtrOp::create(b, pointer, i64(1));
  return LLVM::SelectOp::create(b, isNone, any, address);
}

/// Adds the address and the length of a list; null and 0 for none.
void ListLowering::pushList(Value list, bool isOptional) {
  if (!list) {
    arguments.push_back(LLVM::ZeroOp::create(b, pointer));
    arguments.push_back(i64(0));
    return;
  }
  list = makeContiguous(list);
  Value address = addressOf(list);
  if (isOptional)
    address = notNull(address);
  arguments.push_back(address);
  arguments.push_back(toI64(memref::DimOp::create(b, list, 0)));
}

void ListLowering::pushTable(Value table, bool isOptional) {
  auto type = cast<MemRefType>(table.getType());
  MemRefDescriptor descriptor(
      UnrealizedConversionCastOp::create(b, converter.convertType(type), table)
          .getResult(0));
  Value address = addressOf(table);
  arguments.append({isOptional ? notNull(address) : address,
                    toI64(memref::DimOp::create(b, table, 0)),
                    toI64(memref::DimOp::create(b, table, 1)),
                    descriptor.stride(b, op->getLoc(), 0)});
}

Value ListLowering::pushResult() {
  Value slot = pushResultMemory(1);
  LLVM::StoreOp::create(b, LLVM::ZeroOp::create(b, pointer), slot);
  return slot;
}

FailureOr<Value> ListLowering::call(StringRef name, ValueRange arguments,
                                    Type result) {
  FailureOr<func::FuncOp> callee =
      getRuntimeFunction(op->getParentOfType<ModuleOp>(), op, name,
                         b.getFunctionType(arguments.getTypes(), result));
  if (failed(callee))
    return failure();
  return func::CallOp::create(b, *callee, arguments).getResult(0);
}

FailureOr<Value> ListLowering::call(StringRef name) {
  FailureOr<Value> count = call(name, arguments, b.getI64Type());
  if (failed(count))
    return failure();
  return Value(arith::MaxSIOp::create(b, *count, i64(0)));
}

Value ListLowering::wrap(MemRefType type, Value rows, Value count) {
  Location loc = op->getLoc();
  MemRefDescriptor descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, rows);
  descriptor.setAlignedPtr(b, loc, rows);
  descriptor.setConstantOffset(b, loc, 0);
  descriptor.setSize(b, loc, 0, count);
  descriptor.setConstantSize(b, loc, 1, type.getDimSize(1));
  descriptor.setConstantStride(b, loc, 0, type.getDimSize(1));
  descriptor.setConstantStride(b, loc, 1, 1);
  return UnrealizedConversionCastOp::create(b, type, Value(descriptor))
      .getResult(0);
}

LogicalResult ListLowering::verifyResult(MemRefType type, int64_t columns) {
  if (type.isDynamicDim(0) && !type.isDynamicDim(1) &&
      type.getLayout().isIdentity())
    return success();
  return op->emitError("expected a result of type memref<?x")
         << columns << "xi64>, got " << type;
}

//===----------------------------------------------------------------------===//
// varlen.work_tiles
//===----------------------------------------------------------------------===//

/// Adds the address of the mask's function; null if every key is seen.
void WorkTilesLowering::pushMask() {
  if (op.getMask().isFull()) {
    arguments.push_back(LLVM::ZeroOp::create(b, pointer));
    return;
  }
  func::FuncOp function = masks.get(op.getLoc(), op.getMask());
  Value address = func::ConstantOp::create(b, function.getFunctionType(),
                                           function.getName());
  arguments.push_back(
      UnrealizedConversionCastOp::create(b, pointer, address).getResult(0));
}

FailureOr<Value> WorkTilesLowering::checkTable() {
  SmallVector<Value> ofTiles = std::exchange(arguments, {});
  pushTable(op.getBlockTable(), /*isOptional=*/false);
  arguments.append({toI64(op.getNumPages()), toI64(op.getPageRows())});
  pushList(op.getSequsedK(), /*isOptional=*/true);
  arguments.push_back(i32(getIndexBytes()));
  SmallVector<Value> ofTable = std::exchange(arguments, std::move(ofTiles));
  FailureOr<Value> isGood =
      call("varlen_check_block_table", ofTable, b.getI32Type());
  if (failed(isGood))
    return failure();
  return Value(
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, *isGood, i32(0)));
}

FailureOr<Value> WorkTilesLowering::count() {
  if (!op.getBlockTable())
    return call("varlen_work_tiles");
  // A table that may not be used has no tiles, and the list no address.
  FailureOr<Value> isGood = checkTable();
  if (failed(isGood))
    return failure();
  auto guarded = scf::IfOp::create(b, b.getI64Type(), *isGood,
                                   /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(b, i64(0));
  b.setInsertionPointToStart(guarded.thenBlock());
  FailureOr<Value> count = call("varlen_work_tiles");
  if (failed(count))
    return failure();
  scf::YieldOp::create(b, *count);
  return guarded.getResult(0);
}

LogicalResult WorkTilesLowering::lower() {
  MemRefType type = op.getTiles().getType();
  if (failed(verifyResult(type, WorkTilesOp::NumColumns)))
    return failure();
  pushList(op.getCuQ(), /*isOptional=*/false);
  if (op.getCuK()) {
    pushList(op.getCuK(), /*isOptional=*/false);
  } else {
    // Keys are in pages, which no list that a caller has can say.
    arguments.push_back(LLVM::ZeroOp::create(b, pointer));
    arguments.push_back(i64(-1));
  }
  for (Value list : {op.getSequsedQ(), op.getSequsedK(), op.getQOffset()})
    pushList(list, /*isOptional=*/true);
  arguments.push_back(i32(getIndexBytes()));
  for (Value extent : {op.getTq(), op.getTk(), op.getKvHeads(), op.getGroup()})
    arguments.push_back(toI64(extent));
  arguments.push_back(i64(op.getBlockM()));
  pushMask();

  // The runtime leaves the pointer alone if it refuses the lists; the caller
  // frees it in any case.
  Value slot = pushResult();
  FailureOr<Value> count = this->count();
  if (failed(count))
    return failure();
  Value tiles = wrap(type, LLVM::LoadOp::create(b, pointer, slot), *count);
  for (Value copy : copies)
    memref::DeallocOp::create(b, copy);
  op.replaceAllUsesWith(tiles);
  op.erase();
  return success();
}

LogicalResult SplitTilesLowering::lower() {
  MemRefType type = op.getItems().getType();
  if (failed(verifyResult(type, SplitTilesOp::NumColumns)))
    return failure();
  if (!op.getTiles().getType().getLayout().isIdentity())
    return op.emitError("expected a list of the identity layout, got ")
           << op.getTiles().getType();
  arguments = {addressOf(op.getTiles()),
               toI64(memref::DimOp::create(b, op.getTiles(), 0)),
               toI64(op.getGroup())};
  for (uint64_t number :
       {op.getKvBlock(), op.getFew(), op.getBlocks().value_or(0),
        op.getFewBlocks().value_or(0)})
    arguments.push_back(i64(static_cast<int64_t>(number)));
  Value memory = pushResultMemory(4);
  FailureOr<Value> count = call("varlen_split_tiles");
  if (failed(count))
    return failure();
  SmallVector<Value> results = {
      wrap(type, LLVM::LoadOp::create(b, pointer, memory), *count)};
  for (int32_t word : {1, 2, 3}) {
    Value at = LLVM::GEPOp::create(b, pointer, b.getI64Type(), memory,
                                   ArrayRef<LLVM::GEPArg>{word});
    results.push_back(arith::IndexCastOp::create(
        b, b.getIndexType(), LLVM::LoadOp::create(b, b.getI64Type(), at)));
  }
  op->replaceAllUsesWith(results);
  op.erase();
  return success();
}

LogicalResult AppendRunsLowering::lower() {
  MemRefType type = op.getRuns().getType();
  if (failed(verifyResult(type, AppendRunsOp::NumColumns)))
    return failure();
  pushList(op.getCu(), /*isOptional=*/false);
  pushList(op.getSequsedK(), /*isOptional=*/false);
  int64_t indexBytes = op.getCu().getType().getElementTypeBitWidth() / 8;
  arguments.push_back(i32(indexBytes));
  if (op.getBlockTable()) {
    pushTable(op.getBlockTable(), /*isOptional=*/true);
  } else {
    arguments.push_back(LLVM::ZeroOp::create(b, pointer));
    arguments.append(3, i64(0));
  }
  for (Value extent : {op.getKRows(), op.getVRows(), op.getKPages(),
                       op.getVPages(), op.getKPageRows(), op.getVPageRows()})
    arguments.push_back(toI64(extent));
  for (Value extent : op.getScaleExtents())
    arguments.push_back(toI64(extent));
  if (op.getScaleExtents().empty())
    arguments.append(4, i64(-1));
  for (Value positions : {op.getCosRows(), op.getSinRows()})
    arguments.push_back(positions ? toI64(positions) : i64(-1));
  Value slot = pushResult();
  FailureOr<Value> count = call("varlen_append_runs");
  if (failed(count))
    return failure();
  Value runs = wrap(type, LLVM::LoadOp::create(b, pointer, slot), *count);
  for (Value copy : copies)
    memref::DeallocOp::create(b, copy);
  op.replaceAllUsesWith(runs);
  op.erase();
  return success();
}

namespace {

struct ConvertVarlenToRuntime
    : varlen::impl::ConvertVarlenToRuntimeBase<ConvertVarlenToRuntime> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<WorkTilesOp, SplitTilesOp, AppendRunsOp>(op))
        ops.push_back(op);
    });
    MaskFunctions masks(getOperation());
    for (Operation *op : ops) {
      if (!op->getParentOfType<func::FuncOp>()) {
        op->emitError("expected to be in a func.func");
        return signalPassFailure();
      }
      LogicalResult lowered =
          TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](WorkTilesOp tiles) {
                return WorkTilesLowering(tiles, masks).lower();
              })
              .Case([](SplitTilesOp split) {
                return SplitTilesLowering(split).lower();
              })
              .Case([](AppendRunsOp runs) {
                return AppendRunsLowering(runs).lower();
              });
      if (failed(lowered))
        return signalPassFailure();
      ++numConverted;
    }
  }
};

} // namespace
