//===- CaptureRanges.h - Ranges of captures over rows -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_CAPTURERANGES_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_CAPTURERANGES_H

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

namespace mlir::varlen {

/// Who reads rows: each warp, the same ones in all lanes, or each lane its own.
enum class Readers { Warps, Lanes };

/// Emits the range of the numbers of a capture in the first `valid` of `rows`,
/// at least one and at most `size`. They lie in `memory`, of heads, of heads x
/// rows, or, as number `column`, of heads x rows x numbers.
NumberRange emitCaptureRange(ImplicitLocOpBuilder &b, Value memory,
                             int64_t column, const kernel::RowsOperands &rows,
                             int64_t size, Readers readers);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_CAPTURERANGES_H
