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
/// many entries as there are sequences, and that keys are packed or in pages.
template <typename Op> LogicalResult verifyBatch(Op op) {
  Type integer = op.getCuQ().getType().getElementType();
  int64_t entries = op.getCuQ().getType().getDimSize(0);
  bool isPaged = static_cast<bool>(op.getBlockTable());
  if (isPaged == static_cast<bool>(op.getCuK()))
    return op.emitOpError("expected cu_k or a block_table, got ")
           << (isPaged ? "both" : "none");
  if (isPaged && !op.getSequsedK())
    return op.emitOpError("expected seqused_k with a block_table, got none");
  auto keys = cast<ShapedType>((isPaged ? op.getCuQ() : op.getCuK()).getType());
  int64_t keyEntries = keys.getDimSize(0);
  if (keys.getElementType() != integer)
    return op.emitOpError("expected cu_q and cu_k of one integer type, got ")
           << integer << " and " << keys.getElementType();
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
  if (!isPaged || ShapedType::isDynamic(entries))
    return success();
  int64_t tables = op.getBlockTable().getType().getDimSize(0);
  if (failed(verifyCompatibleShape(tables, entries - 1)))
    return op.emitOpError("expected block_table to have one row for each of "
                          "the ")
           << entries - 1 << " sequences, got " << tables;
  return success();
}

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_BATCH_H
