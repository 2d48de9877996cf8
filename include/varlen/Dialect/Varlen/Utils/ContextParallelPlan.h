//===- ContextParallelPlan.h - Who owns which rows --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Context parallelism divides the rows of a packed batch among ranks. The plan
// is a pure function of cu_seqlens, so that every rank, and every front end,
// makes the same one without communication. docs/context-parallel.md has a
// picture.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_CONTEXTPARALLELPLAN_H
#define VARLEN_DIALECT_VARLEN_UTILS_CONTEXTPARALLELPLAN_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace mlir::varlen {

/// How rows are divided.
enum class ContextParallelLayout {
  /// Whole sequences where they fit, longest first; what does not fit fills the
  /// ranks up, as in `Zigzag`.
  Documents = 0,
  /// Each rank has rows that follow each other in the batch.
  Contiguous = 1,
  /// Each rank has as many rows from the front of a sequence as from its back,
  /// which see as many keys together as those of other ranks under a causal
  /// mask.
  Zigzag = 2
};

/// The batch, as `varlen.attn` takes it, with the whole of each slot in use.
/// `qOffset` is empty or has one entry for each sequence.
struct ContextParallelBatch {
  llvm::ArrayRef<int64_t> cuQ, cuK, qOffset;
  MaskAttrInterface mask;
};

struct ContextParallelOptions {
  int64_t ranks = 1;
  ContextParallelLayout layout = ContextParallelLayout::Documents;
  /// Chunks begin at multiples of this many rows of their sequence.
  int64_t multiple = 1;
  /// What a row costs beside the keys that it sees, in pairs of a query and a
  /// key: the rest of a model, say.
  double rowCost = 0;
  /// How much more than its share of all work, as a part of it, a rank may have
  /// so that a sequence stays whole in the layout `Documents`.
  double slack = 0.03;
};

/// Rows of one sequence that a rank owns. Rows count from the first of the
/// sequence.
struct ContextParallelChunk {
  int64_t sequence;
  int64_t begin, end;             // query rows
  int64_t ownKeyBegin, ownKeyEnd; // rows of k and v
  int64_t keyBegin, keyEnd;       // keys that some of the query rows see
  int64_t queryBegin, queryEnd;   // query rows that see some of the own keys
  /// The chunk as a sequence with the keys [keyBegin, keyEnd): its entry of
  /// q_offset.
  int64_t qOffset;
  int64_t pairs; // of a query row and a key that it sees
};

/// The chunks of each rank, in the order of sequences and rows. Each query row,
/// and each row of k and v, of a sequence has one owner; a sequence without
/// queries has its keys in a chunk without rows. Work, which is pairs and
/// `rowCost` for each row, differs from an equal share of it by at most that of
/// `multiple` rows, and by `slack`.
///
/// Errors say which entry, number or option was not what it has to be.
using ContextParallelPlan =
    llvm::SmallVector<llvm::SmallVector<ContextParallelChunk>>;
llvm::Expected<ContextParallelPlan>
planContextParallel(const ContextParallelBatch &batch,
                    const ContextParallelOptions &options);

/// The plan in which ranks own the same rows as in `plan`, of a batch that
/// differs in its mask: of layers with other windows.
ContextParallelPlan withMask(const ContextParallelBatch &batch,
                             const ContextParallelPlan &plan);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_CONTEXTPARALLELPLAN_H
