//===- VarlenOps.td - Operations of the varlen dialect -----*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPS_TD
#define VARLEN_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttnBase.td"
include "varlen/Dialect/Varlen/IR/VarlenLoopOps.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenScoreOps.td"
include "varlen/Dialect/Varlen/IR/VarlenTableOps.td"
include "varlen/Dialect/Varlen/IR/VarlenTileMemoryOps.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/IR/OpAsmInterface.td"

//===----------------------------------------------------------------------===//
// attn
//===----------------------------------------------------------------------===//

def Varlen_AttnOp : Varlen_AttnOpBase<"attn", [
    SameVariadicResultSize, InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "Attention over a packed batch of sequences";
  let description = [{
    Rows `cu_q[s] .. cu_q[s+1]` of `q` are the queries of sequence `s`, rows
    `cu_k[s] .. cu_k[s+1]` of `k` and `v` its keys and values. Each sequence is
    attended on its own:

        s[i, j] = scale * sum_d q[i, h, d] * k[j, h / group, d]    (j visible to i)
        lse[h, i] = log(sum_j exp(s[i, j]) [+ exp(sink[h])])
        out[i, h, :] = sum_j exp(s[i, j] - lse[h, i]) * v[j, h / group, :]

    with `group = Hq / Hkv`. Products and sums accumulate in the compute type:
    f32, or f64 for f64 tensors. `lse` and `sink` have that type. Shapes: `q` is
    Tq x Hq x D, `k` Tk x Hkv x D, `v` Tk x Hkv x Dv, `out` Tq x Hq x Dv, `lse`
    Hq x Tq, `sink` Hq; with N sequences `cu_q` and `cu_k` have N+1 entries,
    `seqused_q`, `seqused_k` and `q_offset` N. Every extent may be dynamic.

    `cu_q` and `cu_k` have one entry more than there are sequences; they start
    at 0 and do not decrease. Two equal neighbours are an empty sequence. With
    `seqused_q` or `seqused_k` only so many first rows of a sequence's slot
    count; positions, and so the mask, are those of the used lengths. `q_offset`
    is added to the position of every query of a sequence: rows [x, y) of a
    sequence of Lq queries are themselves a sequence, with the offset `y - Lq`
    under a `bottom_right` mask and `x` under a `top_left` one.

    A row that sees no key has out = 0 and lse = -inf (lse = sink with a sink);
    out = 0 and lse = -inf also for every row that is no query of a sequence
    (past `cu_q[N]`, or past the used rows of its slot), whatever the sink.
    Nothing outside a sequence's own rows reaches its result, not even a NaN.

    `mask` says which keys a query sees (default: all of its sequence): a
    `#varlen.mask`, or another attribute of its interface. `scale` is 1/sqrt(D)
    unless given.

    A `score` region changes scores: its arguments are s[i, j], the positions of
    query and key, and of each of the `captures` a number: of a query head (Hq)
    or of a query of each head (Hq x Tq). The position of a query is that among
    the keys, as the mask has it: of query i of a sequence of Lq queries and Lk
    keys i + Lk - Lq, or i under a `top_left` mask, plus q_offset, and at most
    2^30 - 1 away from 0. A capture may also be a table, a row of M numbers in place of the
    number (Hq x M or Hq x Tq x M): its argument is a `!varlen.table<f32>`, of which
    `varlen.lookup` reads an entry. The region yields the score that counts instead and, if it hides keys on top of the
    mask, whether the key is visible. What differs between heads or sequences is
    a capture. docs/scores.md has examples.

    On tensors the op has two results and no `outs`; on memrefs it writes the
    two buffers in `outs`, which overlap no other operand, and has no result.
    `varlen.attn_into` is the op with destinations on tensors.
    The tensor form is pure: it may be deduplicated, hoisted and removed. Bad
    cu_seqlens are an error that is reported where the op runs; the results are
    then unspecified.

    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
        : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)

    varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%used) sink(%sink)
        outs(%out, %lse) {scale = 0.1 : f32}
        : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
           memref<9xi32>, memref<9xi32>, memref<8xi32>, memref<4xf32>,
           memref<?x4x64xf32>, memref<4x?xf32>) -> ()

    %out, %lse = varlen.attn %q, %k, %v, %cu, %cu captures(%gains)
        : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>, tensor<8xf32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)
        score (%score: f32, %query: i32, %key: i32, %gain: f32) {
          %new = arith.mulf %score, %gain : f32
          varlen.yield %new : f32
        }
    ```

    The verifier's rules, with their messages, are in docs/attn.md.
  }];
  let arguments = !con(inputs, (ins
    Arg<Optional<Varlen_MemRef<Varlen_Float, 3>>, "out, Tq x Hq x Dv">:$out_buffer,
    Arg<Optional<Varlen_MemRef<Varlen_ComputeFloat, 2>>, "lse, Hq x Tq">:$lse_buffer),
    Varlen_Captures, Varlen_MaskAndScale);
  let results = (outs
    Optional<Varlen_Tensor<Varlen_Float, 3>>:$out,
    Optional<Varlen_Tensor<Varlen_ComputeFloat, 2>>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $cu_q `,` $cu_k
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `outs` `(` $out_buffer `,` $lse_buffer `)`
          | `captures` `(` $captures `)` )
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
}

//===----------------------------------------------------------------------===//
// attn_into
//===----------------------------------------------------------------------===//

def Varlen_AttnIntoOp : Varlen_AttnOpBase<"attn_into", [
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "`varlen.attn` in destination-passing style, on tensors";
  let description = [{
    `varlen.attn` whose results are tied to the tensors in `outs`: bufferization
    writes them into the buffers of these, and tiling each tile into its part of
    them. `outs` have the types of the results and are written whole, never read;
    a `tensor.empty` will do.

    Everything else is as in `varlen.attn`. They are two operations because
    `DestinationStyleOpInterface` holds of an operation in all of its forms, and
    whoever asks it of one without `outs` would find no destination.

    ```mlir
    %out, %lse = varlen.attn_into %q, %k, %v, %cu, %cu outs(%o, %l)
        {mask = #varlen.mask<causal>}
        : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>, tensor<?x8x64xbf16>, tensor<8x?xf32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)
    ```
  }];
  let arguments = !con(inputs, (ins
    Arg<Varlen_Tensor<Varlen_Float, 3>, "destination of out, Tq x Hq x Dv">:$out_init,
    Arg<Varlen_Tensor<Varlen_ComputeFloat, 2>, "destination of lse, Hq x Tq">:$lse_init),
    Varlen_Captures, Varlen_MaskAndScale);
  let results = (outs
    Varlen_Tensor<Varlen_Float, 3>:$out, Varlen_Tensor<Varlen_ComputeFloat, 2>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $cu_q `,` $cu_k
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `captures` `(` $captures `)` )
    `outs` `(` $out_init `,` $lse_init `)`
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
}

//===----------------------------------------------------------------------===//
// attn_grad
//===----------------------------------------------------------------------===//

def Varlen_AttnGradOp
    : Varlen_AttnGradOpBase<"attn_grad", [InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "The gradients of an attention over a packed batch of sequences";
  let description = [{
    The vector-Jacobian product of `varlen.attn`: from the cotangents `dout` of
    its out and `dlse` of its lse (0 if it is not given) the gradients of q, k, v
    and sink. Operands, clauses, mask and scale are those of the attention; `out`
    and `lse` are its results. Per sequence and query head h, with j visible to i:

        p[i, j]  = exp(scale * q[i, h] . k[j, h / group] - lse[h, i])
        delta[i] = sum_d dout[i, h, d] * out[i, h, d] - dlse[h, i]
        ds[i, j] = p[i, j] * (dout[i, h] . v[j, h / group] - delta[i])
        dq[i, h] = scale * sum_j ds[i, j] * k[j, h / group]
        dk[j]    = scale * sum_i,h ds[i, j] * q[i, h]         (h of the group of j's head)
        dv[j]    = sum_i,h p[i, j] * dout[i, h]
        dsink[h] = -sum_i exp(sink[h] - lse[h, i]) * delta[i]

    `dout` and `out` are Tq x Hq x Dv of the element type, `lse` and `dlse`
    Hq x Tq of the compute type. `dq`, `dk`, `dv` and `dsink` have the shapes and
    types of q, k, v and sink; there is a dsink exactly if there is a sink.
    Products and sums, those over the query heads of a group too, accumulate in
    the compute type and are rounded once.

    With a score region it is that of the attention, whose derivative takes ds to
    the products. `wrt_captures` are the numbers of the captures whose gradients
    are wanted too: these come after dsink, each in the shape of its capture.

    A row that sees no key gets dq = 0 and adds nothing to dk and dv; with a sink
    it counts in dsink, where its delta is -dlse. A row of q, k or v that belongs
    to no sequence gets 0 and adds nothing anywhere, whatever stands in it or in
    its rows of dout, out, lse and dlse. Sums have a fixed order: gradients of a
    sequence are bitwise the same in every batch. dsink sums over the batch.

    On tensors the op has the gradients as results and no `outs`; on memrefs it
    writes the buffers in `outs`, which overlap no other operand, and has no
    result. `varlen.attn_grad_into` is the op with destinations on tensors.

    ```mlir
    %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu
        {mask = #varlen.mask<causal>}
        : (tensor<?x8x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<8x?xf32>,
           tensor<?xi32>, tensor<?xi32>)
        -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)

    varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu dlse(%dlse) sink(%sink)
        outs(%dq, %dk, %dv, %dsink)
        : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
           memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<9xi32>,
           memref<9xi32>, memref<4x?xf32>, memref<4xf32>, memref<?x4x64xf32>,
           memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4xf32>) -> ()
    ```

    The verifier's rules, with their messages, are in docs/attn-grad.md.
  }];
  let arguments = !con(inputs, (ins
    Arg<Variadic<Varlen_GradientBuffer>, "dq, dk, dv and what else there is">:$gradient_buffers),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let assemblyFormat = [{
    $dout `,` $q `,` $k `,` $v `,` $out `,` $lse `,` $cu_q `,` $cu_k
    oilist( `dlse` `(` $dlse `)`
          | `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `outs` `(` $gradient_buffers `)`
          | `captures` `(` $captures `)` )
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
  let builders = [
    // On tensors, the gradients of `attn`, an attention on tensors, for the
    // cotangents of its results; dlse may be null.
    OpBuilder<(ins "::mlir::varlen::AttentionOpInterface":$attn,
                   "::mlir::Value":$dout, CArg<"::mlir::Value", "{}">:$dlse,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$wrtCaptures)>
  ];
  let extraClassDeclaration = [{
    /// A gradient: the result, or the buffer in its place.
    ::mlir::Value getDq() { return getShapedResults()[0].value; }
    ::mlir::Value getDk() { return getShapedResults()[1].value; }
    ::mlir::Value getDv() { return getShapedResults()[2].value; }
    /// Null without a sink.
    ::mlir::Value getDsink() {
      return getSink() ? getShapedResults()[3].value : ::mlir::Value();
    }
  }];
}

//===----------------------------------------------------------------------===//
// attn_grad_into
//===----------------------------------------------------------------------===//

def Varlen_AttnGradIntoOp : Varlen_AttnGradOpBase<"attn_grad_into", [
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "`varlen.attn_grad` in destination-passing style, on tensors";
  let description = [{
    `varlen.attn_grad` whose results are tied to the tensors in `outs`, as those of
    `varlen.attn_into`. dq, dk, dv and dsink are written whole, never read.

    ```mlir
    %dq, %dk, %dv = varlen.attn_grad_into %dout, %q, %k, %v, %out, %lse, %cu, %cu
        outs(%dq0, %dk0, %dv0)
        : (tensor<?x8x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?xi32>,
           tensor<?xi32>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
        -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
    ```
  }];
  let arguments = !con(inputs, (ins
    Arg<Variadic<Varlen_Gradient>, "destinations of dq, dk, dv and what else there is">:$gradient_inits),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let assemblyFormat = [{
    $dout `,` $q `,` $k `,` $v `,` $out `,` $lse `,` $cu_q `,` $cu_k
    oilist( `dlse` `(` $dlse `)`
          | `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `captures` `(` $captures `)` )
    `outs` `(` $gradient_inits `)`
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
}

//===----------------------------------------------------------------------===//
// merge
//===----------------------------------------------------------------------===//

def Varlen_MergeOp : Varlen_Op<"merge", [
    Pure, InferTypeOpAdaptorWithIsCompatible,
    DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "generateResultTileValue",
      "getIterationDomainTileFromResultTile"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The attention over the keys of two attentions";
  let description = [{
    `out0` and `lse0` are what the queries got from some keys, `out1` and `lse1` what
    they got from others; the results are what they get from all of them:

        lse[h, i] = log(exp(lse0[h, i]) + exp(lse1[h, i]))
        out[i, h] = exp(lse0[h, i] - lse[h, i]) * out0[i, h]
                  + exp(lse1[h, i] - lse[h, i]) * out1[i, h]

    Nothing overflows, and which part comes first makes no difference, to the bit.
    Where one lse is -inf, or so far below the other that its weight is 0, the row is
    that of the other, whatever stands in out; where both are, out = 0 and lse = -inf.
    Sums are made in the compute type, f32 or f64 for f64, and out is rounded once.
    A sink counts in one of the parts only.

    Shapes are those of `varlen.attn`: out is Tq x Hq x Dv of f16, bf16, f32 or f64,
    lse Hq x Tq of the compute type. Every extent may be dynamic.

    ```mlir
    %out, %lse = varlen.merge %out0, %lse0, %out1, %lse1
        : (tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?x8x64xbf16>, tensor<8x?xf32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)
    ```
  }];
  let arguments = (ins
    Arg<Varlen_Tensor<Varlen_Float, 3>, "over some keys, Tq x Hq x Dv">:$out0,
    Arg<Varlen_Tensor<Varlen_ComputeFloat, 2>, "over some keys, Hq x Tq">:$lse0,
    Arg<Varlen_Tensor<Varlen_Float, 3>, "over other keys, Tq x Hq x Dv">:$out1,
    Arg<Varlen_Tensor<Varlen_ComputeFloat, 2>, "over other keys, Hq x Tq">:$lse1);
  let results = (outs
    Varlen_Tensor<Varlen_Float, 3>:$out, Varlen_Tensor<Varlen_ComputeFloat, 2>:$lse);
  let assemblyFormat = [{
    $out0 `,` $lse0 `,` $out1 `,` $lse1 attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// work_tiles
//===----------------------------------------------------------------------===//

def Varlen_WorkTilesOp : Varlen_Op<"work_tiles", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemAlloc]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The work of one attention, as a list of tiles";
  let description = [{
    Checks cu_seqlens (and seqused) and cuts every sequence and kv head into
    tiles of at most `block_m` rows, in the order of `Runtime.h`; a row is a pair of a query
    row and one of the `group` query heads that share the kv head. A row of the
    result is one tile; its columns are the fields of `varlen_work_tile`
    (Runtime.h). With bad cu_seqlens the list is empty, its address null, and the
    runtime keeps the message, which is why an unused list is not removed. Any
    other list has an address, also without a head, when the checks are all there
    is to do. The caller frees the list with `memref.dealloc`.

    `rows(tq, tk)` are the extents that cu_seqlens must stay within,
    `heads(kv_heads, group)` the kv heads and the query heads to each.

    ```mlir
    %tiles = varlen.work_tiles %cu_q, %cu_k seqused_k(%used) rows(%tq, %tk)
        heads(%kv_heads, %group) mask #varlen.mask<causal> block_m 64
        : (memref<?xi32>, memref<?xi32>, memref<?xi32>, index, index, index,
           index) -> memref<?x10xi64>
    ```
  }];
  let arguments = (ins
    Varlen_MemRef<Varlen_Index, 1>:$cu_q,
    Varlen_MemRef<Varlen_Index, 1>:$cu_k,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$seqused_q,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$seqused_k,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$q_offset,
    Index:$tq, Index:$tk, Index:$kv_heads, Index:$group,
    Varlen_MaskAttrInterface:$mask, I64Attr:$block_m);
  // The memory of the list; that of the op, which makes it stay when the list is
  // unused, is the message.
  let results = (outs Res<Varlen_MemRef<I64, 2>, "", [MemAlloc]>:$tiles);
  let assemblyFormat = [{
    $cu_q `,` $cu_k
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` )
    `rows` `(` $tq `,` $tk `)` `heads` `(` $kv_heads `,` $group `)`
    `mask` custom<Mask>($mask) `block_m` $block_m attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Columns of the list, in the order of `varlen_work_tile`.
    enum Column { QRow, First, Rows, KvHead, KRow, KRows, Queries, Offset, KBegin, KEnd, NumColumns };
  }];
}

//===----------------------------------------------------------------------===//
// What steps share
//===----------------------------------------------------------------------===//

def Varlen_LimitTile : Varlen_Tensor<I32, 2>;

/// A step: `varlen.online_attn` and its gradient.
class Varlen_StepOp<string mnemonic, list<string> overridden, list<Trait> traits>
    : Varlen_Op<mnemonic, !listconcat([
        AttrSizedOperandSegments, IsolatedFromAbove, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<Varlen_StepOpInterface, overridden>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<DestinationStyleOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, [
          "getAsmResultNames", "getAsmBlockArgumentNames"]>], traits)> {
  // Where the step is, and what it reads there.
  dag inputs = (ins
    Optional<Varlen_LimitTile>:$lo, Optional<Varlen_LimitTile>:$hi, Optional<I32>:$k0,
    Optional<I1>:$whole,
    Optional<Varlen_TileType>:$queries, Optional<Varlen_TileType>:$keys,
    Optional<Varlen_LimitTile>:$position, Optional<I32>:$first_key,
    Variadic<Varlen_Tile>:$captures,
    Arg<Variadic<Varlen_TableMemory>, "", [MemRead]>:$tables,
    Variadic<Varlen_RowTile>:$rows);
  string atFormat = [{
    (`at` `(` $queries^ `,` $keys `:` type($queries) `,` type($keys) `)`)?
  }];
  string inputsFormat = [{
    (`limits` `(` $lo^ `,` $hi `,` $k0 `:` type($lo) `,` type($hi) `,` type($k0) `)`)?
    (`unless` `(` $whole^ `)`)?
    (`positions` `(` $position^ `,` $first_key `:` type($position) `,` type($first_key) `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`tables` `(` $tables^ `:` type($tables) `)`)? (`rows` `(` $rows^ `:` type($rows) `)`)?
  }];
  let regions = (region VariadicRegion<SizedRegion<1>>:$score);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    LogicalResult $cppClass::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
      return detail::reifyDestinations(*this, builder, shapes);
    }
    Speculation::Speculatability $cppClass::getSpeculatability() {
      return getTables().empty() ? Speculation::Speculatable
                                 : Speculation::NotSpeculatable;
    }
    void $cppClass::getAsmBlockArgumentNames(Region &region,
                                             OpAsmSetValueNameFn setName) {
      setScoreArgumentNames(region, setName);
    }
  }];
}

//===----------------------------------------------------------------------===//
// online_attn
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnOp : Varlen_StepOp<"online_attn", ["createMerge"], [
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "generateResultTileValue",
      "getIterationDomainTileFromResultTile"]>,
    DeclareOpInterfaceMethods<PartialReductionOpInterface, [
      "generateInitialTensorForPartialReduction", "tileToPartialReduction",
      "mergeReductions", "getPartialResultTilePosition"]>]> {
  let summary = "One step of online softmax: a block of queries against a block of keys";
  let description = [{
    Destination-passing on the state of each query: `acc` (its row of the
    unnormalised output), `m` (the largest score so far, before the scale) and
    `l` (the sum of exponentials, relative to r(m)):

        m' = max(m, max_j s[i, j])
        p[i, j] = exp2(c * s[i, j] - r(m'))            c = scale * log2(e)
        l' = l * exp2(r(m) - r(m')) + sum_j p[i, j]    r(m) = up(c * m)
        acc' = acc * exp2(r(m) - r(m')) + p v

    `up` is `ceil` where v has the compute type: the rescaling factor is then an
    exact power of two. Where v is narrower p is rounded to its type, and `up`
    changes nothing: the largest p is 1, so a query with one key gets exactly
    the value of that key. From `|c * m| = 2^24` on (2^53 in f64), where r would
    be rounded to more than 1, c is the next power of two in both of its places:
    the products with m are then exact, and no p is more than 1. A state begins with
    `varlen.online_init`. At the end out = acc / l and lse = scale * m + log(l) + log(2) * (r(m) - c * m)
    (Milakov and Gimelshein, 2018; Dao, 2022).

    `orientation` says what the rows of a score tile are: queries (`qk`) or keys
    (`kq`). Shapes for M queries and N keys: q is M x D, k is N x D and v is
    N x Dv in either orientation. acc is M x Dv, m and l are M x 1 for `qk`; acc
    is Dv x M, m and l are 1 x M for `kq`, whose scores read the rows of q as
    columns: it may lie in memory that way. With `limits(lo, hi, k0)` key j of
    the block is visible to query i only if `lo[i] <= k0 + j < hi[i]`; lo and hi
    have the shape of m. With `unless(whole)` the limits hold only where `whole`
    is false: whoever knows at run time that they hide nothing says so. In a tile
    loop `at(queries, keys)` says which rows the step is of: the mask of the batch
    and the ends of the sequence hide keys as limits do, which is what a target
    makes of it.

    A `score` region makes the score of a product, of the positions of query and
    key and of the numbers that `captures` have of a query, tiles in the shape of m,
    and may hide the key. `tables` are the captures that are tables, in the order of the
    region's arguments: in a step with `at` the memory of an attention, H x M or H x T x M,
    else views of which a row begins at each element, and `rows`, in the shape of m, the row
    of each query. In a step that does not say `at` where it is,
    `positions(position, first_key)` are those of the queries and that of key 0. The
    scale comes after the region.

    Tiles are steps on some queries, and on some keys one after the other, or side by
    side, as a reduction in parallel parts: the sums of a query are then rounded
    elsewhere. `varlen.online_merge` makes one state of two. A step with `at` has no
    tiles.

    acc, m and l have the compute type, f32 or f64; q and k one type that
    accumulates in it (f16, bf16 or f32 in f32, f64 in f64), v such a type too:
    probabilities are rounded to the type of v. Every extent may be dynamic.

    ```mlir
    %acc1, %m1, %l1 = varlen.online_attn kq
        ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) unless(%whole)
        outs(%acc, %m, %l : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
        scale 0.125
    ```
  }];
  let arguments = !con((ins Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v), inputs, (ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation));
  let results = (outs Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out);
  let assemblyFormat = "$orientation" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
  }] # inputsFormat # [{
    `outs` `(` $acc `,` $m `,` $l `:` type($acc) `,` type($m) `,` type($l) `)`
    `scale` $scale attr-dict `` custom<Score>($score)
  }];
  let extraClassDeclaration = [{
    /// The power of two that large scores are multiplied by: scale * log2(e) or
    /// the next one.
    static double getCoarseFactor(double scale);
  }];
}

//===----------------------------------------------------------------------===//
// online_attn_grad
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnGradOp : Varlen_StepOp<"online_attn_grad", [
    "isOfKeys", "getTableGradients", "getGradientTables"], []> {
  let summary = "The gradients of a block of queries against a block of keys";
  let description = [{
    The backward of one `varlen.online_attn` step, with probabilities recomputed
    from the logsumexp of the whole row. Destination-passing on the gradients:

        p[i, j] = exp2(min(c * s[i, j] - lse[i], 0))   c = scale * log2(e)
        dp[i, j] = sum_d dout[i, d] * v[j, d]
        ds[i, j] = p[i, j] * (dp[i, j] - delta[i])
        dq' = dq + ds k         dk' = dk + ds^T q      dv' = dv + p^T dout

    with `delta[i] = sum_d dout[i, d] * out[i, d] - dlse[i]` (Dao, 2022; the
    gradient that arrives through lse is the second term). lse is in units of
    log2; with `natural` it is not, and p = exp(min(scale * s - lse, 0)), which
    takes one operation more for each score and rounds lse once less. The factor `scale` of dq and dk is left to whoever stores them. Each of
    dq, dk and dv may be absent, so that one kernel can own the gradients of the
    queries and another those of keys and values; results come in the order of
    the destinations that are there.

    `orientation` is that of `varlen.online_attn`. Shapes for M queries and N
    keys: q and dq are M x D, dout is M x Dv, k and dk are N x D, v and dv are
    N x Dv, in either orientation: the scores read the rows of q and dout as
    columns where they have to, the other products read them as rows, and a tile
    that lies in memory twice, once each way, is still one tile. lse and delta
    are M x 1 for `qk`, 1 x M for `kq`. `limits`, `unless` and `at` are
    those of `varlen.online_attn`: where a key is not visible p and ds are 0,
    whatever lse, delta and dp are there. A query without a key, whose lse is
    -inf, sees none or has +inf here.

    With a `score` region p is that of the new scores and ds goes back through it.
    `dcaptures`, in the shape of lse, get what a query adds to the gradients of the
    captures that `wrt_captures` numbers, those of the region. Of tables among them `dtables`
    is the memory, H x T x M or views as of `tables`, to whose row of a query, in `drows`,
    is added what the query adds; a query with a negative row adds nothing. Of a table of
    keys the memory is H x T, queries of a head have one row, and the key is the index.

    dq, dk, dv, lse and delta have the compute type, f32 or f64; q and k one
    type that accumulates in it, v and dout one such type too: p is rounded to
    the type of dout and ds to the type of q for the products they take part in.
    Every extent may be dynamic.

    ```mlir
    %dk1, %dv1 = varlen.online_attn_grad kq
        ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<?x64xf32>,
            tensor<?x48xf32>, tensor<32x48xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) unless(%whole)
        dk(%dk : tensor<?x64xf32>) dv(%dv : tensor<?x48xf32>) scale 0.125
    ```
  }];
  let arguments = !con((ins
    Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v, Varlen_Tile:$dout,
    Varlen_Tile:$lse, Varlen_Tile:$delta), inputs, (ins
    Arg<Variadic<Varlen_TableMemory>, "", [MemRead, MemWrite]>:$dtables,
    Variadic<Varlen_RowTile>:$drows,
    Optional<Varlen_Tile>:$dq, Optional<Varlen_Tile>:$dk, Optional<Varlen_Tile>:$dv,
    Variadic<Varlen_Tile>:$dcaptures,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation, UnitAttr:$natural,
    Varlen_WrtCapturesAttr:$wrt_captures));
  let results = (outs Variadic<Varlen_Tile>:$gradients);
  let assemblyFormat = "$orientation (`natural` $natural^)?" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `,` $dout `,` $lse `,` $delta `:`
      type($q) `,` type($k) `,` type($v) `,` type($dout) `,` type($lse) `,` type($delta) `)`
  }] # inputsFormat # [{
    (`dtables` `(` $dtables^ `:` type($dtables) `)`)? (`drows` `(` $drows^ `:` type($drows) `)`)?
    (`dq` `(` $dq^ `:` type($dq) `)`)? (`dk` `(` $dk^ `:` type($dk) `)`)?
    (`dv` `(` $dv^ `:` type($dv) `)`)?
    (`dcaptures` `(` $dcaptures^ `:` type($dcaptures) `)`)?
    `scale` $scale attr-dict `` custom<Score>($score)
  }];
  let extraClassDeclaration = [{
    /// The results for dcaptures.
    ::mlir::ResultRange getDcapturesOut() {
      return getResults().take_back(getDcaptures().size());
    }
    /// The result for a destination; null if that is absent.
    ::mlir::Value getDqOut();
    ::mlir::Value getDkOut();
    ::mlir::Value getDvOut();
  }];
}

#endif // VARLEN_OPS_TD
