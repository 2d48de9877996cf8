//===- VarlenQueryOps.td - Queries of a tile on a CPU ------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is computed of the queries of a tile whose values are in the scratch of a
// CPU. Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_QUERY_OPS_TD
#define VARLEN_QUERY_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenRowOps.td"

def Varlen_KeyLimitsOp : Varlen_Op<"key_limits"> {
  let summary = "Stores which keys each query of a tile sees";
  let description = [{
    Pair `first` + i of a query and one of `group` heads, 0 <= i < `valid`, of a sequence
    with `queries` queries and `keys` keys, sees by the mask the keys from `lo` on that lie
    before `hi`, both stored at `[i div C, i mod C]` of memory of C columns. Places of the
    last vector (`lanes` of the schedule around the operation) behind the last pair get what
    that one has; those of further vectors, up to a multiple of C, get `keys` twice: no key.
    Memory of one column, for queries that are rows, has no places behind the last pair, and
    needs no schedule.

    ```mlir
    varlen.key_limits mask <causal> pairs(%first, %group) valid(%n) of(%queries, %keys)
        to %lo, %hi : memref<24x32xi32>, memref<24x32xi32>
    ```
  }];
  let arguments = (ins
    Varlen_MaskAttrInterface:$mask, Index:$first, Index:$group, Index:$valid,
    Index:$queries, Index:$keys, Optional<Index>:$offset,
    Arg<Varlen_MemRef<I32, 2>, "", [MemWrite]>:$lo,
    Arg<Varlen_MemRef<I32, 2>, "", [MemWrite]>:$hi);
  let assemblyFormat = [{
    `mask` custom<Mask>($mask) `pairs` `(` $first `,` $group `)` `valid` `(` $valid `)`
    `of` `(` $queries `,` $keys `)` (`offset` `(` $offset^ `)`)?
    `to` $lo `,` $hi attr-dict `:` type($lo) `,` type($hi)
  }];
  let hasVerifier = 1;
}

def Varlen_ForQueriesOp : Varlen_Op<"for_queries", [
    AttrSizedOperandSegments, SingleBlock]> {
  let summary = "Computes each query of a tile by itself, some at a time";
  let description = [{
    The arguments of the body are the values that `ins` has of the queries of a tile, as
    tiles of any number of queries, and what it yields goes to `outs`. Its operations compute
    each query by itself (`Varlen_QueryTileOpInterface`), or are the beginning of a state
    (`Varlen_StateInitOpInterface`). So it runs for some queries after the other: a vector of
    `lanes`, by the schedule around the operation, where queries are columns (`kq`), and all
    at once where they are rows (`qk`), which need no schedule.

    The queries are `valid` pairs of the rows clause of `varlen.read_rows`. Memory is

    | | type | of pair i |
    |---|---|---|
    | `scratch`, and `ins` | kq: (panels * V) x C, panel below panel; qk: R x V | kq: V rows at column i mod C of panel i div C; qk: row i |
    | `rows` | T x H x D | its row, as of `varlen.write_rows` |
    | `numbers` | H x T or H | the number of its row and head |

    Lanes behind the last pair are computed with what scratch has there, and stored to scratch
    only; vectors without a pair are not.

    ```mlir
    varlen.for_queries kq rows(%row, %head, %first, %group) valid(%n)
        ins(%acc, %m, %l : memref<1536x32xf32>, memref<24x32xf32>, memref<24x32xf32>)
        outs(%out as rows, %lse as numbers : memref<?x4x64xf32>, memref<4x?xf32>) {
    ^bb0(%0: tensor<64x768xf32>, %1: tensor<1x768xf32>, %2: tensor<1x768xf32>):
      %3, %4 = varlen.online_finish kq %0, %1, %2 scale 0.125 : tensor<64x768xf32>, tensor<1x768xf32>
      varlen.yield %3, %4 : tensor<768x64xf32>, tensor<1x768xf32>
    }
    ```
  }];
  let arguments = !con(
    (ins Varlen_OrientationAttr:$orientation), Varlen_rowsOperands,
    (ins Arg<Variadic<Varlen_MemRef<Varlen_ComputeFloat, 2>>, "", [MemRead]>:$inputs,
         Arg<Variadic<AnyTypeOf<[Varlen_MemRef<Varlen_Float, 1>, Varlen_MemRef<Varlen_Float, 2>,
                                 Varlen_MemRef<Varlen_Float, 3>]>>, "", [MemWrite]>:$outputs,
         TypedArrayAttrBase<Varlen_QueryMemoryAttr, "what memory of each output is">:$places));
  let regions = (region SizedRegion<1>:$region);
  let assemblyFormat = !strconcat("$orientation ", Varlen_rowsFormat, [{
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` custom<QueryValues>($outputs, $places) `:` type($outputs) `)` $region attr-dict
  }]);
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins
    "::mlir::varlen::Orientation":$orientation, "::mlir::Value":$row, "::mlir::Value":$head,
    "::mlir::Value":$first, "::mlir::Value":$group, "::mlir::Value":$valid,
    "::mlir::ValueRange":$inputs, "::mlir::TypeRange":$tiles,
    "::llvm::ArrayRef<::mlir::varlen::QueryValues>":$outputs)>];
  let extraClassDeclaration = [{
    /// The outputs with what their memory is.
    ::llvm::SmallVector<::mlir::varlen::QueryValues> getQueryValues();
    ::mlir::OperandRange getYielded() {
      return getBody()->getTerminator()->getOperands();
    }
    /// The dimension of a tile of the body that queries are, and how many values of
    /// a query it has.
    unsigned getQueriesDim(::mlir::Value tile);
    int64_t getPerQuery(::mlir::Value tile);
  }];
}

#endif // VARLEN_QUERY_OPS_TD
