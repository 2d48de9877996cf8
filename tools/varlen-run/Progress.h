//===- Progress.h - A line on stderr for work that takes long ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_PROGRESS_H
#define VARLEN_TOOLS_RUN_PROGRESS_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <string>

namespace varlen_run {

/// Once work has lasted a second, says what is being done: on a terminal every
/// second on the same line, else every ten seconds on a new one. Says nothing
/// where the system has no thread for it.
class Progress {
public:
  Progress();
  ~Progress();
  /// What follows, "compiling", ...
  void setPhase(std::string next);

private:
  void watch();
  void print();

  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::string phase;
  std::chrono::steady_clock::time_point start;
  const bool isTerminal;
  bool printed = false;
  pthread_t thread;
  bool isWatched;
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_PROGRESS_H
