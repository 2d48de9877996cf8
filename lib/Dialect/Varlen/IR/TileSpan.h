//===- TileSpan.h - Ranges of heads and rows ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tilings of attentions, of varlen.merge and of varlen.online_attn
// have in common.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_TILESPAN_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_TILESPAN_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/Builders.h"

namespace mlir::varlen {

/// A range of heads or of rows.
struct Span {
  OpFoldResult offset, size;
};

/// Loops of the iteration domain of what has an out and an lse.
enum OutLoop { Heads, Rows, NumOutLoops };

/// The iteration domain whose loops have those extents of values.
SmallVector<Range> getDomain(OpBuilder &b, Location loc,
                             ArrayRef<std::pair<Value, int64_t>> extents);

/// Whether a range is known to be all of a dimension.
bool isWhole(const Span &span, Value tensor, int64_t dim);

/// Whether `value` is known to be a multiple of `factor`: a constant, the
/// induction variable of a loop that steps so, or affine in such values. That
/// covers the offsets and sizes that upstream's tiling makes.
bool isMultipleOf(OpFoldResult value, int64_t factor);

/// A range of one dimension of a tensor, and all of the others. An operation
/// that is made for it is added to `slices`.
Value sliceDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
               const Span &span, SmallVectorImpl<Operation *> &slices);

/// The part of `tensor`, which has the shape of a result of `op`, that is the
/// tile's part of that result. The operation is added to `slices`.
FailureOr<Value> sliceAsResult(TilingInterface op, OpBuilder &b,
                               unsigned resultNumber, Value tensor,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes,
                               SmallVectorImpl<Operation *> &slices);

/// The part of out, result 0, or of lse that a tile of heads and rows makes;
/// `wide` has the head size of out.
void getOutTile(OpBuilder &b, Location loc, Value wide, unsigned resultNumber,
                ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                SmallVectorImpl<OpFoldResult> &resultOffsets,
                SmallVectorImpl<OpFoldResult> &resultSizes);

/// The tile that makes such a part; fails for a part of a head's elements,
/// which would cost as much as all of them.
LogicalResult getOutDomainTile(Value wide, unsigned resultNumber,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes,
                               SmallVectorImpl<OpFoldResult> &domainOffsets,
                               SmallVectorImpl<OpFoldResult> &domainSizes);

/// The tile of `op` with those inputs, null where there is none, and `types` of
/// results; with destinations, in its part of these. Added to `tiled`.
FailureOr<TilingResult> createTile(AttentionOpInterface op, OpBuilder &b,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes,
                                   ArrayRef<Type> types, ArrayRef<Value> inputs,
                                   ValueRange captures, TilingResult tiled);

/// The part of `op` that makes a tile of one of its results.
FailureOr<TilingResult> tileResult(TilingInterface op, OpBuilder &b,
                                   unsigned resultNumber,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_TILESPAN_H
