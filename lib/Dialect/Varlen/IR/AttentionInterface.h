//===- AttentionInterface.h - What attention ops have in common -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bodies of methods that varlen.attn and its derivatives share, and of some
// that their steps do.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen::detail {

/// What varlen.attn_grad reads beside, and what the kinds of attention compute:
/// results, or buffers in their place.
SmallVector<ShapedByInputs> getGradInputs(AttentionOpInterface op, Value dout,
                                          Value out, Value lse, Value dlse);
SmallVector<ShapedByInputs> getShapedCaptures(AttentionOpInterface op);
/// What varlen.attn reads beside: captures and the scales of quantised rows.
SmallVector<ShapedByInputs> getAttnInputs(AttentionOpInterface op);
/// Whether a capture differs between the queries of a head.
bool isOfQueries(AttentionOpInterface op, unsigned capture);
SmallVector<ShapedByInputs> getAttnResults(AttentionOpInterface op);
SmallVector<ShapedByInputs> getGradients(AttentionOpInterface op);

SmallVector<ShapedByInputs> getJVPInputs(AttentionOpInterface op);
SmallVector<ShapedByInputs> getJVPResults(AttentionOpInterface op);

/// The results of varlen.attn_jvp, or their cotangents.
struct JVPResults {
  Value out, lse, tout, tlse;
};
/// Cotangents may be null but for that of tout.
SmallVector<ShapedByInputs> getJVPGradInputs(AttentionOpInterface op,
                                             const JVPResults &results,
                                             const JVPResults &cotangents);

/// Whether types differ in what extents they know only.
bool areCompatibleTypes(TypeRange l, TypeRange r);

/// The extents of `result`: what its type says, else those of `sources`. A
/// dynamic extent has to be a value.
SmallVector<OpFoldResult> reifyShape(OpBuilder &builder, Value result,
                                     ArrayRef<ExtentOf> sources);
LogicalResult reifyShapes(AttentionOpInterface op, OpBuilder &builder,
                          ReifiedRankedShapedTypeDims &shapes);
/// The shapes of a step's results, which are the shapes of its destinations.
LogicalResult reifyDestinations(DestinationStyleOpInterface op,
                                OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes);

void setResultNames(AttentionOpInterface op, OpAsmSetValueNameFn setName);

void getBufferEffects(
    AttentionOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects);
Speculation::Speculatability getSpeculatability(AttentionOpInterface op);

/// That attributes without the prefix of a dialect are those of the operation:
/// no other one is read by anything. attn_c22
LogicalResult verifyKnownAttributes(Operation *op);

/// The words that a `#varlen.mask` begins with.
ArrayRef<StringLiteral> getMaskKinds();

/// All rules of an attention (docs/attn.md, docs/attn-grad.md), and also those
/// of what reads tangents (docs/attn-jvp.md, docs/attn-jvp-grad.md).
LogicalResult verifyAttention(AttentionOpInterface op);
LogicalResult verifyTangents(AttentionOpInterface op);

/// The meaning in linalg, in the destinations if there are any; fails on
/// buffers. `dlse` may be null, and cotangents but for that of tout.
FailureOr<SmallVector<Value>> decomposeAttn(AttentionOpInterface op,
                                            OpBuilder &builder);
FailureOr<SmallVector<Value>> decomposeGrad(AttentionOpInterface op,
                                            OpBuilder &builder, Value dout,
                                            Value out, Value lse, Value dlse);
FailureOr<SmallVector<Value>> decomposeJVP(AttentionOpInterface op,
                                           OpBuilder &builder);
FailureOr<SmallVector<Value>> decomposeJVPGrad(AttentionOpInterface op,
                                               OpBuilder &builder,
                                               const JVPResults &results,
                                               const JVPResults &cotangents);

//===----------------------------------------------------------------------===//
// TilingInterface
//===----------------------------------------------------------------------===//

/// A range of offsets and sizes, one of each for every dimension.
using Offsets = ArrayRef<OpFoldResult>;
using Sizes = ArrayRef<OpFoldResult>;

SmallVector<utils::IteratorType> getAttnLoops();
SmallVector<Range> getAttnDomain(AttentionOpInterface op, OpBuilder &b);
/// Rewrites what is said of the packed query rows for `numRows` of them from
/// `firstRow` on: cu_q from there on, the rows in use that are among them, and
/// what they are now offset by; a null vector is one that they do without.
void takeRowRange(ImplicitLocOpBuilder &b, AttentionOpInterface op,
                  OpFoldResult firstRow, OpFoldResult numRows, Value &cuQ,
                  Value &sequsedQ, Value &qOffset);
FailureOr<TilingResult> tileAttn(AttentionOpInterface op, OpBuilder &builder,
                                 Offsets offsets, Sizes sizes);
LogicalResult getAttnResultTile(AttentionOpInterface op, OpBuilder &b,
                                unsigned resultNumber, Offsets offsets,
                                Sizes sizes,
                                SmallVectorImpl<OpFoldResult> &resultOffsets,
                                SmallVectorImpl<OpFoldResult> &resultSizes);
LogicalResult getAttnDomainTile(AttentionOpInterface op, OpBuilder &b,
                                unsigned resultNumber, Offsets offsets,
                                Sizes sizes,
                                SmallVectorImpl<OpFoldResult> &domainOffsets,
                                SmallVectorImpl<OpFoldResult> &domainSizes);
/// Whether a part of a result is a tile.
bool isAttnResultTile(AttentionOpInterface op, unsigned resultNumber,
                      Offsets offsets, Sizes sizes);

/// The tile that reads a part of the queries, the only operand that says which;
/// fails for parts of others. Makes no operation.
LogicalResult
getAttnDomainTileOfQueries(AttentionOpInterface op,
                           ArrayRef<unsigned> operandNumbers,
                           ArrayRef<SmallVector<OpFoldResult>> allOffsets,
                           ArrayRef<SmallVector<OpFoldResult>> allSizes,
                           SmallVectorImpl<OpFoldResult> &domainOffsets,
                           SmallVectorImpl<OpFoldResult> &domainSizes);

SmallVector<utils::IteratorType> getGradLoops();
SmallVector<Range> getGradDomain(AttentionOpInterface op, OpBuilder &b);
FailureOr<TilingResult> tileGrad(AttentionOpInterface op, OpBuilder &builder,
                                 Offsets offsets, Sizes sizes);
LogicalResult getGradResultTile(AttentionOpInterface op, OpBuilder &b,
                                unsigned resultNumber, Offsets offsets,
                                Sizes sizes,
                                SmallVectorImpl<OpFoldResult> &resultOffsets,
                                SmallVectorImpl<OpFoldResult> &resultSizes);
LogicalResult getGradDomainTile(AttentionOpInterface op, OpBuilder &b,
                                unsigned resultNumber, Offsets offsets,
                                Sizes sizes,
                                SmallVectorImpl<OpFoldResult> &domainOffsets,
                                SmallVectorImpl<OpFoldResult> &domainSizes);

} // namespace mlir::varlen::detail

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H
