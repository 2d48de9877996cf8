//===- Flops.h - The useful work of a run -----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_FLOPS_H
#define VARLEN_TOOLS_RUN_FLOPS_H

#include "Signature.h"

namespace varlen_run {

/// Floating-point operations that the attentions' results need: for each query
/// head and each key that a query sees 2 * (D + Dv), and 2 * (3 D + 2 Dv) for
/// gradients. None if an attention's cu_seqlens are no argument. Takes inputs
/// that a run has found valid.
std::optional<double> countUsefulFlops(const Signature &signature,
                                       llvm::ArrayRef<Tensor> inputs);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_FLOPS_H
