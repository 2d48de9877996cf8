//===- Functions.h - Functions that custom calls name -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_XLA_FUNCTIONS_H
#define VARLEN_LIB_XLA_FUNCTIONS_H

#include "varlen-c/Varlen.h"

#include <string>

namespace varlen_xla {

/// The function of a module's text, which is compiled if that was not done
/// before. Functions stay until the process ends.
VarlenStatus findFunction(const std::string &source, VarlenFunction &function);

/// The same for the kernels of that function, for a GPU of the target table.
VarlenStatus findLauncher(const std::string &source, const std::string &chip,
                          VarlenLauncher &launcher);

} // namespace varlen_xla

#endif // VARLEN_LIB_XLA_FUNCTIONS_H
