//===- VarlenLoopOps.td - Tile loops of the varlen dialect -*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The level between an attention on buffers and its targets: which tile owns
// which rows, which blocks it visits, and what is read, computed and written for
// that. Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LOOP_OPS_TD
#define VARLEN_LOOP_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

/// What has rows: T x H x D, P x page x H x D, H x T, H, or scratch.
def Varlen_RowMemory : AnyTypeOf<[
  Varlen_MemRef<Varlen_KeyElement, 3>, Varlen_MemRef<Varlen_KeyElement, 4>,
  Varlen_MemRef<Varlen_ComputeFloat, 2>,
  Varlen_MemRef<Varlen_ComputeFloat, 1>, Varlen_RowsType]>;

//===----------------------------------------------------------------------===//
// batch
//===----------------------------------------------------------------------===//

def Varlen_BatchOp : Varlen_Op<"batch", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The geometry of a packed batch: lengths, offsets, heads, mask";
  let description = [{
    The one operation of the tile loops that reads cu_seqlens. Operands are those
    of `varlen.attn`; `rows(tq, tk)` are the extents that cu_seqlens must stay
    within, `heads(kv_heads, group)` the kv heads and the query heads to each, at
    least 1. Of keys in pages `block_table(table, num_pages, page_rows)` says where
    they are, and tk is how many rows the pages of a sequence have.

    If cu_seqlens are bad, no loop over tiles of the batch visits any, and the
    runtime of the target keeps the message. The same holds for an extent that
    breaks a rule of `varlen.attn`, checked where the batch is made:
    `fault(rule, value, bound)` is the number of the rule (`Runtime.h`), 0 if none
    is broken, the extent, and the one it is compared with.

    ```mlir
    %batch = varlen.batch %cu_q, %cu_k seqused_k(%used : memref<?xi32>)
        rows(%tq, %tk) heads(%kv_heads, %group) mask <causal>
        : memref<?xi32>, memref<?xi32>
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
    Optional<Index>:$rule, Optional<Index>:$value, Optional<Index>:$bound,
    Varlen_MaskAttrInterface:$mask);
  let results = (outs Varlen_BatchType:$batch);
  let assemblyFormat = [{
    $cu_q (`,` $cu_k^)?
    oilist( `seqused_q` `(` $seqused_q `:` type($seqused_q) `)`
          | `seqused_k` `(` $seqused_k `:` type($seqused_k) `)`
          | `q_offset` `(` $q_offset `:` type($q_offset) `)`
          | `block_table` `(` $block_table `:` type($block_table) `,` $num_pages `,` $page_rows `)` )
    `rows` `(` $tq `,` $tk `)` `heads` `(` $kv_heads `,` $group `)`
    (`fault` `(` $rule^ `,` $value `,` $bound `)`)?
    `mask` custom<Mask>($mask) attr-dict `:` type($cu_q) (`,` type($cu_k)^)?
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// for_tiles, if_few, for_parts, for_blocks
//===----------------------------------------------------------------------===//

def Varlen_YieldOp : Varlen_Op<"yield", [
    Pure, Terminator, ReturnLike,
    ParentOneOf<["ForTilesOp", "IfFewOp", "ForPartsOp", "ForBlocksOp", "ForQueriesOp", "ListTilesOp", "AttnOp",
                 "AttnIntoOp", "AttnGradOp", "AttnGradIntoOp", "AttnJVPOp", "AttnJVPIntoOp", "AttnJVPGradOp", "AttnJVPGradIntoOp",
                 "OnlineAttnOp", "OnlineAttnGradOp", "OnlineAttnJVPOp", "OnlineAttnJVPGradOp"]>]> {
  let summary = "Ends the body of a tile loop or of a score region";
  let description = [{
    Of `varlen.for_blocks`, with the values that the next block starts from; of
    `varlen.for_parts`, with the state of a part, or of two together; of
    `varlen.for_queries`, with what goes to memory; of `varlen.list_tiles`, with the work of a tile; of a score
    region, with the new score, with whether the key is visible if the region hides
    keys, and with a factor of the probability if it has one.

    ```mlir
    varlen.yield %acc, %m, %l : tensor<64x48xf32>, tensor<64x1xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Variadic<AnyTypeOf<[Varlen_Tile, Varlen_ComputeFloat, I1, I32]>>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* nothing to do */ }]>];
}

def Varlen_ForTilesOp : Varlen_Op<"for_tiles", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::mlir::varlen::YieldOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A parallel loop over tiles that own all rows between them";
  let description = [{
    Every row of the axis (each pair of a query row and a query head; each row
    of k and kv head; of `sequences` both; for `heads` each query head) is in
    exactly one tile, and rows that belong to no sequence are in tiles of which no row is in use.
    Tiles run in any order, on any threads.

    The name tells one loop of an attention from another: a target may give it to
    the code that it makes of the loop.

    ```mlir
    varlen.for_tiles "out" %t of queries(128) in %batch {
      %q = varlen.read %Q at %t : memref<?x16x64xbf16>, !varlen.tile<queries(128)> -> tensor<128x64xbf16>
      ...
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Varlen_BatchType:$batch);
  let regions = (region SizedRegion<1>:$region);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::Value":$batch,
                                 "::mlir::varlen::TileType":$tile)>];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getTile() { return getBody()->getArgument(0); }
    ::mlir::varlen::TileType getTileType() {
      return ::llvm::cast<::mlir::varlen::TileType>(getTile().getType());
    }
    /// The batch, or null if it is not made where the loop can see it.
    ::mlir::varlen::BatchOp getBatchOp();
  }];
}

def Varlen_IfFewOp : Varlen_Op<"if_few", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::mlir::varlen::YieldOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One form of the body of a tile loop for few queries, another for others";
  let description = [{
    The first region runs for a tile that has few queries, the other one for all other
    tiles. %f is %t, and the rows of its type are the most that such a tile has.
    Whether a tile is one of them the target decides, by the tile alone. It is all that the
    loop over tiles has, beside constants.

    Both regions compute the same, in orders of their own: a target may want few queries as
    rows of score tiles and many as columns.

    ```mlir
    varlen.for_tiles "attn" %t of queries(768) in %batch {
      varlen.if_few %f of %t : !varlen.tile<queries(8)> of !varlen.tile<queries(768)> {
        %q = varlen.read %Q at %f : memref<?x16x64xf32>, !varlen.tile<queries(8)> -> tensor<8x64xf32>
        ...
      } else {
        %q = varlen.read %Q at %t : memref<?x16x64xf32>, !varlen.tile<queries(768)> -> tensor<768x64xf32>
        ...
      }
    }
    ```
  }];
  let arguments = (ins Varlen_TileType:$tile);
  let regions = (region SizedRegion<1>:$few, SizedRegion<1>:$many);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$tile, "::mlir::varlen::TileType":$few)>];
  let extraClassDeclaration = [{
    /// The tile, if it has few queries.
    ::mlir::BlockArgument getFewTile() { return getFewBody()->getArgument(0); }
    ::mlir::varlen::TileType getFewType() {
      return ::llvm::cast<::mlir::varlen::TileType>(getFewTile().getType());
    }
    ::mlir::Block *getFewBody() { return &getFew().front(); }
    ::mlir::Block *getManyBody() { return &getMany().front(); }
  }];
}

def Varlen_ForPartsOp : Varlen_Op<"for_parts", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::mlir::varlen::YieldOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A loop over parts of the blocks that a tile visits, each with a state";
  let description = [{
    The blocks that %t visits, in their order, are cut into parts of `blocks` blocks;
    the last part may have fewer. With `blocks(0)` there is one part. The body runs once for each: %p is %t, with the
    blocks of one part. The one `varlen.for_blocks` of the body is for %p, and its results
    are the state of the part. If %t visits no block, there is one part without any.

    Bodies may run in any order, on any threads. `merge` makes one state of two: of
    all parts before one, and of that one. It runs in the order of parts, so results do
    not depend on threads.

    A target may compute tiles of few queries, whose states are smaller, in another way
    than others. These have parts of `few` blocks. Whether a tile is one of them, the
    target has to decide by the tile alone.

    ```mlir
    %s:3 = varlen.for_parts %p of %t blocks(16) few(8) : !varlen.tile<queries(128)>
        -> (tensor<128x64xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
      %acc0, %m0, %l0 = varlen.online_init qk scale 0.125 : tensor<128x64xf32>, tensor<128x1xf32>
      %r:3 = varlen.for_blocks %b of keys(64) meeting %p : !varlen.tile<queries(128)>
          iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (...) {
        ...
      }
      varlen.yield %r#0, %r#1, %r#2 : ...
    } merge(%acc, %m, %l with %acc1, %m1, %l1) {
      %u:3 = varlen.online_merge qk %acc, %m, %l with %acc1, %m1, %l1 scale 0.125 : ...
      varlen.yield %u#0, %u#1, %u#2 : ...
    }
    ```
  }];
  let arguments = (ins
    Varlen_TileType:$tile,
    ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<65536>]>:$blocks,
    ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>:$few);
  let results = (outs Variadic<Varlen_Tile>:$states);
  let regions = (region SizedRegion<1>:$region, SizedRegion<1>:$merge);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$tile, "::mlir::varlen::PartSizes":$sizes,
                                 "::mlir::TypeRange":$states)>];
  let extraClassDeclaration = [{
    /// The tile, meeting the blocks of a part.
    ::mlir::BlockArgument getPart() { return getBody()->getArgument(0); }
    /// The loop over these; null if there is not one.
    ::mlir::varlen::ForBlocksOp getLoop();
    ::mlir::Block *getMergeBody() { return &getMerge().front(); }
    /// The operation that makes one state of the two, in their order, if it is the
    /// only one of `merge`; else null.
    ::mlir::Operation *getMergeOp();
  }];
}

def Varlen_ForBlocksOp : Varlen_Op<"for_blocks", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::mlir::varlen::YieldOp">,
    AllTypesMatch<["inits", "results"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A loop over the blocks that a tile visits";
  let description = [{
    `keys(64) meeting %t`: the blocks of keys that some row of %t, a tile of
    queries, sees. `queries(64) by_head meeting %t`: the blocks of queries that
    see some key of %t, a tile of keys, of each head of the group. `keys(64) of
    %t`: all blocks of the keys of %t, a tile of sequences. Blocks come in
    an order that the tile alone decides, so results do not depend on the rest
    of the batch.

    ```mlir
    %s:3 = varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(128)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0)
        -> (tensor<128x64xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
      ...
      varlen.yield %r#0, %r#1, %r#2 : tensor<128x64xf32>, tensor<128x1xf32>, tensor<128x1xf32>
    }
    ```
  }];
  let arguments = (ins
    Varlen_TileType:$tile, Variadic<Varlen_Tile>:$inits);
  let results = (outs Variadic<Varlen_Tile>:$results);
  let regions = (region SizedRegion<1>:$region);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins
    "::mlir::Value":$tile, "::mlir::varlen::TileType":$block, "::mlir::ValueRange":$inits)>];
  let extraClassDeclaration = [{
    /// Whether the blocks are of the tile itself.
    bool isOfOwn() { return getTile().getType().getAxis() == ::mlir::varlen::Axis::Sequences; }
    ::mlir::BlockArgument getBlock() { return getBody()->getArgument(0); }
    ::mlir::varlen::TileType getBlockType() {
      return ::llvm::cast<::mlir::varlen::TileType>(getBlock().getType());
    }
    ::mlir::Block::BlockArgListType getIterArgs() {
      return getBody()->getArguments().drop_front();
    }
    ::mlir::OperandRange getYielded() {
      return getBody()->getTerminator()->getOperands();
    }
    /// What its state begins with, if that is one operation; else null.
    ::mlir::varlen::StateInitOpInterface getBeginning();
    /// The step that makes the next state of the iter_args as they are; null if
    /// anything else modifies it.
    ::mlir::varlen::StepOpInterface getStateStep();
  }];
}

//===----------------------------------------------------------------------===//
// rows, free_rows, read, write
//===----------------------------------------------------------------------===//

def Varlen_RowsOp : Varlen_Op<"rows", [
    MemoryEffects<[MemAlloc]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Scratch with a few values for each query row and head of a batch";
  let description = [{
    What one loop over tiles leaves for another. `varlen.free_rows` frees it.

    ```mlir
    %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
    ```
  }];
  let arguments = (ins Varlen_BatchType:$batch);
  let results = (outs Res<Varlen_RowsType, "", [MemAlloc]>:$rows);
  let assemblyFormat = "`in` $batch attr-dict `:` type($rows)";
}

def Varlen_FreeRowsOp : Varlen_Op<"free_rows"> {
  let summary = "Frees scratch";
  let description = [{
    ```mlir
    varlen.free_rows %rows : !varlen.rows<2 x f32>
    ```
  }];
  let arguments = (ins Arg<Varlen_RowsType, "", [MemFree]>:$rows);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
}

def Varlen_ReadOp : Varlen_Op<"read"> {
  let summary = "The rows of a tile, as values";
  let description = [{
    From memory of T x H x D, or, at keys of a batch with a block_table, of
    P x page x H x D: a row for each row of the tile, as it is or in the
    type that its products accumulate in, quantised rows in any type that has all of
    their numbers; columns past D are 0. Rows of one column may be 1 x R. From memory of H x T, from H values (one for each head) or from scratch: a
    value for each row, as R x 1 or 1 x R, with a result for each value that
    scratch has of a row. Rows that are not in use are `otherwise`, a number for
    each result, 0 by default, whatever memory has there.

    The memory is defined outside of the loop over tiles, and nothing in that loop
    writes it: so a read depends on its tile alone, and may move up to where that
    is known.

    ```mlir
    %k = varlen.read %K at %b : memref<?x4x64xbf16>, !varlen.tile<keys(64)> -> tensor<64x64xbf16>
    %lse, %delta = varlen.read %rows at %t otherwise (inf, 0.0)
        : !varlen.rows<2 x f32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Arg<Varlen_RowMemory, "", [MemRead]>:$source, Varlen_TileType:$tile,
    OptionalAttr<DenseF64ArrayAttr>:$otherwise);
  let results = (outs Variadic<Varlen_KeyTile>:$values);
  let assemblyFormat = [{
    $source `at` $tile (`otherwise` custom<Numbers>($otherwise)^)? attr-dict
    `:` type($source) `,` type($tile) `->` type($values)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether it reads rows, of D columns each.
    bool isOfVectors();
  }];
}

def Varlen_WriteOp : Varlen_Op<"write"> {
  let summary = "Stores the rows of a tile";
  let description = [{
    The inverse of `varlen.read`: `times` the value, rounded once, for rows in
    use, and `otherwise` for the others of the tile in memory, whatever has been
    computed for them, NaN included. Columns past the extent of memory are
    dropped.

    ```mlir
    varlen.write %dk to %dK at %t otherwise (0.0) times 0.125
        : tensor<64x64xf32> -> memref<?x4x64xbf16>, !varlen.tile<keys(64)>
    ```
  }];
  let arguments = (ins
    Variadic<Varlen_Tile>:$values,
    Arg<Varlen_RowMemory, "", [MemWrite]>:$destination, Varlen_TileType:$tile,
    DenseF64ArrayAttr:$otherwise, OptionalAttr<F64Attr>:$factor);
  let assemblyFormat = [{
    $values `to` $destination `at` $tile `otherwise` custom<Numbers>($otherwise)
    (`times` $factor^)? attr-dict
    `:` type($values) `->` type($destination) `,` type($tile)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether it writes rows of T x H x D.
    bool isOfVectors();
  }];
}

def Varlen_AddInOrderOp : Varlen_Op<"add_in_order"> {
  let summary = "Adds up what tiles of keys have for the rows of a block";
  let description = [{
    In a loop over blocks of queries, whose rows in use become `times` the sum of the parts of
    all tiles that visit the block, rounded once. Parts are added in the order of tiles, the last
    one first, whichever of them is computed when. Rows that no tile visits, or that are
    not in use, keep what they have.

    ```mlir
    varlen.add_in_order %part to %dQ at %b times 0.125
        : tensor<64x64xf32> -> memref<?x8x64xbf16>, !varlen.tile<queries(64) by_head>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$part,
    Arg<Varlen_RowMemory, "T x H x D", [MemRead, MemWrite]>:$destination,
    Varlen_TileType:$tile, OptionalAttr<F64Attr>:$factor);
  let assemblyFormat = [{
    $part `to` $destination `at` $tile (`times` $factor^)? attr-dict
    `:` type($part) `->` type($destination) `,` type($tile)
  }];
  let hasVerifier = 1;
}

def Varlen_SizeOp : Varlen_Op<"size", [Pure]> {
  let summary = "How many rows a tile has, in whole multiples";
  let description = [{
    The pairs of a tile of sequences, rounded up to a multiple.

    ```mlir
    %n = varlen.size of %t multiple 32 : !varlen.tile<sequences>
    ```
  }];
  let arguments = (ins Varlen_TileType:$tile,
                       ConfinedAttr<I64Attr, [IntPositive]>:$multiple);
  let results = (outs Index:$size);
  let assemblyFormat = "`of` $tile `multiple` $multiple attr-dict `:` qualified(type($tile))";
}

//===----------------------------------------------------------------------===//
// The beginning, the union and the end of states, and what gradients need of rows
//===----------------------------------------------------------------------===//

def Varlen_OnlineInitOp : Varlen_Op<"online_init", [
    Pure, AllTypesMatch<["m", "l"]>,
    DeclareOpInterfaceMethods<Varlen_StateInitOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The state of queries that have processed no key";
  let description = [{
    The beginning of the state of `varlen.online_attn`, with the same `scale`: acc and
    l are 0, and m lies below every score but is finite, so that no step makes a NaN.
    `varlen.online_merge` with it changes nothing, so parts of the keys can each begin
    with it. With `tangents` it is the beginning of the state of `varlen.online_attn_jvp`:
    the tangents of acc and l, and tl_rounded where it has one, are 0, too.

    A sink is not part of it but of `varlen.online_finish`: it counts once, however
    many states become one, and it is a logit, where m is a score before the scale.

    Extents are static.

    ```mlir
    %acc, %m, %l = varlen.online_init qk scale 0.125 : tensor<64x48xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins F64Attr:$scale, Varlen_OrientationAttr:$orientation);
  let results = (outs Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l,
                      Variadic<Varlen_Tile>:$tangents);
  let assemblyFormat = [{
    $orientation `scale` $scale attr-dict `:` type($acc) `,` type($m)
    (`tangents` `(` type($tangents)^ `)`)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What acc, m and l are all over.
    static ::std::array<double, 3> getNumbers(double scale, ::mlir::FloatType compute);
  }];
}

def Varlen_OnlineFinishOp : Varlen_Op<"online_finish", [
    Pure, InferTypeOpAdaptor, AttrSizedOperandSegments, AllTypesMatch<["m", "l"]>,
    DeclareOpInterfaceMethods<Varlen_QueryTileOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Output and lse of queries that have processed their keys";
  let description = [{
    The end of the state of `varlen.online_attn`, with the same `scale`:

        lse = log(sum_j exp(scale * s[i, j]) + exp(sink))
        out = sum_j exp(scale * s[i, j] - lse) * v[j]

    A query without a key (l = 0) has out = 0 and, without a sink, lse = -inf; a
    sink of -inf is none. `rounded` says that the probabilities were rounded to a
    narrower type, and so what acc and l are relative to (`varlen.online_attn`).

    out is queries x value head_dim in either orientation; lse and the sink, a
    logit for each query, have the shape of m.

    With `tangents`, those of acc and l as `varlen.online_attn_jvp` makes them, the
    tangents of out and lse are results, too:

        tlse = sum_j exp(scale * s[i, j] - lse) * ts[i, j] + exp(sink - lse) * tsink
        tout = sum_j exp(scale * s[i, j] - lse) * (ts[i, j] * v[j] + tv[j]) - tlse * out

    A third tangent is tl_rounded, which takes the place of the tangent of l in
    tlse * out, since tacc has the same terms.

    A query without a key has tout = 0 and, without a sink, tlse = 0; a sink of -inf adds
    nothing, whatever its tsink is.

    ```mlir
    %out, %lse = varlen.online_finish qk %acc, %m, %l
        sink(%sink : tensor<64x1xf32>) scale 0.125 rounded : tensor<64x48xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Variadic<Varlen_Tile>:$tangents,
    Optional<Varlen_Tile>:$sink, Optional<Varlen_Tile>:$tsink,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation, UnitAttr:$rounded);
  let results = (outs Varlen_Tile:$out, Varlen_Tile:$lse,
                      Variadic<Varlen_Tile>:$tangents_out);
  let assemblyFormat = [{
    $orientation $acc `,` $m `,` $l
    (`tangents` `(` $tangents^ `:` type($tangents) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)? (`tsink` `(` $tsink^ `:` type($tsink) `)`)?
    `scale` $scale (`rounded` $rounded^)? attr-dict `:` type($acc) `,` type($m)
  }];
  let hasVerifier = 1;
}

def Varlen_OnlineMergeOp : Varlen_Op<"online_merge", [
    Pure, InferTypeOpAdaptor, AttrSizedOperandSegments,
    AllTypesMatch<["acc", "more_acc"]>,
    AllTypesMatch<["m", "l", "more_m", "more_l"]>,
    DeclareOpInterfaceMethods<Varlen_QueryTileOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The state of queries that have processed the keys of two states";
  let description = [{
    The union of two states of `varlen.online_attn`, with its `scale`, of the same
    queries and of different keys:

        m' = max(m, more_m)
        l' = l * exp2(r(m) - r(m')) + more_l * exp2(r(more_m) - r(m'))

    and acc' like l'. r is that of the step; `rounded` says that the probabilities
    were rounded to a narrower type, as in `varlen.online_finish`. A state that has
    seen no key changes nothing. `tangents`, of acc and l and tl_rounded, are summed as
    these are.

    ```mlir
    %acc, %m, %l = varlen.online_merge qk %acc0, %m0, %l0 with %acc1, %m1, %l1
        scale 0.125 rounded : tensor<64x48xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Variadic<Varlen_Tile>:$tangents,
    Varlen_Tile:$more_acc, Varlen_Tile:$more_m, Varlen_Tile:$more_l,
    Variadic<Varlen_Tile>:$more_tangents,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation, UnitAttr:$rounded);
  let results = (outs Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out,
                      Variadic<Varlen_Tile>:$tangents_out);
  let assemblyFormat = [{
    $orientation $acc `,` $m `,` $l (`tangents` `(` $tangents^ `:` type($tangents) `)`)?
    `with` $more_acc `,` $more_m `,` $more_l
    (`tangents` `(` $more_tangents^ `:` type($more_tangents) `)`)?
    `scale` $scale (`rounded` $rounded^)? attr-dict `:` type($acc) `,` type($m)
  }];
  let hasVerifier = 1;
}

def Varlen_RowDotOp : Varlen_Op<"row_dot", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "The products of rows with rows of another tile, each with its own";
  let description = [{
    `sum_d lhs[i, d] * rhs[i, d]`, in the type of the result: R x D to R x 1. The
    order of the sum is the target's.

    ```mlir
    %dot = varlen.row_dot %dout, %out : tensor<64x48xbf16> -> tensor<64x1xf32>
    ```
  }];
  let arguments = (ins Varlen_Tile:$lhs, Varlen_Tile:$rhs);
  let results = (outs Varlen_Tile:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Varlen_OnlineStatisticsOp : Varlen_Op<"online_statistics", [
    Pure, InferTypeOpAdaptor, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Varlen_QueryTileOpInterface>,
    AllTypesMatch<["dot", "lse"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "What the gradients of queries need of their rows";
  let description = [{
    `delta = dot - dlse`, where dot is the product of the rows of dout and out, and
    lse as `varlen.online_attn_grad` wants it, in units of log2 unless `natural`. A
    query without a key (lse = -inf) has +inf and 0, whatever its dot and dlse are.
    With a sink, a logit for each query, also what the query subtracts from the gradient
    of its sink: `exp(sink - lse) * delta`, 0 for a sink of -inf.

    All are numbers of queries, of one type.

    ```mlir
    %row_lse, %delta = varlen.online_statistics %dot, %lse dlse(%dlse : tensor<64x1xf32>)
        : tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$dot, Varlen_Tile:$lse, Optional<Varlen_Tile>:$dlse,
    Optional<Varlen_Tile>:$sink, UnitAttr:$natural);
  let results = (outs Varlen_Tile:$row_lse, Varlen_Tile:$delta,
                      Optional<Varlen_Tile>:$sink_term);
  let assemblyFormat = [{
    $dot `,` $lse (`dlse` `(` $dlse^ `:` type($dlse) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)? (`natural` $natural^)? attr-dict
    `:` type($lse)
  }];
  let hasVerifier = 1;
}

def Varlen_OnlineTangentStatisticsOp : Varlen_Op<"online_tangent_statistics", [
    Pure, InferTypeOpAdaptor, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Varlen_QueryTileOpInterface>,
    AllTypesMatch<["lse", "delta", "tlse"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "What the gradients of queries and their tangents need of their rows, too";
  let description = [{
    Beside the results of `varlen.online_statistics`: `tdelta`, the sum of `dots` less dlse,
    where dots are the products of the rows of dtout and tout and, with a dout, of dout and
    out. A query without a key (lse = -inf) has 0, whatever else it has. With a sink, a logit
    for each query, also what the query subtracts from the gradient of its sink:
    `exp(sink - lse) * ((tsink - tlse) * delta + tdelta)`, 0 for a sink of -inf; without a
    tsink, that is 0.

    `lse` and `tlse` are results of the attention, `delta` is the one of
    `varlen.online_statistics`, and `natural` is as there. All are numbers of queries, of one
    type.

    ```mlir
    %tdelta = varlen.online_tangent_statistics dots(%tdot : tensor<64x1xf32>) %lse, %delta, %tlse
        : tensor<64x1xf32>
    ```
  }];
  let arguments = (ins
    Variadic<Varlen_Tile>:$dots, Varlen_Tile:$lse, Varlen_Tile:$delta, Varlen_Tile:$tlse,
    Optional<Varlen_Tile>:$dlse, Optional<Varlen_Tile>:$sink, Optional<Varlen_Tile>:$tsink,
    UnitAttr:$natural);
  let results = (outs Varlen_Tile:$tdelta, Optional<Varlen_Tile>:$sink_term);
  let assemblyFormat = [{
    `dots` `(` $dots `:` type($dots) `)` $lse `,` $delta `,` $tlse
    (`dlse` `(` $dlse^ `:` type($dlse) `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`tsink` `(` $tsink^ `:` type($tsink) `)`)? (`natural` $natural^)? attr-dict
    `:` type($lse)
  }];
  let hasVerifier = 1;
}

#endif // VARLEN_LOOP_OPS_TD
