//===- SequenceRows.h - The rows of a sequence, in kernels -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_SEQUENCEROWS_H
#define VARLEN_LIB_CONVERSION_SEQUENCEROWS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// The bounds of the rows of sequence `s` in packed memory; those of s = N are
/// cu[N] and `end`. cu is not empty.
struct PackedRows {
  Value begin, end;
};
PackedRows emitPackedRows(IndexBuilder &index, Value cu, Value s, Value end);

/// used[s], or `otherwise` if there is no such element or no `used`.
Value emitUsed(IndexBuilder &index, Value used, Value s, Value sequences,
               Value otherwise);

/// Emits a search: the first position of [lo, hi) of which `isBefore` does not
/// hold, or hi. It holds of no position behind one of which it does not.
/// Positions are of the type of `lo`.
Value emitSearch(ImplicitLocOpBuilder &b, Value lo, Value hi,
                 function_ref<Value(Value)> isBefore);

/// How many sequences a batch has.
Value emitSequenceCount(IndexBuilder &index, BatchOp batch);

/// In how many parts the keys of segment `s` are, which has so many pairs, and
/// keys in use: 1 if they are not in parts.
Value emitPartCount(IndexBuilder &index, const KeyParts &parts, Value s,
                    Value sequences, Value pairsOfSegment, Value keysOfSegment);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_SEQUENCEROWS_H
