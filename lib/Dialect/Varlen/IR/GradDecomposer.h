//===- GradDecomposer.h - Gradients in plain linalg --------------*- C++ -*===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the decompositions of varlen.attn_grad and varlen.attn_jvp_grad share:
// loops over the sequences, the kv heads and the query heads of a group, and
// how cotangents of logits go back through the score region.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_GRADDECOMPOSER_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_GRADDECOMPOSER_H

#include "AttnDecomposer.h"

namespace mlir::varlen {

class GradDecomposer : protected AttnDecomposer {
public:
  virtual ~GradDecomposer() = default;

  SmallVector<Value> run();

protected:
  GradDecomposer(OpBuilder &builder, AttentionOpInterface op, Value lse)
      : AttnDecomposer(builder, op), lse(lse) {}

  /// One query head of a sequence: its rows, what it scores, lse of its
  /// queries, and p[i, j] = exp(logit[i, j] - lse[i]).
  struct Head {
    Scores scores;
    Value number, kvHead, q, k, v, lse, p;

    OpFoldResult rows() const { return scores.sequence.qRows; }
    OpFoldResult keys() const { return scores.sequence.kRows; }
  };

  /// {dq, sums of dk, sums of dv[, dsink], dcaptures} with what one query head
  /// adds. The sums are matrices of the compute type: the rows of one kv head,
  /// not yet scaled.
  virtual SmallVector<Value> differentiateHead(const Head &head,
                                               ValueRange gradients) = 0;

  /// What the cotangents of `sources`, arguments of the score region or what
  /// lookups in it return, are made of at a point, of which `elements` are what
  /// is read beside it.
  virtual SmallVector<Value> pullBack(ImplicitLocOpBuilder &b,
                                      const ScorePoint &point,
                                      ValueRange elements, Value query,
                                      ValueRange sources) = 0;

  /// Rows of the head in a tensor of queries, and in one of keys.
  Value queryRows(const Head &head, Value packed) {
    return rowsOf(packed, head.scores.sequence.qRow, head.scores.sequence.qRows,
                  head.number);
  }
  Value keyRows(const Head &head, Value packed) {
    return rowsOf(packed, head.scores.sequence.kRow, head.scores.sequence.kRows,
                  head.kvHead);
  }
  Value queryVector(const Head &head, Value perHead) {
    return vectorOf(perHead, head.scores.sequence.qRow,
                    head.scores.sequence.qRows, head.number);
  }
  /// A matrix of queries and keys, of what `body` makes of those of `inputs`;
  /// 0 where hidden, as what p is multiplied by may be NaN where p is 0.
  Value overVisible(const Head &head, ArrayRef<PointInput> inputs, Body body);
  /// init[i] + sum_c lhs[i, c] * rhs[i, c], and the difference of two vectors.
  Value addRowDots(Value init, Value lhs, Value rhs);
  Value subtract(const Head &head, Value lhs, Value rhs);
  /// What `pullBack` makes of the visible points, summed over what `resultMap`
  /// lacks. `cotangents` are what points read, those of logits first.
  Value pullBackScores(const Scores &scores, ArrayRef<PointInput> cotangents,
                       Value source, Value init, AffineMap resultMap);
  /// dcaptures, the last of `gradients`, with what one head adds.
  void addToCaptures(const Head &head, ArrayRef<PointInput> cotangents,
                     SmallVectorImpl<Value> &gradients);
  /// dsink[head] - sum_i exp(sink - lse[i]) * term[i], where `body` makes terms
  /// of elements of `inputs`, which are vectors, and of the sink.
  using SinkBody =
      llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange elements)>;
  Value addToSink(Value dsink, const Head &head, ValueRange inputs,
                  SinkBody body);
  /// dq with the rows of a head, whose sums these are.
  Value storeQueryGradient(const Head &head, Value sums, Value dq) {
    return store(sums, scale, dq, head.scores.sequence.qRow,
                 head.scores.sequence.qRows, head.number);
  }

private:
  /// {dq, dk, dv[, dsink], dcaptures} with what one sequence adds for one kv
  /// head.
  SmallVector<Value> differentiateKvHead(const Sequence &sequence,
                                         Value visible, Value kvHead,
                                         ValueRange gradients);
  Head loadHead(const Sequence &sequence, Value visible, Value number,
                Value kvHead);
  /// `gradient` of a table with what the lookups of one head add: one query
  /// after the other, and for each its keys in order.
  Value addToTable(const Head &head, ArrayRef<PointInput> cotangents,
                   unsigned capture, Value gradient);
  /// `matrix` times the scale, if there is one, in the rows of a head.
  Value store(Value matrix, Value scale, Value packed, Value row, Value rows,
              Value head);
  /// Zeros in place of gradient `number`, which has the shape of `like`.
  Value zeros(unsigned number, Value like);

  Value lse;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_GRADDECOMPOSER_H
