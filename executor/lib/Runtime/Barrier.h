//===- Barrier.h - Barriers of a CTA ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_BARRIER_H
#define VARLEN_LIB_EXECUTOR_BARRIER_H

namespace varlen::executor {

struct Block;

/// Barriers of all threads do not wait for those that have exited.
void barrierMemberExits(Block &block);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_BARRIER_H
