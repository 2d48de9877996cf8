//===- Invocation.h - A run of compiled code --------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code calls malloc, free, abort and the runtime by their names, and
// the JIT gives it the functions of forEachSymbol instead. These serve the
// invocation that the thread is in: with the caller's memory and threads, and
// with a way out for errors that compiled code knows no answer to.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_INVOCATION_H
#define VARLEN_LIB_CAPI_INVOCATION_H

#include "Workspace.h"
#include "varlen-c/Varlen.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <atomic>
#include <mutex>

namespace varlen_capi {

/// A buffer of compiled code that is not in the caller's workspace; its bytes
/// follow.
struct alignas(64) HeapBlock {
  HeapBlock *previous, *next;
};

class Invocation {
public:
  using Entry = void (*)(void **arguments);

  explicit Invocation(const VarlenCallOptions &options);
  Invocation(const Invocation &) = delete;

  /// Calls `entry`.
  VarlenStatus run(Entry entry, void **arguments);

  /// Has `run` skip what threads would do, and count what is allocated: all of
  /// the memory that another run with these extents can need. For code that
  /// varlen-allow-measuring has no objection to.
  void startMeasuring();
  /// The workspace that is enough, of any alignment.
  size_t getMeasured() const { return workspace.getMost(); }

  /// The functions that compiled code gets in place of those it names.
  static void
  forEachSymbol(llvm::function_ref<void(llvm::StringRef, void *)> visit);

private:
  friend struct Entries;
  friend struct Items;

  /// Memory of the workspace, or null if there is not enough left.
  void *takeFromWorkspace(size_t bytes);
  /// Memory of the workspace or the heap; null if there is none.
  void *allocate(size_t bytes);
  void release(void *pointer);
  void releaseAll();
  /// Keeps the first error.
  [[gnu::format(printf, 3, 4)]] void setFailed(VarlenStatus newStatus,
                                               const char *format, ...);
  /// The same; does not return, but ends the run, or the item that the thread
  /// is in.
  [[noreturn, gnu::format(printf, 3, 4)]] void leave(VarlenStatus newStatus,
                                                     const char *format, ...);

  const VarlenParallelForFn parallelFor;
  void *const parallelForContext;
  const int64_t threads;
  bool isMeasuring = false;

  /// Guards what follows, up to the status.
  std::mutex mutex;
  Workspace workspace;
  HeapBlock *blocks = nullptr;
  char message[512] = "";

  std::atomic<VarlenStatus> status{VARLEN_OK};
  /// Whether the runtime's error is about memory.
  bool lacksMemory = false;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_INVOCATION_H
