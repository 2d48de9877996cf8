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

/// Emits the range of the numbers of a capture in the first `valid` of `rows`,
/// at least one and at most `size`, the same in all threads of a CTA. They lie
/// in `memory`, of heads, of heads x rows, or, as number `column`, of heads x
/// rows x numbers.
NumberRange emitCaptureRange(ImplicitLocOpBuilder &b, Value memory,
                             int64_t column, const kernel::RowsOperands &rows,
                             int64_t size);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_CAPTURERANGES_H
