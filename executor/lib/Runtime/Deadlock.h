//===- Deadlock.h - Threads that end, and those that cannot -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_DEADLOCK_H
#define VARLEN_LIB_EXECUTOR_DEADLOCK_H

namespace varlen::executor {

struct Thread;
struct Worker;

/// Takes a thread out of everything that counts threads, and reports what it
/// leaves behind.
void threadExits(Thread &thread);
/// Reports who waits for what.
void reportDeadlock(Worker &worker, const char *reason);
/// Whether another host thread may still do what this one's threads poll for;
/// lets it run.
bool othersWork(Worker &worker);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_DEADLOCK_H
