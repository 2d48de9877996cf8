//===- FilledMemory.h - What a result is filled with before -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg: a sum that begins with zeros need not read
// them from memory, and they need not be written.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_FILLEDMEMORY_H
#define VARLEN_LIB_LINALG_TRANSFORMS_FILLEDMEMORY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// The fill of a result of an operation on memrefs, if the operation is the
/// first one that reads or writes any of it afterwards.
linalg::FillOp findFill(linalg::LinalgOp op, OpOperand &init);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_FILLEDMEMORY_H
