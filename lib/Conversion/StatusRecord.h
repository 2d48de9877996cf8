//===- StatusRecord.h - Errors that kernels report -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_STATUSRECORD_H
#define VARLEN_LIB_CONVERSION_STATUSRECORD_H

#include "SequenceRows.h"

namespace mlir::varlen {

/// An error in the inputs of kernels: whether there is one, an i1, and, as
/// index values, the fields of varlen_gpu_status (GPU.h). The bound may be
/// null, where the code says it.
struct GPUFault {
  Value wrong, code, at, value, bound;
};

/// The first of these that is wrong, with code 0 if none is.
GPUFault firstOf(ImplicitLocOpBuilder &b, ArrayRef<GPUFault> faults);

/// Emits, in host code, the address of the status record of the device. Fails,
/// with an error at `user`, if a name of the runtime is taken.
FailureOr<Value> emitStatusRecord(ImplicitLocOpBuilder &b, Operation *user);

/// Stores a fault in the status record, unless that has one already.
void emitStatus(ImplicitLocOpBuilder &b, Value status, const GPUFault &fault);

/// Adds what may be wrong with entry `s` of the cu_seqlens of so many
/// `sequences`, whose rows these are, of so many in memory; s = N is the last
/// entry. `list` is a VARLEN_STATUS list.
void appendCuChecks(SmallVectorImpl<GPUFault> &checks, IndexBuilder &index,
                    Value s, Value sequences, const PackedRows &rows,
                    Value rowsInMemory, int64_t list);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_STATUSRECORD_H
