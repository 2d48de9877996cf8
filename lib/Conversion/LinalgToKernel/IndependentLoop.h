//===- IndependentLoop.h - Loops whose iterations are threads ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_LINALGTOKERNEL_INDEPENDENTLOOP_H
#define VARLEN_LIB_CONVERSION_LINALGTOKERNEL_INDEPENDENTLOOP_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::varlen {

/// The outermost loop of a nest of loads and stores of which a thread can run
/// one iteration, with all loops around it: whatever is stored, each access has
/// the loop's index in the same dimension, so no other iteration touches it.
/// Null if there is none.
scf::ForOp findIndependentLoop(Operation *nest);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_LINALGTOKERNEL_INDEPENDENTLOOP_H
