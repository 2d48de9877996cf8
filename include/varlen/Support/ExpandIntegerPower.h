//===- ExpandIntegerPower.h - Powers by integers ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_EXPANDINTEGERPOWER_H
#define VARLEN_SUPPORT_EXPANDINTEGERPOWER_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {

/// Replaces a `math.fpowi`, whose integer may have any width and any value, by
/// a `math.powf` of the absolute value, of f32 at least, and the sign that an
/// odd integer leaves. The integer is rounded to the float type for the power
/// alone: beyond its significand that is off by as much as a power by floats.
/// Upstream's expansion rounds the parity away, too. It keeps integers that are
/// constants, of which it makes products.
void populateExpandIntegerPowerPatterns(RewritePatternSet &patterns);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_EXPANDINTEGERPOWER_H
