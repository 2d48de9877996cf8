//===- SequenceMask.h - What a mask leaves of a sequence --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranges of keys and of queries that follow from any mask.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_SEQUENCEMASK_H
#define VARLEN_DIALECT_VARLEN_UTILS_SEQUENCEMASK_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// The rows of one side that a range of rows of the other side visits: some row
/// of the range visits each of [begin, end), and every row of it visits all of
/// [wholeBegin, wholeEnd). `begin` and `wholeBegin` may lie past the last row.
template <typename T> struct MaskRange {
  T begin, wholeBegin, wholeEnd, end;
};

/// The mask of one sequence: in IR, or of known lengths.
class SequenceMask {
public:
  SequenceMask() = default;
  /// The mask of a sequence with `queries` and `keys` rows in use.
  SequenceMask(PositionBuilder b, MaskAttrInterface mask, Position queries,
               Position keys, Position offset)
      : mask(mask), state(mask.getState(b, queries, keys, offset)),
        queries(queries), keys(keys), offset(offset) {}

  /// The keys, of `keys`, that the queries `first` to `last` see.
  MaskRange<Position> getKeysOf(PositionBuilder b, Position first,
                                Position last, Position keys) const;
  MaskRange<Value> emitKeysOf(IndexBuilder &index, Value first, Value last,
                              Value keys) const;
  /// The first key, of `keys`, that a query sees, and the one behind the last:
  /// the same if it sees none.
  std::pair<Value, Value> emitLimits(IndexBuilder &index, Value query,
                                     Value keys) const;
  /// The queries, of `queries`, that see the keys `first` to `last`.
  MaskRange<Position> getQueriesOf(PositionBuilder b, Position first,
                                   Position last, Position queries) const;
  MaskRange<Value> emitQueriesOf(IndexBuilder &index, Value first, Value last,
                                 Value queries) const;
  /// The bound of the keys that a query sees, which may lie outside of the
  /// sequence; null if there is none on that side.
  Value emitBound(IndexBuilder &index, MaskSide side, Value query) const;

  /// The 32-bit position of a query among the keys, an argument of score
  /// regions. Keys are numbered from the first.
  Value emitPosition(IndexBuilder &index, Value query) const;

  /// Numbers rows from this query and this key on.
  void shift(IndexBuilder &index, Position query, Position key = 0);
  /// Casts the state to the type of `narrow`, for rows within 2^29.
  void emitCast(IndexBuilder &index, IndexBuilder &narrow);

private:
  MaskAttrInterface mask;
  SmallVector<Position> state;
  /// Extents of the sequence, and where rows are numbered from now.
  Position queries, keys, offset;
  SmallVector<Position, 1> firstQueries;
};

/// The number of (query, key) combinations of a sequence that are visible.
double countVisiblePairs(MaskAttrInterface mask, int64_t queries, int64_t keys,
                         int64_t offset);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_SEQUENCEMASK_H
