//===- Functions.cpp - Functions that custom calls name -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "varlen-c/XLA.h"

#include <mutex>
#include <unordered_map>

using namespace varlen_xla;

namespace {
struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, VarlenFunction> functions;
  /// By chip and source.
  std::unordered_map<std::string, VarlenLauncher> launchers;
};
} // namespace

/// Not destroyed: threads of XLA may still run when the process ends.
static Table &getTable() {
  static auto *table = new Table;
  return *table;
}

VarlenStatus varlen_xla::findFunction(const std::string &source,
                                      VarlenFunction &function) {
  Table &table = getTable();
  // One thread compiles what several want.
  std::lock_guard<std::mutex> lock(table.mutex);
  if (auto found = table.functions.find(source);
      found != table.functions.end()) {
    function = found->second;
    return VARLEN_OK;
  }
  VarlenProgram program;
  if (VarlenStatus status = varlenCompile(source.data(), source.size(),
                                          /*options=*/nullptr, &program))
    return status;
  if (VarlenStatus status =
          varlenProgramGetFunction(program, /*name=*/nullptr, &function)) {
    varlenProgramDestroy(program);
    return status;
  }
  table.functions.emplace(source, function);
  return VARLEN_OK;
}

static std::string makeKey(const std::string &source, const std::string &chip) {
  return chip + "\n" + source;
}

VarlenStatus varlen_xla::findLauncher(const std::string &source,
                                      const std::string &chip,
                                      VarlenLauncher &launcher) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  std::string key = makeKey(source, chip);
  if (auto found = table.launchers.find(key); found != table.launchers.end()) {
    launcher = found->second;
    return VARLEN_OK;
  }
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.chip = chip.c_str();
  // The driver compiles it, and keeps what it has compiled.
  options.format = VARLEN_PTX;
  if (VarlenStatus status = varlenLauncherCompile(source.data(), source.size(),
                                                  &options, &launcher))
    return status;
  table.launchers.emplace(std::move(key), launcher);
  return VARLEN_OK;
}

void varlenXLAAddLauncher(const char *source, size_t size, const char *chip,
                          VarlenLauncher launcher) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.launchers.emplace(makeKey(std::string(source, size), chip), launcher);
}

void varlenXLAAddFunction(const char *source, size_t size,
                          VarlenFunction function) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.functions.emplace(std::string(source, size), function);
}
