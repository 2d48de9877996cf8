//===- VarlenRules.cpp - Rules of the varlen dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// varlen.attn, varlen.attn_into
//===----------------------------------------------------------------------===//

/// Destinations are not read: their cotangents are zero.
static LogicalResult pullBack(AttentionOpInterface op, VJPBuilder &b) {
  if (op.isBufferized())
    return op->emitError("expected tensors to differentiate, got memrefs");
  if (op.isPaged())
    return op->emitError("expected keys without a block_table to "
                         "differentiate: pages have no gradient");
  if (failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  SmallVector<int64_t> wrtCaptures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (b.isVaried(capture))
      wrtCaptures.push_back(number);
  if (failed(verifyFactorCaptures(op, op.getScoreBody(), wrtCaptures)))
    return failure();
  auto grad = AttnGradOp::create(b, op, b.getCotangentOrZero(op->getResult(0)),
                                 b.getCotangent(op->getResult(1)), wrtCaptures);
  b.accumulate(op.getQ(), grad.getDq());
  b.accumulate(op.getK(), grad.getDk());
  b.accumulate(op.getV(), grad.getDv());
  if (op.getSink())
    b.accumulate(op.getSink(), grad.getDsink());
  for (auto [number, gradient] : llvm::zip_equal(
           wrtCaptures, grad->getResults().take_back(wrtCaptures.size())))
    b.accumulate(op.getCaptures()[number], gradient);
  return success();
}

/// One operation computes out, lse and their tangents.
static LogicalResult pushForward(AttentionOpInterface op, JVPBuilder &b) {
  if (op.isBufferized())
    return op->emitError("expected tensors to differentiate, got memrefs");
  if (op.isPaged())
    return op->emitError("expected keys without a block_table to "
                         "differentiate: pages have no tangent");
  if (failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  SmallVector<int64_t> wrtCaptures;
  SmallVector<Value> ofCaptures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (Value tangent = b.getTangent(capture)) {
      wrtCaptures.push_back(number);
      ofCaptures.push_back(tangent);
    }
  if (failed(verifyFactorCaptures(op, op.getScoreBody(), wrtCaptures)))
    return failure();
  auto jvp = AttnJVPOp::create(
      b, op, b.getTangentOrZero(op.getQ()), b.getTangentOrZero(op.getK()),
      b.getTangentOrZero(op.getV()),
      op.getSink() ? b.getTangent(op.getSink()) : Value(), ofCaptures,
      wrtCaptures);
  op->replaceAllUsesWith(jvp.getResults().take_front(2));
  b.setTangent(jvp.getOut(), jvp.getTout());
  b.setTangent(jvp.getLse(), jvp.getTlse());
  return success();
}

//===----------------------------------------------------------------------===//
// varlen.merge
//===----------------------------------------------------------------------===//

namespace {
/// The rule of one merge: of each part
///
///     w    = exp(lse_part - lse), 0 for a part without a key
///     dout_part = w * dout
///     dlse_part = w * (dlse + sum_c dout[c] * (out_part[c] - out[c]))
class MergeRule {
public:
  MergeRule(MergeOp op, VJPBuilder &b)
      : op(op), b(b), dout(b.getCotangentOrZero(op.getOut())),
        compute(cast<FloatType>(getElementTypeOrSelf(op.getLse()))) {}

  void pullBack(Value out, Value lse) {
    Value weight = getWeight(lse);
    b.accumulate(out, weigh(weight));
    b.accumulate(lse, weighChange(weight, out));
  }

private:
  using Body = llvm::function_ref<Value(VJPBuilder &, ValueRange)>;
  /// A linalg.generic on rows of heads, or with `columns` on their elements
  /// too; what is per row is heads x rows.
  Value generic(ValueRange inputs, Value init, bool columns, Body body);
  Value getWeight(Value lse);
  /// w * dout
  Value weigh(Value weight);
  /// w * (dlse + ...)
  Value weighChange(Value weight, Value out);
  static Value convert(VJPBuilder &n, Value value, Type type) {
    return convertScalarToDtype(n, n.getLoc(), value, type,
                                /*isUnsignedCast=*/false);
  }
  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
  }

  MergeOp op;
  VJPBuilder &b;
  Value dout;
  FloatType compute;
};
} // namespace

Value MergeRule::generic(ValueRange inputs, Value init, bool columns,
                         Body body) {
  // Dimensions: head, row, column.
  unsigned dims = columns ? 3 : 2;
  MLIRContext *context = op.getContext();
  SmallVector<AffineMap> maps;
  SmallVector<Value> operands(inputs);
  operands.push_back(init);
  for (Value operand : operands) {
    bool packed = cast<ShapedType>(operand.getType()).getRank() == 3;
    SmallVector<unsigned> results = {0, 1};
    if (packed)
      results = {1, 0, 2};
    maps.push_back(
        AffineMap::getMultiDimMapWithTargets(dims, results, context));
  }
  return emitGeneric(b, inputs, init, maps,
                     [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                       VJPBuilder n(inner.getLoc(), inner);
                       return body(n, args);
                     });
}

Value MergeRule::getWeight(Value lse) {
  Value zero = constant(0);
  Value lowest = constant(-std::numeric_limits<double>::infinity());
  auto weight = [&](VJPBuilder &n, ValueRange args) {
    Value none = n.compare(arith::CmpFPredicate::OEQ, args[0], lowest);
    Value exp = math::ExpOp::create(n, n.sub(args[0], args[1]));
    return n.select(none, zero, exp);
  };
  return generic({lse, op.getLse()}, b.emptyLike(lse), /*columns=*/false,
                 weight);
}

Value MergeRule::weigh(Value weight) {
  auto weigh = [&](VJPBuilder &n, ValueRange args) {
    Value product = n.mul(args[0], convert(n, args[1], compute));
    return convert(n, product, getElementTypeOrSelf(op.getOut()));
  };
  return generic({weight, dout}, b.emptyLike(op.getOut()), /*columns=*/true,
                 weigh);
}

Value MergeRule::weighChange(Value weight, Value out) {
  Value dlse = b.getCotangentOrZero(op.getLse());
  auto sum = [&](VJPBuilder &n, ValueRange args) {
    Value part = convert(n, args[1], compute);
    Value whole = convert(n, args[2], compute);
    Value change = n.mul(convert(n, args[0], compute), n.sub(part, whole));
    return n.add(args[3], change);
  };
  Value change = generic({dout, out, op.getOut()}, dlse, /*columns=*/true, sum);
  // A part without weight has any row.
  Value zero = constant(0);
  auto weigh = [&](VJPBuilder &n, ValueRange args) {
    Value none = n.compare(arith::CmpFPredicate::OEQ, args[0], zero);
    return n.select(none, zero, n.mul(args[0], args[1]));
  };
  return generic({weight, change}, b.emptyLike(weight), /*columns=*/false,
                 weigh);
}

static LogicalResult pullBack(MergeOp op, VJPBuilder &b) {
  MergeRule rule(op, b);
  rule.pullBack(op.getOut0(), op.getLse0());
  rule.pullBack(op.getOut1(), op.getLse1());
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerVarlenDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    attach<PullBackModel, AttnOp, AttnIntoOp, MergeOp>(*context);
    // What has no rule of the forward mode is decomposed.
    attach<PushForwardModel, AttnOp, AttnIntoOp>(*context);
  });
}
