//===- PointSum.h - Sums over an iteration space ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_POINTSUM_H
#define VARLEN_LIB_DIFFERENTIATION_POINTSUM_H

#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/IR/AffineMap.h"

#include "llvm/ADT/SmallBitVector.h"

namespace mlir::varlen {

/// Something that is read at every point of an iteration space: a tensor
/// through its map, or a number.
struct Input {
  Value value;
  AffineMap map;
};

/// The loops that are a dimension of what the map is of.
llvm::SmallBitVector getDims(AffineMap map);

/// Keeps of `inputs`, and of the first arguments of `block`, which are their
/// elements, what is needed: what the block reads, and for each loop that
/// nothing else bounds something of its extent. `bounded` are the loops that
/// outputs bound.
void dropUnused(DerivativeBuilder &b, SmallVectorImpl<Input> &inputs,
                llvm::SmallBitVector bounded, Block &block);

/// A tensor of the shape of `like`: at each element the sum, in f32 at least,
/// of what `make` returns for the points that `map` sends there. It is given
/// the inputs at a point. Null if `make` returns null.
FailureOr<Value>
buildSum(VJPBuilder &b, ArrayRef<Input> inputs, Value like, AffineMap map,
         llvm::function_ref<FailureOr<Value>(OpBuilder &, ValueRange)> make);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_POINTSUM_H
