//===- GPULimits.h - What any GPU has at most -------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA C++ programming guide, technical specifications per compute capability.
// Some have less.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_VARLEN_IR_GPULIMITS_H
#define LIB_DIALECT_VARLEN_IR_GPULIMITS_H

#include <cstdint>

namespace mlir::varlen {

/// Warps of a CTA.
inline constexpr int64_t kMaxWarps = 32;

/// The largest `rescale_threshold` of varlen.online_attn.
inline constexpr int64_t kMaxRescaleThreshold = 8;

/// CTAs and warps of a multiprocessor.
inline constexpr int64_t kMaxCTAs = 32;
inline constexpr int64_t kMultiprocessorWarps = 64;

} // namespace mlir::varlen

#endif // LIB_DIALECT_VARLEN_IR_GPULIMITS_H
