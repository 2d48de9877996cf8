//===- Matrices.h - Matrices in memory --------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_MATRICES_H
#define VARLEN_SUPPORT_MATRICES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

inline MemRefType memoryType(Value memory) {
  return cast<MemRefType>(memory.getType());
}

inline Type elementOf(Value memory) {
  return memoryType(memory).getElementType();
}

/// The innermost extent of memory.
inline int64_t innerSize(Value memory) {
  return memoryType(memory).getShape().back();
}

/// Elements in a cache line of 64 bytes.
inline int64_t getCacheLineElements(Type element) {
  return 512 / element.getIntOrFloatBitWidth();
}

/// `rows` rows of a matrix from `row` on; of these, `columns` columns from
/// `column` on.
Value emitPart(ImplicitLocOpBuilder &b, Value matrix, OpFoldResult row,
               OpFoldResult column, OpFoldResult rows, OpFoldResult columns);
/// All columns of these rows.
Value emitRows(ImplicitLocOpBuilder &b, Value matrix, OpFoldResult row,
               OpFoldResult rows);
/// Memory in whole cache lines; `sizes` are its dynamic extents.
Value emitAllocation(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape,
                     Type element, ValueRange sizes = {});
/// Makes all elements that number, integers 0.
void emitFill(ImplicitLocOpBuilder &b, double number, Value memory);
/// How many rows ahead a matrix in memory is fetched that is read once: what a
/// core takes for as many is longer than it waits for its last-level cache.
inline constexpr int64_t kRowsAhead = 32;
/// Brings the cache line of an element closer, which is read soon.
void emitPrefetch(ImplicitLocOpBuilder &b, Value memory, ValueRange at);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_MATRICES_H
