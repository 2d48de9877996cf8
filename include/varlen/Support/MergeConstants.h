//===- MergeConstants.h - Each constant of a function once ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_MERGECONSTANTS_H
#define VARLEN_SUPPORT_MERGECONSTANTS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::varlen {

/// Leaves each constant of a function once, at its beginning, and none that is
/// unused. Constants in bodies of other operations than the loops and branches
/// of scf, and launches, as of a score, are part of what these say, and stay.
void mergeConstants(FunctionOpInterface function);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_MERGECONSTANTS_H
