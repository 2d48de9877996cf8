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
/// What a tile computes before and after its loop over blocks are tensors, of a
/// vector of queries after the other; what the loop reads of it, and states,
/// are in buffers of scratch. In the loop a block of keys is read once for all
/// panels, and the state of the queries goes from block to block, and from
/// panel to panel, as tensors. What an operation computes does not matter here.
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

  // For a panel.
  void emitNumbers(const Panel &at);
  Value emitRowProduct(RowDotOp dot, Value pair);
  void emitOps(Block::iterator begin, Block::iterator end, const Panel &at);

  /// Queries that an operation other than a step takes at once, and what was
  /// computed of them.
  struct Run {
    Run(const Panel &at, Value from, OpFoldResult count)
        : at(at), from(from), count(count) {}

    Panel at;
    Value from;
    OpFoldResult count;
    /// Those that there are, as rows of memory; null if none are written.
    std::optional<RowRange> rows = {};
    DenseMap<Value, Value> tiles;
  };
  /// Where rows are written: to their destination if they are `inPlace` or
  /// there is no scratch, else to scratch. `memory` is what it is.
  struct RowPlace {
    RowRange rows;
    Value memory, scratch = {}, inPlace = {};
  };
  using QueryPanels::view;
  RowRange rowsOf(const Run &run);
  /// The memory of a run, so that its queries are dimension `dim`.
  Value view(const PanelBuffer &buffer, const Run &run, unsigned dim);
  Value tileOf(Value value, const Run &run, unsigned dim);
  /// Emits the operation on a run. Results that have a buffer are stored there.
  void emitTileOp(QueryTileOpInterface op, Run &run);
  RowPlace emitPlace(WriteOp write, const Run &run);
  void emitWriteRows(WriteOp write, const RowPlace &place, const Run &run);
  void emitWriteNumbers(WriteOp write, const Run &run);

  // For a block.
  Values emitBlock(Value k0, ValueRange state);
  Values emitPanelStep(const Panel &at, const KeyBlock &block,
                       ValueRange state);
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H
