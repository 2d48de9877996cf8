//===- Transforms.h - Patterns of the kernel dialect ------------*- C++ -*-===//
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

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_TRANSFORMS_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_TRANSFORMS_H

#include <cstdint>

namespace mlir {
class ConversionTarget;
class RewritePatternSet;
class TypeConverter;
} // namespace mlir

namespace mlir::varlen::kernel {

/// kernel-distribute, in a kernel of that many warps. `converter` knows how to
/// leave other types alone.
void populateDistributePatternsAndLegality(TypeConverter &converter,
                                           RewritePatternSet &patterns,
                                           ConversionTarget &target,
                                           int64_t warps);

/// kernel-expand-math: operations of the math dialect that are one instruction.
void populateExpandMathPatterns(RewritePatternSet &patterns);

/// kernel-expand-reductions: reductions across lanes to shuffles.
void populateExpandReductionsPatterns(RewritePatternSet &patterns);

/// Adds the patterns of kernel-lower-contract: products of fragments and shared
/// tiles by `warps` warps become instructions of tensor cores. Operands have to
/// be of a form that these have, which the pass checks before. With `wgmma` it
/// is that instruction, which has 16 rows for each warp of whole warpgroups and
/// at most 256 columns.
void populateLowerContractPatternsAndLegality(TypeConverter &converter,
                                              RewritePatternSet &patterns,
                                              ConversionTarget &target,
                                              int64_t warps,
                                              bool wgmma = false);

/// kernel-pack-narrow: truncations of pairs to one instruction.
void populatePackNarrowPatterns(RewritePatternSet &patterns);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_TRANSFORMS_H
