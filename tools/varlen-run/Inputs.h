//===- Inputs.h - The values of the entry function's arguments --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_INPUTS_H
#define VARLEN_TOOLS_RUN_INPUTS_H

#include "Options.h"
#include "Safetensors.h"
#include "Signature.h"

namespace varlen_run {

/// One tensor for each argument, of its type and static extents. They come from
/// the first of the files that has them; --random makes those that none has,
/// each on its own: the out and lse that gradients take are then of no
/// attention, which is good for times, not for values.
llvm::Expected<std::vector<Tensor>>
makeInputs(const Signature &signature, const Options &options,
           llvm::ArrayRef<const SafetensorsFile *> files);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_INPUTS_H
