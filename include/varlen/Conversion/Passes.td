//===- Passes.td - Conversions out of varlen ---------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_PASSES_TD
#define VARLEN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // VARLEN_CONVERSION_PASSES_TD
