//===- CompileThreads.h - Threads of passes ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets passes that run on functions run on the threads of varlen_parallel_for,
// which run the compiled code, too: a process has no second set of threads, and
// who has chosen these has chosen those.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTIONENGINE_COMPILETHREADS_H
#define VARLEN_EXECUTIONENGINE_COMPILETHREADS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FunctionExtras.h"
#include "llvm/Support/ThreadPool.h"

#include <mutex>
#include <vector>

namespace mlir::varlen {

/// For MLIRContext::setThreadPool. Tasks of a group begin when a thread waits
/// for them, which takes part in them.
class CompileThreads : public llvm::ThreadPoolInterface {
public:
  ~CompileThreads() override { wait(); }

  /// For the tasks without a group.
  void wait() override { run(nullptr); }
  void wait(llvm::ThreadPoolTaskGroup &group) override { run(&group); }
  unsigned getMaxConcurrency() const override;

private:
  using Tasks = std::vector<llvm::unique_function<void()>>;

  void asyncEnqueue(llvm::unique_function<void()> task,
                    llvm::ThreadPoolTaskGroup *group) override;
  void run(llvm::ThreadPoolTaskGroup *group);

  std::mutex mutex;
  llvm::DenseMap<llvm::ThreadPoolTaskGroup *, Tasks> tasks;
};

} // namespace mlir::varlen

#endif // VARLEN_EXECUTIONENGINE_COMPILETHREADS_H
