//===- FlattenForall.h - Parallel loops with one index ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_TARGET_CPU_FLATTENFORALL_H
#define VARLEN_LIB_TARGET_CPU_FLATTENFORALL_H

#include "mlir/IR/Operation.h"

namespace mlir::varlen {

/// Makes loops of several indices, or with other bounds or steps, loops of one
/// index from 0 to the number of iterations, which are numbered with the last
/// index fastest. Loops with results or a mapping are left as they are. Returns
/// how many it changes.
int64_t flattenForalls(Operation *root);

} // namespace mlir::varlen

#endif // VARLEN_LIB_TARGET_CPU_FLATTENFORALL_H
