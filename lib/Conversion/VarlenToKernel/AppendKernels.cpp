//===- AppendKernels.cpp - New rows of a cache, on a GPU ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host knows how many rows there are, not which sequence has them: a warp
// searches cu_seqlens for its row. Its lanes have every 32nd number of a head,
// or pair of numbers; they compute these twice where a row is quantised, for
// the scale and for the numbers, as no memory is between the two.
//
//===----------------------------------------------------------------------===//

#include "AppendKernels.h"

#include "../WarpReduction.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Utils/AppendElements.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

AppendKernels::AppendKernels(AppendOp op)
    : op(op), b(op.getLoc(), op), index{b} {}

std::string AppendKernels::getName() {
  return (op->getParentOfType<func::FuncOp>().getName() + "_append").str();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void AppendKernels::emitAtRow(Value row,
                              function_ref<void(const NewRow &)> body) {
  Value zero = index.constant(0);
  Value cu = op.getCu();
  // Entries that are not in order lead to any sequence, which then is not that
  // of the row.
  Value s = emitSearch(b, zero, sequences, [&](Value at) {
    return index.lessEqual(index.load(cu, index.add(at, 1)), row);
  });
  emitIf(b, index.less(s, sequences), [&] {
    Value begin = index.load(cu, s), end = index.load(cu, index.add(s, 1));
    Value used = index.load(op.getSequsedK(), s);
    Value length = index.sub(end, begin);
    auto isWithin = [&](Value low, Value value, Value high) {
      return index.both(index.lessEqual(low, value),
                        index.lessEqual(value, high));
    };
    Value isGood = index.both(isWithin(zero, begin, row),
                              isWithin(index.add(row, 1), end, rows));
    isGood = index.both(isGood, index.lessEqual(length, capacity));
    isGood =
        index.both(isGood, isWithin(zero, used, index.sub(capacity, length)));
    emitIf(b, isGood, [&] {
      NewRow found;
      found.number = row;
      found.sequence = s;
      found.position = index.add(used, index.sub(row, begin));
      found.column = index.div(found.position, pageRows);
      found.pageRow = index.rem(found.position, pageRows);
      found.isFirst =
          index.either(index.equal(row, begin), index.equal(found.pageRow, 0));
      body(found);
    });
  });
}

//===----------------------------------------------------------------------===//
// Numbers of a head
//===----------------------------------------------------------------------===//

ValueRange AppendKernels::emitNumbers(const Target &target, const NewRow &row,
                                      Value head, Value lane, ValueRange inits,
                                      Visit visit) {
  Value step = index.constant(kernel::kWarpLanes);
  int64_t columns = shaped(target.packed).getDimSize(2);
  ValueRange carried = inits;
  auto load = [&](Value column) -> Value {
    return memref::LoadOp::create(b, target.packed,
                                  ValueRange{row.number, head, column});
  };
  if (target.pairs > 0) {
    Type compute = getComputeType(getElementTypeOrSelf(target.packed));
    auto widen = [&](Value number) {
      return convertScalarToDtype(b, b.getLoc(), number, compute,
                                  /*isUnsignedCast=*/false);
    };
    auto loadOf = [&](Value table, Value pair) {
      return widen(
          memref::LoadOp::create(b, table, ValueRange{row.position, pair}));
    };
    carried =
        emitLoop(b, lane, index.constant(target.pairs), step, carried,
                 [&](Value pair, ValueRange carried) {
                   Value first =
                       op.getInterleaved() ? index.mul(pair, 2) : pair;
                   Value second =
                       index.add(first, op.getInterleaved() ? 1 : target.pairs);
                   Value x = widen(load(first)), y = widen(load(second));
                   Value cos = loadOf(op.getCos(), pair);
                   Value sin = loadOf(op.getSin(), pair);
                   auto [turnedX, turnedY] = emitTurnedPair(b, x, y, cos, sin);
                   Values next = visit(turnedX, first, carried);
                   return visit(turnedY, second, next);
                 });
  }
  if (2 * target.pairs == columns)
    return carried;
  return emitLoop(b, index.add(lane, 2 * target.pairs), index.constant(columns),
                  step, carried, [&](Value column, ValueRange carried) {
                    return visit(load(column), column, carried);
                  });
}

void AppendKernels::emitHead(const Target &target, const NewRow &row,
                             Value page, Value head, Value lane) {
  Type element = getElementTypeOrSelf(target.cache);
  auto convert = [&](Value number, Type type) {
    return convertScalarToDtype(b, b.getLoc(), number, type,
                                /*isUnsignedCast=*/false);
  };
  auto store = [&](Value number, Value column) {
    memref::StoreOp::create(b, number, target.cache,
                            ValueRange{page, row.pageRow, head, column});
  };
  if (!target.scales) {
    emitNumbers(target, row, head, lane, {},
                [&](Value number, Value column, ValueRange) -> Values {
                  store(convert(number, element), column);
                  return {};
                });
    return;
  }
  Type f32 = b.getF32Type();
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  ValueRange ofLane = emitNumbers(
      target, row, head, lane, zero,
      [&](Value number, Value, ValueRange carried) -> Values {
        return {emitLargestMagnitude(b, carried.front(), convert(number, f32))};
      });
  Value largest =
      emitWarpReduction(b, ofLane.front(), [&](Value lhs, Value rhs) -> Value {
        return arith::MaximumFOp::create(b, lhs, rhs);
      });
  Value scale = emitRowScale(b, largest, element);
  emitIf(b, index.equal(lane, 0), [&] {
    memref::StoreOp::create(b, scale, target.scales,
                            ValueRange{page, row.pageRow, head});
  });
  emitNumbers(
      target, row, head, lane, {},
      [&](Value number, Value column, ValueRange) -> Values {
        store(emitQuantisedElement(b, convert(number, f32), scale, element),
              column);
        return {};
      });
}

void AppendKernels::emitRow(const NewRow &row, Value head, Value lane) {
  Value table = op.getBlockTable();
  Value page =
      table ? index.load(table, {row.sequence, row.column}) : row.sequence;
  // Lists may have changed since they were checked.
  Value isGood = isPage(page);
  int64_t pairs = 0;
  if (op.getCos()) {
    pairs = shaped(op.getCos()).getDimSize(1);
    Value positions =
        index.min(index.dim(op.getCos(), 0), index.dim(op.getSin(), 0));
    isGood = index.both(isGood, index.less(row.position, positions));
  }
  emitIf(b, isGood, [&] {
    emitHead({op.getK(), op.getKCache(), op.getKScale(), pairs}, row, page,
             head, lane);
    emitHead({op.getV(), op.getVCache(), op.getVScale(), /*pairs=*/0}, row,
             page, head, lane);
  });
}

void AppendKernels::emitWrites() {
  Value heads = index.dim(op.getK(), 1);
  // At least one warp, to report what was found.
  Value count = index.max(index.mul(rows, heads), 1);
  emitLaunchOfWarps(b, getName(), count, [&](Value i, Value lane) {
    Value isFirst = index.both(index.equal(i, 0), index.equal(lane, 0));
    emitIf(
        b, emitIsGood(),
        [&] {
          emitAtRow(index.div(i, heads), [&](const NewRow &row) {
            emitRow(row, index.rem(i, heads), lane);
          });
        },
        [&] { emitIf(b, isFirst, [&] { emitReport(); }); });
  });
}

LogicalResult AppendKernels::emit() {
  if (op->getParentOfType<gpu::LaunchOp>())
    return op.emitOpError("is in a kernel, which cannot launch others: "
                          "expected an append in host code");
  if (!op.isBufferized())
    return op.emitOpError("expected memrefs, got tensors; bufferize before");
  FailureOr<Value> record = emitStatusRecord(b, op);
  if (failed(record))
    return failure();
  status = *record;
  rows = index.dim(op.getK(), 0);
  sequences = index.max(index.sub(index.dim(op.getCu(), 0), 1), 0);
  pages = index.dim(op.getKCache(), 0);
  pageRows = index.dim(op.getKCache(), 1);
  Value columns = index.constant(1);
  if (Value table = op.getBlockTable())
    columns = index.min(index.dim(table, 1), VARLEN_MAX_SEQUENCE);
  capacity =
      index.min(index.mul(columns, index.min(pageRows, VARLEN_MAX_SEQUENCE)),
                VARLEN_MAX_SEQUENCE);
  extents = checkExtents();
  Type i64 = b.getI64Type();
  fault = memref::AllocOp::create(b, MemRefType::get({1}, i64));
  if (op.getBlockTable())
    owners = memref::AllocOp::create(
        b, MemRefType::get({ShapedType::kDynamic}, i64), pages);
  emitChecks();
  emitWrites();
  memref::DeallocOp::create(b, fault);
  if (owners)
    memref::DeallocOp::create(b, owners);
  op.erase();
  return success();
}
