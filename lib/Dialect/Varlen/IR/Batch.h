//===- Batch.h - Rules about lists of sequences -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_BATCH_H
#define VARLEN_DIALECT_VARLEN_IR_BATCH_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/TypeUtilities.h"

namespace mlir::varlen {

/// Verifies that cu_seqlens, seqused and q_offset have one integer type and as
/// many entries as there are sequences.
template <typename Op> LogicalResult verifyBatch(Op op) {
  Type integer = op.getCuQ().getType().getElementType();
  int64_t entries = op.getCuQ().getType().getDimSize(0);
  int64_t keyEntries = op.getCuK().getType().getDimSize(0);
  if (op.getCuK().getType().getElementType() != integer)
    return op.emitOpError("expected cu_q and cu_k of one integer type, got ")
           << integer << " and " << op.getCuK().getType().getElementType();
  for (int64_t size : {entries, keyEntries})
    if (size == 0)
      return op.emitOpError("expected at least one entry in cu_q and cu_k, "
                            "got ")
             << entries << " and " << keyEntries;
  if (failed(verifyCompatibleShape(entries, keyEntries)))
    return op.emitOpError("expected cu_q and cu_k to have the same number of "
                          "entries, got ")
           << entries << " and " << keyEntries;
  if (ShapedType::isDynamic(entries))
    entries = keyEntries;
  std::pair<StringRef, Value> perSequence[] = {{"seqused_q", op.getSequsedQ()},
                                               {"seqused_k", op.getSequsedK()},
                                               {"q_offset", op.getQOffset()}};
  for (auto [name, value] : perSequence) {
    if (!value)
      continue;
    auto type = cast<ShapedType>(value.getType());
    if (type.getElementType() != integer)
      return op.emitOpError("expected ")
             << name << " of the integer type of cu_q, " << integer << ", got "
             << type.getElementType();
    if (ShapedType::isStatic(entries) &&
        failed(verifyCompatibleShape(type.getDimSize(0), entries - 1)))
      return op.emitOpError("expected ")
             << name << " to have one entry for each of the " << entries - 1
             << " sequences, got " << type.getDimSize(0);
  }
  return success();
}

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_BATCH_H
