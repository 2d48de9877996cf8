//===- ContractionTransposer.h - Contractions of few rows -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A contraction on memrefs whose right factor
// has the contracted loop last, and which must add up in the order of that
// loop: squares of the right factor are transposed in registers and multiplied
// at once. The factor is read once for a few rows and written nowhere; sums are
// those of a factor that was transposed in memory.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONTRANSPOSER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONTRANSPOSER_H

#include "ContractionForm.h"
#include "varlen/Target/CPUTarget.h"

namespace mlir::varlen {

/// Whether the operation has this form.
bool canTransposeFactor(linalg::LinalgOp op, const ContractionForm &form);

/// Writes its loops before the operation, which the caller erases.
void emitTransposingContraction(OpBuilder &builder, linalg::LinalgOp op,
                                const ContractionForm &form,
                                const CPUTarget &target);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONTRANSPOSER_H
