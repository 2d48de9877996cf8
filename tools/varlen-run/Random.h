//===- Random.h - Reproducible normal random numbers ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value depends on the seed, the tensor's name and the element's index only,
// and is computed with IEEE additions, multiplications, divisions and square
// roots in a fixed order, so every machine gets the same bits, and so does
// python/varlen/random.py.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_RANDOM_H
#define VARLEN_TOOLS_RUN_RANDOM_H

#include "Tensor.h"

namespace varlen_run {

/// Fills a tensor of floats, or of 32 times these in i8, with N(0, 1), rounded
/// to f32 and then to the tensor's type, on the runtime's threads.
void fillNormal(Tensor &tensor, uint64_t seed, llvm::StringRef name);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_RANDOM_H
