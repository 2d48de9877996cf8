//===- Lock.h - Holds a mutex -----------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_GPU_LOCK_H
#define VARLEN_LIB_RUNTIME_GPU_LOCK_H

#include <pthread.h>

namespace varlen_runtime {

/// Holds a mutex while it lives.
class Lock {
public:
  explicit Lock(pthread_mutex_t &mutex) : mutex(mutex) {
    pthread_mutex_lock(&mutex);
  }
  ~Lock() { pthread_mutex_unlock(&mutex); }
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;

private:
  pthread_mutex_t &mutex;
};

} // namespace varlen_runtime

#endif // VARLEN_LIB_RUNTIME_GPU_LOCK_H
