//===- CopyRows.h - Rows of global memory to shared tiles -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_COPYROWS_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_COPYROWS_H

#include "FragmentLayout.h"
#include "Roles.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

namespace mlir::varlen::kernel {

/// Threads that share a row, a power of two; a copy needs as many.
int64_t getThreadsPerRow(CopyOp copy);

/// Whether every row is whole 16-byte chunks, each aligned to its size, that
/// need no conversion; memory itself is taken to be aligned.
bool canCopyAsync(CopyOp copy);

/// Whether it is a copy of quantised rows to a slot of a ring that can be made
/// as bytes: each chunk of 8 goes to the first half of its 16 bytes in the
/// slot, where the thread that has copied it widens it. In kernels with roles
/// others wait for a slot than those that copy.
bool canCopyBytesAsync(CopyOp copy);

/// The copy by `cp.async`, part of the group that is committed next.
void emitCopyAsync(ThreadBuilder &b, CopyOp copy, ThreadRange threads);

/// What the thread has copied to that slot as bytes, in the slot's type.
void emitWidening(ThreadBuilder &b, CopyOp copy, ValueRange slot,
                  ThreadRange threads);

/// The same by loads and stores: visible to others after the next barrier.
void emitCopyThroughRegisters(ThreadBuilder &b, CopyOp copy,
                              ThreadRange threads);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_COPYROWS_H
