//===- CompileThreads.cpp - Threads of passes -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ExecutionEngine/CompileThreads.h"

#include "varlen/Runtime/Runtime.h"

using namespace mlir;
using namespace mlir::varlen;

void CompileThreads::asyncEnqueue(llvm::unique_function<void()> task,
                                  llvm::ThreadPoolTaskGroup *group) {
  std::lock_guard lock(mutex);
  tasks[group].push_back(std::move(task));
}

void CompileThreads::run(llvm::ThreadPoolTaskGroup *group) {
  Tasks ofGroup;
  {
    std::lock_guard lock(mutex);
    auto found = tasks.find(group);
    if (found == tasks.end())
      return;
    ofGroup = std::move(found->second);
    tasks.erase(found);
  }
  varlen_parallel_for(
      static_cast<int64_t>(ofGroup.size()), /*workspace_bytes=*/0,
      [](void *context, int64_t lo, int64_t hi, void *) {
        auto &tasks = *static_cast<Tasks *>(context);
        for (int64_t i = lo; i < hi; ++i)
          tasks[i]();
      },
      &ofGroup);
}

unsigned CompileThreads::getMaxConcurrency() const {
  return static_cast<unsigned>(varlen_get_num_threads());
}
