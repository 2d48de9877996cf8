//===- VarlenAttnBase.td - What attentions share -----------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_ATTN_BASE_TD
#define VARLEN_ATTN_BASE_TD

include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "varlen/Dialect/Varlen/IR/VarlenInterfaces.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/IR/OpAsmInterface.td"

def Varlen_Packed : Varlen_Shaped<Varlen_Float, 3>;
def Varlen_KeyRows : Varlen_RowsOrPages<Varlen_KeyElement>;
/// What quantised keys or values are multiplied by.
def Varlen_KeyScale
    : AnyTypeOf<[TensorRankOf<[F32], [1, 2, 3]>, MemRefRankOf<[F32], [1, 2, 3]>],
                "rank-1, rank-2 or rank-3 tensor or memref of f32">;
def Varlen_BlockTable : Varlen_Shaped<I32, 2>;
def Varlen_CuSeqlens : Varlen_Shaped<Varlen_Index, 1>;
def Varlen_Sink : Varlen_Shaped<Varlen_ComputeFloat, 1>;
def Varlen_Lse : Varlen_Shaped<Varlen_ComputeFloat, 2>;
/// A number for each query head, or for each query row of each; or a table, a
/// row of numbers in place of the number, or a number for each key of each head.
def Varlen_Capture
    : AnyTypeOf<[TensorRankOf<[Varlen_ComputeFloat], [1, 2, 3]>,
                 MemRefRankOf<[Varlen_ComputeFloat], [1, 2, 3]>],
                "rank-1, rank-2 or rank-3 tensor or memref of f32 or f64">;
def Varlen_Gradient
    : AnyTypeOf<[Varlen_Tensor<Varlen_Float, 3>, Varlen_Tensor<Varlen_ComputeFloat, 1>,
                 Varlen_Tensor<Varlen_ComputeFloat, 2>]>;
def Varlen_GradientBuffer
    : AnyTypeOf<[Varlen_MemRef<Varlen_Float, 3>, Varlen_MemRef<Varlen_ComputeFloat, 1>,
                 Varlen_MemRef<Varlen_ComputeFloat, 2>]>;

/// What scores are multiplied by: f32, or f64 with f64 elements.
def Varlen_ScaleAttr : Attr<
    CPred<"::llvm::isa<::mlir::FloatAttr>($_self) && "
          "::llvm::isa<::mlir::Float32Type, ::mlir::Float64Type>("
          "::llvm::cast<::mlir::FloatAttr>($_self).getType())">,
    "f32 or f64 attribute"> {
  let storageType = "::mlir::FloatAttr";
  let returnType = "::llvm::APFloat";
  let convertFromStorage = "$_self.getValue()";
}

/// `varlen.attn`, its derivatives, and all in destination-passing style. `methods`
/// are methods of the interface that have a default and that the class defines.
class Varlen_AttentionOp<string mnemonic, list<Trait> traits, list<string> methods = []>
    : Varlen_Op<mnemonic, !listconcat([
        AttrSizedOperandSegments, IsolatedFromAbove,
        DeclareOpInterfaceMethods<Varlen_AttentionOpInterface, methods>,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, [
          "getAsmResultNames", "getAsmBlockArgumentNames"]>], traits)> {
  // None, or one. A region that is empty instead is a crash in upstream's folding
  // of casts into operations in destination-passing style.
  let regions = (region VariadicRegion<SizedRegion<1>>:$score);
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  /// What every class defines in the same way.
  code sharedDefinition = [{
    LogicalResult $cppClass::reifyResultShapes(
        OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
      return detail::reifyShapes(*this, builder, shapes);
    }
    void $cppClass::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
      detail::getBufferEffects(*this, effects);
    }
    Speculation::Speculatability $cppClass::getSpeculatability() {
      return detail::getSpeculatability(*this);
    }
    void $cppClass::getAsmResultNames(OpAsmSetValueNameFn setName) {
      detail::setResultNames(*this, setName);
    }
    void $cppClass::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
      setScoreArgumentNames(region, setName);
    }
  }];
  /// What those that read tangents do.
  code tangentDefinition = [{
    LogicalResult $cppClass::verify() { return detail::verifyTangents(*this); }
    AttnTangents $cppClass::getTangents() {
      return {getTq(), getTk(), getTv(), getTsink(), getTcaptures()};
    }
  }];
  /// What those that upstream tiles do.
  code tilingDefinition = [{
    LogicalResult $cppClass::verify() { return detail::verifyAttention(*this); }
    FailureOr<TilingResult> $cppClass::generateResultTileValue(
        OpBuilder &b, unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes) {
      return tileResult(*this, b, resultNumber, offsets, sizes);
    }
  }];
}

/// `varlen.attn`, with destinations or without.
class Varlen_AttnOpBase<string mnemonic, list<Trait> traits>
    : Varlen_AttentionOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<TilingInterface, [
          "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
          "getResultTilePosition", "generateResultTileValue",
          "getIterationDomainTileFromResultTile", "isOpFusableWithConsumerSlice",
          "getIterationDomainTileFromOperandTiles",
          "getTiledImplementationFromOperandTiles",
          "isOpFusableWithProducerSlices"]>], traits)> {
  dag inputs = (ins
    Arg<Varlen_Packed, "queries, Tq x Hq x D">:$q,
    Arg<Varlen_KeyRows, "keys, Tk x Hkv x D, or in pages P x page x Hkv x D">:$k,
    Arg<Varlen_KeyRows, "values, Tk x Hkv x Dv, or in pages P x page x Hkv x Dv">:$v,
    Arg<Varlen_CuSeqlens, "first query row of each sequence, and the end: N+1">:$cu_q,
    Arg<Optional<Varlen_CuSeqlens>, "first key row of each sequence, and the end: N+1; none of keys in pages">:$cu_k,
    Arg<Optional<Varlen_CuSeqlens>, "query rows in use of each sequence: N">:$seqused_q,
    Arg<Optional<Varlen_CuSeqlens>, "keys in use of each sequence: N">:$seqused_k,
    Arg<Optional<Varlen_CuSeqlens>, "added to the position of each query of a sequence: N">:$q_offset,
    Arg<Optional<Varlen_Sink>, "logit in each head's softmax denominator: Hq">:$sink);
  let extraClassDefinition = sharedDefinition # tilingDefinition # [{
    SmallVector<Value> $cppClass::getInputSlots() {
      return {getQ(), getK(), getV(), getCuQ(), getCuK(), getSequsedQ(),
              getSequsedK(), getQOffset(), getSink(), getBlockTable(), getKScale(),
              getVScale()};
    }
    ArrayRef<int64_t> $cppClass::getWrtCaptures() { return {}; }
    SmallVector<ShapedByInputs> $cppClass::getShapedInputs() {
      return detail::getAttnInputs(*this);
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedResults() {
      return detail::getAttnResults(*this);
    }
    FailureOr<SmallVector<Value>> $cppClass::decomposeOperation(OpBuilder &builder) {
      return detail::decomposeAttn(*this, builder);
    }
    SmallVector<utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return detail::getAttnLoops();
    }
    SmallVector<Range> $cppClass::getIterationDomain(OpBuilder &b) {
      return detail::getAttnDomain(*this, b);
    }
    FailureOr<TilingResult> $cppClass::getTiledImplementation(
        OpBuilder &b, detail::Offsets offsets, detail::Sizes sizes) {
      return detail::tileAttn(*this, b, offsets, sizes);
    }
    LogicalResult $cppClass::getResultTilePosition(
        OpBuilder &b, unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes,
        SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
      return detail::getAttnResultTile(
          *this, b, resultNumber, offsets, sizes, resultOffsets, resultSizes);
    }
    LogicalResult $cppClass::getIterationDomainTileFromResultTile(
        OpBuilder &b, unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes,
        SmallVectorImpl<OpFoldResult> &domainOffsets,
        SmallVectorImpl<OpFoldResult> &domainSizes) {
      return detail::getAttnDomainTile(
          *this, b, resultNumber, offsets, sizes, domainOffsets, domainSizes);
    }
    bool $cppClass::isOpFusableWithConsumerSlice(
        unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes) {
      return detail::isAttnResultTile(*this, resultNumber, offsets, sizes);
    }
    LogicalResult $cppClass::getIterationDomainTileFromOperandTiles(
        OpBuilder &, ArrayRef<unsigned> operandNumbers,
        ArrayRef<SmallVector<OpFoldResult>> allOffsets,
        ArrayRef<SmallVector<OpFoldResult>> allSizes,
        SmallVectorImpl<OpFoldResult> &domainOffsets,
        SmallVectorImpl<OpFoldResult> &domainSizes) {
      return detail::getAttnDomainTileOfQueries(
          *this, operandNumbers, allOffsets, allSizes, domainOffsets, domainSizes);
    }
    FailureOr<TilingResult> $cppClass::getTiledImplementationFromOperandTiles(
        OpBuilder &b, ArrayRef<unsigned> operandNumbers,
        ArrayRef<SmallVector<OpFoldResult>> allOffsets,
        ArrayRef<SmallVector<OpFoldResult>> allSizes) {
      SmallVector<OpFoldResult> offsets, sizes;
      if (failed(getIterationDomainTileFromOperandTiles(
              b, operandNumbers, allOffsets, allSizes, offsets, sizes)))
        return failure();
      return getTiledImplementation(b, offsets, sizes);
    }
    bool $cppClass::isOpFusableWithProducerSlices(
        ArrayRef<unsigned> operandNumbers, ArrayRef<SmallVector<OpFoldResult>> allOffsets,
        ArrayRef<SmallVector<OpFoldResult>> allSizes) {
      SmallVector<OpFoldResult> offsets, sizes;
      return succeeded(detail::getAttnDomainTileOfQueries(
          *this, operandNumbers, allOffsets, allSizes, offsets, sizes));
    }
  }];
}

/// `varlen.attn_grad`, with destinations or without.
class Varlen_AttnGradOpBase<string mnemonic, list<Trait> traits>
    : Varlen_AttentionOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<TilingInterface, [
          "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
          "getResultTilePosition", "generateResultTileValue",
          "getIterationDomainTileFromResultTile"]>], traits)> {
  dag inputs = (ins
    Arg<Varlen_Packed, "cotangent of out, Tq x Hq x Dv">:$dout,
    Arg<Varlen_Packed, "queries, Tq x Hq x D">:$q,
    Arg<Varlen_Packed, "keys, Tk x Hkv x D">:$k,
    Arg<Varlen_Packed, "values, Tk x Hkv x Dv">:$v,
    Arg<Varlen_Packed, "result of the attention, Tq x Hq x Dv">:$out,
    Arg<Varlen_Lse, "result of the attention, Hq x Tq">:$lse,
    Arg<Varlen_CuSeqlens, "first query row of each sequence, and the end: N+1">:$cu_q,
    Arg<Varlen_CuSeqlens, "first key row of each sequence, and the end: N+1">:$cu_k,
    Arg<Optional<Varlen_Lse>, "cotangent of lse, Hq x Tq">:$dlse,
    Arg<Optional<Varlen_CuSeqlens>, "query rows in use of each sequence: N">:$seqused_q,
    Arg<Optional<Varlen_CuSeqlens>, "keys in use of each sequence: N">:$seqused_k,
    Arg<Optional<Varlen_CuSeqlens>, "added to the position of each query of a sequence: N">:$q_offset,
    Arg<Optional<Varlen_Sink>, "logit in each head's softmax denominator: Hq">:$sink);
  // Versions of bytecode differ in what they have.
  let useCustomPropertiesEncoding = 1;
  // dq, dk, dv, with a sink dsink, and the gradients of captures.
  let results = (outs Variadic<Varlen_Gradient>:$gradients);
  let extraClassDefinition = sharedDefinition # tilingDefinition # [{
    SmallVector<Value> $cppClass::getInputSlots() {
      return {getDout(), getQ(), getK(), getV(), getOut(), getLse(), getCuQ(),
              getCuK(), getDlse(), getSequsedQ(), getSequsedK(), getQOffset(),
              getSink()};
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedInputs() {
      return detail::getGradInputs(*this, getDout(), getOut(), getLse(), getDlse());
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedResults() {
      return detail::getGradients(*this);
    }
    FailureOr<SmallVector<Value>> $cppClass::decomposeOperation(OpBuilder &builder) {
      return detail::decomposeGrad(*this, builder, getDout(), getOut(), getLse(), getDlse());
    }
    SmallVector<utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return detail::getGradLoops();
    }
    SmallVector<Range> $cppClass::getIterationDomain(OpBuilder &b) {
      return detail::getGradDomain(*this, b);
    }
    FailureOr<TilingResult> $cppClass::getTiledImplementation(
        OpBuilder &b, detail::Offsets offsets, detail::Sizes sizes) {
      return detail::tileGrad(*this, b, offsets, sizes);
    }
    LogicalResult $cppClass::getResultTilePosition(
        OpBuilder &b, unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes,
        SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
      return detail::getGradResultTile(
          *this, b, resultNumber, offsets, sizes, resultOffsets, resultSizes);
    }
    LogicalResult $cppClass::getIterationDomainTileFromResultTile(
        OpBuilder &b, unsigned resultNumber, detail::Offsets offsets, detail::Sizes sizes,
        SmallVectorImpl<OpFoldResult> &domainOffsets,
        SmallVectorImpl<OpFoldResult> &domainSizes) {
      return detail::getGradDomainTile(
          *this, b, resultNumber, offsets, sizes, domainOffsets, domainSizes);
    }
  }];
}

/// `varlen.attn_jvp`, with destinations or without.
class Varlen_AttnJVPOpBase<string mnemonic, list<Trait> traits>
    : Varlen_AttentionOp<mnemonic, traits, ["getTangents"]> {
  dag inputs = (ins
    Arg<Varlen_Packed, "queries, Tq x Hq x D">:$q,
    Arg<Varlen_Packed, "keys, Tk x Hkv x D">:$k,
    Arg<Varlen_Packed, "values, Tk x Hkv x Dv">:$v,
    Arg<Varlen_Packed, "tangent of q, Tq x Hq x D">:$tq,
    Arg<Varlen_Packed, "tangent of k, Tk x Hkv x D">:$tk,
    Arg<Varlen_Packed, "tangent of v, Tk x Hkv x Dv">:$tv,
    Arg<Varlen_CuSeqlens, "first query row of each sequence, and the end: N+1">:$cu_q,
    Arg<Varlen_CuSeqlens, "first key row of each sequence, and the end: N+1">:$cu_k,
    Arg<Optional<Varlen_CuSeqlens>, "query rows in use of each sequence: N">:$seqused_q,
    Arg<Optional<Varlen_CuSeqlens>, "keys in use of each sequence: N">:$seqused_k,
    Arg<Optional<Varlen_CuSeqlens>, "added to the position of each query of a sequence: N">:$q_offset,
    Arg<Optional<Varlen_Sink>, "logit in each head's softmax denominator: Hq">:$sink,
    Arg<Optional<Varlen_Sink>, "tangent of sink: Hq">:$tsink,
    Arg<Variadic<Varlen_Capture>, "tangents of the captures of wrt_captures">:$tcaptures);
  let extraClassDefinition = sharedDefinition # tangentDefinition # [{
    SmallVector<Value> $cppClass::getInputSlots() {
      SmallVector<Value> slots = {
          getQ(), getK(), getV(), getTq(), getTk(), getTv(), getCuQ(), getCuK(),
          getSequsedQ(), getSequsedK(), getQOffset(), getSink(), getTsink()};
      llvm::append_range(slots, getTcaptures());
      return slots;
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedInputs() {
      return detail::getJVPInputs(*this);
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedResults() {
      return detail::getJVPResults(*this);
    }
    FailureOr<SmallVector<Value>> $cppClass::decomposeOperation(OpBuilder &builder) {
      return detail::decomposeJVP(*this, builder);
    }
  }];
}

/// `varlen.attn_jvp_grad`, with destinations or without.
class Varlen_AttnJVPGradOpBase<string mnemonic, list<Trait> traits>
    : Varlen_AttentionOp<mnemonic, traits, ["getTangents"]> {
  dag inputs = (ins
    Arg<Varlen_Packed, "cotangent of tout, Tq x Hq x Dv">:$dtout,
    Arg<Varlen_Packed, "queries, Tq x Hq x D">:$q,
    Arg<Varlen_Packed, "keys, Tk x Hkv x D">:$k,
    Arg<Varlen_Packed, "values, Tk x Hkv x Dv">:$v,
    Arg<Varlen_Packed, "tangent of q, Tq x Hq x D">:$tq,
    Arg<Varlen_Packed, "tangent of k, Tk x Hkv x D">:$tk,
    Arg<Varlen_Packed, "tangent of v, Tk x Hkv x Dv">:$tv,
    Arg<Varlen_Packed, "result of the attention, Tq x Hq x Dv">:$out,
    Arg<Varlen_Lse, "result of the attention, Hq x Tq">:$lse,
    Arg<Varlen_Packed, "tangent of out, Tq x Hq x Dv">:$tout,
    Arg<Varlen_Lse, "tangent of lse, Hq x Tq">:$tlse,
    Arg<Varlen_CuSeqlens, "first query row of each sequence, and the end: N+1">:$cu_q,
    Arg<Varlen_CuSeqlens, "first key row of each sequence, and the end: N+1">:$cu_k,
    Arg<Optional<Varlen_Lse>, "cotangent of tlse, Hq x Tq">:$dtlse,
    Arg<Optional<Varlen_Packed>, "cotangent of out, Tq x Hq x Dv">:$dout,
    Arg<Optional<Varlen_Lse>, "cotangent of lse, Hq x Tq">:$dlse,
    Arg<Optional<Varlen_CuSeqlens>, "query rows in use of each sequence: N">:$seqused_q,
    Arg<Optional<Varlen_CuSeqlens>, "keys in use of each sequence: N">:$seqused_k,
    Arg<Optional<Varlen_CuSeqlens>, "added to the position of each query of a sequence: N">:$q_offset,
    Arg<Optional<Varlen_Sink>, "logit in each head's softmax denominator: Hq">:$sink,
    Arg<Optional<Varlen_Sink>, "tangent of sink: Hq">:$tsink,
    Arg<Variadic<Varlen_Capture>, "tangents of the captures of wrt_captures">:$tcaptures);
  // dq, dk, dv, with a sink dsink, and the gradients of captures.
  let results = (outs Variadic<Varlen_Gradient>:$gradients);
  let extraClassDefinition = sharedDefinition # tangentDefinition # [{
    SmallVector<Value> $cppClass::getInputSlots() {
      SmallVector<Value> slots = {
          getDtout(), getQ(), getK(), getV(), getTq(), getTk(), getTv(), getOut(),
          getLse(), getTout(), getTlse(), getCuQ(), getCuK(), getDtlse(), getDout(),
          getDlse(), getSequsedQ(), getSequsedK(), getQOffset(), getSink(), getTsink()};
      llvm::append_range(slots, getTcaptures());
      return slots;
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedInputs() {
      return detail::getJVPGradInputs(
          *this, {getOut(), getLse(), getTout(), getTlse()},
          {getDout(), getDlse(), getDtout(), getDtlse()});
    }
    SmallVector<ShapedByInputs> $cppClass::getShapedResults() {
      return detail::getGradients(*this);
    }
    FailureOr<SmallVector<Value>> $cppClass::decomposeOperation(OpBuilder &builder) {
      return detail::decomposeJVPGrad(
          *this, builder, {getOut(), getLse(), getTout(), getTlse()},
          {getDout(), getDlse(), getDtout(), getDtlse()});
    }
  }];
}

/// What the score region reads; behind the operands that came before.
defvar Varlen_Captures = (ins
    Arg<Variadic<Varlen_Capture>, "what the score region reads, Hq or Hq x Tq, or tables of rows of M: Hq x M or Hq x Tq x M">:$captures);

/// Where keys in pages are, and what quantised ones are multiplied by; the last
/// operands, as they came last: files of older versions have no segments for them.
defvar Varlen_PagesAndScales = (ins
    Arg<Optional<Varlen_BlockTable>, "the pages of each sequence: N x pages">:$block_table,
    Arg<Optional<Varlen_KeyScale>, "what quantised keys are multiplied by: Hkv, Tk x Hkv, or in pages P x Hkv or P x page x Hkv">:$k_scale,
    Arg<Optional<Varlen_KeyScale>, "what quantised values are multiplied by, as k_scale">:$v_scale);

/// The mask and the scale, which follow the operands.
defvar Varlen_MaskAndScale = (ins
    DefaultValuedAttr<Varlen_MaskAttrInterface, "full">:$mask,
    OptionalAttr<Varlen_ScaleAttr>:$scale);

/// Also which captures a derivative is with respect to.
def Varlen_WrtCapturesAttr
    : DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">;
defvar Varlen_WrtCaptures = (ins Varlen_WrtCapturesAttr:$wrt_captures);

#endif // VARLEN_ATTN_BASE_TD
