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
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

namespace mlir::varlen {

/// Emits the loop over `heads` that sums what `scratch` has of `rows` rows.
void emitSinkGrad(OpBuilder &builder, const SinkGrad &parts, Value heads,
                  Value rows, const RowScratch &scratch);
/// Emits the loop over `heads` that sums `rows` rows of a table, H x T x M, to
/// `sums`, H x M, in vectors of `lanes` entries.
void emitSumRows(OpBuilder &builder, SumRowsOp op, Value heads, Value rows,
                 int64_t lanes);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_HEADSUMS_H
