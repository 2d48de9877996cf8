//===- VarlenTableOps.td - What score regions look up ------*- tablegen -*-===//
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

#ifndef VARLEN_TABLE_OPS_TD
#define VARLEN_TABLE_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// lookup
//===----------------------------------------------------------------------===//

def Varlen_LookupOp : Varlen_Op<"lookup", [
    Pure, TypesMatchWith<"result is an entry of the table", "table", "entry",
                         "::llvm::cast<::mlir::varlen::TableType>($_self).getElement()">]> {
  let summary = "An entry of a table, in a score region";
  let description = [{
    Entry `index` of the row that the table has of a query, or of a query head. An
    index below 0 is entry 0, one behind the last entry is the last one: there is no
    index out of bounds. The entries of a table of keys are those of the sequence's
    keys in use, by position.

    ```mlir
    %bias = varlen.lookup %table[%bucket] : !varlen.table<f32>
    %flag = varlen.lookup %flags[%key] : !varlen.table<f32, keys>
    ```
  }];
  let arguments = (ins Varlen_TableType:$table, I32:$index);
  let results = (outs Varlen_ComputeFloat:$entry);
  let assemblyFormat = "$table `[` $index `]` attr-dict `:` qualified(type($table))";
}

//===----------------------------------------------------------------------===//
// clear, sum_rows: in loops over tiles
//===----------------------------------------------------------------------===//

/// Tables of steps.
def Varlen_TableMemory
    : ConfinedType<MemRefRankOf<[Varlen_ComputeFloat], [2, 3]>, [],
                   "rank-2 or rank-3 memref of f32 or f64", "::mlir::MemRefType">;
/// A row for each head and query: H x T x M.
def Varlen_TableRows : Varlen_MemRef<Varlen_ComputeFloat, 3>;
/// A number, or a row, for each head: H or H x M.
def Varlen_HeadMemory
    : ConfinedType<MemRefRankOf<[Varlen_ComputeFloat], [1, 2]>, [],
                   "rank-1 or rank-2 memref of f32 or f64", "::mlir::MemRefType">;

def Varlen_ClearOp : Varlen_Op<"clear"> {
  let summary = "Zeros in what a table has of a tile's queries, or of its keys";
  let description = [{
    In use or not: what steps add to begins with this, and rows of no sequence keep it.
    Of queries these are rows of M numbers, of keys a number for each query head of the
    group.

    ```mlir
    varlen.clear %dtable at %t : memref<8x?x32xf32>, !varlen.tile<queries(64)>
    varlen.clear %dflags at %block : memref<8x?xf32>, !varlen.tile<keys(128)>
    ```
  }];
  let arguments = (ins
    Arg<Varlen_TableMemory, "H x T x M, or H x T of keys", [MemWrite]>:$memory,
    Varlen_TileType:$tile);
  let assemblyFormat = "$memory `at` $tile attr-dict `:` type($memory) `,` type($tile)";
  let hasVerifier = 1;
}

def Varlen_SumRowsOp : Varlen_Op<"sum_rows"> {
  let summary = "The sum of the rows of each head of a tile";
  let description = [{
    `sums[h, m] = sum_t rows[h, t, m]`, or its negation if `negated`, for the heads of
    the tile and all rows, in use or not. Scratch has one value for each row, so no m.
    Terms may be thousands, of either sign.

    ```mlir
    varlen.sum_rows %rows to %dtable at %t
        : memref<8x?x32xf32> to memref<8x32xf32>, !varlen.tile<heads>
    varlen.sum_rows %terms to %dsink at %t negated
        : !varlen.rows<1 x f32> to memref<8xf32>, !varlen.tile<heads>
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[Varlen_TableRows, Varlen_RowsType]>, "H x T x M, or scratch",
        [MemRead]>:$rows,
    Arg<Varlen_HeadMemory, "H x M, or H of scratch", [MemWrite]>:$sums,
    Varlen_TileType:$tile, UnitAttr:$negated);
  let assemblyFormat = [{
    $rows `to` $sums `at` $tile (`negated` $negated^)? attr-dict
    `:` type($rows) `to` type($sums) `,` type($tile)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// gather, scatter_add, add_keys: below steps
//===----------------------------------------------------------------------===//

/// Tables as steps on tiles have them: memory of which a row begins at each
/// element, so that a row is an offset, whatever the strides of the capture.
def Varlen_TableView : Varlen_MemRef<Varlen_ComputeFloat, 2>;
/// Where the row of each query begins.
def Varlen_RowTile : Varlen_Tensor<I64, 2>;

class Varlen_LikeInts<Type type>
    : AnyTypeOf<[type, VectorOfAnyRankOf<[type]>], type.summary # " or a vector of it">;

def Varlen_GatherOp : Varlen_Op<"gather", [
    Elementwise, Scalarizable, Vectorizable, Tensorizable, AlwaysSpeculatable]> {
  let summary = "Entries of rows of a table in memory";
  let description = [{
    Element `[row, index]` of the memory, with the index clamped as `varlen.lookup` has
    it; rows are in bounds. On vectors, one for each lane.

    ```mlir
    %x = varlen.gather %table[%row, %index]
        : memref<?x32xf32, strided<[1, 1], offset: ?>>, i64, i32 -> f32
    ```
  }];
  let arguments = (ins
    Arg<Varlen_TableView, "rows x M", [MemRead]>:$table,
    Varlen_LikeInts<I64>:$row, Varlen_LikeInts<I32>:$index);
  let results = (outs
    AnyTypeOf<[Varlen_ComputeFloat, VectorOfAnyRankOf<[Varlen_ComputeFloat]>]>:$entry);
  let assemblyFormat = [{
    $table `[` $row `,` $index `]` attr-dict
    `:` type($table) `,` type($row) `,` type($index) `->` type($entry)
  }];
  let hasVerifier = 1;
}

def Varlen_ScatterAddOp : Varlen_Op<"scatter_add"> {
  let summary = "Adds the numbers of a score tile to rows of a table in memory";
  let description = [{
    `memory[rows[i], index[i, j]] += values[i, j]` for each query i and, in their order,
    each key j, with the index clamped. Rows have the shape of a statistic of the
    values' queries. No two queries have the same row; one whose row is negative is left
    out.

    ```mlir
    varlen.scatter_add %values at %index to %memory[%rows]
        : tensor<?x32xf32>, tensor<?x32xi32>, memref<?x32xf32, strided<[1, 1], offset: ?>>,
          tensor<1x32xi64>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$values, Varlen_Tensor<I32, 2>:$index,
    Arg<Varlen_TableView, "rows x M", [MemRead, MemWrite]>:$memory,
    Varlen_RowTile:$rows);
  let assemblyFormat = [{
    $values `at` $index `to` $memory `[` $rows `]` attr-dict
    `:` type($values) `,` type($index) `,` type($memory) `,` type($rows)
  }];
  let hasVerifier = 1;
}

def Varlen_AddKeysOp : Varlen_Op<"add_keys"> {
  let summary = "Adds a score tile, summed over queries, to rows of keys in memory";
  let description = [{
    `memory[r, first_key + j] += sum_i values[i, j]` over the queries i whose row is r,
    for each key j and each r of `rows`, in an order that the types fix. As in
    `varlen.scatter_add`, rows have the shape of a statistic of the values' queries, and
    a query whose row is negative is left out; but queries of one head share its row. A
    key behind the last one of the memory is left out, too.

    ```mlir
    varlen.add_keys %values to %memory[%rows, %first_key]
        : tensor<?x32xf32>, memref<?x?xf32, strided<[1, 1], offset: ?>>, tensor<1x32xi64>
    ```
  }];
  let arguments = (ins
    Varlen_Tile:$values,
    Arg<Varlen_TableView, "rows x keys", [MemRead, MemWrite]>:$memory,
    Varlen_RowTile:$rows, I32:$first_key);
  let assemblyFormat = [{
    $values `to` $memory `[` $rows `,` $first_key `]` attr-dict
    `:` type($values) `,` type($memory) `,` type($rows)
  }];
  let hasVerifier = 1;
}

#endif // VARLEN_TABLE_OPS_TD
