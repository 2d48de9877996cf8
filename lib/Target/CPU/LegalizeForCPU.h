//===- LegalizeForCPU.h - Steps of varlen-legalize-for-cpu ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_TARGET_CPU_LEGALIZEFORCPU_H
#define VARLEN_LIB_TARGET_CPU_LEGALIZEFORCPU_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::varlen {

/// Writes pairs of f32 that are rounded to bf16 as integers of 32 bits, and dot
/// products of pairs (`x86vector.avx512.dot` on every target) as what the
/// target has for them.
void expandPairs(ModuleOp module, const CPUTarget &target);

/// Has arithmetic on f16 and bf16 done in f32, and writes conversions that the
/// target has no instruction for as integer arithmetic.
LogicalResult expandNarrowFloats(ModuleOp module, const CPUTarget &target);

/// Calls libm for math.erf, erfc, cbrt, asinh, acosh and atanh, and writes
/// fpowi as products or as a power of floats.
LogicalResult callLibm(ModuleOp module);

/// Writes maxima and minima where no NaN is lost as the comparison and
/// selection that x86 has one instruction for.
void expandMinMax(ModuleOp module);

} // namespace mlir::varlen

#endif // VARLEN_LIB_TARGET_CPU_LEGALIZEFORCPU_H
