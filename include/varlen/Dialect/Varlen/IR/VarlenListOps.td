//===- VarlenListOps.td - Lists of tiles on a GPU ----------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lists that a device makes of the tiles of a batch, and what kernels read
// of them and of cu_seqlens. Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIST_OPS_TD
#define VARLEN_LIST_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenTypes.td"

def Varlen_ListTilesOp : Varlen_Op<"list_tiles", [
    MemoryEffects<[MemRead, MemAlloc]>, DeclareOpInterfaceMethods<OpAsmOpInterface,
      ["getAsmResultNames", "getAsmBlockArgumentNames"]>]> {
  let summary = "The list of the tiles of a batch, made on a device";
  let description = [{
    Checks cu_seqlens (and seqused, and the table of pages) on the device, for which the host
    does not wait, and lists the tiles of a type, most work first. Row i < `count[0]` of
    `list` is (sequence, tile within the sequence); rows of a sequence follow each other, the
    last one first if they are tiles of queries. Sequence N stands for the rows past the last
    sequence. The list is the same for every kv head, and so long that its extent bounds the
    count for any cu_seqlens. `count[0]` is -1 if cu_seqlens are bad, and then the status
    record of the device says what is wrong. The numbers behind it, one for each of
    `loops`, are how many items the CTAs of a loop have taken, 0 at first. The
    caller frees what it gets.

    With `parts(keys, pairs)` the keys of a sequence with at most so many `pairs` of a query and a
    head of the group are in parts of so many `keys`: rows of it are (sequence, part), each of
    its one tile, and `first_parts` is in which row the first one is.

    With `last_first` the last tile of a sequence is its first also of tiles of keys.

    With `checked(count)` another list of the batch has checked its entries.

    A tile of queries is as much work as its sequence has keys, and a tile of keys
    as it has queries, unless a region yields the work of a tile, an i32: with `by_head` of a kv head,
    else of any. All lanes of a warp compute it for one tile, of a sequence with rows in
    memory.

    ```mlir
    %list, %count = varlen.list_tiles !varlen.tile<queries(128)> of %batch loops(1) weights {
    ^bb0(%sequence: index, %tile: index, %kv_head: index):
      ...
      varlen.yield %blocks : i32
    } : memref<?x2xi32>, memref<2xi64>
    ```
  }];
  let arguments = (ins
    TypeAttrOf<Varlen_TileType>:$tile, Varlen_BatchType:$batch,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$loops,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$part_keys,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$part_pairs,
    Optional<Varlen_MemRef<I64, 1>>:$checked, UnitAttr:$last_first,
    UnitAttr:$by_head);
  // The effect of the operation makes an unused list stay, as it checks the batch.
  let results = (outs
    Res<Varlen_MemRef<I32, 2>, "", [MemAlloc]>:$list,
    Res<Varlen_MemRef<I64, 1>, "", [MemAlloc]>:$count,
    Optional<Varlen_MemRef<I32, 1>>:$first_parts);
  let regions = (region MaxSizedRegion<1>:$weights);
  let assemblyFormat = [{
    $tile `of` $batch `loops` `(` $loops `)`
    (`parts` `(` $part_keys^ `,` $part_pairs `)`)?
    (`checked` `(` $checked^ `:` type($checked) `)`)? (`last_first` $last_first^)?
    (`by_head` $by_head^)? (`weights` $weights^)? attr-dict `:` type(results)
  }];
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins
    "::mlir::varlen::TileType":$tile, "::mlir::Value":$batch, "int64_t":$loops,
    "::std::optional<::mlir::varlen::KeyParts>":$parts, "::mlir::Value":$checked)>];
  let extraClassDeclaration = [{
    /// In which parts keys are; nothing if they are in none.
    ::std::optional<::mlir::varlen::KeyParts> getKeyParts();
    /// The batch, or null if it is not made where the list can see it.
    ::mlir::varlen::BatchOp getBatchOp();
  }];
}

def Varlen_ReadTileOp : Varlen_Op<"read_tile"> {
  let summary = "The tile of an item of a list";
  let description = [{
    Each row of a list that `varlen.list_tiles` has made is an item for each kv head, one
    after the other. The results are the sequence and the tile of item `item`, and its kv head.

    ```mlir
    %sequence, %tile, %kv_head = varlen.read_tile %list[%item] heads(%kv_heads) : memref<?x2xi32>
    ```
  }];
  let arguments = (ins Arg<Varlen_MemRef<I32, 2>, "", [MemRead]>:$list, I32:$item,
                       Index:$kv_heads);
  let results = (outs Index:$sequence, Index:$tile, Index:$kv_head);
  let assemblyFormat =
      "$list `[` $item `]` `heads` `(` $kv_heads `)` attr-dict `:` type($list)";
}

def Varlen_ReadSequenceOp : Varlen_Op<"read_sequence", [
    MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The rows of a sequence of a batch";
  let description = [{
    Where the queries and the keys of sequence `sequence` begin in memory, how many rows it has there,
    and how many are in use; with a `q_offset` of the batch the offset of its queries. Of keys in
    pages the row of the table is in place of the first row. Sequence N stands for the
    rows past the last sequence, of which no query is in use.

    ```mlir
    %q_row, %q_rows, %q_used, %k_row, %k_rows, %k_used = varlen.read_sequence %batch[%s]
        : index, index, index, index, index, index
    ```
  }];
  let arguments = (ins Varlen_BatchType:$batch, Index:$sequence);
  let results = (outs Index:$q_row, Index:$q_rows, Index:$q_used, Index:$k_row,
                      Index:$k_rows, Index:$k_used, Optional<Index>:$offset);
  let assemblyFormat = "$batch `[` $sequence `]` attr-dict `:` type(results)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::varlen::BatchOp":$batch, "::mlir::Value":$sequence)>];
  let extraClassDeclaration = [{
    /// The batch, or null if it is not made where the operation can see it.
    ::mlir::varlen::BatchOp getBatchOp();
  }];
}

#endif // VARLEN_LIST_OPS_TD
