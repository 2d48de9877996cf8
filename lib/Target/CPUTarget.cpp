//===- CPUTarget.cpp - What the CPUs we generate code for can do ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/CPUTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir::varlen;
using llvm::StringRef;
using llvm::Triple;

// Rows of one architecture go from the most general to the most capable CPU:
// the host gets the last row it can run. AArch64 always has NEON.
static constexpr CPUTarget targets[] = {
    {"generic", Triple::x86_64, "x86-64", "+sse2", /*vectorBytes=*/16,
     /*vectorRegisters=*/16, /*hasFMA=*/false, /*hasBF16Dot=*/false,
     /*hasF16Conversion=*/false, /*hasScale=*/false, /*maskedBytes=*/0},
    {"avx2", Triple::x86_64, "x86-64-v3",
     "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe", 32, 16, true, false, true,
     false, 4},
    {"avx512", Triple::x86_64, "x86-64-v4",
     "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,"
     "+avx512dq,+avx512vl",
     64, 32, true, false, true, true, 1},
    {"avx512_bf16", Triple::x86_64, "x86-64-v4",
     "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,"
     "+avx512dq,+avx512vl,+avx512bf16",
     64, 32, true, true, true, true, 1},
    {"neon", Triple::aarch64, "generic", "+neon", 16, 32, true, false, true,
     false, 0},
    {"neon_bf16", Triple::aarch64, "generic", "+neon,+bf16", 16, 32, true, true,
     true, false, 0},
};

const CPUTarget *mlir::varlen::lookupCPUTarget(StringRef name) {
  if (name == "host")
    return &getHostCPUTarget();
  const CPUTarget *target = llvm::find_if(
      targets, [&](const CPUTarget &t) { return t.name == name; });
  return target == std::end(targets) ? nullptr : target;
}

std::string mlir::varlen::getCPUTargetNames() {
  return "host, " +
         llvm::join(llvm::map_range(targets,
                                    [](const CPUTarget &t) { return t.name; }),
                    ", ");
}

const CPUTarget &mlir::varlen::getHostCPUTarget() {
  static const CPUTarget &host = [&]() -> const CPUTarget & {
    for (const CPUTarget &target : llvm::reverse(targets))
      if (hostSupports(target))
        return target;
    // A host that is neither x86-64 nor AArch64 has no row. Drivers refuse it
    // through hostSupports.
    return targets[0];
  }();
  return host;
}

bool mlir::varlen::hostSupports(const CPUTarget &target, std::string *missing) {
  if (Triple(llvm::sys::getProcessTriple()).getArch() != target.arch) {
    if (missing)
      *missing = Triple::getArchTypeName(target.arch).str();
    return false;
  }
  static const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (StringRef feature : llvm::split(target.features, ',')) {
    feature.consume_front("+");
    if (host.lookup(feature))
      continue;
    if (missing)
      *missing = feature.str();
    return false;
  }
  return true;
}

CodegenNames mlir::varlen::getCodegenNames(const CPUTarget &target) {
  CodegenNames names;
  names.cpu = target.cpu.str();
  names.features = target.features.str();
  if (hostSupports(target)) {
    names.triple = llvm::sys::getProcessTriple();
    names.tuneCPU = llvm::sys::getHostCPUName().str();
    return names;
  }
  names.triple =
      (Triple::getArchTypeName(target.arch) + "-unknown-linux-gnu").str();
  names.tuneCPU = names.cpu;
  return names;
}
