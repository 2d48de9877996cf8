//===- DistributableOps.h - What fragments can do ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_DISTRIBUTABLEOPS_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_DISTRIBUTABLEOPS_H

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mlir::varlen::kernel {

/// Says why an operation with tiles cannot be distributed to `warps`.
LogicalResult checkDistributable(Operation *op, int64_t warps);

bool hasTensors(Operation *op);

/// The type of the fragment of a loop nest; null if registers have no room.
VectorType getFragmentType(linalg::GenericOp op, int64_t warps);

/// What the yield of a reduction takes: the combiner.
Operation *getCombined(linalg::GenericOp generic);

/// What a reduction combines the accumulator and one more value with. None if
/// it is not one of those that fragments reduce with.
std::optional<gpu::AllReduceOperation> getCombiner(linalg::GenericOp generic);

/// The row that all queries of the values have; null if it may differ.
Value getOneRow(AddKeysOp op);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_DISTRIBUTABLEOPS_H
