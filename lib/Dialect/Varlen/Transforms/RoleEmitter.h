//===- RoleEmitter.h - The roles of an attention as tile loops --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role is what the tiles of a loop own: out and lse, with their tangents or
// without; lse and delta of rows; dq; dk, dv or both; dsink. Each is emitted
// here once, for every target. A schedule says which roles run, in which sizes,
// and in which orientation (ScheduleAttrInterface::getRoles).
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_ROLEEMITTER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_ROLEEMITTER_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Emits the roles of one attention on buffers, or of its gradient, at the
/// builder's place.
class RoleEmitter {
public:
  RoleEmitter(AttentionOpInterface op, OpBuilder &builder);

  /// Emits the loop of a role.
  void emit(const Role &role);
  /// Emits what heads own, after all roles, and frees scratch.
  void finish();

private:
  /// out and lse, and the tangents of both if the operation has some: a tile of
  /// queries visits the keys that it sees.
  ForTilesOp emitOut(const RoleShape &shape);
  OnlineAttnOp emitStep(const RoleShape &shape, Value q, Value queries,
                        Value keys, ValueRange captures, ValueRange state);
  OnlineAttnJVPOp emitTangentStep(AttnJVPOp jvp, const RoleShape &shape,
                                  Value q, Value tq, Value queries, Value keys,
                                  ValueRange captures, ValueRange tcaptures,
                                  ValueRange state);

  /// lse, delta, of second derivatives tlse and tdelta, and the captures of
  /// every query, and what it subtracts from dsink, in scratch that the other
  /// gradients read, with lse as steps on tiles of `shape.factor` want it.
  ForTilesOp emitStatistics(const RoleShape &shape);
  /// dq, and the gradients of captures but for tables of keys: a tile of
  /// queries visits the keys that it sees. Three products; the gradients of
  /// tangents have seven, with a dout eight.
  ForTilesOp emitQueryGrad(const RoleShape &shape);
  /// dk, dv or both: a tile of keys visits the queries that see it. Who owns dk
  /// owns the gradients of tables of keys, too. Four products; the gradients of
  /// tangents have eight, with a dout ten. With `ofQueries` tiles also add up
  /// dq in their order: five products.
  ForTilesOp emitKeyGrad(const RoleShape &shape, bool ofKeys, bool ofValues,
                         bool ofQueries = false);
  /// All of them, of a sequence: its keys block by block, with dq of all its
  /// pairs, which are padded to whole multiples of `shape.tile`. Five products;
  /// the gradients of tangents have ten, with a dout twelve.
  ForTilesOp emitSequenceGrad(const RoleShape &shape);
  /// dsink, and the gradients of captures of a number or a table row for each
  /// head: a head sums what its rows left.
  void emitHeadGrads();
  /// A loop in whose body the builder is, until the guard ends.
  ForTilesOp beginTiles(StringRef name, Axis axis, int64_t size);
  ForBlocksOp emitBlocks(Value tile, TileType block, ValueRange inits,
                         function_ref<ValueRange(Value, ValueRange)> body);
  TileType tileType(Axis axis, int64_t size, bool byHead = false);
  /// Rows x the columns of `memory`, of T x H x D.
  RankedTensorType rowsOf(Value memory, int64_t rows, const RoleShape &shape);
  /// A number for each of `rows` queries.
  RankedTensorType statisticOf(int64_t rows, Orientation orientation);
  Value read(Value source, Value tile, RankedTensorType type) {
    return ReadOp::create(b, type, source, tile, DenseF64ArrayAttr())
        .getResult(0);
  }
  /// The scale of quantised keys or values as rows of one column; null without.
  Value emitScaleRows(Value scale, Value rows);
  /// A number of each key of a block; null without.
  Value readScale(Value scale, Value keys, const RoleShape &shape);
  Value readRows(Value memory, Value tile, int64_t rows,
                 const RoleShape &shape) {
    return read(memory, tile, rowsOf(memory, rows, shape));
  }
  /// The captures that are numbers, and those that are tables.
  SmallVector<Value> getNumbers() { return getCaptures(/*areTables=*/false); }
  SmallVector<Value> getTables() { return getCaptures(/*areTables=*/true); }
  SmallVector<Value> getCaptures(bool areTables);
  /// The tangents of those that are numbers, if the operation reads tangents,
  /// and the tables with the tangents of some behind them.
  SmallVector<Value> getNumberTangents() {
    return getTangents(/*areTables=*/false);
  }
  SmallVector<Value> getTablesAndTangents();
  SmallVector<Value> getTangents(bool areTables);
  /// How many numbers of a row the role of statistics leaves: lse, delta, of
  /// second derivatives tlse and tdelta, captures but for tables, and tangents
  /// of these.
  unsigned getNumStatistics();
  /// These, of the rows of `tile`.
  ValueRange readStatistics(Value tile, RankedTensorType type) {
    SmallVector<Type> types(getNumStatistics(), type);
    return ReadOp::create(b, types, statistics, tile, DenseF64ArrayAttr())
        .getResults();
  }
  /// What a loop over blocks gives to a step that adds to dcaptures, for
  /// queries of that type; rows of tables are cleared.
  SmallVector<Value> zeroCaptures(Value tile, RankedTensorType type,
                                  ValueRange sizes = {});
  /// Clears what the gradients of tables, of keys or the others, have of a
  /// tile.
  void clearTables(bool areOfKeys, Value tile);
  /// Writes the gradients of captures of each row, and leaves what rows take
  /// off those of heads.
  void writeCaptures(ValueRange gradients, Value tile);
  /// Where rows leave the gradients of tables: in those of queries, or in
  /// scratch for those of heads.
  void allocateTableRows();
  void emitHeadSum(StringRef name, Value rows, Value gradient, bool isNegated);
  unsigned getNumScores() { return op.getScoreBody() ? 1 : 0; }
  /// Gives `step` the score of the attention, of products if it changes scores.
  template <typename Step> Step addScore(Step step);
  void write(ValueRange values, Value to, Value tile,
             ArrayRef<double> otherwise, bool isScaled = false);
  Value fill(ArrayRef<int64_t> shape, double value, ValueRange sizes = {});
  /// Captures that a step adds to the gradients of, and where, of tables.
  struct StepCaptures {
    DenseI64ArrayAttr numbers;
    SmallVector<Value> tableRows;
  };
  /// All captures that gradients are asked of, or the tables of keys among
  /// them, or all others.
  enum class Wrt { All, TablesOfKeys, Others };
  StepCaptures getStepCaptures(Wrt which);
  /// What a step adds to; null if it does not.
  struct GradSums {
    Value dq, dk, dv;
    ValueRange dcaptures;
  };
  /// The rows that a step of gradients reads. Of second derivatives `dout` is
  /// the cotangent of tout, and `tdout`, which may be null, that of out;
  /// without tangents the last two are null.
  struct QueryRows {
    Value q, dout, tq, tdout;
  };
  struct KeyRows {
    Value k, v, tk, tv;
  };
  /// Reads them at a tile, or a block, of so many rows.
  QueryRows readQueryRows(Value tile, int64_t rows, const RoleShape &shape);
  KeyRows readKeyRows(Value tile, int64_t rows, const RoleShape &shape,
                      bool ofValues);
  /// The results of the step of gradients of the attention: the sums that there
  /// are, in order.
  ResultRange emitGradStep(const RoleShape &shape, const QueryRows &ofQueries,
                           const KeyRows &ofKeys, ValueRange statistic,
                           Value queries, Value keys, const StepCaptures &wrt,
                           const GradSums &sums);
  FloatAttr scaleAttr() { return b.getF64FloatAttr(scale); }

  AttentionOpInterface op;
  ImplicitLocOpBuilder b;
  FloatType compute;
  /// The scale of steps: 1 with a region that changes scores, which scales
  /// products.
  double scale;
  Value batch, statistics, sinkTerms;
  /// Of k and v, T x H x 1, or in pages P x page x H x 1; null without.
  Value kScale, vScale;
  /// What rows subtract from the gradients of captures; null but for those of
  /// heads, and for tables.
  SmallVector<Value> captureTerms;
  /// Rows of the gradients of tables, H x T x M, or H x T of keys, in the order
  /// of `wrt_captures`, null for captures that are no tables; those of
  /// `ownTableRows` are ours.
  SmallVector<Value> tableRows, ownTableRows;
  /// Whether lse in scratch is natural.
  UnitAttr natural;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_ROLEEMITTER_H
