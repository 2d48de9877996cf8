//===- CUDADriver.cpp - Opens the CUDA driver -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDADriver.h"

#include "../Error.h"

#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>

using namespace varlen_runtime::cuda;

static Driver driver;
static bool isOpen = false;
/// Why it is not, for every thread that asks.
static char reason[400];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void openDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, sizeof reason,
             "no CUDA driver: %s; expected the driver of an NVIDIA GPU",
             dlerror());
    return;
  }
// NOLINTBEGIN(bugprone-macro-parentheses): a type.
#define VARLEN_CUDA_LOOKUP(name, arguments)                                    \
  driver.name = reinterpret_cast<Result(*) arguments>(dlsym(library, #name));  \
  if (!driver.name) {                                                          \
    snprintf(reason, sizeof reason,                                            \
             "the CUDA driver is too old: it has no %s; expected that of "     \
             "CUDA 12 or later",                                               \
             #name);                                                           \
    return;                                                                    \
  }
  VARLEN_CUDA_FUNCTIONS(VARLEN_CUDA_LOOKUP)
#undef VARLEN_CUDA_LOOKUP
#define VARLEN_CUDA_LOOKUP(name, arguments)                                    \
  driver.name = reinterpret_cast<Result(*) arguments>(dlsym(library, #name));
  VARLEN_CUDA_NEWER_FUNCTIONS(VARLEN_CUDA_LOOKUP)
#undef VARLEN_CUDA_LOOKUP
  // NOLINTEND(bugprone-macro-parentheses)
  if (Result result = driver.cuInit(0)) {
    const char *text = nullptr;
    driver.cuGetErrorString(result, &text);
    snprintf(reason, sizeof reason, "the CUDA driver does not start: %s",
             text ? text : "unknown error");
    return;
  }
  isOpen = true;
}

const Driver *varlen_runtime::cuda::getDriver() {
  pthread_once(&once, openDriver);
  if (isOpen)
    return &driver;
  setError("%s", reason);
  return nullptr;
}

bool varlen_runtime::cuda::check(const Driver &driver, Result result,
                                 const char *what) {
  if (result == Success)
    return true;
  const char *name = nullptr;
  const char *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  setError("%s: %s (%s)", what, text ? text : "unknown error",
           name ? name : "?");
  return false;
}
