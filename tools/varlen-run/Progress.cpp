//===- Progress.cpp - A line on stderr for work that takes long -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "Host.h"

#include <cinttypes>
#include <cstdio>
#include <unistd.h>

using namespace varlen_run;
using namespace std::chrono_literals;

Progress::Progress()
    : start(std::chrono::steady_clock::now()), isTerminal(isatty(2)) {
  auto watch = [](void *progress) -> void * {
    static_cast<Progress *>(progress)->watch();
    return nullptr;
  };
  isWatched = pthread_create(&thread, nullptr, watch, this) == 0;
}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
  }
  wake.notify_one();
  if (isWatched)
    pthread_join(thread, nullptr);
  if (printed && isTerminal)
    fputs("\r\033[K", stderr);
}

void Progress::setPhase(std::string next) {
  std::lock_guard<std::mutex> lock(mutex);
  phase = std::move(next);
}

void Progress::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  auto period = 1000ms;
  while (!wake.wait_for(lock, period, [this] { return done; })) {
    print();
    if (!isTerminal)
      period = 10000ms;
  }
}

void Progress::print() {
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const ItemProgress &items = getItemProgress();
  char share[32] = "";
  if (int64_t all = items.all)
    snprintf(share, sizeof share, ", %" PRId64 " %% of its tiles",
             std::min(items.done.load(), all) * 100 / all);
  fprintf(stderr, "%s%s%s, %.0f s%s", isTerminal ? "\r\033[K" : "",
          phase.c_str(), share, time.count(), isTerminal ? "" : "\n");
  printed = true;
}
