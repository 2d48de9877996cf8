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
  StepFactors(QueryPanels &panels, StepOpInterface step);

  /// The memory that a factor is read from.
  static Value getSource(const StepFactor &factor) {
    return getSource(*factor.operand);
  }
  /// Whether steps round probabilities to the type of values.
  bool roundsProbabilities();

  /// Memory for the queries of so many panels; where it is used, `use` says
  /// which, and takes it off the front. And memory for the keys of a block.
  SmallVector<Value> allocateQueries(OpFoldResult numPanels);
  void use(ValueRange &memory);
  void allocateKeys();
  /// Reads the numbers that steps take of the keys at k0.
  void readNumbers(Value k0, Value keys);
  /// Whether keys can be read where they are: a block of them at once, or where
  /// queries are rows page by page; null if they can.
  Value getInPlace() const { return inPlace; }

  /// Packs the queries of a panel.
  void pack(const Panel &at);
  /// Makes the `keys` keys at k0 what steps read: a copy, or if that is not
  /// null and true, for factors that can be, where they are.
  void readKeys(Value k0, Value keys, Value asTheyAre);
  /// Makes keys where they are what steps read.
  void readKeysInPlace();
  /// Asks for the keys at k0.
  void prefetch(Value k0, Value keys);
  /// Sets the factors of a step on a panel and on `size` keys of the block at
  /// k0, from `begin` on.
  void load(MutableArrayRef<Value> operands, const Panel &at, Value k0,
            Value begin, Value size);

private:
  static Value getSource(OpOperand &read) {
    return read.get().getDefiningOp<ReadOp>().getSource();
  }
  /// A factor in one order. For a block `rows` is what steps read: the memory,
  /// a view of the source, or null for keys where they are.
  struct Copy {
    TileOrder order;
    Value memory, rows = {};
  };
  struct Factor {
    StepFactor of;
    /// In scratch.
    Type element;
    int64_t columns;
    SmallVector<Copy, 2> copies;
  };

  /// A number of each key of a block, as rows of one column.
  struct KeyNumber {
    OpOperand *operand;
    Value memory = {};
  };

  /// The copies of all factors of queries, or of keys.
  SmallVector<std::pair<Factor *, Copy *>> getCopies(bool ofQueries);
  /// The part of a copy that a step reads.
  Value viewQueries(const Copy &copy, const Panel &at);
  Value viewKeys(const Copy &copy, Value begin, Value size);
  /// The rows of a copy that have the first `keys` keys.
  Value getMemoryRows(const Copy &copy, Value keys);
  /// Keys of a block, and those behind them that copies have as zeros.
  Value getPadded(Value keys);
  /// Copies keys, and returns the `padded` rows of the copy that have them.
  Value emitCopy(const Factor &factor, const Copy &copy, const RowRange &rows,
                 Value padded);
  Value loadNumber(const KeyNumber &number, Value begin, Value size);

  QueryPanels &p;
  /// Set by allocateKeys.
  Value inPlace;
  SmallVector<Factor> factors;
  SmallVector<KeyNumber, 2> numbers;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_STEPFACTORS_H
