//===- VarlenTileMemoryOps.td - Tiles in memory ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the tiles that steps read lie in the memory of a CPU. Included by
// VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TILE_MEMORY_OPS_TD
#define VARLEN_TILE_MEMORY_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"

def Varlen_ToTileOp : Varlen_Op<"to_tile", [
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "A tile from memory that has copies of it, each in an order of its own";
  let description = [{
    `bufferization.to_tensor restrict` for memory in other orders than that of
    the tile, or in several: a product reads its left factor by scalars and its
    right factor by vectors of columns, and a dot product of pairs wants two
    neighbours of the sum side by side. Each reader of the tile uses the copy
    that suits it. Element (r, c) of an R x C tile lies at

    | order | memory | place |
    |---|---|---|
    | `rows` | R x C | `[r, c]` |
    | `columns` | C x R | `[c, r]` |
    | `row_pairs` | R/2 x 2C | `[r / 2, 2 * c + r % 2]` |
    | `column_pairs` | C/2 x 2R | `[c / 2, 2 * r + c % 2]` |

    The copies have the same elements, and each order occurs at most once. As with
    `restrict`, only what is computed from the tile is written to this memory
    while the tile is in use. Extents that the type leaves open are those of the
    first copy.

    ```mlir
    %q = varlen.to_tile %rows as rows, %columns as columns
        : memref<32x64xf32>, memref<64x32xf32> to tensor<32x64xf32>
    %v = varlen.to_tile %pairs as row_pairs : memref<?x96xbf16> to tensor<?x48xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Variadic<Varlen_MemRef<Varlen_Float, 2>>, "", [MemRead]>:$copies,
    TypedArrayAttrBase<Varlen_TileOrderAttr, "an order for each copy">:$orders);
  let results = (outs Varlen_Tile:$tile);
  let assemblyFormat = [{
    custom<TileCopies>($copies, $orders) attr-dict `:` type($copies) `to` type($tile)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins
    "::mlir::RankedTensorType":$tile,
    "::llvm::ArrayRef<::mlir::varlen::TileCopy>":$copies)>];
  let extraClassDeclaration = [{
    /// The copies with their orders.
    ::llvm::SmallVector<::mlir::varlen::TileCopy> getTileCopies();
  }];
}

#endif // VARLEN_TILE_MEMORY_OPS_TD
