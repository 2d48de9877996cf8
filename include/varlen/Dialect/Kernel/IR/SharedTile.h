//===- SharedTile.h - How tiles lie in shared memory ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants for code that computes sizes of shared memory without linking the
// dialect.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_IR_SHAREDTILE_H
#define VARLEN_DIALECT_KERNEL_IR_SHAREDTILE_H

#include <cstdint>

namespace mlir::varlen::kernel {

inline constexpr int64_t kWarpLanes = 32;
/// Columns of a slab of a shared tile, of 16 bits each.
inline constexpr int64_t kSlabColumns = 64;
/// Bytes of a row of a slab.
inline constexpr int64_t kRowBytes = kSlabColumns * 2;
/// A bound on the bytes of shared memory of a CTA: above what any chip has, and
/// within the range of 32-bit offsets.
inline constexpr int64_t kTooManyBytes = int64_t(1) << 31;
/// Planes of bf16 whose sum is an f32 tile.
inline constexpr int64_t kPlanes = 3;
/// Bytes of the mbarriers of a slot of a ring: that it is full, that it is
/// empty.
inline constexpr int64_t kSlotMBarrierBytes = 16;
/// Bytes of the number that a kernel has taken from a counter.
inline constexpr int64_t kTakenBytes = 8;
/// Bytes of a tensor map (PTX ISA, "Tensor-map"), and of the shared memory in
/// which a kernel makes one.
inline constexpr int64_t kTensorMapBytes = 128;
/// Warps of a warpgroup, and how many registers its threads may have once the
/// kernel runs (PTX ISA, setmaxnreg).
inline constexpr int64_t kWarpgroupWarps = 4, kRegisterUnit = 8,
                         kMinMovedRegisters = 24, kMaxMovedRegisters = 256;

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_IR_SHAREDTILE_H
