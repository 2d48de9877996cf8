//===- CPUTarget.h - What the CPUs we generate code for can do --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of CPU targets as data: passes read vector sizes from it, drivers
// read the names that LLVM's code generator knows. To add a CPU, add a row to
// the table in CPUTarget.cpp. Nothing here depends on a code generator.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_CPUTARGET_H
#define VARLEN_TARGET_CPUTARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdint>
#include <string>

namespace mlir::varlen {

/// A class of CPUs that run the same code. Plain data.
struct CPUTarget {
  /// What pipelines and drivers call it.
  llvm::StringRef name;
  llvm::Triple::ArchType arch;
  /// LLVM's names: the processor whose instructions may be used, and all
  /// features that are relied on ("+a,+b"), those of `cpu` included.
  llvm::StringRef cpu;
  llvm::StringRef features;
  /// Bytes of the widest vector register, and how many registers there are.
  int64_t vectorBytes;
  int64_t vectorRegisters;
  /// A fused multiply-add on vectors.
  bool hasFMA;
  /// A dot product of bf16 pairs that accumulates in f32.
  bool hasBF16Dot;
  /// f16 <-> f32 conversions. Without them LLVM calls compiler-rt.
  bool hasF16Conversion;
  /// x * 2^n on whole vectors, for any n, as AVX-512's vscalef.
  bool hasScale;
  /// Bytes of the smallest elements of which a vector's load or store may leave
  /// out some; 0 if LLVM writes a branch for each element.
  int64_t maskedBytes;

  int64_t getLanes(int64_t elementBytes) const {
    return vectorBytes / elementBytes;
  }
};

/// What a code generator has to be told to generate code for a target.
struct CodegenNames {
  std::string triple;
  std::string cpu;
  /// Processor to schedule for; the instructions stay those of `cpu`.
  std::string tuneCPU;
  std::string features;
};

/// The target of that name; "host" is the best one this machine can run. Null
/// if there is none: `getCPUTargetNames` then says what would have been valid.
const CPUTarget *lookupCPUTarget(llvm::StringRef name);

/// "host, generic, avx2, ...", for messages.
std::string getCPUTargetNames();

/// The best target that this machine can run.
const CPUTarget &getHostCPUTarget();

/// Whether this machine can run code for `target`; if not, `missing` (may be
/// null) is set to the feature it lacks, or to the architecture.
bool hostSupports(const CPUTarget &target, std::string *missing = nullptr);

/// The names to give to LLVM. Code for a target that the host can run is tuned
/// for the host's processor, all other code for `target.cpu`.
CodegenNames getCodegenNames(const CPUTarget &target);

} // namespace mlir::varlen

#endif // VARLEN_TARGET_CPUTARGET_H
