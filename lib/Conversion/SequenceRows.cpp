//===- SequenceRows.cpp - The rows of a sequence, in kernels --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SequenceRows.h"

using namespace mlir;
using namespace mlir::varlen;

PackedRows varlen::emitPackedRows(IndexBuilder &index, Value cu, Value s,
                                  Value end) {
  Value last = index.sub(index.dim(cu, 0), 1);
  Value next = index.load(cu, index.min(index.add(s, 1), last));
  return {index.load(cu, s), index.select(index.less(s, last), next, end)};
}

Value varlen::emitUsed(IndexBuilder &index, Value used, Value s,
                       Value sequences, Value otherwise) {
  if (!used)
    return otherwise;
  return emitChoice(
             index.b, index.less(s, sequences),
             [&] { return Values{index.load(used, s)}; },
             [&] { return Values{otherwise}; })
      .front();
}

Value varlen::emitSearch(ImplicitLocOpBuilder &b, Value lo, Value hi,
                         function_ref<Value(Value)> isBefore) {
  IndexBuilder at{b, lo.getType()};
  return emitWhile(
             b, {lo, hi},
             [&](ValueRange range) { return at.less(range[0], range[1]); },
             [&](ValueRange range) {
               Value middle = at.div(at.add(range[0], range[1]), 2);
               Value before = isBefore(middle);
               Value next = at.add(middle, 1);
               return Values{at.select(before, next, range[0]),
                             at.select(before, range[1], middle)};
             })
      .front();
}

Value varlen::emitSequenceCount(IndexBuilder &index, BatchOp batch) {
  return index.sub(index.dim(batch.getCuQ(), 0), 1);
}

Value varlen::emitPartCount(IndexBuilder &index, const KeyParts &parts, Value s,
                            Value sequences, Value pairsOfSegment,
                            Value keysOfSegment) {
  Value isFew = index.both(index.less(0, pairsOfSegment),
                           index.lessEqual(pairsOfSegment, parts.pairs));
  // Nothing sees the keys past the last sequence.
  Value hasParts = index.both(isFew, index.less(s, sequences));
  Value one = index.constant(1);
  Value count = index.max(index.ceilDiv(keysOfSegment, parts.keys), one);
  return index.select(hasParts, count, one);
}
