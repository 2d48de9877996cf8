//===- ExtentChecks.h - Rules about extents at run time ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_EXTENTCHECKS_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_EXTENTCHECKS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// A rule about an extent that the types of an attention leave open.
struct ExtentRule {
  enum Kind {
    /// The extent is the bound.
    Same,
    /// The extent, which is the bound too, is not 0.
    Positive,
    /// The extent is a multiple of the bound.
    Multiple
  };
  Kind kind;
  ExtentOf extent, bound;
};

/// What an extent of rows counts, which may be in pages.
enum class RowExtent { Rows, Heads, HeadDim, Pages, PageRows };
RowExtent getRowExtent(const ExtentOf &of);

/// The rules between q, k, v and what has its shape from them. Each may rely on
/// those before it.
SmallVector<ExtentRule> getExtentRules(AttentionOpInterface op);

/// The extents of a rule as index values, and whether it holds: i1.
struct ExtentCheck {
  Value extent, bound;

  Value emitHolds(ImplicitLocOpBuilder &b, ExtentRule::Kind kind) const;
};
ExtentCheck emitExtents(ImplicitLocOpBuilder &b, const ExtentRule &rule);

/// The first rule that is broken, as varlen_extent_error (Runtime.h) calls it,
/// 0 if none is, with the extent and the one it is compared with, as index
/// values; null if there is nothing to check.
struct ExtentFault {
  Value rule, value, bound;
};
ExtentFault emitExtentFault(ImplicitLocOpBuilder &b, AttentionOpInterface op);

/// The extents of keys, as `varlen.batch` has them: the rows that cu_seqlens
/// must stay within, or of keys in pages the rows that a sequence may have, the
/// pages, and the rows of each; null without pages.
struct KeyExtents {
  Value rows, numPages, pageRows;
};
KeyExtents emitKeyExtents(ImplicitLocOpBuilder &b, AttentionOpInterface op);

/// Emits the checks of extents, and a call that reports the first that fails:
/// whether one does, an i1, or null if there is nothing to check. Fails, with
/// an error at `op`, if a name of the runtime is taken.
FailureOr<Value> emitReportedChecks(ImplicitLocOpBuilder &b,
                                    AttentionOpInterface op);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_EXTENTCHECKS_H
