//===- ReduceAngle.h - Angles of a turn -------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_REDUCEANGLE_H
#define VARLEN_SUPPORT_REDUCEANGLE_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::varlen {

/// Reduces the angle of a sine, cosine or tangent of f32 (a number or a vector)
/// to one turn, where upstream's polynomials are accurate. For larger angles
/// they lose as many bits as the number of turns has: the error is 6e-3 at 1e5,
/// which rotary positions reach, and 3e-7 with this. Does nothing for other
/// operations.
void reduceAngle(Operation *op);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_REDUCEANGLE_H
