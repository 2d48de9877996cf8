//===- Patterns.h - Patterns of conversions ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The patterns of passes that others may compose with theirs. Each pass says in
// Passes.td what its patterns require and guarantee.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_PATTERNS_H
#define VARLEN_CONVERSION_PATTERNS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::varlen {

/// varlen-expand-narrow-floats: conversions between f32 and bf16 or f16, of the
/// types that are enabled, to arithmetic on integers. Upstream's patterns widen
/// other arithmetic on narrow types; the pass runs them first.
void populateExpandNarrowFloatsPatterns(RewritePatternSet &patterns, bool bf16,
                                        bool f16);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_PATTERNS_H
