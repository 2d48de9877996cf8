//===- TensorMaps.h - Copies by tensor maps ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_TENSORMAPS_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_TENSORMAPS_H

#include "FragmentLayout.h"
#include "Roles.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

namespace mlir::varlen::kernel {

/// Whether a tensor map can describe the memory: rows that are whole 16-byte
/// chunks of 16-bit elements, each aligned to its size. Memory itself is taken
/// to be aligned.
bool canHaveMap(MemRefType source);

/// How many maps are made at the same time, of so many: one by each warp that
/// copies.
int64_t getMapsAtOnce(gpu::GPUFuncOp kernel, int64_t count);

/// Makes the maps, all of one block, in `scratch`: shared memory for as many as
/// are made at the same time, that only maps are made in. The first warp that
/// copies acquires them. The operations are replaced.
void lowerTensorMaps(gpu::GPUFuncOp kernel, ArrayRef<TensorMapOp> maps,
                     Value scratch);

/// Emits what the thread that asks for copies by maps does, and no other.
void emitIfAsks(ThreadBuilder &b, gpu::GPUFuncOp kernel,
                function_ref<void()> body);

/// The copy, by that thread, which has yet to arrive at the mbarrier of the
/// slot.
void lowerCopyByMap(gpu::GPUFuncOp kernel, CopyByMapOp op, Value mbarrier);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_TENSORMAPS_H
