//===- SoftmaxDecomposer.h - The textbook softmax in plain linalg -*- C++ -*-=//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_SOFTMAXDECOMPOSER_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_SOFTMAXDECOMPOSER_H

#include "AttnDecomposer.h"

namespace mlir::varlen {

/// What the decompositions of varlen.attn and varlen.attn_jvp do with one head
/// of a sequence.
class SoftmaxDecomposer : protected AttnDecomposer {
protected:
  using AttnDecomposer::AttnDecomposer;

  /// weight[i, j] = exp(logit[i, j] - top[i]), 0 where hidden, and its sums
  /// over the keys, the sink included: p = weight / sum.
  struct Softmax {
    Scores scores;
    Value top, weight, sum;
  };
  Softmax emitSoftmax(const Sequence &sequence, Value head, Value q, Value k);
  /// mixed[i, c] = sum_j factor[i, j] * weight[i, j] * v[j, c]
  Value mixValues(const Softmax &softmax, Value v);
  /// {out, lse} with the rows of the head of the sequence filled in.
  SmallVector<Value> finish(const Softmax &softmax, Value mixed, Value head,
                            Value out, Value lse);
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_SOFTMAXDECOMPOSER_H
