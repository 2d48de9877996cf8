//===- AttnDecompose.cpp - varlen.attn in plain linalg --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of varlen.attn, written down to be read: two loops, over the
// sequences and over the heads, around the textbook softmax on whole matrices.
// Everything faster is compared with this, so it shares no code with it.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "SoftmaxDecomposer.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {
class Decomposer : SoftmaxDecomposer {
public:
  Decomposer(OpBuilder &builder, AttentionOpInterface op)
      : SoftmaxDecomposer(builder, op) {}

  SmallVector<Value> run();

private:
  /// {out, lse} with the rows of `head` of `sequence` filled in.
  SmallVector<Value> attendHead(const Sequence &sequence, Value head, Value out,
                                Value lse);
};
} // namespace

SmallVector<Value> Decomposer::attendHead(const Sequence &sequence, Value head,
                                          Value out, Value lse) {
  Value kvHead = arith::DivSIOp::create(b, head, groupSize());
  Value q = rowsOf(op.getQ(), sequence.qRow, sequence.qRows, head);
  Value k = rowsOf(sequence.k, sequence.kRow, sequence.kRows, kvHead);
  Value v = rowsOf(sequence.v, sequence.kRow, sequence.kRows, kvHead);
  k = dequantise(k, op.getKScale(), sequence, kvHead);
  v = dequantise(v, op.getVScale(), sequence, kvHead);

  Softmax softmax = emitSoftmax(sequence, head, q, k);
  return finish(softmax, mixValues(softmax, v), head, out, lse);
}

SmallVector<Value> Decomposer::run() {
  Location loc = b.getLoc();
  OpFoldResult tokens = tensor::getMixedSize(b, loc, op.getQ(), 0);
  OpFoldResult heads = tensor::getMixedSize(b, loc, op.getQ(), 1);
  OpFoldResult columns =
      tensor::getMixedSize(b, loc, op.getV(), getColumnsDim(op.getV()));
  scale = loadScale();

  // Rows that belong to no sequence keep these.
  Value out = filledResult(0, {tokens, heads, columns}, 0);
  Value lse = filledResult(1, {heads, tokens},
                           -std::numeric_limits<double>::infinity());

  Value end = getValueOrCreateConstantIndexOp(b, loc, heads);
  return loopOverSequences(
      {out, lse}, [&](const Sequence &sequence, ValueRange results) {
        return loop(end, results, [&](Value head, ValueRange results) {
          return attendHead(sequence, head, results[0], results[1]);
        });
      });
}

FailureOr<SmallVector<Value>>
varlen::detail::decomposeAttn(AttentionOpInterface op, OpBuilder &builder) {
  if (op.isBufferized())
    return failure();
  return castToResultTypes(builder, op, Decomposer(builder, op).run());
}
