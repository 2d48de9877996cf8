//===- Host.h - What compiled code finds in its host ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_HOST_H
#define VARLEN_TOOLS_RUN_HOST_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <atomic>
#include <cstdint>

namespace varlen_run {

/// Calls visit(name, address) for every symbol that compiled code gets from us:
/// the runtime library, and memory that is counted. Of two of a name the last
/// counts.
void forEachHostSymbol(llvm::function_ref<void(llvm::StringRef, void *)> visit);

/// Frees a buffer that compiled code has allocated; any other is left alone.
void releaseBuffer(void *pointer);

/// The most memory that compiled code has held at once: its buffers, the lists
/// of work tiles and the threads' workspaces, since the last restart.
int64_t getPeakBytes();
void restartPeakBytes();
/// What it holds now.
int64_t getLiveBytes();

/// Items of the varlen_parallel_for that is running: done and all of them.
struct ItemProgress {
  std::atomic<int64_t> done{0}, all{0};
};
const ItemProgress &getItemProgress();

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_HOST_H
