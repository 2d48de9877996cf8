//===- varlen-plugin.cpp - Varlen for a stock mlir-opt --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include "llvm/Config/llvm-config.h"

using namespace mlir;

/// A tool may load the plugin for its dialects, for its passes, or for both,
/// and registering a pipeline twice is an error.
static void registerPassesOnce() {
  [[maybe_unused]] static bool done = (varlen::registerAllPasses(), true);
}

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Varlen", LLVM_VERSION_STRING,
          [](DialectRegistry *registry) {
            varlen::registerAllDialects(*registry);
            varlen::registerAllExtensions(*registry);
            registerPassesOnce();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Varlen", LLVM_VERSION_STRING,
          registerPassesOnce};
}
