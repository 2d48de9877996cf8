//===- BatchChecks.cpp - Errors in a batch, on a GPU ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpReduction.h"
#include "WorkTilesBuilder.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::varlen;

// Four integers, in this order.
static_assert(offsetof(varlen_gpu_status, code) == 0 &&
              offsetof(varlen_gpu_status, index) == 8 &&
              offsetof(varlen_gpu_status, value) == 16 &&
              offsetof(varlen_gpu_status, bound) == 24 &&
              sizeof(varlen_gpu_status) == 32);

/// Stores a fault in the status record, unless that has one already.
static void emitStatus(ImplicitLocOpBuilder &b, Value status,
                       const GPUFault &fault) {
  auto i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(value));
  };
  auto store = [&](int32_t number, Value field, LLVM::AtomicOrdering ordering) {
    Value address = LLVM::GEPOp::create(b, status.getType(), i64, status,
                                        ArrayRef<LLVM::GEPArg>{number});
    LLVM::StoreOp::create(b, arith::IndexCastOp::create(b, i64, field), address,
                          /*alignment=*/8, /*isVolatile=*/false,
                          /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                          ordering);
  };
  // Kernels of several streams may find an error at once, and the record may be
  // in memory of the host, which reads it meanwhile: the scope is the system.
  Value found = LLVM::AtomicCmpXchgOp::create(
      b, status, constant(0), constant(VARLEN_STATUS_BUSY),
      LLVM::AtomicOrdering::acq_rel, LLVM::AtomicOrdering::monotonic,
      /*syncscope=*/"", /*alignment=*/8);
  Value isFirst = LLVM::ExtractValueOp::create(b, found, 1);
  emitIf(b, isFirst, [&] {
    auto plain = LLVM::AtomicOrdering::not_atomic;
    store(1, fault.at, plain);
    store(2, fault.value, plain);
    store(3, fault.bound, plain);
    store(0, fault.code, LLVM::AtomicOrdering::release);
  });
}

GPUFault WorkTilesBuilder::checkExtents() {
  SmallVector<GPUFault> checks;
  Value zero = index.constant(0), n = index.dim(op.getCuQ(), 0);
  checks.push_back({index.less(n, 1),
                    index.constant(VARLEN_STATUS_LENGTH + VARLEN_STATUS_CU_Q),
                    zero, n, Value()});
  auto expect = [&](Value list, Value size, int64_t code) {
    if (!list)
      return;
    Value actual = index.dim(list, 0);
    checks.push_back({index.notEqual(actual, size),
                      index.constant(VARLEN_STATUS_LENGTH + code), zero, actual,
                      size});
  };
  expect(op.getCuK(), n, VARLEN_STATUS_CU_K);
  expect(op.getSequsedQ(), sequences, VARLEN_STATUS_USED_Q);
  expect(op.getSequsedK(), sequences, VARLEN_STATUS_USED_K);
  expect(op.getQOffset(), sequences, VARLEN_STATUS_OFFSET);
  expect(op.getBlockTable(), sequences, VARLEN_STATUS_TABLE);
  if (Value rule = op.getRule())
    checks.push_back({index.less(0, rule),
                      index.add(index.mul(rule, 8), VARLEN_STATUS_EXTENT), zero,
                      op.getValue(), op.getBound()});
  return firstOf(checks);
}

GPUFault WorkTilesBuilder::checkEntries(Value s, const Sequence &sequence) {
  SmallVector<GPUFault> checks;
  Value isFirst = index.equal(s, 0);
  Value isSequence = index.less(s, sequences);
  Value isLast = index.equal(s, sequences);
  auto packed = [&](const PackedRows &rows, Value rowsInMemory, int64_t list) {
    checks.push_back({index.both(isFirst, index.notEqual(rows.begin, 0)),
                      index.constant(VARLEN_STATUS_START + list), s, rows.begin,
                      Value()});
    checks.push_back({index.both(isSequence, index.less(rows.end, rows.begin)),
                      index.constant(VARLEN_STATUS_DECREASE + list),
                      index.add(s, 1), rows.end, rows.begin});
    Value most = index.constant(VARLEN_MAX_SEQUENCE);
    Value length = index.sub(rows.end, rows.begin);
    checks.push_back({index.both(isSequence, index.less(most, length)),
                      index.constant(VARLEN_STATUS_LONG + list), s, length,
                      most});
    checks.push_back({index.both(isLast, index.less(rowsInMemory, rows.begin)),
                      index.constant(VARLEN_STATUS_END + list), s, rows.begin,
                      rowsInMemory});
  };
  packed(sequence.q, tq, VARLEN_STATUS_CU_Q);
  if (!strayPages)
    packed(sequence.k, tk, VARLEN_STATUS_CU_K);
  auto used = [&](Value list, const PackedRows &rows, int64_t code) {
    if (!list)
      return;
    Value size = index.sub(rows.end, rows.begin);
    Value value = emitUsed(index, list, s, sequences, index.constant(0));
    Value outside = index.either(index.less(value, 0), index.less(size, value));
    checks.push_back({index.both(isSequence, outside),
                      index.constant(VARLEN_STATUS_USED + code), s, value,
                      size});
  };
  used(op.getSequsedQ(), sequence.q, VARLEN_STATUS_USED_Q);
  if (!strayPages) {
    used(op.getSequsedK(), sequence.k, VARLEN_STATUS_USED_K);
    return firstOf(checks);
  }
  PackedRows most = {sequence.k.begin,
                     index.min(sequence.k.end, VARLEN_MAX_SEQUENCE)};
  used(op.getSequsedK(), most, VARLEN_STATUS_TABLE);
  checks.push_back(checkPages(s));
  return firstOf(checks);
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

Value WorkTilesBuilder::emitStrayPage(Value s, Value count, Value lane) {
  IndexBuilder narrow{b, b.getI32Type()};
  ValueRange found = emitLoop(
      b, lane, count, index.constant(kernel::kWarpLanes),
      narrow.constant(kNoColumn), [&](Value column, ValueRange least) {
        Value page = index.load(op.getBlockTable(), ValueRange{s, column});
        Value isStray = index.either(index.less(page, 0),
                                     index.lessEqual(op.getNumPages(), page));
        return Values{narrow.select(
            isStray, narrow.min(least[0], narrow.cast(column)), least[0])};
      });
  return found.front();
}

void WorkTilesBuilder::emitPages() {
  if (!op.getBlockTable())
    return;
  IndexBuilder narrow{b, b.getI32Type()};
  strayPages = memref::AllocOp::create(
      b, MemRefType::get({ShapedType::kDynamic}, b.getI32Type()),
      ValueRange{index.max(sequences, 1)});
  emitWarps("_pages", sequences, [&](Value s, Value lane) {
    // Lists may be too short for there to be such an entry.
    ValueRange found = emitChoice(
        b, emitIsBad(), [&] { return Values{narrow.constant(kNoColumn)}; },
        [&] {
          Value used = index.load(op.getSequsedK(), s);
          used = index.min(index.max(used, 0), tk);
          Value columns = index.min(index.ceilDiv(used, op.getPageRows()),
                                    index.dim(op.getBlockTable(), 1));
          return Values{emitStrayPage(s, columns, lane)};
        });
    Value first = emitWarpReduction(
        b, found.front(), [&](Value x, Value y) { return narrow.min(x, y); });
    emitIf(b, index.equal(lane, 0), [&] {
      memref::StoreOp::create(b, first, strayPages, ValueRange{s});
    });
  });
}

GPUFault WorkTilesBuilder::checkPages(Value s) {
  Value none = index.constant(kNoColumn), zero = index.constant(0);
  Value column = emitUsed(index, strayPages, s, sequences, none);
  Value isStray = index.less(column, kNoColumn);
  Value page = emitChoice(
                   b, isStray,
                   [&] {
                     return Values{
                         index.load(op.getBlockTable(), ValueRange{s, column})};
                   },
                   [&] { return Values{zero}; })
                   .front();
  Value at = index.add(index.mul(s, VARLEN_STATUS_COLUMNS), column);
  return {isStray, index.constant(VARLEN_STATUS_END + VARLEN_STATUS_TABLE), at,
          page, op.getNumPages()};
}

GPUFault WorkTilesBuilder::firstOf(ArrayRef<GPUFault> faults) {
  Value zero = index.constant(0);
  GPUFault first{arith::ConstantIntOp::create(b, 0, 1), zero, zero, zero, zero};
  for (const GPUFault &fault : llvm::reverse(faults)) {
    auto choose = [&](Value &field, Value value) {
      field = index.select(fault.wrong, value, field);
    };
    first.wrong = index.either(fault.wrong, first.wrong);
    choose(first.code, fault.code);
    choose(first.at, fault.at);
    choose(first.value, fault.value);
    choose(first.bound, fault.bound ? fault.bound : zero);
  }
  return first;
}

void WorkTilesBuilder::emitFault(Value segment) {
  // Lists that are too short have no entries to be looked at.
  emitIf(
      b, index.less(0, extents.code), [&] { emitStatus(b, status, extents); },
      [&] { emitStatus(b, status, checkEntries(segment, sequence(segment))); });
}
