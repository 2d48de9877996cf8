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
#include "varlen/Dialect/Kernel/IR/Kernel.h"

namespace mlir::varlen::kernel {

/// Whether a tensor map can describe the memory: rows that are whole 16-byte
/// chunks of 16-bit elements, each aligned to its size. Memory itself is taken
/// to be aligned.
bool canHaveMap(MemRefType source);

/// Makes the map in `scratch`, shared memory of kTensorMapBytes that only maps
/// are made in, and puts it where its result says, by the warp from thread
/// `first` on; the operation is replaced.
void lowerTensorMap(TensorMapOp op, Value scratch, int64_t first);

/// The copy, by thread `first`, which has yet to arrive at the mbarrier of the
/// slot. With `fences` what threads have stored to the slot before is published
/// to the async proxy, which overwrites it.
void lowerCopyByMap(CopyByMapOp op, Value mbarrier, int64_t first, bool fences);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_TENSORMAPS_H
