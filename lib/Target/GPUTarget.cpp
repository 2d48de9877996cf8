//===- GPUTarget.cpp - What the GPUs we generate code for can do ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/GPUTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::varlen;

static constexpr GPUTarget table[] = {
    {"sm_80", 70, 163 * 1024},
    {"sm_86", 71, 99 * 1024},
    {"sm_87", 74, 163 * 1024},
    {"sm_89", 78, 99 * 1024},
    {"sm_90", 78, 227 * 1024, false, true, false, true},
    {"sm_90a", 80, 227 * 1024, true, true, true, true, true},
    {"sm_100", 86, 227 * 1024, false, true, false, true},
    {"sm_100a", 86, 227 * 1024, false, true, true, true},
    {"sm_103", 88, 227 * 1024, false, true, false, true},
    {"sm_103a", 88, 227 * 1024, false, true, true, true},
    {"sm_120", 87, 99 * 1024, false, true, false, true},
    {"sm_120a", 87, 99 * 1024, false, true, true, true},
};

const GPUTarget *mlir::varlen::lookupGPUTarget(llvm::StringRef name) {
  const GPUTarget *target =
      llvm::find_if(table, [&](const GPUTarget &t) { return t.name == name; });
  return target == std::end(table) ? nullptr : target;
}

std::string mlir::varlen::getGPUTargetNames() {
  return llvm::join(
      llvm::map_range(table, [](const GPUTarget &t) { return t.name; }), ", ");
}
