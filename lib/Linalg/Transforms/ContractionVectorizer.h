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

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H

#include "ContractionLoops.h"
#include "varlen/Target/Tiles.h"

namespace mlir::varlen {

class ContractionVectorizer : public ContractionLoops {
public:
  ContractionVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                        const ContractionForm &form, const CPUTarget &target,
                        int64_t depthStep = 1);
  virtual ~ContractionVectorizer() = default;

  /// Whether registers hold the sums of all of the result.
  bool isOneTile();
  /// Writes the operation before it, for sums in registers that are replaced;
  /// vectors of one row after the other.
  void emitOn(MutableArrayRef<Value> sums);

protected:
  void emitMatrix() override;

  /// What a step of the contracted loop takes, at `indices`: a vector of the
  /// right factor, of its columns that `mask` has if that is there; what the
  /// left one has in all lanes of a vector; and the sum of their products.
  virtual Value loadRight(Value mask);
  Value loadLeft();
  virtual Value addProducts(Value lhs, Value rhs, Value sum);
  /// What a step takes of one row or column of an operand, as one scalar; that
  /// of as many steps as a vector has lanes, where the contracted loop is
  /// contiguous; and a vector of such scalars as a factor of `addProducts`.
  virtual Value loadStep(OpOperand &operand);
  virtual Value loadSteps(OpOperand &operand);
  virtual Value toFactor(Value steps) { return steps; }
  /// The mask of `loadRight` for as many columns.
  virtual Value emitRightMask(Value columns) {
    return emitMask(columns, lanes);
  }

  Value emitMask(Value count, int64_t size);
  /// A vector of an operand's columns, of those that `mask` has if it is there.
  Value load(OpOperand &operand, Value mask);

  /// A tile of the result: its first row and column, and what is left from
  /// there on of each where the tile may be cut.
  struct Tile {
    Value row, column, rows, columns;
    /// Rows in registers.
    int64_t numRows;
  };

  void emitTile(const Tile &tile);
  /// `sums` and the products of the contracted loop; `addStep` adds those of a
  /// step, to the sums of as many rows as it is given. The step at `whole` is
  /// one of fewer elements than the others, if there is one.
  virtual Values emitDepth(Value row, ArrayRef<Value> columns, Values sums,
                           function_ref<Values(Value, ValueRange)> addStep);
  Values emitLastStep(Value whole, Values sums,
                      function_ref<Values(Value, ValueRange)> addStep);

  ContractionTile sizes;
  /// Of how many lanes a vector of sums is.
  int64_t lanes;
  /// Elements of the contracted loop that a step takes; whether the step is one
  /// of fewer, at its end.
  int64_t depthStep;
  bool isLastStep = false;
  /// Whether what comes next of the right factor lies behind it in memory. A
  /// panel has what a step takes in one row.
  bool hasPanels;
  /// Whether the right factor is small and read again and again: nothing is to
  /// be fetched.
  bool isCached = false;
  /// What sums begin with, if it is not in memory.
  Value initial;
  /// The sums of all of the result, if they are in registers.
  MutableArrayRef<Value> registers;

private:
  void emitRows(Value column, Value columns, bool isCut);
  void prefetch(const RightRow &row, ArrayRef<Value> columns);
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONVECTORIZER_H
