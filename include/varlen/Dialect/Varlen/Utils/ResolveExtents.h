//===- ResolveExtents.h - Extents of tiles as those of memory ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_RESOLVEEXTENTS_H
#define VARLEN_DIALECT_VARLEN_UTILS_RESOLVEEXTENTS_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::varlen {

/// Makes extents of tensors below `root` those of memory, as far as they are: a
/// tile that is computed has those of its destination.
void resolveExtents(Operation *root);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_RESOLVEEXTENTS_H
