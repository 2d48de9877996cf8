//===- AttentionInterface.h - What attention ops have in common -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bodies of methods that varlen.attn and varlen.attn_grad share.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen::detail {

/// What every attention reads, those operands that there are.
SmallVector<NamedValue> getAttentionInputs(AttentionOpInterface op);

/// `value` as the out of `op`, Tq x Hq x Dv, as its lse, Hq x Tq, or of the
/// shape of `other`, one of its inputs.
ShapedByInputs shapeOfOut(StringRef name, Value value, AttentionOpInterface op);
ShapedByInputs shapeOfLse(StringRef name, Value value, AttentionOpInterface op);
ShapedByInputs shapeLike(StringRef name, Value value, NamedValue other);

/// Whether types differ in what extents they know only.
bool areCompatibleTypes(TypeRange l, TypeRange r);

/// The extents of `result`: what its type says, else those of `sources`. A
/// dynamic extent has to be a value.
SmallVector<OpFoldResult> reifyShape(OpBuilder &builder, Value result,
                                     ArrayRef<ExtentOf> sources);
LogicalResult reifyShapes(AttentionOpInterface op, OpBuilder &builder,
                          ReifiedRankedShapedTypeDims &shapes);

void setResultNames(AttentionOpInterface op, OpAsmSetValueNameFn setName);

void getBufferEffects(
    AttentionOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects);
Speculation::Speculatability getSpeculatability(AttentionOpInterface op);

/// The rules that hold for every attention (attn_c1 to attn_c13, attn_c17,
/// attn_c18).
LogicalResult verifyAttention(AttentionOpInterface op);

/// That the values of `op` whose shapes follow from its inputs have them, as
/// far as their types say.
LogicalResult verifyShapes(AttentionOpInterface op);

} // namespace mlir::varlen::detail

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_ATTENTIONINTERFACE_H
