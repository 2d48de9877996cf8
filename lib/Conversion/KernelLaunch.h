//===- KernelLaunch.h - Launches of kernels in one dimension ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_KERNELLAUNCH_H
#define VARLEN_LIB_CONVERSION_KERNELLAUNCH_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// A launch of `blocks` x `threads` of a kernel called `name`; `body` gets the
/// index of the block, the number of blocks, and the index of the thread.
void emitLaunch(ImplicitLocOpBuilder &b, const Twine &name, Value blocks,
                int64_t threads, function_ref<void(Value, Value, Value)> body);

/// A launch of a kernel for the numbers from 0 to `extent`, a thread each.
void emitLaunchOfThreads(ImplicitLocOpBuilder &b, const Twine &name,
                         Value extent, function_ref<void(Value)> body);
/// The same with a warp each, whose lanes all get the number.
void emitLaunchOfWarps(ImplicitLocOpBuilder &b, const Twine &name, Value extent,
                       function_ref<void(Value i, Value lane)> body);

/// Emits `body` for where `condition` holds, in host code: a loop of one
/// iteration or none, as plans of launches (varlen/Launch) have no branches.
void emitIfOnHost(ImplicitLocOpBuilder &b, Value condition,
                  function_ref<void()> body);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_KERNELLAUNCH_H
