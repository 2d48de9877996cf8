//===- Checks.h - Whether the inputs fit the attentions ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_CHECKS_H
#define VARLEN_TOOLS_RUN_CHECKS_H

#include "Signature.h"

namespace varlen_run {

/// Checks what the types of each attention leave open, as far as its operands
/// are arguments: extents that must agree, and the values of cu_seqlens and
/// seqused. Compiled code may then trust them. Only the extents with
/// `deviceChecks`: kernels check the values, too.
llvm::Error checkInputs(const Signature &signature,
                        llvm::ArrayRef<Tensor> inputs, bool deviceChecks);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_CHECKS_H
