//===- VarlenOnlineSoftmax.cpp - The online-softmax step ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says what a step of online softmax computes. Targets
// differ in the orientation of the score tile and in how they lower the
// resulting linalg, not in this text.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>
#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

using utils::IteratorType;

/// Writes linalg on the tiles of one step. A score tile has two axes, rows and
/// columns; a statistic has extent 1 along the key axis, so its type alone
/// says what it is.
class StepBuilder {
public:
  StepBuilder(OnlineAttnOp op, OpBuilder &builder)
      : op(op), b(op.getLoc(), builder),
        kq(op.getOrientation() == Orientation::KQ),
        compute(cast<RankedTensorType>(op.getM().getType()).getElementType()) {}

  /// Emits the step; returns the new acc, m and l.
  SmallVector<Value> emit();

private:
  using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

  AffineMap map(ArrayRef<int64_t> dims, unsigned rank);
  /// The map of `value` in a loop nest over the axes of a score (or acc) tile:
  /// the identity, or the projection to a statistic.
  AffineMap tileMap(Value value);
  Value empty(Value like, Type element);
  Value emptyScores();
  Value fill(double value, Value init);
  Value constant(double value);
  Value contract(Value a, Value b, Value init, ArrayRef<int64_t> aDims,
                 ArrayRef<int64_t> bDims);
  Value elementwise(ValueRange inputs, Value init, Body body);
  Value reduceKeys(Value scores, Value init, Body combine);
  Value exp2(OpBuilder &builder, Location loc, Value x);

  OnlineAttnOp op;
  ImplicitLocOpBuilder b;
  bool kq;
  Type compute;
};

} // namespace

AffineMap StepBuilder::map(ArrayRef<int64_t> dims, unsigned rank) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(b.getAffineDimExpr(dim));
  return AffineMap::get(rank, 0, exprs, b.getContext());
}

AffineMap StepBuilder::tileMap(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < 2; ++dim) {
    // The key axis of a statistic; queries may be a single row, too.
    bool projected = type.getDimSize(dim) == 1 && dim == (kq ? 0 : 1);
    exprs.push_back(projected ? b.getAffineConstantExpr(0)
                              : b.getAffineDimExpr(dim));
  }
  return AffineMap::get(2, 0, exprs, b.getContext());
}

Value StepBuilder::empty(Value like, Type element) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), like);
  return tensor::EmptyOp::create(b, sizes, element);
}

Value StepBuilder::emptyScores() {
  OpFoldResult keys = tensor::getMixedSize(b, b.getLoc(), op.getK(), 0);
  OpFoldResult queries =
      tensor::getMixedSize(b, b.getLoc(), op.getQ(), kq ? 1 : 0);
  SmallVector<OpFoldResult> sizes = {queries, keys};
  if (kq)
    std::swap(sizes[0], sizes[1]);
  return tensor::EmptyOp::create(b, sizes, compute);
}

Value StepBuilder::constant(double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
}

Value StepBuilder::fill(double value, Value init) {
  return linalg::FillOp::create(b, constant(value), init).getResult(0);
}

Value StepBuilder::contract(Value lhs, Value rhs, Value init,
                            ArrayRef<int64_t> lhsDims,
                            ArrayRef<int64_t> rhsDims) {
  ArrayAttr maps = b.getAffineMapArrayAttr(
      {map(lhsDims, 3), map(rhsDims, 3), map({0, 1}, 3)});
  return linalg::ContractOp::create(b, TypeRange{init.getType()},
                                    ValueRange{lhs, rhs}, ValueRange{init},
                                    maps)
      .getResult(0);
}

Value StepBuilder::elementwise(ValueRange inputs, Value init, Body body) {
  SmallVector<AffineMap> maps;
  for (Value input : inputs)
    maps.push_back(tileMap(input));
  maps.push_back(tileMap(init));
  // A statistic is a tile of its own: one column (or row) per query.
  if (llvm::all_of(inputs, [&](Value input) {
        return cast<RankedTensorType>(input.getType()).getShape() ==
               cast<RankedTensorType>(init.getType()).getShape();
      }))
    maps.assign(maps.size(), b.getMultiDimIdentityMap(2));
  SmallVector<IteratorType> iterators(2, IteratorType::parallel);
  return linalg::GenericOp::create(
             b, TypeRange{init.getType()}, inputs, ValueRange{init}, maps,
             iterators,
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               linalg::YieldOp::create(nested, loc, body(nested, loc, args));
             })
      .getResult(0);
}

Value StepBuilder::reduceKeys(Value scores, Value init, Body combine) {
  SmallVector<IteratorType> iterators = {IteratorType::parallel,
                                         IteratorType::reduction};
  if (kq)
    std::swap(iterators[0], iterators[1]);
  return linalg::GenericOp::create(
             b, TypeRange{init.getType()}, ValueRange{scores}, ValueRange{init},
             ArrayRef<AffineMap>{b.getMultiDimIdentityMap(2), tileMap(init)},
             iterators,
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               linalg::YieldOp::create(nested, loc, combine(nested, loc, args));
             })
      .getResult(0);
}

Value StepBuilder::exp2(OpBuilder &builder, Location loc, Value x) {
  auto exp = math::Exp2Op::create(builder, loc, x);
  if (Attribute degree = op->getAttr("varlen.exp2_degree"))
    exp->setAttr("varlen.exp2_degree", degree);
  return exp;
}

SmallVector<Value> StepBuilder::emit() {
  const double infinity = std::numeric_limits<double>::infinity();
  Value m = op.getM(), l = op.getL(), acc = op.getAcc();
  Value c = constant(op.getScale().convertToDouble() * M_LOG2E);

  // Loops are (rows, columns, head_dim) of the score tile.
  Value s = fill(0.0, emptyScores());
  s = kq ? contract(op.getK(), op.getQ(), s, {0, 2}, {2, 1})
         : contract(op.getQ(), op.getK(), s, {0, 2}, {1, 2});

  if (op.getLo()) {
    Value hidden = constant(-infinity), k0 = op.getK0(), whole = op.getWhole();
    s = elementwise(
        {s, op.getLo(), op.getHi()}, empty(s, compute),
        [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
          Value j = linalg::IndexOp::create(n, loc, kq ? 0 : 1);
          j = arith::IndexCastOp::create(n, loc, n.getI32Type(), j);
          j = arith::AddIOp::create(n, loc, j, k0);
          Value after = arith::CmpIOp::create(n, loc, arith::CmpIPredicate::sge,
                                              j, args[1]);
          Value before = arith::CmpIOp::create(
              n, loc, arith::CmpIPredicate::slt, j, args[2]);
          Value x = arith::SelectOp::create(n, loc, before, args[0], hidden);
          x = arith::SelectOp::create(n, loc, after, x, hidden);
          return whole ? arith::SelectOp::create(n, loc, whole, args[0], x)
                             .getResult()
                       : x;
        });
  }

  Value top =
      reduceKeys(s, fill(-infinity, empty(m, compute)),
                 [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                   return arith::MaxNumFOp::create(n, loc, args[0], args[1]);
                 });
  // Where p is rounded, the weight of the first key of all must be 1: a row
  // that sees one key is that key's value, as it is.
  Type narrow = cast<RankedTensorType>(op.getV().getType()).getElementType();
  bool isRounded = narrow != compute;
  Value mNew =
      elementwise({m, top}, empty(m, compute),
                  [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                    Value x = arith::MulFOp::create(n, loc, args[1], c);
                    if (!isRounded)
                      x = math::CeilOp::create(n, loc, x);
                    return arith::MaxNumFOp::create(n, loc, args[0], x);
                  });
  Value minusM =
      elementwise({mNew}, empty(m, compute),
                  [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                    return arith::NegFOp::create(n, loc, args[0]);
                  });
  Value alpha =
      elementwise({m, minusM}, empty(m, compute),
                  [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                    Value x = arith::AddFOp::create(n, loc, args[0], args[1]);
                    return exp2(n, loc, x);
                  });
  auto multiply = [](OpBuilder &n, Location loc, ValueRange args) -> Value {
    return arith::MulFOp::create(n, loc, args[0], args[1]);
  };
  Value lScaled = elementwise({l, alpha}, empty(l, compute), multiply);

  Value p =
      elementwise({s, minusM}, empty(s, compute),
                  [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                    Value x = math::FmaOp::create(n, loc, args[0], c, args[1]);
                    return exp2(n, loc, x);
                  });
  Value lNew = reduceKeys(
      p, lScaled, [](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return arith::AddFOp::create(n, loc, args[1], args[0]);
      });

  // The tensor cores and dot instructions want both factors in one type.
  if (isRounded)
    p = elementwise({p}, empty(p, narrow),
                    [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                      return arith::TruncFOp::create(n, loc, narrow, args[0]);
                    });

  Value scaled = elementwise({acc, alpha}, empty(acc, compute), multiply);
  Value accNew = kq ? contract(op.getV(), p, scaled, {2, 0}, {2, 1})
                    : contract(p, op.getV(), scaled, {0, 2}, {2, 1});
  return {accNew, mNew, lNew};
}

namespace {
struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](OnlineAttnOp op) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, StepBuilder(op, rewriter).emit());
      ++numSteps;
    });
  }
};
} // namespace
