//===- CPUTileMemory.h - Packing of query tiles and kv blocks ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves between the packed tensors and the scratch tiles of a work tile on a
// CPU: queries are transposed to columns (lanes) on the way in, outputs
// transposed back on the way out, and everything is converted to and from the
// compute type on the way.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H
#define VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H

#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"

namespace mlir::varlen {

/// Reads `lanes` rows source[row, head, :] (one for each pair from `first` on,
/// none past `last`) and writes them as columns of destination, which starts
/// at (rowOffset, columnOffset) and has source's innermost extent as rows.
/// With `bf16Pairs` two neighbours in a row become one element of a column.
void emitPackColumns(ImplicitLocOpBuilder &b, Value source, const RowMap &pairs,
                     Value first, Value last, Value destination,
                     Value rowOffset, Value columnOffset, int64_t lanes,
                     bool bf16Pairs);

/// The way back: columns of `source` become rows destination[row, head, :].
/// Lanes past `last` must hold the same values as the lane of `last`, and write
/// them again.
void emitUnpackColumns(ImplicitLocOpBuilder &b, Value source, Value rowOffset,
                       Value columnOffset, const RowMap &pairs, Value first,
                       Value last, Value destination, int64_t lanes);

inline MemRefType memoryType(Value memory) {
  return cast<MemRefType>(memory.getType());
}

inline FloatType elementOf(Value memory) {
  return cast<FloatType>(memoryType(memory).getElementType());
}

/// Elements in a cache line of 64 bytes.
inline int64_t getCacheLineElements(Type element) {
  return 512 / element.getIntOrFloatBitWidth();
}

/// Asks for rows source[row, head, :] of `rows` pairs from `first` on, into the
/// second-level cache: the first has room for fewer, and for fewer misses.
void emitPrefetchRows(ImplicitLocOpBuilder &b, Value source,
                      const RowMap &pairs, Value first, Value rows);

/// Copies rows source[row, head, :] of `rows` pairs from `first` on to
/// destination[i, :], and makes destination rows rows .. paddedRows, and
/// columns that source does not have, zero. The rows of keys are pairs with a
/// group of 1.
void emitCopyRows(ImplicitLocOpBuilder &b, Value source, const RowMap &pairs,
                  Value first, Value rows, Value paddedRows, Value destination,
                  int64_t lanes);

/// The same, so that element d of rows 2 j and 2 j + 1 become
/// destination[j, 2 d] and [j, 2 d + 1]; paddedRows is even.
void emitPairRows(ImplicitLocOpBuilder &b, Value source, const RowMap &pairs,
                  Value first, Value rows, Value paddedRows, Value destination,
                  int64_t lanes);

/// The way back: rows of `source`, times `factor` where that is not null,
/// become rows destination[row, head, :] of `rows` pairs from `first` on.
void emitStoreRows(ImplicitLocOpBuilder &b, Value source, Value factor,
                   const RowMap &pairs, Value first, Value rows,
                   Value destination, int64_t lanes);

/// Makes rows destination[row, head, :] of `rows` pairs from `first` on
/// `value`.
void emitFillRows(ImplicitLocOpBuilder &b, double value, const RowMap &pairs,
                  Value first, Value rows, Value destination, int64_t lanes);

/// Makes the first `rows` rows of a scratch tile `value`.
void emitFill(ImplicitLocOpBuilder &b, double value, Value tile, Value rows,
              int64_t lanes);

/// Rows source[row, head, :] of `rows` pairs from `first` on, where they are.
/// These are rows of one head, as those of keys.
Value emitRowsInPlace(ImplicitLocOpBuilder &b, Value source,
                      const RowMap &pairs, Value first, Value rows);

/// A scalar or vector in another float type; nothing if it has it already.
Value emitConvert(ImplicitLocOpBuilder &b, Value value, Type element);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H
