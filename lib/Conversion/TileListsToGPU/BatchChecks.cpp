//===- BatchChecks.cpp - Errors in a batch, on a GPU ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../WarpReduction.h"
#include "TileListBuilder.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

GPUFault TileListBuilder::checkExtents() {
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
  return firstOf(b, checks);
}

GPUFault TileListBuilder::checkEntries(Value s, const Sequence &sequence) {
  SmallVector<GPUFault> checks;
  Value isSequence = index.less(s, sequences);
  auto packed = [&](const PackedRows &rows, Value rowsInMemory, int64_t list) {
    appendCuChecks(checks, index, s, sequences, rows, rowsInMemory, list);
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
    return firstOf(b, checks);
  }
  PackedRows most = {sequence.k.begin,
                     index.min(sequence.k.end, VARLEN_MAX_SEQUENCE)};
  used(op.getSequsedK(), most, VARLEN_STATUS_TABLE);
  checks.push_back(checkPages(s));
  return firstOf(b, checks);
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

Value TileListBuilder::emitStrayPage(Value s, Value count, Value lane) {
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

void TileListBuilder::emitPages() {
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

GPUFault TileListBuilder::checkPages(Value s) {
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

void TileListBuilder::emitFault(Value segment) {
  // Lists that are too short have no entries to be looked at.
  emitIf(
      b, index.less(0, extents.code), [&] { emitStatus(b, status, extents); },
      [&] { emitStatus(b, status, checkEntries(segment, sequence(segment))); });
}
