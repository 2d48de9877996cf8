//===- VarlenOps.td - Operations of the varlen dialect -----*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPS_TD
#define VARLEN_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAppendOps.td"
include "varlen/Dialect/Varlen/IR/VarlenAttnBase.td"
include "varlen/Dialect/Varlen/IR/VarlenListOps.td"
include "varlen/Dialect/Varlen/IR/VarlenLoopOps.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenQueryOps.td"
include "varlen/Dialect/Varlen/IR/VarlenRowOps.td"
include "varlen/Dialect/Varlen/IR/VarlenScoreOps.td"
include "varlen/Dialect/Varlen/IR/VarlenStepOps.td"
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

    Keys and values may be in pages instead: `k` is P x page x Hkv x D, `v`
    P x page x Hkv x Dv, and there is no `cu_k`. Key j of sequence s is row
    `j mod page` of page `block_table[s, j div page]`; `block_table` is N x pages of
    i32, and `seqused_k` says how many keys a sequence has. No other entry is used
    and no other row is read. docs/pages.md has more.

    Keys and values may be quantised: `k` and `v` of i8 or f8E4M3FN beside `q` of
    f16, bf16 or f32. Key j is then k[j] * k_scale, and its value v[j] * v_scale, of
    one f32 for each kv head (Hkv), of each page and head (P x Hkv), or of each row
    and head (Tk x Hkv, P x page x Hkv); without one it is 1. Elements are converted
    exactly, and the scales multiply scores and probabilities in f32, so a scale that
    is not finite counts as a key or a value that is not. docs/quantised-keys.md has
    more.

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
    mask, whether the key is visible. A further number is a factor of the probability
    of the key, which lse is without (dropout). What differs between heads or sequences is
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

    %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
        : (tensor<?x8x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)

    %out, %lse = varlen.attn %q, %k, %v, %cu, %cu k_scale(%k_scale) v_scale(%v_scale)
        : (tensor<?x8x64xbf16>, tensor<?x2x64xi8>, tensor<?x2x64xi8>, tensor<?xi32>,
           tensor<?xi32>, tensor<?x2xf32>, tensor<2xf32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)

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
    Varlen_Captures, Varlen_PagesAndScales, Varlen_MaskAndScale);
  let results = (outs
    Optional<Varlen_Tensor<Varlen_Float, 3>>:$out,
    Optional<Varlen_Tensor<Varlen_ComputeFloat, 2>>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $cu_q (`,` $cu_k^)?
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `outs` `(` $out_buffer `,` $lse_buffer `)`
          | `captures` `(` $captures `)` | `block_table` `(` $block_table `)`
          | `k_scale` `(` $k_scale `)` | `v_scale` `(` $v_scale `)` )
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
  let builders = [
    // On tensors.
    OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
                   "::mlir::Value":$cu_q, "::mlir::Value":$cu_k,
                   CArg<"const ::mlir::varlen::AttnOptions &", "{}">:$options)>,
    // On memrefs, into out and lse.
    OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
                   "::mlir::Value":$cu_q, "::mlir::Value":$cu_k,
                   "::mlir::Value":$out, "::mlir::Value":$lse,
                   CArg<"const ::mlir::varlen::AttnOptions &", "{}">:$options)>
  ];
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
    a caller would find no destination without `outs`.

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
    Varlen_Captures, Varlen_PagesAndScales, Varlen_MaskAndScale);
  let results = (outs
    Varlen_Tensor<Varlen_Float, 3>:$out, Varlen_Tensor<Varlen_ComputeFloat, 2>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $cu_q (`,` $cu_k^)?
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `captures` `(` $captures `)` | `block_table` `(` $block_table `)`
          | `k_scale` `(` $k_scale `)` | `v_scale` `(` $v_scale `)` )
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
// attn_jvp
//===----------------------------------------------------------------------===//

def Varlen_AttnJVPOp : Varlen_AttnJVPOpBase<"attn_jvp", [
    SameVariadicResultSize, InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "An attention and its tangents over a packed batch of sequences";
  let description = [{
    The Jacobian-vector product of `varlen.attn`: beside out and lse their
    derivatives along the tangents `tq`, `tk`, `tv` and, where they are given,
    `tsink` and `tcaptures`. Operands, clauses, mask and scale are those of the
    attention. Per sequence and query head h, with j visible to i and s and lse as
    in `varlen.attn`:

        p[i, j]  = exp(s[i, j] - lse[h, i])
        ts[i, j] = scale * (tq[i, h] . k[j, h / group] + q[i, h] . tk[j, h / group])
        tlse[h, i] = sum_j p[i, j] * ts[i, j] [+ exp(sink[h] - lse[h, i]) * tsink[h]]
        tout[i, h] = sum_j p[i, j] * (ts[i, j] * v[j, h / group] + tv[j, h / group])
                     - tlse[h, i] * out[i, h]

    `tq`, `tk`, `tv` and `tsink` have the shapes and types of q, k, v and sink,
    `tout` and `tlse` those of out and lse. Products and sums accumulate in the
    compute type and are rounded once. Without `tsink` a sink has no tangent.

    With a score region it is that of the attention, and its derivative takes the
    tangents of products and captures to ts. `wrt_captures` are the numbers of the
    captures that have tangents, which `tcaptures` holds, each in the shape of its
    capture. A factor of probabilities multiplies p in tout, not in tlse.

    A row that sees no key has tout = 0 and tlse = 0 (tlse = tsink with a sink), as
    has a row that is no query of a sequence. Nothing outside a sequence's own rows
    and their tangents reaches its results.

    out and lse are results because the sums that make them are needed for tout in
    any case. On tensors the op has four results and no `outs`; on memrefs it writes
    the buffers in `outs`, which overlap no other operand, and has no result.
    `varlen.attn_jvp_into` is the op with destinations on tensors.

    ```mlir
    %out, %lse, %tout, %tlse = varlen.attn_jvp %q, %k, %v, %tq, %tk, %tv, %cu, %cu
        {mask = #varlen.mask<causal>}
        : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?x8x64xbf16>, tensor<8x?xf32>)
    ```

    The verifier's rules, with their messages, are in docs/attn-jvp.md.
  }];
  let arguments = !con(inputs, (ins
    Arg<Optional<Varlen_MemRef<Varlen_Float, 3>>, "out, Tq x Hq x Dv">:$out_buffer,
    Arg<Optional<Varlen_MemRef<Varlen_ComputeFloat, 2>>, "lse, Hq x Tq">:$lse_buffer,
    Arg<Optional<Varlen_MemRef<Varlen_Float, 3>>, "tangent of out, Tq x Hq x Dv">:$tout_buffer,
    Arg<Optional<Varlen_MemRef<Varlen_ComputeFloat, 2>>, "tangent of lse, Hq x Tq">:$tlse_buffer),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let results = (outs
    Optional<Varlen_Tensor<Varlen_Float, 3>>:$out,
    Optional<Varlen_Tensor<Varlen_ComputeFloat, 2>>:$lse,
    Optional<Varlen_Tensor<Varlen_Float, 3>>:$tout,
    Optional<Varlen_Tensor<Varlen_ComputeFloat, 2>>:$tlse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `,` $cu_q `,` $cu_k
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `tsink` `(` $tsink `)` | `tcaptures` `(` $tcaptures `)`
          | `outs` `(` $out_buffer `,` $lse_buffer `,` $tout_buffer `,` $tlse_buffer `)`
          | `captures` `(` $captures `)` )
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
  let builders = [
    // On tensors, the attention of `attn`, which is one on tensors or a derivative
    // of one, with its tangents along those of its operands; tsink may be null.
    OpBuilder<(ins "::mlir::varlen::AttentionOpInterface":$attn,
                   "::mlir::Value":$tq, "::mlir::Value":$tk, "::mlir::Value":$tv,
                   CArg<"::mlir::Value", "{}">:$tsink,
                   CArg<"::mlir::ValueRange", "{}">:$tcaptures,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$wrtCaptures)>
  ];
}

//===----------------------------------------------------------------------===//
// attn_jvp_into
//===----------------------------------------------------------------------===//

def Varlen_AttnJVPIntoOp : Varlen_AttnJVPOpBase<"attn_jvp_into", [
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "`varlen.attn_jvp` in destination-passing style, on tensors";
  let description = [{
    `varlen.attn_jvp` whose results are tied to the tensors in `outs`, as those of
    `varlen.attn_into`. They are written whole, never read.

    ```mlir
    %out, %lse, %tout, %tlse = varlen.attn_jvp_into %q, %k, %v, %tq, %tk, %tv, %cu, %cu
        outs(%o, %l, %to, %tl)
        : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?xi32>, tensor<?xi32>, tensor<?x8x64xbf16>, tensor<8x?xf32>,
           tensor<?x8x64xbf16>, tensor<8x?xf32>)
        -> (tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?x8x64xbf16>, tensor<8x?xf32>)
    ```
  }];
  let arguments = !con(inputs, (ins
    Arg<Varlen_Tensor<Varlen_Float, 3>, "destination of out, Tq x Hq x Dv">:$out_init,
    Arg<Varlen_Tensor<Varlen_ComputeFloat, 2>, "destination of lse, Hq x Tq">:$lse_init,
    Arg<Varlen_Tensor<Varlen_Float, 3>, "destination of tout, Tq x Hq x Dv">:$tout_init,
    Arg<Varlen_Tensor<Varlen_ComputeFloat, 2>, "destination of tlse, Hq x Tq">:$tlse_init),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let results = (outs
    Varlen_Tensor<Varlen_Float, 3>:$out, Varlen_Tensor<Varlen_ComputeFloat, 2>:$lse,
    Varlen_Tensor<Varlen_Float, 3>:$tout, Varlen_Tensor<Varlen_ComputeFloat, 2>:$tlse);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `,` $cu_q `,` $cu_k
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `tsink` `(` $tsink `)` | `tcaptures` `(` $tcaptures `)`
          | `captures` `(` $captures `)` )
    `outs` `(` $out_init `,` $lse_init `,` $tout_init `,` $tlse_init `)`
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
}

//===----------------------------------------------------------------------===//
// attn_jvp_grad
//===----------------------------------------------------------------------===//

def Varlen_AttnJVPGradOp : Varlen_AttnJVPGradOpBase<"attn_jvp_grad", [
    InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "The gradients of an attention and its tangents over a packed batch";
  let description = [{
    The vector-Jacobian product of `varlen.attn_jvp`, by q, k, v, sink and captures: of
    the sum of dout * out, dlse * lse, dtout * tout and dtlse * tlse, with cotangents of
    its four results. As second derivatives are symmetric, these are the tangents of the
    results of `varlen.attn_grad` too, whose cotangents are dtout and dtlse with the
    tangents dout and dlse. Per sequence and query head h, with j visible to i and p and
    ts as in `varlen.attn_jvp`:

        dp[i, j]  = dtout[i, h] . v[j, h / group]
        tdp[i, j] = dout[i, h] . v[j, h / group] + dtout[i, h] . tv[j, h / group]
        delta[i]  = sum_d dtout[i, h, d] * out[i, h, d] - dtlse[h, i]
        tdelta[i] = sum_d dout[i, h, d] * out[i, h, d] + dtout[i, h, d] * tout[i, h, d]
                    - dlse[h, i]
        tp[i, j]  = p[i, j] * (ts[i, j] - tlse[h, i])
        ds[i, j]  = p[i, j] * (dp[i, j] - delta[i])
        tds[i, j] = tp[i, j] * (dp[i, j] - delta[i]) + p[i, j] * (tdp[i, j] - tdelta[i])
        dq[i, h]  = scale * sum_j tds[i, j] * k[j, h / group] + ds[i, j] * tk[j, h / group]
        dk[j]     = scale * sum_i,h tds[i, j] * q[i, h] + ds[i, j] * tq[i, h]
        dv[j]     = sum_i,h tp[i, j] * dtout[i, h] + p[i, j] * dout[i, h]
        dsink[h]  = -sum_i exp(sink[h] - lse[h, i])
                           * ((tsink[h] - tlse[h, i]) * delta[i] + tdelta[i])

    Operands, clauses, mask and scale are those of `varlen.attn_jvp`; `out`, `lse`, `tout`
    and `tlse` are its results. `dtout` and `dout` have the shape and type of out, `dtlse`
    and `dlse` those of lse; all but dtout are 0 if they are not given. The gradients by
    the tangents are those of `varlen.attn_grad` for dtout and dtlse. Results, buffers, sums
    and their order are as of `varlen.attn_grad`, and rows that belong to no sequence, or see
    no key, have no gradient.

    With a score region ds and tds go back through it and its second derivative.
    `wrt_captures` are the numbers of the captures that have tangents, which `tcaptures`
    holds, and whose gradients are wanted.

    ```mlir
    %dq, %dk, %dv = varlen.attn_jvp_grad %dtout, %q, %k, %v, %tq, %tk, %tv,
        %out, %lse, %tout, %tlse, %cu, %cu {mask = #varlen.mask<causal>}
        : (tensor<?x8x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<8x?xf32>,
           tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?xi32>, tensor<?xi32>)
        -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
    ```

    The verifier's rules, with their messages, are in docs/attn-jvp-grad.md.
  }];
  let arguments = !con(inputs, (ins
    Arg<Variadic<Varlen_GradientBuffer>, "dq, dk, dv and what else there is">:$gradient_buffers),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let assemblyFormat = [{
    $dtout `,` $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `,`
    $out `,` $lse `,` $tout `,` $tlse `,` $cu_q `,` $cu_k
    oilist( `dtlse` `(` $dtlse `)` | `dout` `(` $dout `)` | `dlse` `(` $dlse `)`
          | `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `tsink` `(` $tsink `)` | `tcaptures` `(` $tcaptures `)`
          | `outs` `(` $gradient_buffers `)`
          | `captures` `(` $captures `)` )
    attr-dict `:` functional-type(operands, results) `` custom<Score>($score)
  }];
  let builders = [
    // On tensors, the gradients of a varlen.attn_jvp on tensors, with destinations
    // or without, for the cotangents of its results, of which all but dtout may be
    // null; by captures `wrtCaptures`, whose tangents are `tcaptures`.
    OpBuilder<(ins "::mlir::varlen::AttentionOpInterface":$jvp,
                   "::mlir::Value":$dtout, "::mlir::Value":$dtlse,
                   "::mlir::Value":$dout, "::mlir::Value":$dlse,
                   "::mlir::ValueRange":$tcaptures,
                   "::llvm::ArrayRef<int64_t>":$wrtCaptures)>
  ];
}

//===----------------------------------------------------------------------===//
// attn_jvp_grad_into
//===----------------------------------------------------------------------===//

def Varlen_AttnJVPGradIntoOp : Varlen_AttnJVPGradOpBase<"attn_jvp_grad_into", [
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "`varlen.attn_jvp_grad` in destination-passing style, on tensors";
  let description = [{
    `varlen.attn_jvp_grad` whose results are tied to the tensors in `outs`, as those of
    `varlen.attn_into`. They are written whole, never read.

    ```mlir
    %dq, %dk, %dv = varlen.attn_jvp_grad_into %dtout, %q, %k, %v, %tq, %tk, %tv,
        %out, %lse, %tout, %tlse, %cu, %cu outs(%dq0, %dk0, %dv0)
        : (tensor<?x8x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>,
           tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<8x?xf32>,
           tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?xi32>, tensor<?xi32>,
           tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
        -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
    ```
  }];
  let arguments = !con(inputs, (ins
    Arg<Variadic<Varlen_Gradient>, "destinations of dq, dk, dv and what else there is">:$gradient_inits),
    Varlen_Captures, Varlen_MaskAndScale, Varlen_WrtCaptures);
  let assemblyFormat = [{
    $dtout `,` $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `,`
    $out `,` $lse `,` $tout `,` $tlse `,` $cu_q `,` $cu_k
    oilist( `dtlse` `(` $dtlse `)` | `dout` `(` $dout `)` | `dlse` `(` $dlse `)`
          | `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)` | `sink` `(` $sink `)`
          | `tsink` `(` $tsink `)` | `tcaptures` `(` $tcaptures `)`
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
    Checks cu_seqlens (and seqused, and the table of pages) and cuts every sequence and kv head into
    tiles of at most `block_m` rows, in the order of `Runtime.h`; a row is a pair of a query
    row and one of the `group` query heads that share the kv head. A row of the
    result is one tile; its columns are the fields of `varlen_work_tile`
    (Runtime.h). With bad cu_seqlens the list is empty, its address null, and the
    runtime keeps the message, which is why an unused list is not removed. Any
    other list has an address, also without a head, when the checks are all there
    is to do. The caller frees the list with `memref.dealloc`.

    `rows(tq, tk)` are the extents that cu_seqlens must stay within,
    `heads(kv_heads, group)` the kv heads and the query heads to each. Of keys in
    pages `block_table(table, num_pages, page_rows)` says where they are, and tk is
    how many rows the pages of a sequence have; the row of the table is in place of
    the first key row in the list.

    ```mlir
    %tiles = varlen.work_tiles %cu_q, %cu_k seqused_k(%used) rows(%tq, %tk)
        heads(%kv_heads, %group) mask #varlen.mask<causal> block_m 64
        : (memref<?xi32>, memref<?xi32>, memref<?xi32>, index, index, index,
           index) -> memref<?x10xi64>
    ```
  }];
  let arguments = (ins
    Varlen_MemRef<Varlen_Index, 1>:$cu_q,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$cu_k,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$seqused_q,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$seqused_k,
    Optional<Varlen_MemRef<Varlen_Index, 1>>:$q_offset,
    Optional<Varlen_MemRef<I32, 2>>:$block_table,
    Optional<Index>:$num_pages, Optional<Index>:$page_rows,
    Index:$tq, Index:$tk, Index:$kv_heads, Index:$group,
    Varlen_MaskAttrInterface:$mask, I64Attr:$block_m);
  // The memory of the list; that of the op, which makes it stay when the list is
  // unused, is the message.
  let results = (outs Res<Varlen_MemRef<I64, 2>, "", [MemAlloc]>:$tiles);
  let assemblyFormat = [{
    $cu_q (`,` $cu_k^)?
    oilist( `seqused_q` `(` $seqused_q `)` | `seqused_k` `(` $seqused_k `)`
          | `q_offset` `(` $q_offset `)`
          | `block_table` `(` $block_table `,` $num_pages `,` $page_rows `)` )
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
// split_tiles
//===----------------------------------------------------------------------===//

def Varlen_SplitTilesOp : Varlen_Op<"split_tiles", [
    MemoryEffects<[MemAlloc]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Work items: whole tiles, and parts of those with much of all work";
  let description = [{
    Makes a list of work items from a list of `varlen.work_tiles`. A row of the result is one
    item; its columns are the fields of `varlen_work_item` (Runtime.h), and begin with the
    fields of a tile. A tile of queries with more than an eighth of the scores of all tiles
    becomes one item for each part of the blocks that it visits, in the place of the tile.
    Rows from `%first_merge` on are items, one for each such tile, which merge the states of
    its parts, and may run once all parts have. Parts have `blocks` blocks of `kv_block` keys,
    counted from the first key of the sequence on, and a slot of their own for their state.

    A tile has few queries if its sequence has at most `few` pairs of a query row and one of
    the `group` heads, or half of that if the tile visits no more than two blocks; with `few 0`
    none has. Such tiles have parts of `few_blocks` blocks, and slots of their own. Without `parts` all items are
    whole tiles.

    `%slots` and `%few_slots` say for how many states parts need memory. Without memory for
    the list it is empty, and the runtime keeps the message. The caller frees the list with
    `memref.dealloc`.

    ```mlir
    %items, %first_merge, %slots, %few_slots = varlen.split_tiles %tiles group %group
        kv_block 128 few 8 parts(16, 8) : memref<?x10xi64> -> memref<?x13xi64>
    ```
  }];
  let arguments = (ins
    Arg<Varlen_MemRef<I64, 2>, "", [MemRead]>:$tiles, Index:$group,
    I64Attr:$kv_block, I64Attr:$few,
    OptionalAttr<I64Attr>:$blocks, OptionalAttr<I64Attr>:$few_blocks);
  let results = (outs Res<Varlen_MemRef<I64, 2>, "", [MemAlloc]>:$items,
    Index:$first_merge, Index:$slots, Index:$few_slots);
  let assemblyFormat = [{
    $tiles `group` $group `kv_block` $kv_block `few` $few
    (`parts` `(` $blocks^ `,` $few_blocks `)`)? attr-dict `:` type($tiles) `->` type($items)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Columns of the list behind the ten of a tile, in the order of `varlen_work_item`.
    enum Column { Kind = 10, Few, Slot, NumColumns };
  }];
}

#endif // VARLEN_OPS_TD
