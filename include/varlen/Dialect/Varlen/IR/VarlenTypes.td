//===- VarlenTypes.td - Types of the varlen dialect --------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TYPES_TD
#define VARLEN_TYPES_TD

include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "mlir/IR/AttrTypeBase.td"

class Varlen_Type<string name, string typeMnemonic>
    : TypeDef<Varlen_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Varlen_BatchType : Varlen_Type<"Batch", "batch"> {
  let summary = "The geometry of a packed batch";
  let description = [{
    Where the sequences of a batch lie in packed memory, how many heads they
    have and which keys their queries see: what `varlen.batch` makes of
    cu_seqlens, extents and a mask.
  }];
}

def Varlen_TileType : Varlen_Type<"Tile", "tile"> {
  let summary = "Rows of one sequence and kv head";
  let description = [{
    Coordinates, not data.

    | | rows |
    |---|---|
    | `queries(128)` | up to 128 pairs of a query row and a query head of the group that shares the kv head: row p is query row p / group of head p % group |
    | `queries(64) by_head` | up to 64 rows of one query head |
    | `keys(64)` | up to 64 rows of k and v |
    | `heads` | all query rows of the batch, of one query head: for `varlen.sum_rows` |
    | `sequences` | all pairs of a query row and a head of the group, and all keys; what is read at it are the pairs |

    A tile has a row in memory at least. The first of its rows are *in use*: those
    of a sequence, within its seqused. A tile of rows that belong to no sequence
    has none in use.

    ```mlir
    !varlen.tile<queries(128)>
    !varlen.tile<queries(64) by_head>
    !varlen.tile<heads>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::mlir::varlen::Axis", "what the rows are">:$axis,
    AttrParameter<"int64_t", "most rows; dynamic for heads and sequences">:$size,
    AttrParameter<"bool", "whether queries are of one head">:$byHead);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Varlen_RowsType : Varlen_Type<"Rows", "rows"> {
  let summary = "Scratch with a few values for each query row and head";
  let description = [{
    The layout is the target's: which of rows, heads and values lie side by side,
    and how far behind the last row may be read.

    ```mlir
    !varlen.rows<2 x f32>
    ```
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "values of a row and head">:$columns,
    TypeParameter<"::mlir::Type", "their type">:$element);
  let assemblyFormat = "`<` $columns `x` $element `>`";
  let genVerifyDecl = 1;
}

def Varlen_TableType : Varlen_Type<"Table", "table"> {
  let summary = "A row of numbers that a score region looks up in";
  let description = [{
    It is no tensor: it has no memory, or shape, of its own. How many numbers there
    are, the capture says; with `keys` there is one for each key of the sequence.

    ```mlir
    !varlen.table<f32>
    !varlen.table<f32, keys>
    ```
  }];
  let parameters = (ins
    TypeParameter<"::mlir::FloatType", "the numbers' type">:$element,
    AttrParameter<"bool", "whether each key has a number">:$ofKeys);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // VARLEN_TYPES_TD
