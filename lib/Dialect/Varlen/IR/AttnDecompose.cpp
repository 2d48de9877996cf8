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

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// The rows of one sequence that count, and where its mask's diagonal is.
struct Sequence {
  Value qRow, qRows;
  Value kRow, kRows;
  /// The query at position i is aligned with the key i + diagonal.
  Value diagonal;
};

class Decomposer {
public:
  Decomposer(OpBuilder &builder, AttnOp op)
      : b(op.getLoc(), builder), op(op), compute(op.getComputeType()) {}

  SmallVector<Value> run();

private:
  /// (out, lse) with the rows of `head` of `sequence` filled in.
  std::pair<Value, Value> attendHead(const Sequence &sequence, Value head,
                                     Value out, Value lse);
  Sequence loadSequence(Value number);
  Value loadScale();
  /// The logit of `head` that every row has besides its keys; null if none.
  Value loadSink(Value head);
  /// qRows x kRows of i1: does the query (row) see the key (column)?
  Value visibleKeys(const Sequence &sequence);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value constant(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value lowest() {
    return constant(compute, -std::numeric_limits<double>::infinity());
  }
  Value sub(Value lhs, Value rhs) { return arith::SubIOp::create(b, lhs, rhs); }
  /// An element of an integer vector, as an index.
  Value load(Value vector, Value position) {
    Value element = tensor::ExtractOp::create(b, vector, position);
    return arith::IndexCastOp::create(b, b.getIndexType(), element);
  }
  Value toCompute(OpBuilder &builder, Value value) {
    return convertScalarToDtype(builder, b.getLoc(), value, compute,
                                /*isUnsignedCast=*/false);
  }

  /// Rows `row .. row + rows` of one head of a packed tensor, as a matrix.
  Value rowsOf(Value packed, Value row, Value rows, Value head);
  Value filled(ArrayRef<OpFoldResult> sizes, Value value) {
    Value empty = tensor::EmptyOp::create(b, sizes, value.getType());
    return linalg::FillOp::create(b, value, empty).getResult(0);
  }
  /// A linalg.generic; dimensions that the init's map lacks are reduced.
  using Body = llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;
  Value generic(ValueRange inputs, Value init, ArrayRef<AffineMap> maps,
                Body body);

  ImplicitLocOpBuilder b;
  AttnOp op;
  FloatType compute;
  Value scale;
};

} // namespace

Value Decomposer::rowsOf(Value packed, Value row, Value rows, Value head) {
  auto type = cast<RankedTensorType>(packed.getType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), packed, 2);
  auto matrix = RankedTensorType::get(
      {ShapedType::kDynamic, type.getDimSize(2)}, type.getElementType());
  return tensor::ExtractSliceOp::create(
      b, matrix, packed, ArrayRef<OpFoldResult>{row, head, zero},
      ArrayRef<OpFoldResult>{rows, one, columns},
      ArrayRef<OpFoldResult>{one, one, one});
}

Value Decomposer::generic(ValueRange inputs, Value init,
                          ArrayRef<AffineMap> maps, Body body) {
  AffineMap result = maps.back();
  SmallVector<utils::IteratorType> iterators(result.getNumDims(),
                                             utils::IteratorType::reduction);
  for (AffineExpr expr : result.getResults())
    iterators[cast<AffineDimExpr>(expr).getPosition()] =
        utils::IteratorType::parallel;
  auto build = [&](OpBuilder &builder, Location loc, ValueRange args) {
    ImplicitLocOpBuilder inner(loc, builder);
    linalg::YieldOp::create(inner, body(inner, args));
  };
  return linalg::GenericOp::create(b, init.getType(), inputs, init, maps,
                                   iterators, build)
      .getResult(0);
}

Sequence Decomposer::loadSequence(Value number) {
  Value next = arith::AddIOp::create(b, number, index(1));
  Sequence sequence;
  sequence.qRow = load(op.getCuQ(), number);
  sequence.kRow = load(op.getCuK(), number);
  sequence.qRows = op.getSequsedQ()
                       ? load(op.getSequsedQ(), number)
                       : sub(load(op.getCuQ(), next), sequence.qRow);
  sequence.kRows = op.getSequsedK()
                       ? load(op.getSequsedK(), number)
                       : sub(load(op.getCuK(), next), sequence.kRow);

  sequence.diagonal = op.getMask().getAlignment() == Alignment::BottomRight
                          ? sub(sequence.kRows, sequence.qRows)
                          : index(0);
  if (op.getQOffset()) {
    // An offset may be any integer; far enough out, they are all the same.
    constexpr int64_t far = int64_t(1) << 62;
    Value offset = load(op.getQOffset(), number);
    offset = arith::MaxSIOp::create(b, offset, index(-far));
    offset = arith::MinSIOp::create(b, offset, index(far));
    sequence.diagonal = arith::AddIOp::create(b, sequence.diagonal, offset);
  }
  return sequence;
}

Value Decomposer::loadScale() {
  if (std::optional<double> value = op.getScaleValue())
    return constant(compute, *value);
  // 1 / sqrt(head_dim). With an empty head_dim every score is an empty sum,
  // whatever the scale.
  Value dim = tensor::DimOp::create(b, op.getQ(), 2);
  dim = arith::MaxSIOp::create(b, dim, index(1));
  dim = arith::IndexCastOp::create(b, b.getI64Type(), dim);
  dim = arith::SIToFPOp::create(b, compute, dim);
  return arith::DivFOp::create(b, constant(compute, 1),
                               math::SqrtOp::create(b, dim));
}

Value Decomposer::loadSink(Value head) {
  if (!op.getSink())
    return {};
  return toCompute(b, tensor::ExtractOp::create(b, op.getSink(), head));
}

Value Decomposer::visibleKeys(const Sequence &sequence) {
  MaskAttr mask = op.getMask();
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value all = filled({sequence.qRows, sequence.kRows}, yes);
  if (mask.isFull())
    return all;
  AffineMap identity = b.getMultiDimIdentityMap(2);
  return generic(
      {}, all, {identity}, [&](ImplicitLocOpBuilder &b, ValueRange args) {
        Value query = linalg::IndexOp::create(b, 0);
        Value key = linalg::IndexOp::create(b, 1);
        Value aligned = arith::AddIOp::create(b, query, sequence.diagonal);
        Value ahead = arith::SubIOp::create(b, key, aligned);
        Value visible = args[0];
        auto require = [&](arith::CmpIPredicate predicate, int64_t bound) {
          Value limit = arith::ConstantIndexOp::create(b, bound);
          Value holds = arith::CmpIOp::create(b, predicate, ahead, limit);
          visible = arith::AndIOp::create(b, visible, holds);
        };
        if (mask.getLeft() >= 0)
          require(arith::CmpIPredicate::sge, -mask.getLeft());
        if (mask.getRight() >= 0)
          require(arith::CmpIPredicate::sle, mask.getRight());
        return visible;
      });
}

std::pair<Value, Value> Decomposer::attendHead(const Sequence &sequence,
                                               Value head, Value out,
                                               Value lse) {
  Value queryHeads = tensor::DimOp::create(b, op.getQ(), 1);
  Value kvHeads = tensor::DimOp::create(b, op.getK(), 1);
  Value group = arith::DivSIOp::create(b, queryHeads, kvHeads);
  Value kvHead = arith::DivSIOp::create(b, head, group);
  Value q = rowsOf(op.getQ(), sequence.qRow, sequence.qRows, head);
  Value k = rowsOf(op.getK(), sequence.kRow, sequence.kRows, kvHead);
  Value v = rowsOf(op.getV(), sequence.kRow, sequence.kRows, kvHead);

  OpFoldResult rows = sequence.qRows, keys = sequence.kRows;
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), v, 1);
  MLIRContext *context = op.getContext();
  auto map = [&](unsigned dims, ArrayRef<unsigned> results) {
    return AffineMap::getMultiDimMapWithTargets(dims, results, context);
  };
  AffineMap matrix = map(2, {0, 1}), perRow = map(2, {0});
  Value zero = constant(compute, 0);

  // score[i, j] = sum_d q[i, d] * k[j, d]
  Value score = generic({q, k}, filled({rows, keys}, zero),
                        {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})},
                        [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                          Value product = arith::MulFOp::create(
                              b, toCompute(b, args[0]), toCompute(b, args[1]));
                          return arith::AddFOp::create(b, args[2], product);
                        });

  // logit[i, j] = scale * score[i, j] where visible, else -inf
  Value visible = visibleKeys(sequence);
  Value invisible = lowest();
  Value logit = generic(
      {score, visible}, filled({rows, keys}, zero), {matrix, matrix, matrix},
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        Value scaled = arith::MulFOp::create(b, args[0], scale);
        return arith::SelectOp::create(b, args[1], scaled, invisible);
      });

  // top[i] = max(sink, max_j logit[i, j]), or 0 for a row without any: -inf
  // must not be subtracted from -inf.
  Value sink = loadSink(head);
  Value top = generic({logit}, filled({rows}, sink ? sink : invisible),
                      {matrix, perRow},
                      [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                        return arith::MaximumFOp::create(b, args[0], args[1]);
                      });
  AffineMap vector = map(1, {0});
  top = generic({top}, filled({rows}, zero), {vector, vector},
                [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                  Value none = arith::CmpFOp::create(
                      b, arith::CmpFPredicate::OEQ, args[0], invisible);
                  return arith::SelectOp::create(b, none, zero, args[0]);
                });

  // weight[i, j] = exp(logit[i, j] - top[i])
  Value weight = generic({logit, top}, filled({rows, keys}, zero),
                         {matrix, perRow, matrix},
                         [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                           return math::ExpOp::create(
                               b, arith::SubFOp::create(b, args[0], args[1]));
                         });

  // sum[i] = exp(sink - top[i]) + sum_j weight[i, j]
  Value sum = filled({rows}, zero);
  if (sink)
    sum = generic({top}, sum, {vector, vector},
                  [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                    return math::ExpOp::create(
                        b, arith::SubFOp::create(b, sink, args[0]));
                  });
  sum = generic({weight}, sum, {matrix, perRow},
                [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                  return arith::AddFOp::create(b, args[1], args[0]);
                });

  // mixed[i, c] = sum_j weight[i, j] * v[j, c] over the visible keys. The
  // others are left out, not weighted with 0: 0 * NaN is NaN.
  Value mixed =
      generic({weight, visible, v}, filled({rows, columns}, zero),
              {map(3, {0, 2}), map(3, {0, 2}), map(3, {2, 1}), map(3, {0, 1})},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value product =
                    arith::MulFOp::create(b, args[0], toCompute(b, args[2]));
                Value term = arith::SelectOp::create(b, args[1], product, zero);
                return arith::AddFOp::create(b, args[3], term);
              });

  // Both results are computed in place, in the rows they belong to.
  OpFoldResult first = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> outAt{sequence.qRow, head, first};
  SmallVector<OpFoldResult> outSizes{rows, one, columns};
  SmallVector<OpFoldResult> lseAt{head, sequence.qRow}, lseSizes{one, rows};
  Type element = op.getElementType();

  // out[i, c] = mixed[i, c] / sum[i], or 0 for a row without any weight
  Value rowsOut =
      generic({mixed, sum}, rowsOf(out, sequence.qRow, sequence.qRows, head),
              {matrix, perRow, matrix},
              [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                                   args[1], zero);
                Value quotient = arith::DivFOp::create(b, args[0], args[1]);
                Value value = arith::SelectOp::create(b, none, zero, quotient);
                return convertScalarToDtype(b, b.getLoc(), value, element,
                                            /*isUnsignedCast=*/false);
              });

  // lse[i] = top[i] + log(sum[i]): -inf for a row without any weight
  Value rowsLse = tensor::ExtractSliceOp::create(
      b, cast<RankedTensorType>(top.getType()), lse, lseAt, lseSizes,
      ArrayRef<OpFoldResult>{one, one});
  rowsLse = generic({top, sum}, rowsLse, {vector, vector, vector},
                    [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                      return arith::AddFOp::create(
                          b, args[0], math::LogOp::create(b, args[1]));
                    });

  out = tensor::InsertSliceOp::create(b, rowsOut, out, outAt, outSizes,
                                      ArrayRef<OpFoldResult>{one, one, one});
  lse = tensor::InsertSliceOp::create(b, rowsLse, lse, lseAt, lseSizes,
                                      ArrayRef<OpFoldResult>{one, one});
  return {out, lse};
}

SmallVector<Value> Decomposer::run() {
  Location loc = b.getLoc();
  OpFoldResult tokens = tensor::getMixedSize(b, loc, op.getQ(), 0);
  OpFoldResult heads = tensor::getMixedSize(b, loc, op.getQ(), 1);
  OpFoldResult columns = tensor::getMixedSize(b, loc, op.getV(), 2);
  scale = loadScale();

  // Rows that belong to no sequence keep these.
  Value out =
      filled({tokens, heads, columns}, constant(op.getElementType(), 0));
  Value lse = filled({heads, tokens}, lowest());

  Value zero = index(0), one = index(1);
  Value sequences =
      sub(tensor::DimOp::create(b, op.getCuQ(), 0).getResult(), one);
  auto overSequences = [&](OpBuilder &builder, Location loc, Value number,
                           ValueRange results) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(builder.getInsertionBlock(),
                        builder.getInsertionPoint());
    Sequence sequence = loadSequence(number);
    auto overHeads = [&](OpBuilder &builder, Location loc, Value head,
                         ValueRange results) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(builder.getInsertionBlock(),
                          builder.getInsertionPoint());
      auto [out, lse] = attendHead(sequence, head, results[0], results[1]);
      scf::YieldOp::create(b, ValueRange{out, lse});
    };
    Value end = getValueOrCreateConstantIndexOp(b, loc, heads);
    auto loop = scf::ForOp::create(b, zero, end, one, results, overHeads);
    scf::YieldOp::create(b, loop.getResults());
  };
  auto loop = scf::ForOp::create(b, zero, sequences, one, ValueRange{out, lse},
                                 overSequences);
  return SmallVector<Value>(loop.getResults());
}

FailureOr<SmallVector<Value>> AttnOp::decomposeOperation(OpBuilder &builder) {
  if (isBufferized())
    return failure();
  SmallVector<Value> results = Decomposer(builder, *this).run();
  // The loop knows the extents of q and v; the results may know more or less.
  for (auto [value, result] : llvm::zip_equal(results, getResults()))
    if (value.getType() != result.getType())
      value =
          tensor::CastOp::create(builder, getLoc(), result.getType(), value);
  return results;
}
