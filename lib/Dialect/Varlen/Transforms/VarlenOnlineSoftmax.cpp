//===- VarlenOnlineSoftmax.cpp - The steps of attention on tiles ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says what a step of online softmax computes, and what its
// gradients are. Targets differ in the orientation of the score tile and in how
// they lower the resulting linalg, not in this text.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/ScoreReference.h"

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

/// Writes linalg on the tiles of one step, which is a varlen.online_attn or a
/// varlen.online_attn_grad. A score tile has two axes, rows and columns; a
/// statistic has extent 1 along the key axis, so its type alone says what it
/// is.
template <typename Step> class StepBuilder {
public:
  StepBuilder(Step op, Value statistic, OpBuilder &builder)
      : op(op), b(op.getLoc(), builder),
        kq(op.getOrientation() == Orientation::KQ),
        compute(elementOf(statistic)) {}

protected:
  using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

  static Type elementOf(Value tile) {
    return cast<RankedTensorType>(tile.getType()).getElementType();
  }
  AffineMap map(ArrayRef<int64_t> dims, unsigned rank);
  /// The map of `value` in a loop nest over the axes of a score (or acc) tile:
  /// the identity, or the projection to a statistic.
  AffineMap tileMap(Value value);
  Value empty(Value like, Type element);
  Value fill(double value, Value init);
  Value constant(double value);
  Value contract(Value lhs, Value rhs, Value init, ArrayRef<int64_t> lhsDims,
                 ArrayRef<int64_t> rhsDims);
  Value elementwise(ValueRange inputs, Value init, Body body);
  Value reduceKeys(Value scores, Value init, Body combine);
  Value negate(Value tile);
  /// `tile` rounded to the type of `like`.
  Value round(Value tile, Value like);
  Value exp2(OpBuilder &builder, Location loc, Value x);

  double getScale() { return op.getScale().convertToDouble(); }
  /// A score tile without values.
  Value emptyScores();
  /// Products of all rows of `keys`, N x (depth), with all rows of `queries`:
  /// a score tile like `scores`.
  Value products(Value queries, Value keys, Value scores);
  /// The score tile with `hidden` where a key is not visible to a query.
  Value hide(Value scores, double hidden);
  Step op;
  ImplicitLocOpBuilder b;
  bool kq;
  Type compute;
};

/// The step of online softmax; emit() returns the new acc, m and l.
struct OnlineAttnBuilder : StepBuilder<OnlineAttnOp> {
  OnlineAttnBuilder(OnlineAttnOp op, OpBuilder &builder)
      : StepBuilder(op, op.getM(), builder) {}
  SmallVector<Value> emit();

private:
  /// A statistic of each query that a statistic, or several, say.
  Value perQuery(ValueRange inputs, Body body) {
    return elementwise(inputs, empty(inputs[0], compute), body);
  }
};

/// Its gradients; emit() returns the new dq, dk and dv, as far as asked for.
struct OnlineAttnGradBuilder : StepBuilder<OnlineAttnGradOp> {
  OnlineAttnGradBuilder(OnlineAttnGradOp op, OpBuilder &builder)
      : StepBuilder(op, op.getLse(), builder) {}
  SmallVector<Value> emit();

private:
  /// exp(scale * s - lse), which is at most 1.
  Value probabilities(Value s);
};

/// The end of a state; emit() returns out and lse.
struct OnlineFinishBuilder : StepBuilder<OnlineFinishOp> {
  OnlineFinishBuilder(OnlineFinishOp op, OpBuilder &builder)
      : StepBuilder(op, op.getM(), builder) {}
  SmallVector<Value> emit();
};

} // namespace

template <typename Step>
AffineMap StepBuilder<Step>::map(ArrayRef<int64_t> dims, unsigned rank) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(b.getAffineDimExpr(dim));
  return AffineMap::get(rank, 0, exprs, b.getContext());
}

template <typename Step> AffineMap StepBuilder<Step>::tileMap(Value value) {
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

template <typename Step>
Value StepBuilder<Step>::empty(Value like, Type element) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), like);
  return tensor::EmptyOp::create(b, sizes, element);
}

template <typename Step> Value StepBuilder<Step>::constant(double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
}

template <typename Step>
Value StepBuilder<Step>::fill(double value, Value init) {
  return linalg::FillOp::create(b, constant(value), init).getResult(0);
}

template <typename Step>
Value StepBuilder<Step>::contract(Value lhs, Value rhs, Value init,
                                  ArrayRef<int64_t> lhsDims,
                                  ArrayRef<int64_t> rhsDims) {
  ArrayAttr maps = b.getAffineMapArrayAttr(
      {map(lhsDims, 3), map(rhsDims, 3), map({0, 1}, 3)});
  return linalg::ContractOp::create(b, TypeRange{init.getType()},
                                    ValueRange{lhs, rhs}, ValueRange{init},
                                    maps)
      .getResult(0);
}

template <typename Step>
Value StepBuilder<Step>::elementwise(ValueRange inputs, Value init, Body body) {
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

template <typename Step>
Value StepBuilder<Step>::reduceKeys(Value scores, Value init, Body combine) {
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

template <typename Step>
Value StepBuilder<Step>::exp2(OpBuilder &builder, Location loc, Value x) {
  auto exp = math::Exp2Op::create(builder, loc, x);
  if (Attribute degree = op->getAttr(kExp2DegreeAttrName))
    exp->setAttr(kExp2DegreeAttrName, degree);
  return exp;
}

template <typename Step> Value StepBuilder<Step>::negate(Value tile) {
  return elementwise({tile}, empty(tile, compute),
                     [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                       return arith::NegFOp::create(n, loc, args[0]);
                     });
}

template <typename Step>
Value StepBuilder<Step>::round(Value tile, Value like) {
  Type narrow = elementOf(like);
  if (narrow == compute)
    return tile;
  return elementwise({tile}, empty(tile, narrow),
                     [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                       return arith::TruncFOp::create(n, loc, narrow, args[0]);
                     });
}

template <typename Step> Value StepBuilder<Step>::emptyScores() {
  OpFoldResult keys = tensor::getMixedSize(b, b.getLoc(), op.getK(), 0);
  OpFoldResult queries = tensor::getMixedSize(b, b.getLoc(), op.getQ(), 0);
  SmallVector<OpFoldResult> sizes = {queries, keys};
  if (kq)
    std::swap(sizes[0], sizes[1]);
  return tensor::EmptyOp::create(b, sizes, compute);
}

template <typename Step>
Value StepBuilder<Step>::products(Value queries, Value keys, Value scores) {
  // Loops are (rows, columns, depth) of the score tile.
  SmallVector<int64_t> queryDims = {0, 2}, keyDims = {1, 2};
  if (kq)
    std::swap(queryDims, keyDims);
  Value zeros = fill(0.0, scores);
  return kq ? contract(keys, queries, zeros, keyDims, queryDims)
            : contract(queries, keys, zeros, queryDims, keyDims);
}

template <typename Step>
Value StepBuilder<Step>::hide(Value scores, double hiddenValue) {
  if (!op.getLo())
    return scores;
  Value hidden = constant(hiddenValue), k0 = op.getK0(), whole = op.getWhole();
  Value result = elementwise(
      {scores, op.getLo(), op.getHi()}, empty(scores, compute),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        Value j = linalg::IndexOp::create(n, loc, kq ? 0 : 1);
        j = arith::IndexCastOp::create(n, loc, n.getI32Type(), j);
        j = arith::AddIOp::create(n, loc, j, k0);
        Value after = arith::CmpIOp::create(n, loc, arith::CmpIPredicate::sge,
                                            j, args[1]);
        Value before = arith::CmpIOp::create(n, loc, arith::CmpIPredicate::slt,
                                             j, args[2]);
        Value x = arith::SelectOp::create(n, loc, before, args[0], hidden);
        x = arith::SelectOp::create(n, loc, after, x, hidden);
        return whole ? arith::SelectOp::create(n, loc, whole, args[0], x)
                           .getResult()
                     : x;
      });
  if (hiddenValue == 0.0)
    result.getDefiningOp()->setAttr(kBandAttrName, b.getUnitAttr());
  return result;
}

SmallVector<Value> OnlineAttnBuilder::emit() {
  const double infinity = std::numeric_limits<double>::infinity();
  Value m = op.getM(), l = op.getL(), acc = op.getAcc();
  Value s = products(op.getQ(), op.getK(), emptyScores());
  s = hide(s, -infinity);

  Value top =
      reduceKeys(s, fill(-infinity, empty(m, compute)),
                 [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                   return arith::MaxNumFOp::create(n, loc, args[0], args[1]);
                 });
  Value mNew = perQuery(
      {m, top}, [](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return arith::MaxNumFOp::create(n, loc, args[0], args[1]);
      });
  // Where p is rounded, the weight of the first key of all must be 1: a row
  // that sees one key is that key's value, as it is.
  bool isRounded = elementOf(op.getV()) != compute;
  ScoreReference reference(getScale(), cast<FloatType>(compute), isRounded);
  Value factor =
      perQuery(mNew, [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return reference.emitFactor(n, loc, args[0]);
      });
  Value minusReference =
      perQuery({mNew, factor},
               [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                 return arith::NegFOp::create(
                     n, loc, reference.emitReference(n, loc, args[0], args[1]));
               });
  // What acc and l are relative to changes from the old reference to the new
  // one. A rounded p asks for no exact quotient of these, which takes less.
  Value alpha = perQuery(
      {m, mNew, factor, minusReference},
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        if (isRounded) {
          Value x = arith::SubFOp::create(n, loc, args[0], args[1]);
          return exp2(n, loc, arith::MulFOp::create(n, loc, x, args[2]));
        }
        Value before = reference.emitReference(
            n, loc, args[0], reference.emitFactor(n, loc, args[0]));
        return exp2(n, loc, arith::AddFOp::create(n, loc, before, args[3]));
      });
  auto multiply = [](OpBuilder &n, Location loc, ValueRange args) -> Value {
    return arith::MulFOp::create(n, loc, args[0], args[1]);
  };
  Value lScaled = elementwise({l, alpha}, empty(l, compute), multiply);

  Value p = elementwise(
      {s, factor, minusReference}, empty(s, compute),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return exp2(n, loc,
                    math::FmaOp::create(n, loc, args[0], args[1], args[2]));
      });
  Value lNew = reduceKeys(
      p, lScaled, [](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return arith::AddFOp::create(n, loc, args[1], args[0]);
      });

  // The tensor cores and dot instructions want both factors in one type.
  p = round(p, op.getV());

  Value scaled = elementwise({acc, alpha}, empty(acc, compute), multiply);
  Value accNew = kq ? contract(op.getV(), p, scaled, {2, 0}, {2, 1})
                    : contract(p, op.getV(), scaled, {0, 2}, {2, 1});
  return {accNew, mNew, lNew};
}

Value OnlineAttnGradBuilder::probabilities(Value s) {
  bool isNatural = op.getNatural();
  Value c = constant(isNatural ? getScale() : getScale() * M_LOG2E);
  Value zero = constant(0.0), log2e = constant(M_LOG2E);
  return elementwise({s, negate(op.getLse())}, empty(s, compute),
                     [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                       Value x =
                           math::FmaOp::create(n, loc, args[0], c, args[1]);
                       // The scores that made lse were summed in another order.
                       x = arith::MinimumFOp::create(n, loc, x, zero);
                       if (isNatural)
                         x = arith::MulFOp::create(n, loc, x, log2e);
                       return exp2(n, loc, x);
                     });
}

SmallVector<Value> OnlineAttnGradBuilder::emit() {
  Value s = products(op.getQ(), op.getK(), emptyScores());
  // Hidden by value, not by a score of -inf: lse may be anything there.
  Value p = hide(probabilities(s), 0.0);
  // The queries are the reduction of dk and dv, the keys that of dq.
  SmallVector<int64_t> keysFirst = {0, 2}, queriesFirst = {2, 0};
  if (!kq)
    std::swap(keysFirst, queriesFirst);

  Value dq = op.getDq(), dk = op.getDk(), dv = op.getDv();
  if (dv)
    dv = contract(round(p, op.getDout()), op.getDout(), dv, keysFirst, {2, 1});
  if (dq || dk) {
    Value dp = products(op.getDout(), op.getV(), empty(p, compute));
    Value ds =
        elementwise({p, dp, op.getDelta()}, empty(p, compute),
                    [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                      Value x = arith::SubFOp::create(n, loc, args[1], args[2]);
                      return arith::MulFOp::create(n, loc, args[0], x);
                    });
    // A p of 0 does not hide a NaN.
    ds = round(hide(ds, 0.0), op.getQ());
    if (dk)
      dk = contract(ds, op.getQ(), dk, keysFirst, {2, 1});
    if (dq)
      dq = contract(ds, op.getK(), dq, queriesFirst, {2, 1});
  }
  SmallVector<Value> gradients = {dq, dk, dv};
  llvm::erase(gradients, Value());
  return gradients;
}

SmallVector<Value> OnlineFinishBuilder::emit() {
  ScoreReference reference(getScale(), cast<FloatType>(compute),
                           op.getRounded());
  SmallVector<Value> inputs = {op.getM(), op.getL()};
  if (op.getSink())
    inputs.push_back(op.getSink());
  // Each result from its own text: what they share is common to both.
  auto result = [&](Value ScoreReference::Result::*field) {
    return elementwise(
        inputs, empty(op.getM(), compute),
        [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
          return reference.emitResult(n, loc, args[0], args[1],
                                      op.getSink() ? args[2] : Value()).*
                 field;
        });
  };
  Value factor = result(&ScoreReference::Result::factor);
  Value lse = result(&ScoreReference::Result::lse);
  Value acc = op.getAcc();
  Value out = elementwise(
      {acc, factor}, empty(acc, compute),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        // A row without a key may have met NaN with a weight of 0.
        Value zero =
            arith::ConstantOp::create(n, loc, n.getFloatAttr(compute, 0.0));
        Value none = arith::CmpFOp::create(n, loc, arith::CmpFPredicate::OEQ,
                                           args[1], zero);
        Value x = arith::MulFOp::create(n, loc, args[0], args[1]);
        return arith::SelectOp::create(n, loc, none, zero, x);
      });
  if (kq) {
    Value rows = tensor::EmptyOp::create(
        b,
        SmallVector<OpFoldResult>{tensor::getMixedSize(b, b.getLoc(), acc, 1),
                                  tensor::getMixedSize(b, b.getLoc(), acc, 0)},
        compute);
    out = linalg::TransposeOp::create(b, out, rows, ArrayRef<int64_t>{1, 0})
              ->getResult(0);
  }
  return {out, lse};
}

namespace {
struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](Operation *op) {
      rewriter.setInsertionPoint(op);
      if (auto step = dyn_cast<OnlineAttnOp>(op)) {
        rewriter.replaceOp(op, OnlineAttnBuilder(step, rewriter).emit());
        ++numSteps;
      } else if (auto step = dyn_cast<OnlineAttnGradOp>(op)) {
        rewriter.replaceOp(op, OnlineAttnGradBuilder(step, rewriter).emit());
        ++numGradSteps;
      } else if (auto end = dyn_cast<OnlineFinishOp>(op)) {
        rewriter.replaceOp(op, OnlineFinishBuilder(end, rewriter).emit());
      }
    });
  }
};
} // namespace
