//===- KernelLowerAccess.cpp - Fragments to and from global memory --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "MemRefAddress.h"
#include "RowLocator.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

/// Calls `body` for each row of a fragment that a thread has: its number within
/// the tile and its position in the fragment.
static void forEachRow(ThreadBuilder &b, VectorType type, int64_t warps,
                       function_ref<void(Value, int64_t, int64_t)> body) {
  Value first = b.firstRow();
  for (int64_t mTile = 0; mTile < type.getDimSize(0); ++mTile)
    for (int64_t half = 0; half < 2; ++half)
      body(b.add(first, 16 * warps * mTile + 8 * half), mTile, half);
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

/// Whether the values that memory of rank 3 has of a row are accessed all in
/// one: rows are aligned to their size. Memory with the identity layout starts
/// where it was allocated.
static bool isAccessedWhole(MemRefType type) {
  int64_t size = type.getDimSize(2);
  int64_t bytes = size * type.getElementTypeBitWidth() / 8;
  return type.getLayout().isIdentity() && size > 1 && bytes <= 16 &&
         llvm::isPowerOf2_64(bytes);
}

static llvm::MaybeAlign alignmentOf(VectorType type) {
  return llvm::MaybeAlign(type.getNumElements() *
                          type.getElementTypeBitWidth() / 8);
}

/// The values that memory has for a row.
static SmallVector<Value> loadValues(ThreadBuilder &b, Value mem, Value row,
                                     Value head) {
  auto type = cast<MemRefType>(mem.getType());
  if (type.getRank() == 1)
    return {memref::LoadOp::create(b, mem, head)};
  if (type.getRank() == 2)
    return {memref::LoadOp::create(b, mem, ValueRange{head, row})};
  int64_t size = type.getDimSize(2);
  SmallVector<Value> values;
  if (isAccessedWhole(type)) {
    auto vector = VectorType::get(size, type.getElementType());
    Value all = vector::LoadOp::create(
        b, vector, mem, ValueRange{head, row, b.toIndex(b.constant(0))},
        /*nontemporal=*/false, alignmentOf(vector));
    for (int64_t i = 0; i < size; ++i)
      values.push_back(vector::ExtractOp::create(b, all, i));
    return values;
  }
  for (int64_t i = 0; i < size; ++i)
    values.push_back(memref::LoadOp::create(
        b, mem, ValueRange{head, row, b.toIndex(b.constant(i))}));
  return values;
}

/// The same of a row of pages.
static SmallVector<Value> loadPagedValues(ThreadBuilder &b, LoadOp op,
                                          ArrayRef<Value> place) {
  SmallVector<Value> at = llvm::map_to_vector(
      place, [&](Value number) -> Value { return b.toIndex(number); });
  at.push_back(Value());
  SmallVector<Value> values;
  for (int64_t i = 0; i < op.getMem().getType().getShape().back(); ++i) {
    at.back() = b.toIndex(b.constant(i));
    values.push_back(memref::LoadOp::create(b, op.getMem(), at));
  }
  return values;
}

static void storeValues(ThreadBuilder &b, ValueRange values, Value mem,
                        Value row, Value head) {
  auto type = cast<MemRefType>(mem.getType());
  if (type.getRank() == 2) {
    memref::StoreOp::create(b, values[0], mem, ValueRange{head, row});
    return;
  }
  if (isAccessedWhole(type)) {
    auto vector = VectorType::get(values.size(), type.getElementType());
    vector::StoreOp::create(
        b, vector::FromElementsOp::create(b, vector, values), mem,
        ValueRange{head, row, b.toIndex(b.constant(0))},
        /*nontemporal=*/false, alignmentOf(vector));
    return;
  }
  for (auto [i, value] : llvm::enumerate(values))
    memref::StoreOp::create(b, value, mem,
                            ValueRange{head, row, b.toIndex(b.constant(i))});
}

namespace {
/// The two columns of n-tile `nTile` that a thread has of one row, in memory of
/// T x H x D.
class ColumnPair {
public:
  ColumnPair(ThreadBuilder &b, Value mem, Value row, Value head, int64_t nTile)
      : b(b), mem(mem), row(row), head(head),
        column(b.add(b.firstColumn(), 8 * nTile)) {
    auto type = cast<MemRefType>(mem.getType());
    element = type.getElementType();
    bits = b.getIntegerType(element.getIntOrFloatBitWidth());
    columns = type.getDimSize(2);
    isWhole = 8 * (nTile + 1) <= columns;
    hasAlignedPairs = areRowsAligned(type, 2);
  }

  /// As bits: a host that runs the kernel may have no registers for narrow
  /// floats, which cannot go through branches then. 0 past the last column.
  Value load();
  void store(Value pair);

private:
  SmallVector<Value> at(int64_t distance) {
    return {row, head, b.toIndex(b.add(column, distance))};
  }
  Value isInside(int64_t distance) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                 b.add(column, distance), b.constant(columns));
  }
  VectorType pairOf(Type type) { return VectorType::get(2, type); }

  ThreadBuilder &b;
  Value mem, row, head, column;
  Type element, bits;
  int64_t columns;
  bool isWhole, hasAlignedPairs;
};
} // namespace

Value ColumnPair::load() {
  auto guarded = [&](int64_t distance, Type type, auto load) -> Value {
    if (isWhole)
      return load();
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return emitChoice(
               b, isInside(distance), [&] { return Values{load()}; },
               [&] { return Values{zero}; })
        .front();
  };
  if (hasAlignedPairs)
    return guarded(0, pairOf(bits), [&]() -> Value {
      Value pair = vector::LoadOp::create(b, pairOf(element), mem, at(0),
                                          /*nontemporal=*/false,
                                          alignmentOf(pairOf(element)));
      return vector::BitCastOp::create(b, pairOf(bits), pair);
    });
  SmallVector<Value> both;
  for (int64_t i = 0; i < 2; ++i)
    both.push_back(guarded(i, bits, [&]() -> Value {
      return arith::BitcastOp::create(b, bits,
                                      memref::LoadOp::create(b, mem, at(i)));
    }));
  return vector::FromElementsOp::create(b, pairOf(bits), both);
}

void ColumnPair::store(Value pair) {
  auto guarded = [&](int64_t distance, auto store) {
    if (isWhole)
      store();
    else
      emitIf(b, isInside(distance), store);
  };
  if (hasAlignedPairs)
    return guarded(0, [&] {
      vector::StoreOp::create(b, pair, mem, at(0), /*nontemporal=*/false,
                              alignmentOf(pairOf(element)));
    });
  Value words = vector::BitCastOp::create(b, pairOf(bits), pair);
  for (int64_t i = 0; i < 2; ++i)
    guarded(i, [&] {
      Value word = vector::ExtractOp::create(b, words, i);
      memref::StoreOp::create(b, arith::BitcastOp::create(b, element, word),
                              mem, at(i));
    });
}

/// The rows of a tile.
static Value loadTile(ThreadBuilder &b, LoadOp op, VectorType type,
                      int64_t warps) {
  RowLocator rows(b, op.getRows());
  Type element = type.getElementType();
  auto words =
      VectorType::get(2, b.getIntegerType(element.getIntOrFloatBitWidth()));
  Value none = vector::BitCastOp::create(
      b, words,
      vector::BroadcastOp::create(b, VectorType::get(2, element),
                                  op.getOtherwise()));
  // Columns that memory does not have stay zero.
  int64_t columns = op.getMem().getType().getDimSize(2);
  int64_t tiles =
      std::min<int64_t>(type.getDimSize(1), llvm::divideCeil(columns, 8));
  Value tile = arith::ConstantOp::create(b, b.getZeroAttr(type));
  forEachRow(b, type, warps, [&](Value i, int64_t mTile, int64_t half) {
    ValueRange pairs = emitChoice(
        b, rows.exists(i),
        [&] {
          auto [row, head] = rows.locate(i);
          Values loaded;
          for (int64_t nTile = 0; nTile < tiles; ++nTile)
            loaded.push_back(
                ColumnPair(b, op.getMem(), row, head, nTile).load());
          return loaded;
        },
        [&] { return Values(tiles, none); });
    for (int64_t nTile = 0; nTile < tiles; ++nTile) {
      Value pair = vector::BitCastOp::create(b, VectorType::get(2, element),
                                             pairs[nTile]);
      tile = vector::InsertOp::create(b, pair, tile,
                                      ArrayRef<int64_t>{mTile, nTile, half});
    }
  });
  return tile;
}

static void lower(LoadOp op, int64_t warps) {
  ThreadBuilder b(op.getLoc(), OpBuilder(op));
  auto type = cast<VectorType>(op.getValues()[0].getType());
  if (!isStatistic(type)) {
    op.getValues()[0].replaceAllUsesWith(loadTile(b, op, type, warps));
    return op.erase();
  }
  int64_t extent = isRowStatistic(type) ? 16 * warps * type.getDimSize(0)
                                        : 8 * type.getDimSize(1);
  std::optional<int64_t> valid = getConstantIntValue(op.getValid());
  bool allExist = valid && *valid >= extent;
  RowLocator rows(b, op.getRows());
  SmallVector<SmallVector<Value>> elements(op.getNumResults());
  SmallVector<Value> firstPlace;
  IndexBuilder wide{b, b.getI64Type()};
  if (op.getOnePage())
    firstPlace = locateRow(b, op.getRows(), op.getMem(), wide.constant(0));
  auto locateInPages = [&](Value i) {
    if (!op.getOnePage())
      return locateRow(b, op.getRows(), op.getMem(), wide.cast(i));
    // The row in the page is the second number.
    SmallVector<Value> place = firstPlace;
    place[1] = wide.add(place[1], wide.cast(i));
    return place;
  };
  forEachStatistic(b, type, warps, [&](Value first, int64_t distance) {
    auto load = [&] {
      if (op.getBlockTable())
        return loadPagedValues(b, op, locateInPages(b.add(first, distance)));
      auto [row, head] = rows.locate(first, distance);
      return loadValues(b, op.getMem(), row, head);
    };
    auto otherwise = [&] {
      return Values(op.getNumResults(), op.getOtherwise());
    };
    Values values =
        allExist ? load()
                 : Values(emitChoice(b, rows.exists(b.add(first, distance)),
                                     load, otherwise));
    for (auto [list, value] : llvm::zip_equal(elements, values))
      list.push_back(value);
  });
  for (auto [value, list] : llvm::zip_equal(op.getValues(), elements))
    value.replaceAllUsesWith(
        vector::FromElementsOp::create(b, type, list).getResult());
  op.erase();
}

/// Rows of memory that are columns of the fragment.
static void storeTransposed(ThreadBuilder &b, StoreOp op, int64_t warps) {
  Value fragment = op.getValues().front(), mem = op.getMem();
  auto type = cast<VectorType>(fragment.getType());
  int64_t columns = op.getMem().getType().getDimSize(2);
  RowLocator rows(b, op.getRows());
  for (int64_t nTile = 0; nTile < type.getDimSize(1); ++nTile)
    for (int64_t next = 0; next < 2; ++next) {
      Value i = b.add(b.firstColumn(), 8 * nTile + next);
      emitIf(b, rows.exists(i), [&] {
        RowPlace place = rows.locate(i);
        forEachRow(
            b, type, warps, [&](Value column, int64_t mTile, int64_t half) {
              auto store = [&] {
                Value element = vector::ExtractOp::create(
                    b, fragment, ArrayRef<int64_t>{mTile, nTile, half, next});
                memref::StoreOp::create(
                    b, element, mem,
                    ValueRange{place.row, place.head, b.toIndex(column)});
              };
              if (16 * warps * (mTile + 1) <= columns)
                return store();
              emitIf(b,
                     arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                                           b.constant(columns)),
                     store);
            });
      });
    }
  op.erase();
}

static void lower(StoreOp op, int64_t warps) {
  ThreadBuilder b(op.getLoc(), OpBuilder(op));
  if (op.getTransposed())
    return storeTransposed(b, op, warps);
  auto type = cast<VectorType>(op.getValues().front().getType());
  MemRefType mem = op.getMem().getType();
  bool ofRows = isRowStatistic(type);
  RowLocator rows(b, op.getRows());
  // The four lanes of a row have the same statistic; the first writes it.
  Value isFirst;
  if (ofRows)
    isFirst = b.isFirstOfRow();
  forEachRow(b, type, warps, [&](Value i, int64_t mTile, int64_t half) {
    Value condition = rows.exists(i);
    if (ofRows)
      condition = arith::AndIOp::create(b, condition, isFirst);
    emitIf(b, condition, [&] {
      auto [row, head] = rows.locate(i);
      if (ofRows) {
        SmallVector<Value> elements;
        for (Value value : op.getValues())
          elements.push_back(vector::ExtractOp::create(
              b, value, ArrayRef<int64_t>{mTile, 0, half, 0}));
        return storeValues(b, elements, op.getMem(), row, head);
      }
      for (int64_t nTile = 0;
           nTile < type.getDimSize(1) && 8 * nTile < mem.getDimSize(2);
           ++nTile) {
        Value pair = vector::ExtractOp::create(
            b, op.getValues().front(), ArrayRef<int64_t>{mTile, nTile, half});
        ColumnPair(b, op.getMem(), row, head, nTile).store(pair);
      }
    });
  });
  op.erase();
}

//===----------------------------------------------------------------------===//
// Sums that CTAs share
//===----------------------------------------------------------------------===//

/// Bytes of an access of a thread to its numbers of a sum, and how many these
/// are.
static constexpr int64_t kAccessBytes = 16, kAccessNumbers = 4;

namespace {
/// The turns of a warp at one sum.
class Turns {
public:
  Turns(ThreadBuilder &b, kernel::AddInOrderOp op, int64_t warps)
      : b(b), op(op), index{b},
        isFirstLane(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.lane(),
                                          b.constant(0))),
        counter(advanceBy(
            op.getCounters(),
            index.add(index.mul(op.getSlot(), warps), b.toIndex(b.warp())))) {}

  /// One lane looks; what it has seen is then before what all do.
  void await();
  void pass();

private:
  Value advanceBy(Value memory, Value distance) {
    Value base = getAddress(b, memory);
    Value i = arith::IndexCastOp::create(b, b.getI64Type(), distance);
    return LLVM::GEPOp::create(b, base.getType(), b.getI32Type(), base,
                               ValueRange{i});
  }
  void synchronise() { NVVM::SyncWarpOp::create(b, b.constant(-1)); }

  ThreadBuilder &b;
  kernel::AddInOrderOp op;
  IndexBuilder index;
  Value isFirstLane, counter;
};
} // namespace

void Turns::await() {
  constexpr unsigned kAlignment = 4;
  emitIf(b, isFirstLane, [&] {
    emitWhile(
        b, /*inits=*/{},
        [&](ValueRange) -> Value {
          Value turn = LLVM::LoadOp::create(
              b, b.getI32Type(), counter, kAlignment, /*isVolatile=*/false,
              /*isNonTemporal=*/false, /*isInvariant=*/false,
              /*isInvariantGroup=*/false, LLVM::AtomicOrdering::acquire,
              "device");
          return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, turn,
                                       op.getTurn());
        },
        [](ValueRange) { return Values{}; });
  });
  synchronise();
}

void Turns::pass() {
  constexpr unsigned kAlignment = 4;
  synchronise();
  emitIf(b, isFirstLane, [&] {
    LLVM::StoreOp::create(b, b.add(op.getTurn(), 1), counter, kAlignment,
                          /*isVolatile=*/false, /*isNonTemporal=*/false,
                          /*isInvariantGroup=*/false,
                          LLVM::AtomicOrdering::release, "device");
  });
}

/// Threads have the same numbers of a tile in every CTA, so each adds up its
/// own, beside which those of its neighbours lie.
static void lower(kernel::AddInOrderOp op, int64_t warps) {
  ThreadBuilder b(op.getLoc(), OpBuilder(op));
  IndexBuilder index{b};
  auto type = cast<VectorType>(op.getPart().getType());
  int64_t accesses = type.getNumElements() / kAccessNumbers;
  int64_t threads = warps * kWarpLanes;
  auto access = VectorType::get(kAccessNumbers, b.getF32Type());
  auto rows = VectorType::get({accesses, kAccessNumbers}, b.getF32Type());
  Value first = index.mul(index.add(index.mul(op.getSlot(), accesses * threads),
                                    b.toIndex(b.thread())),
                          kAccessNumbers);
  auto at = [&](int64_t i) {
    return index.add(first, i * threads * kAccessNumbers);
  };
  Turns turns(b, op, warps);
  auto add = [&] {
    turns.await();
    Value sums = arith::ConstantOp::create(b, b.getZeroAttr(rows));
    for (int64_t i = 0; i < accesses; ++i) {
      Value loaded = vector::LoadOp::create(b, access, op.getSums(), at(i),
                                            /*nontemporal=*/false,
                                            llvm::MaybeAlign(kAccessBytes));
      sums = vector::InsertOp::create(b, loaded, sums, i);
    }
    sums = vector::ShapeCastOp::create(b, type, sums);
    return Values{arith::AddFOp::create(b, sums, op.getPart())};
  };
  Value total = emitChoice(
      b, op.getFirst(), [&] { return Values{op.getPart()}; }, add)[0];
  emitIf(
      b, op.getLast(), [] {},
      [&] {
        Value sums = vector::ShapeCastOp::create(b, rows, total);
        for (int64_t i = 0; i < accesses; ++i)
          vector::StoreOp::create(
              b, vector::ExtractOp::create(b, sums, i), op.getSums(), at(i),
              /*nontemporal=*/false, llvm::MaybeAlign(kAccessBytes));
        turns.pass();
      });
  op.replaceAllUsesWith(total);
  op.erase();
}

namespace {
struct KernelLowerAccess
    : kernel::impl::KernelLowerAccessBase<KernelLowerAccess> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<LoadOp, StoreOp, kernel::AddInOrderOp>(op))
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
      llvm::TypeSwitch<Operation *>(op)
          .Case<LoadOp, StoreOp, kernel::AddInOrderOp>(
              [&](auto access) { lower(access, *warps); });
    }
  }
};
} // namespace
