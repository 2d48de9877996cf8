//===- KernelLowerAccess.cpp - Fragments to and from global memory --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELLOWERACCESS
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

namespace {

/// Where the rows of a rows clause are. What all rows share is computed once,
/// in 64 bits; what differs takes 32, a division among it.
class RowLocator {
public:
  RowLocator(ThreadBuilder &b, RowsOperands rows);

  /// Whether row `i` (i32) exists.
  Value exists(Value i);
  /// Row and head, of type index, of row `i + distance`, if it exists.
  std::pair<Value, Value> locate(Value i, int64_t distance = 0);

private:
  Value divide(Value lhs, Value rhs) {
    return b.createOrFold<arith::DivUIOp>(lhs, rhs);
  }
  Value remainder(Value lhs, Value rhs) {
    return b.createOrFold<arith::RemUIOp>(lhs, rhs);
  }
  Value add(Value lhs, Value rhs) {
    return b.createOrFold<arith::AddIOp>(lhs, rhs);
  }

  ThreadBuilder &b;
  RowsOperands rows;
  bool isGrouped;
  /// Row and head of the first pair.
  Value firstRow, firstHead;
  /// The first pair's place in its group, and the size of that, of type i32.
  Value place, group;
};

} // namespace

RowLocator::RowLocator(ThreadBuilder &b, RowsOperands rows)
    : b(b), rows(rows), isGrouped(!isConstantIntValue(rows.group, 1)) {
  if (!isGrouped) {
    firstRow = add(rows.row, rows.first);
    firstHead = rows.head;
    return;
  }
  auto toI32 = [&](Value value) {
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), value);
  };
  firstRow = add(rows.row, divide(rows.first, rows.group));
  firstHead = b.createOrFold<arith::MulIOp>(rows.head, rows.group);
  place = toI32(remainder(rows.first, rows.group));
  group = toI32(rows.group);
}

Value RowLocator::exists(Value i) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.toIndex(i),
                               rows.valid);
}

std::pair<Value, Value> RowLocator::locate(Value i, int64_t distance) {
  // Last, so that it ends up in the address as a constant.
  if (!isGrouped) {
    Value constant = arith::ConstantIndexOp::create(b, distance);
    return {add(add(firstRow, b.toIndex(i)), constant), firstHead};
  }
  Value pair = b.add(place, b.add(i, distance));
  return {add(firstRow, b.toIndex(divide(pair, group))),
          add(firstHead, b.toIndex(remainder(pair, group)))};
}

/// Calls `body` for each row of a fragment that a thread has: its number within
/// the tile and its position in the fragment.
static void forEachRow(ThreadBuilder &b, VectorType type, int64_t warps,
                       function_ref<void(Value, int64_t, int64_t)> body) {
  Value first = b.firstRow();
  for (int64_t mTile = 0; mTile < type.getDimSize(0); ++mTile)
    for (int64_t half = 0; half < 2; ++half)
      body(b.add(first, 16 * warps * mTile + 8 * half), mTile, half);
}

/// Builds `scf.if condition { body }`.
static void buildIf(ThreadBuilder &b, Value condition,
                    function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Calls `body` for each row of memory whose values a thread has in a
/// statistic, in the order of the elements of `type`: a value plus a constant.
static void forEachStatistic(ThreadBuilder &b, VectorType type, int64_t warps,
                             function_ref<void(Value, int64_t)> body) {
  bool ofRows = isRowStatistic(type);
  Value first = ofRows ? b.firstRow() : b.firstColumn();
  int64_t tiles = type.getDimSize(ofRows ? 0 : 1);
  int64_t tileStep = ofRows ? 16 * warps : 8, step = ofRows ? 8 : 1;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t i = 0; i < 2; ++i)
      body(first, tileStep * tile + step * i);
}

/// The values that memory has for a row.
static SmallVector<Value> loadValues(ThreadBuilder &b, Value mem, Value row,
                                     Value head) {
  auto type = cast<MemRefType>(mem.getType());
  if (type.getRank() == 1)
    return {memref::LoadOp::create(b, mem, head)};
  if (type.getRank() == 2)
    return {memref::LoadOp::create(b, mem, ValueRange{head, row})};
  // All in one where rows are aligned to their size. Memory with the identity
  // layout starts where it was allocated.
  int64_t size = type.getDimSize(2);
  int64_t bytes = size * type.getElementTypeBitWidth() / 8;
  SmallVector<Value> values;
  if (type.getLayout().isIdentity() && size > 1 && bytes <= 16 &&
      llvm::isPowerOf2_64(bytes)) {
    Value all = vector::LoadOp::create(
        b, VectorType::get(size, type.getElementType()), mem,
        ValueRange{head, row, b.toIndex(b.constant(0))},
        /*nontemporal=*/false, llvm::MaybeAlign(bytes));
    for (int64_t i = 0; i < size; ++i)
      values.push_back(vector::ExtractOp::create(b, all, i));
    return values;
  }
  for (int64_t i = 0; i < size; ++i)
    values.push_back(memref::LoadOp::create(
        b, mem, ValueRange{head, row, b.toIndex(b.constant(i))}));
  return values;
}

static void lower(LoadOp op, int64_t warps) {
  ThreadBuilder b(op.getLoc(), OpBuilder(op));
  auto type = cast<VectorType>(op.getValues()[0].getType());
  int64_t extent = isRowStatistic(type) ? 16 * warps * type.getDimSize(0)
                                        : 8 * type.getDimSize(1);
  std::optional<int64_t> valid = getConstantIntValue(op.getValid());
  bool allExist = valid && *valid >= extent;
  RowLocator rows(b, op.getRows());
  SmallVector<SmallVector<Value>> elements(op.getNumResults());
  forEachStatistic(b, type, warps, [&](Value first, int64_t distance) {
    auto load = [&] {
      auto [row, head] = rows.locate(first, distance);
      return loadValues(b, op.getMem(), row, head);
    };
    SmallVector<Value> values;
    if (allExist) {
      values = load();
    } else {
      SmallVector<Type> types(op.getNumResults(), type.getElementType());
      Value exists = rows.exists(b.add(first, distance));
      auto branch = scf::IfOp::create(b, types, exists,
                                      /*withElseRegion=*/true);
      llvm::append_range(values, branch.getResults());
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, load());
      b.setInsertionPointToStart(branch.elseBlock());
      SmallVector<Value> otherwise(op.getNumResults(), op.getOtherwise());
      scf::YieldOp::create(b, otherwise);
    }
    for (auto [list, value] : llvm::zip_equal(elements, values))
      list.push_back(value);
  });
  for (auto [value, list] : llvm::zip_equal(op.getValues(), elements))
    value.replaceAllUsesWith(
        vector::FromElementsOp::create(b, type, list).getResult());
  op.erase();
}

/// Whether every row starts at an even element, so that pairs of columns are
/// aligned. Memory with the identity layout starts where it was allocated.
static bool hasAlignedPairs(MemRefType mem) {
  if (mem.getLayout().isIdentity())
    return mem.getDimSize(2) % 2 == 0;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(mem.getStridesAndOffset(strides, offset)) &&
         llvm::all_of(
             ArrayRef{offset, strides[0], strides[1]}, [](int64_t distance) {
               return ShapedType::isStatic(distance) && distance % 2 == 0;
             });
}

/// Stores the two columns of n-tile `nTile` that a thread has of one row.
static void storePair(ThreadBuilder &b, Value pair, Value mem, Value row,
                      Value head, int64_t nTile) {
  auto type = cast<MemRefType>(mem.getType());
  unsigned elementBits = type.getElementTypeBitWidth();
  int64_t columns = type.getDimSize(2);
  Value column = b.add(b.firstColumn(), 8 * nTile);
  bool isWhole = 8 * (nTile + 1) <= columns;
  auto isInside = [&](Value column) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                                 b.constant(columns));
  };
  if (hasAlignedPairs(type)) {
    auto store = [&] {
      vector::StoreOp::create(
          b, pair, mem, ValueRange{row, head, b.toIndex(column)},
          /*nontemporal=*/false, llvm::MaybeAlign(2 * elementBits / 8));
    };
    isWhole ? store() : buildIf(b, isInside(column), store);
    return;
  }
  // Elements go through branches as bits: a host that runs the kernel may have
  // no registers for narrow floats.
  auto bits = VectorType::get(2, b.getIntegerType(elementBits));
  Value words = vector::BitCastOp::create(b, bits, pair);
  for (int64_t i = 0; i < 2; ++i) {
    Value at = b.add(column, i);
    auto store = [&] {
      Value element = vector::ExtractOp::create(b, words, i);
      element = arith::BitcastOp::create(b, type.getElementType(), element);
      memref::StoreOp::create(b, element, mem,
                              ValueRange{row, head, b.toIndex(at)});
    };
    isWhole ? store() : buildIf(b, isInside(at), store);
  }
}

static void lower(StoreOp op, int64_t warps) {
  ThreadBuilder b(op.getLoc(), OpBuilder(op));
  auto type = cast<VectorType>(op.getValue().getType());
  MemRefType mem = op.getMem().getType();
  bool isStatistic = mem.getRank() == 2;
  RowLocator rows(b, op.getRows());
  // The four lanes of a row have the same statistic; the first writes it.
  Value isFirst;
  if (isStatistic)
    isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                    b.bitAnd(b.lane(), 3), b.constant(0));
  forEachRow(b, type, warps, [&](Value i, int64_t mTile, int64_t half) {
    Value condition = rows.exists(i);
    if (isStatistic)
      condition = arith::AndIOp::create(b, condition, isFirst);
    buildIf(b, condition, [&] {
      auto [row, head] = rows.locate(i);
      if (isStatistic) {
        Value element = vector::ExtractOp::create(
            b, op.getValue(), ArrayRef<int64_t>{mTile, 0, half, 0});
        memref::StoreOp::create(b, element, op.getMem(), ValueRange{head, row});
        return;
      }
      for (int64_t nTile = 0;
           nTile < type.getDimSize(1) && 8 * nTile < mem.getDimSize(2);
           ++nTile) {
        Value pair = vector::ExtractOp::create(
            b, op.getValue(), ArrayRef<int64_t>{mTile, nTile, half});
        storePair(b, pair, op.getMem(), row, head, nTile);
      }
    });
  });
  op.erase();
}

namespace {
struct KernelLowerAccess
    : kernel::impl::KernelLowerAccessBase<KernelLowerAccess> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<LoadOp, StoreOp>(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    FailureOr<int64_t> warps = getWarps(getOperation());
    if (failed(warps))
      return signalPassFailure();
    for (Operation *op : ops) {
      Type value = op->getOperand(0).getType();
      if (auto load = dyn_cast<LoadOp>(op))
        value = load.getValues()[0].getType();
      if (!isa<VectorType>(value)) {
        op->emitOpError("expected a fragment, which kernel-distribute makes, "
                        "got ")
            << value;
        return signalPassFailure();
      }
      if (auto load = dyn_cast<LoadOp>(op))
        lower(load, *warps);
      else
        lower(cast<StoreOp>(op), *warps);
    }
  }
};
} // namespace
