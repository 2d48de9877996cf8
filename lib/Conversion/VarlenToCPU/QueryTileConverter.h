//===- QueryTileConverter.h - The body of a loop over queries ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H

#include "TileConverter.h"

namespace mlir::varlen {

/// Converts the body of a loop over tiles of queries, operation by operation,
/// in either orientation.
///
/// What a tile computes before and after its loop over blocks is one
/// `varlen.for_queries`; what the loop reads of it, and states, are in buffers
/// of scratch. In the loop a block of keys is read once for all panels, and the
/// state of the queries goes from block to block, and from panel to panel, as
/// tensors. What an operation computes does not matter here.
class QueryTileConverter : public TileConverter {
public:
  /// The values that the loop over blocks carries.
  using State = SmallVector<PanelBuffer>;

  QueryTileConverter(const CPUTileBuilder &common, TileLoop loop, int64_t size,
                     int64_t panels)
      : TileConverter(common, loop, size, panels) {}

  /// Allocates scratch for a tile, but for its state.
  void allocate(const WorkTile &workTile);
  /// Memory for `count` states.
  SmallVector<Value> allocateStates(Value count);
  State getState(ValueRange states, Value number);

  /// The operations before the loop over blocks; all if there is none.
  void emitBefore();
  /// The state of the keys from `begin` to before `end`.
  void emitBlocks(Value begin, Value end, const State &state);
  void emitCopy(const State &from, const State &to);
  /// Adds the keys of another state.
  void emitMerge(const State &state, const State &more);
  /// The operations after it.
  void emitAfter(const State &state);
  /// What rows of no sequence get.
  void emitUnused();

private:
  /// The values of a query that each value of the state has.
  SmallVector<int64_t> getStateSizes();

  /// Whether queries have numbers that are read one by one.
  bool hasNumbers();
  void emitNumbers(const Panel &at);
  Value emitRowProduct(RowDotOp dot, Value pair);
  void emitKeyLimits();
  /// The operations of a range on a panel, whose values are the first of
  /// scratch, or if that is null on all queries of the tile.
  void emitOps(Block::iterator begin, Block::iterator end, const Panel *only);
  /// The type of a value in the body of an operation on queries, of which some
  /// of `ops` may be.
  Type getTileType(Value value, ArrayRef<Operation *> ops);
  /// Computes some queries of the tile one by one: of `inputs`, as tiles of
  /// these types, what `body` returns for `outputs`.
  void emitForQueries(Value first, Value rows, ArrayRef<PanelBuffer> inputs,
                      TypeRange tiles, ArrayRef<QueryValues> outputs,
                      function_ref<Values(ValueRange)> body);
  /// Writes numbers that are in scratch.
  void emitNumbersOneByOne(WriteOp write, const Panel *only);

  // For a block.
  Values emitBlock(Value k0, ValueRange state);
  /// Of few queries, which are rows: on keys where they are, or on copies.
  Values emitFewStep(const KeyBlock &block, ValueRange state);
  Values emitPanelStep(const Panel &at, const KeyBlock &block,
                       ValueRange state);
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H
