//===- GPUTarget.h - What the GPUs we generate code for can do --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of GPU targets as data. To add a chip, add a row to the table in
// GPUTarget.cpp. Nothing here depends on a code generator.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_GPUTARGET_H
#define VARLEN_TARGET_GPUTARGET_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mlir::varlen {

/// A compute capability of NVIDIA's. Plain data.
struct GPUTarget {
  /// What ptxas and pipelines call it: sm_80, ...
  llvm::StringRef name;
  /// The first version of PTX that has it, times ten (CUDA's PTX ISA, release
  /// notes).
  int64_t minPTX;
  /// Bytes of shared memory that one CTA can have (CUDA C++ programming guide,
  /// technical specifications per compute capability).
  int64_t sharedBytes;
  /// Whether it has wgmma, the tensor-core instruction of warpgroups (PTX ISA).
  bool hasWgmma = false;
  /// Whether it has mbarrier.try_wait, with which threads sleep (PTX ISA).
  bool hasTryWait = false;
  /// Whether it has setmaxnreg, by which a warpgroup gives registers to another
  /// one (PTX ISA).
  bool hasSetMaxRegister = false;
  /// Whether it has griddepcontrol, by which a kernel that runs beside those
  /// before it waits for them (PTX ISA).
  bool hasGridControl = false;
  /// Whether kernels copy by tensor maps that they make: there are bulk copies
  /// and tensormap.replace (PTX ISA).
  bool makesTensorMaps = false;
};

/// The 32-bit registers of a multiprocessor of any of them.
inline constexpr int64_t kMultiprocessorRegisters = 1 << 16;

/// The first version of PTX, times ten, whose assemblers take strides of
/// tensormap.replace in bytes, as it says: that of CUDA 12.5, for 8.5, takes
/// them in 16 bytes.
inline constexpr int64_t kMinMapPTX = 86;

/// The newest version of PTX, times ten, that the LLVM we use writes.
inline constexpr int64_t kNewestPTX = 90;

/// Null if there is no target of that name; `getGPUTargetNames` then says what
/// would have been valid.
const GPUTarget *lookupGPUTarget(llvm::StringRef name);

/// "sm_80, sm_86, ...", for messages.
std::string getGPUTargetNames();

} // namespace mlir::varlen

#endif // VARLEN_TARGET_GPUTARGET_H
