//===- WarpReduction.h - Reductions over the lanes of a warp ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_WARPREDUCTION_H
#define VARLEN_LIB_CONVERSION_WARPREDUCTION_H

#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// The number of a thread in its warp; blocks of threads have one dimension.
Value emitLane(IndexBuilder &index);

/// What `combine`, which is commutative, makes of the values of all lanes, 32
/// bits each, in each of them.
Value emitWarpReduction(ImplicitLocOpBuilder &b, Value value,
                        function_ref<Value(Value, Value)> combine);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_WARPREDUCTION_H
