//===- AttnDecomposer.h - Attention in plain linalg -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the decompositions of varlen.attn and its derivatives are made of: the
// loop over the sequences, the mask of each, and a few forms of linalg.generic
// on whole matrices.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_ATTNDECOMPOSER_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_ATTNDECOMPOSER_H

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

class AttnDecomposer {
protected:
  /// The rows of one sequence that count, and where its mask's diagonal is.
  struct Sequence {
    Value number;
    Value qRow, qRows;
    Value kRow, kRows;
    /// What these are rows of: k and v, or their pages in a tensor without.
    Value k, v;
    /// The query at position i is aligned with the key i + diagonal.
    Value diagonal;
  };

  AttnDecomposer(OpBuilder &builder, AttentionOpInterface op);

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  /// for (i = 0; i < end; ++i) values = body(i, values)
  using LoopBody =
      llvm::function_ref<SmallVector<Value>(Value iteration, ValueRange)>;
  SmallVector<Value> loop(Value end, ValueRange inits, LoopBody body);
  using SequenceBody =
      llvm::function_ref<SmallVector<Value>(const Sequence &, ValueRange)>;
  SmallVector<Value> loopOverSequences(ValueRange inits, SequenceBody body);

  //===--------------------------------------------------------------------===//
  // The op's clauses and attributes
  //===--------------------------------------------------------------------===//

  Value loadScale();
  /// The logit of `head` that every row has besides its keys; null if none.
  Value loadSink(Value head);
  /// The captures of one head, each a number, or a vector of the queries; of
  /// tables a row, or a row of each query.
  SmallVector<Value> loadCaptures(const Sequence &sequence, Value head);
  /// The same of `capture`, which has the shape of the capture of that number.
  Value loadCapture(unsigned number, Value capture, const Sequence &sequence,
                    Value head);
  /// A query and a key, by their rows in a sequence.
  struct Pair {
    Value query, key;
  };
  /// The pair that the body of a linalg.generic over queries and keys is for.
  static Pair getPair(ImplicitLocOpBuilder &b);
  /// The arguments of the score region for a pair: `score`, and what the
  /// captures have there, of tables nothing; `rows` are those of vectors.
  SmallVector<Value> scoreArguments(ImplicitLocOpBuilder &b,
                                    const Sequence &sequence, const Pair &pair,
                                    Value score, ValueRange captures,
                                    ValueRange rows);
  /// `index` as one of an entry of a table.
  Value clampIndex(OpBuilder &builder, Value table, Value index);
  /// The entry of a table for a query.
  Value lookUp(OpBuilder &builder, Value table, Value query, Value index);
  /// The keys of `visible` that the score region does not hide from a head.
  Value visibleKeys(const Sequence &sequence, Value visible,
                    ValueRange captures);
  /// Those captures that are vectors.
  SmallVector<Value> getVectors(ValueRange captures);
  /// qRows x kRows of i1: does the query (row) see the key (column)?
  Value visibleKeys(const Sequence &sequence);

  /// What the scores of one head of a sequence are made of.
  struct Scores {
    const Sequence &sequence;
    /// Products, before the scale; which of them count.
    Value products, visible;
    SmallVector<Value> captures;
  };
  /// What is read beside the products of a point, and with what map.
  struct PointInput {
    Value tensor;
    AffineMap map;
  };
  /// What `ofPoint` makes of the arguments of the score region (the score alone
  /// without one), of the elements of `more`, and of whether the key is
  /// visible, summed over what `resultMap` lacks.
  using PointBody =
      llvm::function_ref<Value(ImplicitLocOpBuilder &, const ScorePoint &,
                               ValueRange more, Value visible)>;
  Value overScores(const Scores &scores, ArrayRef<PointInput> more, Value init,
                   AffineMap resultMap, PointBody ofPoint);
  /// The score at a point, or what the score region makes of it.
  Value emitLogit(ImplicitLocOpBuilder &b, const ScorePoint &point);
  /// What probabilities, or their cotangents, are times the factors that the
  /// score region has of them; `values` as they are without a factor.
  Value multiplyByFactors(const Scores &scores, Value values);
  /// The tangents of what the scores of one head of a sequence are made of: of
  /// products, before the scale, and of captures, as `loadCaptures` has these;
  /// null for captures without one.
  struct ScoreTangents {
    Value products;
    SmallVector<Value> captures;
  };
  ScoreTangents loadScoreTangents(const Sequence &sequence, Value head,
                                  Value products);
  /// What a point reads of them.
  SmallVector<PointInput> getInputs(const ScoreTangents &tangents);
  /// What `body` makes of the tangents of a point, of which `elements` are what
  /// it reads.
  using TangentBody =
      llvm::function_ref<SmallVector<Value>(const ScorePoint &tangents)>;
  SmallVector<Value> withTangents(ImplicitLocOpBuilder &b,
                                  const ScoreTangents &tangents,
                                  ValueRange elements, Value query,
                                  TangentBody body);
  /// tlogit[i, j], 0 where hidden.
  Value emitLogitTangents(const Scores &scores, const ScoreTangents &tangents);
  /// The number of query heads that share a kv head.
  Value groupSize();

  //===--------------------------------------------------------------------===//
  // Matrices
  //===--------------------------------------------------------------------===//

  /// Rows `row .. row + rows` of one head of a packed tensor, as a matrix, and
  /// the packed tensor with that matrix in their place.
  Value rowsOf(Value packed, Value row, Value rows, Value head);
  Value insertRows(Value matrix, Value packed, Value row, Value rows,
                   Value head);
  /// Rows of a head of k or v times their `scale`, which may be null, in the
  /// compute type; as they are if k and v are not quantised.
  Value dequantise(Value rows, Value scale, const Sequence &sequence,
                   Value head);
  /// The same of what has one number for each row: a vector of one head.
  Value vectorOf(Value perHead, Value row, Value rows, Value head);
  Value insertVector(Value vector, Value perHead, Value row, Value rows,
                     Value head);

  /// A linalg.generic; dimensions that the init's map lacks are reduced.
  using Body = llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;
  Value generic(ValueRange inputs, Value init, ArrayRef<AffineMap> maps,
                Body body);
  /// rows x columns: the inner products of the rows of two matrices, and `init`
  /// with them added.
  Value innerProducts(Value lhs, Value rhs, OpFoldResult rows,
                      OpFoldResult columns);
  Value addInnerProducts(Value init, Value lhs, Value rhs);
  /// init[i, c] + sum_j weight[i, j] * values[j, c] over the visible keys; with
  /// `overQueries` init[j, c] + sum_i weight[i, j] * values[i, c]. The others
  /// are left out, not weighted with 0: 0 * NaN is NaN.
  Value addWeighted(Value init, Value weight, Value visible, Value values,
                    bool overQueries);

  AffineMap map(unsigned dims, ArrayRef<unsigned> results) {
    return AffineMap::getMultiDimMapWithTargets(dims, results, op.getContext());
  }
  AffineMap matrix() { return map(2, {0, 1}); }
  AffineMap perRow() { return map(2, {0}); }
  AffineMap vector() { return map(1, {0}); }

  //===--------------------------------------------------------------------===//
  // Scalars
  //===--------------------------------------------------------------------===//

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value constant(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value lowest();
  Value sub(Value lhs, Value rhs) { return arith::SubIOp::create(b, lhs, rhs); }
  Value filled(ArrayRef<OpFoldResult> sizes, Value value);
  /// The same for a result of the op: in its destination, if there is one.
  Value filledResult(unsigned number, ArrayRef<OpFoldResult> sizes,
                     double value);
  Value toCompute(OpBuilder &builder, Value value);
  Value toElement(OpBuilder &builder, Value value);

  ImplicitLocOpBuilder b;
  AttentionOpInterface op;
  FloatType compute;
  /// The body of the score region, with a value for all operands of its
  /// operations; null without one.
  Block *scoreBody = nullptr;
  /// What products are multiplied by; set by who has loaded it.
  Value scale;

private:
  Region ownScore;

  Sequence loadSequence(Value number);
  /// The page that a key of a sequence is in, and its row there.
  std::pair<Value, Value> findInPages(ImplicitLocOpBuilder &b, Value number,
                                      Value key);
  /// The first `rows` rows of a sequence in `paged`, which is k or v in pages,
  /// as a packed tensor.
  Value gatherPages(Value paged, Value number, Value rows);
  /// The row of a head of a table, a capture, or those of the queries of a
  /// sequence; or the part of it that the keys of a sequence have.
  Value tableOf(unsigned number, Value capture, const Sequence &sequence,
                Value head);
  /// An element of an integer vector, as an index.
  Value load(Value vector, Value position);
};

/// `values` with the types of the results of `op`, which may know more or fewer
/// extents.
SmallVector<Value> castToResultTypes(OpBuilder &builder, Operation *op,
                                     ArrayRef<Value> values);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_ATTNDECOMPOSER_H
