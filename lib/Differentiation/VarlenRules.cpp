//===- VarlenRules.cpp - Rules of the varlen dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttnRules.h"
#include "Models.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
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
// varlen.merge
//===----------------------------------------------------------------------===//

namespace {
/// What the rules of both modes share: the weight of a part,
/// w = exp(lse_part - lse), 0 for a part without a key.
class MergeRule {
protected:
  MergeRule(MergeOp op, DerivativeBuilder &b)
      : op(op), b(b),
        compute(cast<FloatType>(getElementTypeOrSelf(op.getLse()))) {}

  using Body = llvm::function_ref<Value(VJPBuilder &, ValueRange)>;
  /// A linalg.generic on rows of heads, or with `columns` on their elements
  /// too; what is per row is heads x rows.
  Value generic(ValueRange inputs, Value init, bool columns, Body body);
  Value getWeight(Value lse);
  /// `value` unless `weight` is 0: a part without weight has any row.
  Value whereWeighed(VJPBuilder &n, Value weight, Value value) {
    Value zero = constant(0);
    Value none = n.compare(arith::CmpFPredicate::OEQ, weight, zero);
    return n.select(none, zero, value);
  }
  static Value convert(VJPBuilder &n, Value value, Type type) {
    return convertScalarToDtype(n, n.getLoc(), value, type,
                                /*isUnsignedCast=*/false);
  }
  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
  }

  MergeOp op;
  DerivativeBuilder &b;
  FloatType compute;
};

/// For each part
///
///     dout_part = w * dout
///     dlse_part = w * (dlse + sum_c dout[c] * (out_part[c] - out[c]))
class MergeVJPRule : MergeRule {
public:
  MergeVJPRule(MergeOp op, VJPBuilder &b)
      : MergeRule(op, b), cotangents(b),
        dout(b.getCotangentOrZero(op.getOut())) {}

  void pullBack(Value out, Value lse) {
    Value weight = getWeight(lse);
    cotangents.accumulate(out, weigh(weight));
    cotangents.accumulate(lse, weighChange(weight, out));
  }

private:
  /// w * dout
  Value weigh(Value weight);
  /// w * (dlse + ...)
  Value weighChange(Value weight, Value out);

  VJPBuilder &cotangents;
  Value dout;
};

/// With sums over both parts
///
///     tlse = sum w * tlse_part
///     tout = sum w * (tout_part + (tlse_part - tlse) * out_part)
class MergeJVPRule : MergeRule {
public:
  MergeJVPRule(MergeOp op, JVPBuilder &b) : MergeRule(op, b), tangents(b) {}

  void pushForward();

private:
  JVPBuilder &tangents;
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

Value MergeVJPRule::weigh(Value weight) {
  auto weigh = [&](VJPBuilder &n, ValueRange args) {
    Value product = n.mul(args[0], convert(n, args[1], compute));
    return convert(n, product, getElementTypeOrSelf(op.getOut()));
  };
  return generic({weight, dout}, b.emptyLike(op.getOut()), /*columns=*/true,
                 weigh);
}

Value MergeVJPRule::weighChange(Value weight, Value out) {
  Value dlse = cotangents.getCotangentOrZero(op.getLse());
  auto sum = [&](VJPBuilder &n, ValueRange args) {
    Value part = convert(n, args[1], compute);
    Value whole = convert(n, args[2], compute);
    Value change = n.mul(convert(n, args[0], compute), n.sub(part, whole));
    return n.add(args[3], change);
  };
  Value change = generic({dout, out, op.getOut()}, dlse, /*columns=*/true, sum);
  auto weigh = [&](VJPBuilder &n, ValueRange args) {
    return whereWeighed(n, args[0], n.mul(args[0], args[1]));
  };
  return generic({weight, change}, b.emptyLike(weight), /*columns=*/false,
                 weigh);
}

void MergeJVPRule::pushForward() {
  Value weights[] = {getWeight(op.getLse0()), getWeight(op.getLse1())};
  Value tlses[] = {tangents.getTangentOrZero(op.getLse0()),
                   tangents.getTangentOrZero(op.getLse1())};
  auto sum = [&](VJPBuilder &n, ValueRange args) {
    auto term = [&](Value weight, Value tlse) {
      return whereWeighed(n, weight, n.mul(weight, tlse));
    };
    return n.add(term(args[0], args[2]), term(args[1], args[3]));
  };
  Value tlse = generic({weights[0], weights[1], tlses[0], tlses[1]},
                       b.emptyLike(op.getLse()), /*columns=*/false, sum);

  auto mix = [&](VJPBuilder &n, ValueRange args) {
    auto term = [&](unsigned part) {
      Value change = n.mul(n.sub(args[2 + part], args[4]),
                           convert(n, args[5 + part], compute));
      Value tout = convert(n, args[7 + part], compute);
      return whereWeighed(n, args[part],
                          n.mul(args[part], n.add(tout, change)));
    };
    return convert(n, n.add(term(0), term(1)),
                   getElementTypeOrSelf(op.getOut()));
  };
  Value tout =
      generic({weights[0], weights[1], tlses[0], tlses[1], tlse, op.getOut0(),
               op.getOut1(), tangents.getTangentOrZero(op.getOut0()),
               tangents.getTangentOrZero(op.getOut1())},
              b.emptyLike(op.getOut()), /*columns=*/true, mix);
  tangents.setTangent(op.getOut(), tout);
  tangents.setTangent(op.getLse(), tlse);
}

static LogicalResult pullBack(MergeOp op, VJPBuilder &b) {
  MergeVJPRule rule(op, b);
  rule.pullBack(op.getOut0(), op.getLse0());
  rule.pullBack(op.getOut1(), op.getLse1());
  return success();
}

static LogicalResult pushForward(MergeOp op, JVPBuilder &b) {
  MergeJVPRule(op, b).pushForward();
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerVarlenDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    attachAttnRules(*context);
    attach<PullBackModel, MergeOp>(*context);
    attach<PushForwardModel, MergeOp>(*context);
  });
}
