//===- Executor.cpp - Kernels of the executor, in the fake driver ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"
#include "varlen/Runtime/GPU.h"

#include <cctype>
#include <cstring>
#include <dlfcn.h>

using namespace fake_cuda;

/// The executor, if the process has it; null otherwise.
static const varlen_gpu_backend *getExecutor() {
  static auto *get = reinterpret_cast<const varlen_gpu_backend *(*)()>(
      dlsym(RTLD_DEFAULT, "varlen_gpu_executor"));
  return get ? get() : nullptr;
}

static const char tag[] = "varlen-executor:";

bool fake_cuda::isForExecutor(const char *data) {
  return strncmp(data, tag, sizeof tag - 1) == 0 && getExecutor();
}

void *fake_cuda::loadForExecutor(const char *data) {
  // A name, a point and a number in hexadecimal digits; nothing ends them.
  size_t size = sizeof tag - 1;
  while (data[size] != '.')
    ++size;
  constexpr size_t digits = 16;
  return getExecutor()->load(data, size + 1 + digits, nullptr);
}

void *fake_cuda::findForExecutor(void *module, const char *name) {
  return getExecutor()->find(module, name);
}

void fake_cuda::shareWithExecutor(void *memory, size_t bytes, bool isThere) {
  const varlen_gpu_backend *executor = getExecutor();
  if (executor && isThere)
    executor->register_host(memory, bytes, nullptr);
  else if (executor)
    executor->unregister_host(memory, nullptr);
}

bool fake_cuda::runInExecutor(void *function, const unsigned *grid,
                              const unsigned *block, unsigned sharedBytes,
                              void **parameters) {
  varlen_gpu_launch launch = {{grid[0], grid[1], grid[2]},
                              {block[0], block[1], block[2]},
                              {1, 1, 1},
                              sharedBytes};
  return getExecutor()->launch(function, &launch, nullptr, parameters) == 0;
}
