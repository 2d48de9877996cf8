//===- Fiber.h - Stacks that are switched by hand ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_FIBER_H
#define VARLEN_LIB_EXECUTOR_FIBER_H

#include <cstddef>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VARLEN_FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(VARLEN_FIBER_ASAN)
#define VARLEN_FIBER_ASAN 1
#endif

namespace varlen::executor {

/// Where a fiber, or the host thread itself, goes on.
struct Context {
#if defined(__x86_64__)
  void *stackPointer = nullptr;
#else
  ucontext_t context;
#endif
#ifdef VARLEN_FIBER_ASAN
  void *fakeStack = nullptr;
  const void *stackBottom = nullptr;
  size_t stackSize = 0;
#endif
};

/// Lets `context` start at `entry`, which must not return, on the stack given.
void prepareContext(Context &context, char *stack, size_t size,
                    void (*entry)());

/// Saves where we are into `from` and goes on at `to`. `final`: `from` will
/// never go on.
void switchContext(Context &from, Context &to, bool final = false);

/// First thing on a new stack. `previous` is where the switch came from.
void enteredContext(Context &previous);

/// Stacks of one size, reused from launch to launch. The lower quarter of each
/// is a guard (a frame of compiled code may be larger than a page), as long as
/// the kernel's limit on mappings allows it.
class StackPool {
public:
  explicit StackPool(size_t size) : size(size) {}
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  /// Null if there is no memory.
  char *get(size_t index);
  size_t bytes() const { return size; }

private:
  size_t size;
  std::vector<char *> stacks;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_FIBER_H
