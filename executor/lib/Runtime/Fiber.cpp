//===- Fiber.cpp - Stacks that are switched by hand -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include <cstdint>
#include <sys/mman.h>

#ifdef VARLEN_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

using namespace varlen::executor;

#if defined(__x86_64__)

// The ABI's callee-saved registers are all that must survive: rounding modes
// are the same in every fiber.
extern "C" void varlen_executor_switch(void **save, void *next);
asm(R"(
  .text
  .p2align 4
  .hidden varlen_executor_switch
  .globl varlen_executor_switch
  .type varlen_executor_switch, @function
varlen_executor_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size varlen_executor_switch, . - varlen_executor_switch
)");

void varlen::executor::prepareContext(Context &context, char *stack,
                                      size_t size, void (*entry)()) {
  // On entry to a function rsp is 8 below a multiple of 16: where its return
  // address would be.
  auto *top = reinterpret_cast<void **>(stack + size - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  context.stackPointer = top;
#ifdef VARLEN_FIBER_ASAN
  // An earlier fiber may have been left in the middle of a frame.
  ASAN_UNPOISON_MEMORY_REGION(stack, size);
  context.fakeStack = nullptr;
  context.stackBottom = stack;
  context.stackSize = size;
#endif
}

static inline void jump(Context &from, Context &to) {
  varlen_executor_switch(&from.stackPointer, to.stackPointer);
}

#else

void varlen::executor::prepareContext(Context &context, char *stack,
                                      size_t size, void (*entry)()) {
  getcontext(&context.context);
  context.context.uc_stack.ss_sp = stack;
  context.context.uc_stack.ss_size = size;
  context.context.uc_link = nullptr;
  makecontext(&context.context, entry, 0);
#ifdef VARLEN_FIBER_ASAN
  ASAN_UNPOISON_MEMORY_REGION(stack, size);
  context.fakeStack = nullptr;
  context.stackBottom = stack;
  context.stackSize = size;
#endif
}

static inline void jump(Context &from, Context &to) {
  swapcontext(&from.context, &to.context);
}

#endif

void varlen::executor::switchContext(Context &from, Context &to, bool final) {
#ifdef VARLEN_FIBER_ASAN
  __sanitizer_start_switch_fiber(final ? nullptr : &from.fakeStack,
                                 to.stackBottom, to.stackSize);
#endif
  jump(from, to);
#ifdef VARLEN_FIBER_ASAN
  __sanitizer_finish_switch_fiber(from.fakeStack, nullptr, nullptr);
#endif
}

void varlen::executor::enteredContext(Context &previous) {
#ifdef VARLEN_FIBER_ASAN
  // The host thread's own stack becomes known when the first fiber starts.
  if (previous.stackSize) {
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
    return;
  }
  const void *bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  previous.stackBottom = bottom;
  previous.stackSize = size;
#endif
}

/// A guard splits a mapping in two; Linux allows 65530 per process.
static constexpr size_t maxGuards = 16384;

char *StackPool::get(size_t index) {
  while (stacks.size() <= index) {
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return nullptr;
    if (stacks.size() < maxGuards)
      mprotect(memory, size / 4, PROT_NONE);
    stacks.push_back(static_cast<char *>(memory));
  }
  return stacks[index];
}

StackPool::~StackPool() {
  for (char *stack : stacks)
    munmap(stack, size);
}
