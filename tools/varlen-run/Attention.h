//===- Attention.h - Attentions on the entry's arguments --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_ATTENTION_H
#define VARLEN_TOOLS_RUN_ATTENTION_H

#include "Tensor.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

namespace varlen_run {

/// What a dimension of an attention's operand counts.
enum class Extent {
  QueryRows,
  KeyRows,
  QueryHeads,
  KvHeads,
  HeadDim,
  ValueHeadDim,
  Pages,
  PageRows
};
inline constexpr size_t numExtents = 8;

/// A dimension of an argument of the entry function.
struct ArgumentDim {
  int64_t argument;
  int64_t dim;
};

/// A varlen.attn or varlen.attn_grad, as far as it can be seen how the entry
/// function's arguments reach it.
struct Attention {
  enum : int64_t { Absent = -1, Computed = -2 };

  struct ExtentSource {
    /// What types say.
    std::optional<int64_t> known;
    /// The dimensions of arguments that have to be of this extent.
    llvm::SmallVector<ArgumentDim> dims;
  };

  /// The arguments that the lists are.
  int64_t cuQ, cuK, usedQ, usedK, offset;
  std::array<ExtentSource, numExtents> extents;
  /// Whether every list is an argument, and every extent that of an argument or
  /// known: nothing that has to hold of the operands is left to be checked
  /// where the operation runs.
  bool isKnown;

  const ExtentSource &operator[](Extent extent) const {
    return extents[static_cast<size_t>(extent)];
  }
  /// An extent in a run on `inputs`; none if it cannot be seen.
  std::optional<int64_t> getExtent(Extent extent,
                                   llvm::ArrayRef<Tensor> inputs) const;
};

/// The value that `value` is a cast of. Null if it is none.
mlir::Value getCastSource(mlir::Value value);

/// The dimension that dimension `dim` of `value`, a result of an attention, has
/// its extent from. Null if it is no such result.
std::pair<mlir::Value, int64_t> getShapeSource(mlir::Value value, int64_t dim);

/// What can be seen of `op`, which runs in `entry` or in what it calls.
Attention readAttention(mlir::func::FuncOp entry,
                        mlir::varlen::AttentionOpInterface op);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_ATTENTION_H
