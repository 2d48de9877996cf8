//===- EmitHeader.h - What C declares of compiled functions -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_EMITHEADER_H
#define VARLEN_OPT_EMITHEADER_H

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::varlen {

/// Writes declarations of the public functions of `module`, whose results are
/// arguments already. An error is emitted for types that C has no name for.
LogicalResult emitHeader(ModuleOp module, llvm::raw_ostream &os);

} // namespace mlir::varlen

#endif // VARLEN_OPT_EMITHEADER_H
