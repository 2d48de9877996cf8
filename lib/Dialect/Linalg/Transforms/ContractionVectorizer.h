//===- ContractionVectorizer.h - Contractions in registers ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A contraction of any extents on memrefs as
// loops over tiles of the result that stay in registers while the contracted
// loop runs (Goto and van de Geijn, 2008). upstream's vectorisation, unrolling
// and hoisting end in the same inner loop, but for static extents only.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H
#define VARLEN_DIALECT_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H

#include "ContractionLoops.h"
#include "varlen/Target/Tiles.h"

namespace mlir::varlen {

class ContractionVectorizer : public ContractionLoops {
public:
  ContractionVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                        const ContractionForm &form, const CPUTarget &target);

private:
  /// A tile of the result: its first row and column, and what is left from
  /// there on of each where the tile may be cut.
  struct Tile {
    Value row, column, rows, columns;
    /// Rows in registers.
    int64_t numRows;
  };

  void emitMatrix() override;
  void emitRows(Value column, Value columns, bool isCut);
  void emitTile(const Tile &tile);

  void prefetch(Value row, ArrayRef<Value> columns);
  Values emitDepth(Value row, ArrayRef<Value> columns, Values sums,
                   function_ref<Values(Value, ValueRange)> addProducts);
  Value load(OpOperand &operand, Value mask);
  Value loadElement(OpOperand &operand);

  ContractionTile sizes;
  int64_t lanes;
  /// Whether what comes next of the right factor lies behind it in memory.
  bool hasPanels;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H
