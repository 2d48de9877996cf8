//===- MatchLLVM.h - Read LLVM's headers as LLVM was built ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included before everything else where LLVM was built without assertions and
// our own assertions are on. llvm::Statistic is the one class that NDEBUG gives
// another layout: with ours, the counters of a pass would be memory that MLIR's
// constructor, compiled into the library, leaves as it is. So the class is read
// as the library has it; its counters then count nothing.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CMAKE_MATCHLLVM_H
#define VARLEN_CMAKE_MATCHLLVM_H

#ifndef NDEBUG
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#endif

#endif // VARLEN_CMAKE_MATCHLLVM_H
