//===- RowScratch.h - Numbers of rows, on a CPU -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H
#define VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// The memory of `varlen.rows`: for each value kv heads x (rows * group), so
/// that those of the pairs of a sequence and kv head lie side by side, with
/// room to read a panel on past the last.
struct RowScratch {
  SmallVector<Value, 2> memory;
  Value group;
};
using RowScratchMap = DenseMap<Value, RowScratch>;

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H
