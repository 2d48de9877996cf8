//===- Layouts.h - Layouts of attention on buffers --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_LAYOUTS_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_LAYOUTS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// Gives memrefs of the operation whose last extent is 0 or 1 a last stride of
/// 1: no index has a use for another one.
void setUnusedStrides(AttentionOpInterface op);

/// Emits an error that names the operand unless it is a memref whose last
/// stride is 1, with any other strides. Tiles of all targets rely on that.
LogicalResult verifyLayout(AttentionOpInterface op, NamedValue operand);

/// The same for all memrefs that an attention on buffers reads and writes.
LogicalResult verifyLayouts(AttentionOpInterface op);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_LAYOUTS_H
