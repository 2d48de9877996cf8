//===- GPUWorkTiles.h - The work tiles of a batch, on a GPU -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUWORKTILES_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUWORKTILES_H

#include "IndexBuilder.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// A list in device memory, most keys first. Row i < count[0] is (sequence,
/// tile within the sequence); sequence N stands for the rows past
/// cu_seqlens_q[N]. The list is the same for every kv head, and so long that
/// its extent bounds the count for any cu_seqlens.
struct GPUWorkTiles {
  /// memref<?x2xi32>.
  Value list;
  /// memref<1xi64>; 0 if cu_seqlens or seqused is bad.
  Value count;
};

/// Emits allocations and a kernel that checks cu_seqlens and seqused and makes
/// the list. What is wrong with them goes to the status record of the device
/// (GPU.h); the host does not wait for it.
/// Fails, with an error at `op`, if a name of the runtime is taken.
FailureOr<GPUWorkTiles> emitGPUWorkTiles(ImplicitLocOpBuilder &b, AttnOp op,
                                         Value group, int64_t blockM);

/// The bounds of the rows of sequence `s` in packed memory; those of s = N are
/// cu[N] and `end`. cu is not empty.
struct PackedRows {
  Value begin, end;
};
PackedRows emitPackedRows(IndexBuilder &index, Value cu, Value s, Value end);

/// used[s], or `otherwise` if there is no such element or no `used`.
Value emitUsed(IndexBuilder &index, Value used, Value s, Value sequences,
               Value otherwise);

/// A launch of `blocks` x `threads` of a kernel called `name`; `body` gets the
/// index of the block, the number of blocks, and the index of the thread.
void emitLaunch(ImplicitLocOpBuilder &b, const Twine &name, Value blocks,
                int64_t threads, function_ref<void(Value, Value, Value)> body);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUWORKTILES_H
