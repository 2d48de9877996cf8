//===- ScoreBand.h - The part of scores that a mask leaves ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREBAND_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREBAND_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace mlir::varlen {

/// The part of a score tile that a mask leaves: rows are keys, from `firstKey`
/// on, of which a column sees those from its `lo` to before its `hi`. lo <= hi,
/// and neither falls from one column to the next. All of the tile if `whole` is
/// true.
struct ScoreBand {
  /// The one outside of which `op` hides scores, once or several times; none if
  /// it hides nothing, or not by the limits of its columns.
  static std::optional<ScoreBand> get(linalg::GenericOp op);

  /// The row of the tile at which a limit of a column lies, an i32.
  Value emitRow(ImplicitLocOpBuilder &b, Value limits, Value column) const;
  /// The rows that all columns from `first` to `last` see, as i32: all of
  /// `numRows` if `whole` is true, else possibly not in the tile. As limits do
  /// not fall, they are those from the last column's first one to the first
  /// column's last one.
  std::pair<Value, Value> emitRowsOfAll(ImplicitLocOpBuilder &b, Value first,
                                        Value last, Value numRows) const;

  Value lo, hi, firstKey, whole;

  bool operator==(const ScoreBand &other) const {
    return lo == other.lo && hi == other.hi && firstKey == other.firstKey &&
           whole == other.whole;
  }
};

/// The operation that made `tile`, before it was rounded: zeros stay zeros.
linalg::GenericOp getUnrounded(Value tile);

/// The operation that hides scores outside of a band where `tile` has zeros: it
/// made the tile, possibly before that was rounded, or the tile has the weights
/// of its scores. Null if there is none, or if there may be half a granule of
/// rows.
linalg::GenericOp getZeroMask(Value tile);

/// Whether the operation masks a tile whose rows are keys.
bool isMaskOfKeys(linalg::GenericOp op);

/// `tile`, which is some rows from `row` on of what an operation masks, masked
/// in place by the limits of its columns.
Value emitMaskOfRows(ImplicitLocOpBuilder &b, linalg::GenericOp mask,
                     Value tile, Value lo, Value hi, Value row);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREBAND_H
