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
struct ExtentCheck {
  /// Whether it is broken: i1.
  Value wrong;
  /// What varlen_extent_error (Runtime.h) calls it.
  int64_t rule;
  /// The extent, and the one it is compared with.
  Value value, bound;
};

/// Emits the comparisons of the rules between q, k, v and what has its shape
/// from them, of an attention on buffers, on the host.
SmallVector<ExtentCheck> emitExtentChecks(ImplicitLocOpBuilder &b,
                                          AttentionOpInterface op);

/// The first rule that is broken, 0 if none is, with the extent and the one it
/// is compared with, as index values; null if there is nothing to check.
struct ExtentFault {
  Value rule, value, bound;
};
ExtentFault emitExtentFault(ImplicitLocOpBuilder &b, AttentionOpInterface op);

/// Emits the checks of extents, and a call that reports the first that fails:
/// whether one does, an i1, or null if there is nothing to check. Fails, with
/// an error at `op`, if a name of the runtime is taken.
FailureOr<Value> emitReportedChecks(ImplicitLocOpBuilder &b,
                                    AttentionOpInterface op);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_EXTENTCHECKS_H
