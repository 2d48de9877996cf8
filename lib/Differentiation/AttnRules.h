//===- AttnRules.h - Rules of attention and its derivatives -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_ATTNRULES_H
#define VARLEN_LIB_DIFFERENTIATION_ATTNRULES_H

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlir::varlen {

/// Gives varlen.attn and its derivatives, with destinations or without, the
/// rules that there are: both of varlen.attn and varlen.attn_grad, that of the
/// reverse mode of varlen.attn_jvp.
void attachAttnRules(MLIRContext &context);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_ATTNRULES_H
