//===- AppendElements.h - Numbers on their way into a cache -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What varlen.append computes of the elements of a row, for every target. All
// numbers are scalars of one float type, the compute type, but results of
// emitQuantisedElement.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_APPENDELEMENTS_H
#define VARLEN_DIALECT_VARLEN_UTILS_APPENDELEMENTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// The pair (x, y) turned by the angle of that cosine and sine.
std::pair<Value, Value> emitTurnedPair(ImplicitLocOpBuilder &b, Value x,
                                       Value y, Value cos, Value sin);

/// The larger of `largest` and the magnitude of `x`; a NaN if one of them is.
Value emitLargestMagnitude(ImplicitLocOpBuilder &b, Value largest, Value x);

/// The scale of a row with that largest magnitude, an f32, in a cache of
/// `element`, i8 or f8E4M3FN; 1 where all of the row is 0.
Value emitRowScale(ImplicitLocOpBuilder &b, Value largest, Type element);

/// `x` divided by the scale of its row, in the type of a quantised cache; 0 of
/// a NaN, whose row has a scale that is not finite.
Value emitQuantisedElement(ImplicitLocOpBuilder &b, Value x, Value scale,
                           Type element);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_APPENDELEMENTS_H
