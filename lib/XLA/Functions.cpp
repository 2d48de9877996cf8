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

void varlenXLAAddFunction(const char *source, size_t size,
                          VarlenFunction function) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.functions.emplace(std::string(source, size), function);
}
