//===- VarlenAppendOps.td - New rows of a cache ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_APPEND_OPS_TD
#define VARLEN_APPEND_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttnBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

def Varlen_Cache : Varlen_Shaped<Varlen_KeyElement, 4>;
def Varlen_RowScales : Varlen_Shaped<F32, 3>;
def Varlen_RotaryTable : Varlen_Shaped<Varlen_Float, 2>;

def Varlen_AppendOp : Varlen_Op<"append", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Writes keys and values of new tokens behind those that a cache has";
  let description = [{
    Rows `cu[s] .. cu[s+1]` of `k` and `v` are the keys and values of the new tokens of
    sequence `s`, which has `seqused_k[s]` keys in the cache already. Row `cu[s] + i` is that
    of position `p = seqused_k[s] + i` and is written to row `p mod page` of page
    `block_table[s, p div page]`; without a `block_table` the page of a sequence has its
    number, and is its slot in a contiguous cache. No other row changes. Rows from `cu[N]` on
    are not read.

    Shapes: `k` is T x Hkv x D, `v` T x Hkv x Dv, `cu` has N+1 entries and `seqused_k` N,
    `block_table` is N x pages of i32, `k_cache` P x page x Hkv x D and `v_cache`
    P x page x Hkv x Dv. Heads and head_dims are static, other extents may be dynamic. What
    attention to the new tokens is given as seqused_k is `seqused_k[s] + cu[s+1] - cu[s]`.

    With `rotary` keys are turned on the way (Su et al., RoFormer, 2021): `cos` and `sin` are
    positions x R, and pair j of the first 2R numbers (x, y) of each head becomes

        (x * cos[p, j] - y * sin[p, j], x * sin[p, j] + y * cos[p, j])

    Numbers j and j + R are a pair, or with `interleaved` 2j and 2j + 1. This is computed in
    the compute type, f32 or f64 for f64 keys, and rounded once. Tables may be of any type of
    floats.

    Caches of i8 or f8E4M3FN, beside `k` and `v` of f16, bf16 or f32, are quantised: `scales` are
    P x page x Hkv of f32, and each row of each head is written as numbers whose largest is 127, or
    448 of f8E4M3FN, and what they are multiplied by. With a the largest magnitude of the row in
    f32, its scale is a / 127, or 1 where a is 0, and a number x becomes x / scale, rounded to
    nearest, ties to even. A row that is not finite has a scale that is not.

    Where the operation runs an error says which entry is wrong: cu that is not valid, a
    position behind the pages of a sequence or behind the tables, an entry of the table that
    is no page of the cache, and a page that two entries write to. Then nothing is written.

    On tensors the results are the caches with the new rows, tied to those in `outs`; on
    memrefs `outs` are written, and there is no result. A cache overlaps no other operand.

    ```mlir
    %k1, %v1 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table)
        rotary(%cos, %sin) outs(%k_cache, %v_cache)
        : (tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>,
           tensor<?x?xi32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16x2x64xbf16>,
           tensor<?x16x2x64xbf16>) -> (tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16>)

    varlen.append %k, %v, %cu seqused_k(%used) outs(%k_cache, %v_cache)
        : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?xi32>,
           memref<8x4096x2x64xbf16>, memref<8x4096x2x64xbf16>) -> ()

    varlen.append %k, %v, %cu seqused_k(%used) outs(%k_cache, %v_cache)
        scales(%k_scale, %v_scale)
        : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?xi32>,
           memref<8x4096x2x64xi8>, memref<8x4096x2x64xi8>, memref<8x4096x2xf32>,
           memref<8x4096x2xf32>) -> ()
    ```
  }];
  let arguments = (ins
    Arg<Varlen_Packed, "new keys, T x Hkv x D">:$k,
    Arg<Varlen_Packed, "new values, T x Hkv x Dv">:$v,
    Arg<Varlen_CuSeqlens, "first new row of each sequence, and the end: N+1">:$cu,
    Arg<Varlen_CuSeqlens, "keys that each sequence has in the cache: N">:$seqused_k,
    Arg<Optional<Varlen_BlockTable>, "pages of each sequence: N x pages">:$block_table,
    Arg<Optional<Varlen_RotaryTable>, "cosines, positions x R">:$cos,
    Arg<Optional<Varlen_RotaryTable>, "sines, positions x R">:$sin,
    Arg<Varlen_Cache, "keys, P x page x Hkv x D">:$k_cache,
    Arg<Varlen_Cache, "values, P x page x Hkv x Dv">:$v_cache,
    Arg<Optional<Varlen_RowScales>, "scales of quantised keys, P x page x Hkv">:$k_scale,
    Arg<Optional<Varlen_RowScales>, "scales of quantised values, P x page x Hkv">:$v_scale,
    UnitAttr:$interleaved);
  let results = (outs Variadic<AnyRankedTensor>:$caches);
  let assemblyFormat = [{
    $k `,` $v `,` $cu `seqused_k` `(` $seqused_k `)`
    (`block_table` `(` $block_table^ `)`)? (`rotary` `(` $cos^ `,` $sin `)`)?
    `outs` `(` $k_cache `,` $v_cache `)` (`scales` `(` $k_scale^ `,` $v_scale `)`)?
    (`interleaved` $interleaved^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isBufferized();
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(*this, getKCacheMutable().getOperandNumber(),
                                         2 + (getKScale() ? 1 : 0) + (getVScale() ? 1 : 0));
    }
    /// Whether caches are of a type that only quantised ones have.
    bool isQuantised();
  }];
}

//===----------------------------------------------------------------------===//
// append_runs
//===----------------------------------------------------------------------===//

def Varlen_AppendRunsOp : Varlen_Op<"append_runs", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemAlloc]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Where a varlen.append writes, as a list of runs of rows";
  let description = [{
    Checks what `varlen.append` says of values, and makes a list of runs: new rows that follow
    one another in a page, at most 64. A row of the result is one run; its columns are the fields of
    `varlen_append_run` (Runtime.h). Where something is wrong the list is empty, and the
    runtime keeps the message, which is why an unused list is not removed. The caller frees
    the list with `memref.dealloc`.

    `rows(k, v)` are the rows of new keys and values, `pages(k, v)` those of the caches,
    `page_rows(k, v)` the rows of a page of each, `scales(k, k, v, v)` both of the scales of
    quantised caches, and `positions(cos, sin)` the rows of the tables of a rotary embedding.

    ```mlir
    %runs = varlen.append_runs %cu, %used block_table(%table) rows(%t, %t) pages(%p, %p)
        page_rows(%n, %n) : (memref<?xi32>, memref<?xi32>, memref<?x?xi32>, index, index, index,
                             index, index, index) -> memref<?x6xi64>
    ```
  }];
  let arguments = (ins
    Varlen_MemRef<Varlen_Index, 1>:$cu, Varlen_MemRef<Varlen_Index, 1>:$seqused_k,
    Optional<Varlen_MemRef<I32, 2>>:$block_table,
    Index:$k_rows, Index:$v_rows, Index:$k_pages, Index:$v_pages,
    Index:$k_page_rows, Index:$v_page_rows,
    Variadic<Index>:$scale_extents,
    Optional<Index>:$cos_rows, Optional<Index>:$sin_rows);
  let results = (outs Res<Varlen_MemRef<I64, 2>, "", [MemAlloc]>:$runs);
  let assemblyFormat = [{
    $cu `,` $seqused_k (`block_table` `(` $block_table^ `)`)?
    `rows` `(` $k_rows `,` $v_rows `)` `pages` `(` $k_pages `,` $v_pages `)`
    `page_rows` `(` $k_page_rows `,` $v_page_rows `)` (`scales` `(` $scale_extents^ `)`)?
    (`positions` `(` $cos_rows^ `,` $sin_rows `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Columns of the list, in the order of `varlen_append_run`.
    enum Column { Sequence, Position, Row, Rows, Page, PageRow, NumColumns };
  }];
}

#endif // VARLEN_APPEND_OPS_TD
