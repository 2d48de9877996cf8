//===- CaptureRanges.cpp - Ranges of captures over rows -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp reads all rows of a tile, so that nothing has to pass from one to
// another: no barrier, and a branch on what follows is one that all threads
// take. A lane that has a block of its own reads one row after the other.
//
//===----------------------------------------------------------------------===//

#include "CaptureRanges.h"

#include "../WarpReduction.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

NumberRange varlen::emitCaptureRange(ImplicitLocOpBuilder &b, Value memory,
                                     int64_t column,
                                     const kernel::RowsOperands &rows,
                                     int64_t size, Readers readers) {
  IndexBuilder index{b};
  int64_t rank = cast<MemRefType>(memory.getType()).getRank();
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinimumFOp::create(b, x, y);
  };
  auto largest = [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, x, y);
  };
  RowMap pairs{rows.row, rows.head, rows.group};
  auto load = [&](Value pair) -> Value {
    SmallVector<Value> place = {pairs.head(index, pair), pairs.row(index, pair),
                                index.constant(column)};
    place.resize(rank);
    return memref::LoadOp::create(b, memory, place);
  };
  if (readers == Readers::Lanes)
    return emitCaptureRange(b, rows.valid, [&](Value row) {
      return load(index.add(rows.first, row));
    });
  Value lane = emitLane(index);
  Value last = index.sub(rows.valid, 1);
  Value low, high;
  for (int64_t i = 0; i * kernel::kWarpLanes < size; ++i) {
    // Lanes past the last row have its number.
    Value pair = index.add(
        rows.first, index.min(index.add(lane, i * kernel::kWarpLanes), last));
    Value number = load(pair);
    low = low ? least(low, number) : number;
    high = high ? largest(high, number) : number;
  }
  return emitCaptureRange(b, emitWarpReduction(b, low, least),
                          emitWarpReduction(b, high, largest));
}
