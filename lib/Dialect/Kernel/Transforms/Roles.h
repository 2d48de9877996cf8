//===- Roles.h - Which warps of a kernel do what ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_ROLES_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_ROLES_H

#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::varlen::kernel {

/// So many threads of a CTA, from one of them on.
struct ThreadRange {
  int64_t first, count;
};

/// The roles of a kernel; null if all of its warps do the same.
RolesOp getRoles(gpu::GPUFuncOp kernel);

/// Complains about several kernel.roles, and of one about a known_block_size of
/// other than its warps.
LogicalResult verifyRoles(gpu::GPUFuncOp kernel);

/// The threads that copy, of a kernel whose block size is known: all, or those
/// of producers.
ThreadRange getCopyingThreads(gpu::GPUFuncOp kernel);

/// The threads that compute, likewise.
ThreadRange getComputingThreads(gpu::GPUFuncOp kernel);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_ROLES_H
