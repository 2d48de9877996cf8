//===- VarlenRowOps.td - Rows of memory on a CPU -----------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What moves rows between packed or paged memory and the scratch of a CPU, and
// what reads a row of a list of work. Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_ROW_OPS_TD
#define VARLEN_ROW_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"

/// The rows clause, as operations of the kernel dialect have it.
defvar Varlen_rowsOperands =
    (ins Index:$row, Index:$head, Index:$first, Index:$group, Index:$valid);
defvar Varlen_pagesOperands =
    (ins Optional<MemRefRankOf<[I32], [2]>>:$block_table, UnitAttr:$one_page);
defvar Varlen_rowsFormat =
    "`rows` `(` $row `,` $head `,` $first `,` $group `)` `valid` `(` $valid `)`";
defvar Varlen_pagesFormat =
    "(`pages` `(` $block_table^ `:` type($block_table) `)`)?";

/// Rows of T x H x D, or in pages, P x page x H x D.
def Varlen_RowsMemory
    : ConfinedType<MemRefRankOf<[Varlen_KeyElement], [3, 4]>, [],
                   "rank-3 or rank-4 memref of f16, bf16, f32, f64, i8 or f8E4M3FN",
                   "::mlir::MemRefType">;

class Varlen_RowsOp<string mnemonic, list<Trait> traits = []>
    : Varlen_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Varlen_ReadRowsOp : Varlen_RowsOp<"read_rows", [AttrSizedOperandSegments]> {
  let summary = "Copies rows of a sequence to scratch, in the orders in which they are read";
  let description = [{
    Row i of a tile is the pair p = `first` + i of a query row and a head, which lies in
    memory `T x H x D` as row `row + p / group` of head `head * group + p % group`; rows
    0 <= i < `valid` exist. With a group of 1, as keys have it, that is row
    `row + first + i` of `head`. They are converted to the element type of the scratch.

    The scratch is copies of the tile, as of `varlen.to_tile`, whose extents are those of the
    tile: its rows that do not exist, and columns past D, become zero, so no value of another
    sequence is ever read. In `columns` and `column_pairs` this holds for vectors (of `lanes`
    rows, by the schedule around the operation) that have a row; the others are left as they are.

    With `pages` memory is `P x page x H x D`, and `row` is a row of the table: row r of
    the sequence is row `r mod page` of page `block_table[row, r div page]`. No read leaves
    memory or the table, whatever entries are. With `one_page` the rows that exist are all in
    one page.

    ```mlir
    varlen.read_rows %q rows(%row, %head, %first, %group) valid(%n) to %q_columns as columns
        : memref<?x8x64xbf16> to memref<64x48xf32>
    varlen.read_rows %k rows(%row, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>)
        to %k_rows as rows {one_page} : memref<?x16x2x64xf32> to memref<?x64xf32>
    ```
  }];
  let arguments = !con(
    (ins Arg<Varlen_RowsMemory, "", [MemRead]>:$memory), Varlen_rowsOperands,
    Varlen_pagesOperands,
    (ins Arg<Variadic<Varlen_MemRef<Varlen_KeyElement, 2>>, "", [MemWrite]>:$copies,
         TypedArrayAttrBase<Varlen_TileOrderAttr, "an order for each copy">:$orders));
  let assemblyFormat = !strconcat("$memory ", Varlen_rowsFormat, " ", Varlen_pagesFormat, [{
    `to` custom<TileCopies>($copies, $orders) attr-dict `:` type($memory) `to` type($copies)
  }]);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$memory, "::mlir::Value":$row, "::mlir::Value":$head,
    "::mlir::Value":$first, "::mlir::Value":$group, "::mlir::Value":$valid,
    "::mlir::Value":$block_table, "bool":$one_page,
    "::llvm::ArrayRef<::mlir::varlen::TileCopy>":$copies)>];
  let extraClassDeclaration = [{
    /// The copies with their orders.
    ::llvm::SmallVector<::mlir::varlen::TileCopy> getTileCopies();
  }];
}

def Varlen_LoadRowsOp : Varlen_RowsOp<"load_rows", [
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "Rows of a sequence as a tile, where they are";
  let description = [{
    The `valid` rows from `first` on that `varlen.read_rows` copies with a group of 1, as a tile of
    them alone, which is not copied: `bufferization.to_tensor restrict` of a view of memory. With
    `pages` and without `one_page` there is a view for each page, and what reads the tile reads one
    after the other. `valid` is not negative.

    ```mlir
    %tile = varlen.load_rows %k rows(%row, %head, %k0) valid(%n) pages(%table : memref<?x?xi32>)
        : memref<?x16x2x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = !con((ins Arg<Varlen_RowsMemory, "", [MemRead]>:$memory,
                            Index:$row, Index:$head, Index:$first, Index:$valid),
                       Varlen_pagesOperands);
  let results = (outs Varlen_KeyTile:$tile);
  let assemblyFormat = !strconcat([{
    $memory `rows` `(` $row `,` $head `,` $first `)` `valid` `(` $valid `)`
  }], Varlen_pagesFormat, [{ attr-dict `:` type($memory) `->` type($tile) }]);
}

def Varlen_PrefetchRowsOp : Varlen_RowsOp<"prefetch_rows"> {
  let summary = "Asks for rows of a sequence";
  let description = [{
    Brings the rows of `varlen.read_rows` closer, which reads them soon. `valid` may be
    negative, which is no row.

    ```mlir
    varlen.prefetch_rows %k rows(%row, %head, %next, %one) valid(%n) : memref<?x2x64xf32>
    ```
  }];
  let arguments = !con((ins Arg<Varlen_RowsMemory, "", [MemRead, MemWrite]>:$memory),
                       Varlen_rowsOperands, Varlen_pagesOperands);
  let assemblyFormat = !strconcat("$memory ", Varlen_rowsFormat, " ", Varlen_pagesFormat, [{
    attr-dict `:` type($memory)
  }]);
}

def Varlen_FollowedByOp : Varlen_Op<"followed_by", [
    Pure, AllTypesMatch<["rows", "next", "result"]>,
    DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "Rows of memory, and which ones are read later";
  let description = [{
    The view `rows`. What fetches rows some time before they are read fetches, behind the last of
    them, the first ones of `next`; without this operation it takes those that follow in memory.

    ```mlir
    %page = varlen.followed_by %rows then %first : memref<?x64xbf16, strided<[256, 1], offset: ?>>
    ```
  }];
  let arguments = (ins Varlen_MemRef<Varlen_KeyElement, 2>:$rows,
                       Varlen_MemRef<Varlen_KeyElement, 2>:$next);
  let results = (outs Varlen_MemRef<Varlen_KeyElement, 2>:$result);
  let assemblyFormat = "$rows `then` $next attr-dict `:` type($rows)";
  let extraClassDefinition = [{
    ::mlir::Value $cppClass::getViewSource() { return getRows(); }
  }];
}

def Varlen_WriteRowsOp : Varlen_RowsOp<"write_rows"> {
  let summary = "Copies rows of scratch to those of a sequence";
  let description = [{
    Row i of the scratch, `times` the factor where there is one, is rounded once and becomes
    row i of `varlen.read_rows`, for 0 <= i < `valid`. Columns past D are dropped.

    ```mlir
    varlen.write_rows %dk to %dK rows(%row, %head, %k0, %one) valid(%n) times 0.125
        : memref<?x64xf32> to memref<?x2x64xbf16>
    ```
  }];
  let arguments = !con(
    (ins Arg<Varlen_MemRef<Varlen_Float, 2>, "", [MemRead]>:$scratch,
         Arg<Varlen_MemRef<Varlen_Float, 3>, "", [MemWrite]>:$memory),
    Varlen_rowsOperands, (ins OptionalAttr<F64Attr>:$factor));
  let assemblyFormat = !strconcat("$scratch `to` $memory ", Varlen_rowsFormat, [{
    (`times` $factor^)? attr-dict `:` type($scratch) `to` type($memory)
  }]);
}

def Varlen_FillRowsOp : Varlen_RowsOp<"fill_rows"> {
  let summary = "Makes rows of a sequence a number";
  let description = [{
    All columns of the rows that `varlen.write_rows` writes become `number`.

    ```mlir
    varlen.fill_rows %out rows(%row, %head, %first, %group) valid(%n) with 0.0 : memref<?x8x64xbf16>
    ```
  }];
  let arguments = !con((ins Arg<Varlen_MemRef<Varlen_Float, 3>, "", [MemWrite]>:$memory),
                       Varlen_rowsOperands, (ins F64Attr:$number));
  let assemblyFormat = !strconcat("$memory ", Varlen_rowsFormat, [{
    `with` $number attr-dict `:` type($memory)
  }]);
}

def Varlen_ReadWorkOp : Varlen_Op<"read_work", [
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The fields of a row of a list of work";
  let description = [{
    Field i of row `number` of a list that `varlen.work_tiles` or `varlen.split_tiles` has
    made is result i. The list says how many there are.

    ```mlir
    %tile:10 = varlen.read_work %tiles[%i] : memref<?x10xi64>
    ```
  }];
  let arguments = (ins Arg<Varlen_MemRef<I64, 2>, "", [MemRead]>:$list, Index:$number);
  let results = (outs Variadic<Index>:$fields);
  let assemblyFormat = "$list `[` $number `]` attr-dict `:` type($list)";
}

#endif // VARLEN_ROW_OPS_TD
