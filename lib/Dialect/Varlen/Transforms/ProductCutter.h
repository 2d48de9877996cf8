//===- ProductCutter.h - Products that end at the edges of masks *- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-cut-products. The terms of a product with masked scores are
// zero outside the band that the mask leaves, and a product that is masked is
// not read there. A few rows of a result have a depth and columns of their own.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_PRODUCTCUTTER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_PRODUCTCUTTER_H

#include "ScoreBand.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Whether an operation computes each element of a tile from its place and
/// those at the same place of others, or from those of its column.
bool isElementwise(linalg::GenericOp op);

/// The tile that an elementwise operation can write over: an input of the same
/// type as its result.
Value getOverwritten(linalg::GenericOp op);

/// Whether an operation reduces each column of a tile by the operation that its
/// body is.
bool reducesRows(linalg::GenericOp op);

/// Whether a value, if there is one, is computed before an operation.
bool isThere(Value value, Operation *op);

/// What reads a tile, if that is one operation.
linalg::GenericOp getReader(Value tile);

/// Whether nothing but `reader` reads a tile.
bool isReadBy(Value tile, Operation *reader);

/// Writes a product with masked scores as loops over granules of rows of its
/// result.
class ProductCutter {
public:
  /// `readInBand` are the tiles of which nobody reads more of a vector of
  /// columns than what it sees; those that this product reads are added.
  ProductCutter(linalg::ContractOp op, CPUScheduleAttr schedule,
                DenseSet<Value> &readInBand)
      : op(op), schedule(schedule), readInBand(readInBand), b(op.getLoc(), op),
        at{b}, depthStep(schedule.getKv() == KVStorage::Pairs ? 4 : 2) {}

  /// Whether the product is one that can be cut.
  bool canCut();
  /// Replaces the product.
  void cut();

private:
  /// From a position to before another one.
  struct RowRange {
    Value begin, end;
  };
  /// Which part of a product is masked scores.
  enum class Role { Left, Right, Result };

  bool findRole();
  Value advance(Value column, Value limits, Value row);
  Value hideBounds(Value position);
  RowRange round(Value begin, Value end, Value total, int64_t multiple);
  RowRange getKeysOf(Value first, int64_t count);
  OpFoldResult getLength(const RowRange &range);
  /// Some rows of some columns of the result, over a part of the depth; alone,
  /// and in the result.
  Value emitSum(Value row, Value column, int64_t columns, const RowRange &range,
                Value result);
  Value emitTile(Value row, Value column, int64_t columns,
                 const RowRange &range, Value result);
  /// Adds a part of the depth to such a tile.
  Value emitProduct(Value row, Value column, int64_t columns,
                    const RowRange &range, Value sum);
  Value slice(Value tile, SmallVector<OpFoldResult> offsets,
              const SmallVector<OpFoldResult> &sizes);
  Value slice(Value tile, OpFoldResult row, OpFoldResult column, int64_t rows,
              int64_t columns);
  Value insert(Value part, Value tile, OpFoldResult row, OpFoldResult column);
  /// A loop over tiles of rows, which carries what `body` returns.
  ValueRange emitGranules(Value from, Value to, ValueRange state,
                          function_ref<Values(Value, ValueRange)> body);
  void findNeighbours();
  void cutElements();
  Value cloneAt(linalg::GenericOp op, Value row, Value column, int64_t columns,
                Value init, function_ref<Value(Value)> cut);
  Value emitElements(linalg::GenericOp op, Value row, Value column,
                     int64_t columns, Value tile, Value sum);
  Value emitLeft(Value column, Value result);
  Value emitRight(Value column, Value state);
  Value emitResult(Value column, Value result);
  Value emitGranule(Value row, Value column, const RowRange &first,
                    const RowRange &second, Value result);
  bool findMaximum();
  Value emitMaxima(Value tile, Value before);
  Values emitMaximum(Value column, Value result, Value maxima);

  linalg::ContractOp op;
  CPUScheduleAttr schedule;
  DenseSet<Value> &readInBand;
  ImplicitLocOpBuilder b;
  IndexBuilder at;
  /// Depths are multiples of two steps of products, which are unrolled.
  int64_t depthStep;
  Role role = Role::Left;
  ScoreBand band;
  /// Where the product is masked and reduced to the maximum of each column,
  /// these operations, what computes new scores before, if anything does, and
  /// what the maximum begins with.
  linalg::GenericOp score, mask, maximum;
  linalg::FillOp lowest;
  /// What is computed with each tile of the product: what its sums begin with,
  /// or what reads them.
  linalg::GenericOp begin, end;
  /// What is filled into the result before the product.
  Value initial;
  /// Whether rows of the left factor are rows of the result.
  bool isRowFirst = false;
  /// Extents of the loops, and rows and columns of a tile.
  Value rows, depth;
  int64_t height = kGranule, width = 0;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_PRODUCTCUTTER_H
