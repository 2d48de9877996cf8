//===- StepFactors.h - The rows that steps read -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_STEPFACTORS_H
#define VARLEN_CONVERSION_VARLENTOCPU_STEPFACTORS_H

#include "QueryPanels.h"

namespace mlir::varlen {

/// The factors of a step in scratch, those of queries panel by panel, those of
/// keys of one block, in the orders in which products read them. Where queries
/// are rows, keys are read where they are.
class StepFactors {
public:
  using WorkTile = CPUTileBuilder::WorkTile;

  StepFactors(QueryPanels &panels, StepOpInterface step);

  /// The memory that a factor is read from.
  static Value getSource(const StepFactor &factor) {
    return factor.operand->get().getDefiningOp<ReadOp>().getSource();
  }
  /// The element type of factors in scratch.
  FloatType getElement() const { return element; }

  /// Memory for the queries of so many panels; where it is used, `use` says
  /// which. And memory for the keys of a block.
  SmallVector<Value> allocateQueries(OpFoldResult numPanels);
  size_t getNumQueryCopies() const;
  void use(ValueRange memory);
  void allocateKeys();

  /// Packs the queries of a panel.
  void pack(const WorkTile &tile, const Panel &at);
  /// Makes the `keys` keys at k0 what steps read: a copy, or if that is not
  /// null and true, for factors that can be, where they are.
  void readKeys(const WorkTile &tile, Value k0, Value keys, Value inPlace);
  /// Asks for the keys at k0.
  void prefetch(const WorkTile &tile, Value k0, Value keys);
  /// Sets the factors of a step on a panel and on `size` keys of the block at
  /// k0, from `begin` on.
  void load(MutableArrayRef<Value> operands, const WorkTile &tile,
            const Panel &at, Value k0, Value begin, Value size);

private:
  /// A factor in one order. Of a block `rows` is what steps read: the memory,
  /// or a view of the source.
  struct Copy {
    TileOrder order;
    Value memory, rows = {};
  };
  struct Factor {
    StepFactor of;
    int64_t columns;
    SmallVector<Copy, 2> copies;
  };

  void packCopy(const WorkTile &tile, Value source, const Copy &copy,
                const Panel &at);
  void readCopy(const WorkTile &tile, const Factor &factor, Copy &copy,
                Value k0, Value keys, Value padded, Value inPlace);
  /// The part of a copy that a step reads.
  Value viewQueries(const Copy &copy, const Panel &at);
  Value viewKeys(const Copy &copy, int64_t columns, Value begin, Value size);

  QueryPanels &p;
  FloatType element;
  SmallVector<Factor> factors;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_STEPFACTORS_H
