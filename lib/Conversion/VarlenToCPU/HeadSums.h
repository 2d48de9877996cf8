//===- HeadSums.h - Loops over heads on a CPU -------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_HEADSUMS_H
#define VARLEN_CONVERSION_VARLENTOCPU_HEADSUMS_H

#include "RowScratch.h"

namespace mlir::varlen {

/// Emits the loop over `heads` that sums what `scratch` has of `rows` rows.
void emitScratchSums(OpBuilder &builder, SumRowsOp op, Value heads, Value rows,
                     const RowScratch &scratch);
/// Emits the loop over `heads` that sums `rows` rows of a table in vectors of
/// `lanes` entries.
void emitTableSums(OpBuilder &builder, SumRowsOp op, Value heads, Value rows,
                   int64_t lanes);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_HEADSUMS_H
