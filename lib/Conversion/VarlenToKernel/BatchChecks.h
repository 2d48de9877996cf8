//===- BatchChecks.h - Errors in a batch, on a GPU -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_BATCHCHECKS_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_BATCHCHECKS_H

#include "WorkTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// An error: whether there is one, an i1, and, as index values, the fields of
/// varlen_gpu_status. The code is 0 if there is none.
struct GPUFault {
  Value wrong, code, at, value, bound;
};

/// Stores a fault in the status record, unless that has one already.
void emitStatus(ImplicitLocOpBuilder &b, Value status, const GPUFault &fault);

/// Emits the checks of a batch, at the builder's place.
class BatchChecks {
public:
  BatchChecks(ImplicitLocOpBuilder &b, const GPUBatch &batch)
      : b(b), index{b}, op(batch.op), sequences(batch.sequences) {}

  /// Whether each list has as many entries as there are sequences, and other
  /// extents agree. The host can tell.
  GPUFault ofExtents();
  /// What is wrong with the entries of sequence `s`, whose rows are these; only
  /// a kernel can tell.
  GPUFault ofEntries(Value s, const PackedRows &q, const PackedRows &k);

private:
  /// Something that may be wrong. No bound: the code says it.
  struct Check {
    Value wrong, code, at, value, bound;
  };

  Value dim(Value memref);
  GPUFault firstOf(ArrayRef<Check> checks);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  BatchOp op;
  Value sequences;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_BATCHCHECKS_H
