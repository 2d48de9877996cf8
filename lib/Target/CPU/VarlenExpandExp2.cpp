//===- VarlenExpandExp2.cpp - exp2 as a polynomial ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 2^x = 2^n * 2^f with n the integer nearest to x. Adding 1.5 * 2^23 (f32)
// leaves n in the low bits of the sum, which are then added to the exponent of
// a polynomial in f. All of it works lane by lane on vectors of any shape.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Support/LaneType.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDEXP2
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

// Minimax polynomials of 2^f on [-0.5, 0.5] with a constant coefficient of
// exactly 1; written by tools/exp2-coefficients.py.
constexpr double f32Degree3[] = {1.0, 0.6932829022407532, 0.24221095442771912,
                                 0.05500893294811249};
constexpr double f32Degree4[] = {1.0, 0.6931241750717163, 0.24024099111557007,
                                 0.055906426161527634, 0.009582852944731712};
constexpr double f32Degree5[] = {1.0,
                                 0.6931470036506653,
                                 0.24022242426872253,
                                 0.05550733581185341,
                                 0.009671512991189957,
                                 0.0013264729641377926};
constexpr double f32Degree6[] = {1.0,
                                 0.6931471824645996,
                                 0.24022647738456726,
                                 0.055503323674201965,
                                 0.00961843691766262,
                                 0.0013398873852565885,
                                 0.00015353361959569156};
constexpr double f64Degree11[] = {1.0,
                                  0.6931471805599453,
                                  0.2402265069591013,
                                  0.055504108664820084,
                                  0.00961812910759412,
                                  0.0013333558146774649,
                                  0.00015403530457111362,
                                  1.525273349309594e-05,
                                  1.3215435282680663e-06,
                                  1.0178199586447909e-07,
                                  7.073783184458317e-09,
                                  4.4347689286262757e-10};

/// What differs between the two formats.
struct Format {
  ArrayRef<double> polynomial;
  unsigned mantissaBits;
  /// From this number down the result is 0: its exponent field would be 0.
  double lowest;
  /// From this number up the result is infinite.
  double highest;
};

} // namespace

static Format getFormat(Type element, int64_t degree) {
  if (element.isF64())
    return {f64Degree11, 52, -1023.0, 1024.0};
  switch (degree) {
  case 3:
    return {f32Degree3, 23, -127.0, 128.0};
  case 4:
    return {f32Degree4, 23, -127.0, 128.0};
  case 5:
    return {f32Degree5, 23, -127.0, 128.0};
  default:
    return {f32Degree6, 23, -127.0, 128.0};
  }
}

namespace {

/// Builds lane-wise arithmetic on values of one type, scalar or vector.
struct LaneBuilder {
  ImplicitLocOpBuilder b;
  Type floatType, intType;

  Value constant(double value) {
    Type element = getElementTypeOrSelf(floatType);
    return createScalarOrSplatConstant(
        b, b.getLoc(), floatType, b.getFloatAttr(element, value).getValue());
  }
  Value constantInt(int64_t value) {
    return createScalarOrSplatConstant(b, b.getLoc(), intType, value);
  }
  /// Coefficients from the constant one on, at f.
  Value evaluate(ArrayRef<double> polynomial, Value f) {
    Value p = constant(polynomial.back());
    for (double coefficient : llvm::reverse(polynomial.drop_back()))
      p = math::FmaOp::create(b, p, f, constant(coefficient));
    return p;
  }
};

} // namespace

/// Whether vscalef works on it, register by register.
static bool isWholeRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() &&
         vector.getNumElements() * vector.getElementTypeBitWidth() % 512 == 0;
}

/// 2^x = p(x - n) * 2^n with the instruction that multiplies by 2^n. It knows
/// what n means beyond the range of exponents, and makes 0 of -inf though
/// p(-inf - -inf) is a NaN (Intel's manual, VSCALEFPS, table of special cases).
/// Lanes that would be denormal are off: such a number costs more than a
/// hundred cycles here and in whatever is computed from it.
static Value scaleExp2(ImplicitLocOpBuilder &b, Value x, const Format &format) {
  auto type = cast<VectorType>(x.getType());
  LaneBuilder lanes{b, type, Type()};
  Value n = math::RoundEvenOp::create(b, x);
  Value p = lanes.evaluate(format.polynomial, arith::SubFOp::create(b, x, n));
  // A NaN is not below.
  Value isNormal = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, x,
                                         lanes.constant(format.lowest + 1));
  Type bits = VectorType::get(1, b.getIntegerType(type.getNumElements()));
  Value mask = vector::ExtractOp::create(
      b, vector::BitCastOp::create(b, bits, isNormal), 0);
  constexpr int32_t currentRounding = 4;
  Value rounding =
      arith::ConstantOp::create(b, b.getI32IntegerAttr(currentRounding));
  // The operands as the intrinsic has them, not as the operation names them:
  // factor, exponent, and what lanes off the mask get.
  return x86vector::MaskScaleFOp::create(b, type, p, n, lanes.constant(0), mask,
                                         rounding);
}

/// `bounded`: x is known to be below `highest`, and a NaN to have zeros in the
/// payload bits that end up in the exponent.
static Value expandExp2(ImplicitLocOpBuilder &builder, Value x,
                        const Format &format, bool bounded) {
  Type type = x.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  LaneBuilder lanes{builder, type, Type()};
  lanes.intType = getLaneType(lanes.floatType, builder.getIntegerType(width));
  ImplicitLocOpBuilder &b = builder;
  Value input = x;

  // The operand order keeps a NaN, and is what one vmaxps/vminps computes.
  auto clamp = [&](arith::CmpFPredicate predicate, double bound) {
    Value limit = lanes.constant(bound);
    Value beyond = arith::CmpFOp::create(b, predicate, limit, x);
    x = arith::SelectOp::create(b, beyond, limit, x);
  };
  clamp(arith::CmpFPredicate::OGT, format.lowest);
  if (!bounded)
    clamp(arith::CmpFPredicate::OLT, format.highest);

  Value magic = lanes.constant(
      1.5 * static_cast<double>(int64_t(1) << format.mantissaBits));
  Value t = arith::AddFOp::create(b, x, magic);
  Value n = arith::SubFOp::create(b, t, magic);
  Value f = arith::SubFOp::create(b, x, n);

  Value p = lanes.evaluate(format.polynomial, f);

  Value tBits = arith::BitcastOp::create(b, lanes.intType, t);
  Value pBits = arith::BitcastOp::create(b, lanes.intType, p);
  Value exponent =
      arith::ShLIOp::create(b, tBits, lanes.constantInt(format.mantissaBits));
  Value bits = arith::AddIOp::create(b, pBits, exponent);
  Value result = arith::BitcastOp::create(b, type, bits);
  if (bounded)
    return result;
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, input, input);
  return arith::SelectOp::create(b, isNaN, input, result);
}

/// The same for a vector of several registers.
static Value scaleExp2Registers(ImplicitLocOpBuilder &b, Value x,
                                const Format &format) {
  auto type = cast<VectorType>(x.getType());
  int64_t lanes = 512 / type.getElementTypeBitWidth();
  if (type.getNumElements() == lanes)
    return scaleExp2(b, x, format);
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t at = 0; at < type.getNumElements(); at += lanes) {
    Value part = vector::ExtractStridedSliceOp::create(b, x, {at}, {lanes},
                                                       {int64_t(1)});
    result = vector::InsertStridedSliceOp::create(b, scaleExp2(b, part, format),
                                                  result, {at}, {int64_t(1)});
  }
  return result;
}

namespace {

struct ExpandExp2 : OpRewritePattern<math::Exp2Op> {
  ExpandExp2(MLIRContext *context, int64_t degree, bool scale)
      : OpRewritePattern(context), degree(degree), scale(scale) {}

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (isa<TensorType>(type))
      return rewriter.notifyMatchFailure(op, "works on scalars and vectors");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t opDegree = degree;
    auto attr = op->getAttrOfType<IntegerAttr>(kExp2DegreeAttrName);
    if (attr)
      opDegree = attr.getInt();

    Type element = getElementTypeOrSelf(type);
    Value x = op.getOperand();
    if (!element.isF32() && !element.isF64()) {
      if (element.getIntOrFloatBitWidth() > 32)
        return rewriter.notifyMatchFailure(op, "no polynomial for this type");
      Type wide = b.getF32Type();
      if (auto shaped = dyn_cast<ShapedType>(type))
        wide = shaped.clone(wide);
      x = arith::ExtFOp::create(b, wide, x);
    }
    Format format = getFormat(getElementTypeOrSelf(x), opDegree);
    Value result = scale && isWholeRegisters(x.getType())
                       ? scaleExp2Registers(b, x, format)
                       : expandExp2(b, x, format, /*bounded=*/attr != nullptr);
    if (result.getType() != type)
      result = arith::TruncFOp::create(b, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

  int64_t degree;
  bool scale;
};

struct VarlenExpandExp2 : varlen::impl::VarlenExpandExp2Base<VarlenExpandExp2> {
  using VarlenExpandExp2Base::VarlenExpandExp2Base;

  void runOnOperation() override {
    if (!isDegree(degree)) {
      emitError(getOperation()->getLoc())
          << "expected degree to be from " << kMinExp2Degree << " to "
          << kMaxExp2Degree << ", got " << degree.getValue();
      return signalPassFailure();
    }
    // The verifier knows the degrees, not whether the type is theirs.
    WalkResult valid = getOperation()->walk([&](math::Exp2Op op) {
      auto attr = op->getAttrOfType<IntegerAttr>(kExp2DegreeAttrName);
      bool isF64 = getElementTypeOrSelf(op.getType()).isF64();
      if (!attr || isF64 == (attr.getInt() == kExp2DegreeF64))
        return WalkResult::advance();
      op.emitOpError("expected ")
          << kExp2DegreeAttrName << " of " << kExp2DegreeF64
          << " for f64 and of less for other types, got " << attr.getInt();
      return WalkResult::interrupt();
    });
    if (valid.wasInterrupted())
      return signalPassFailure();

    RewritePatternSet patterns(&getContext());
    populateExpandExp2Patterns(patterns, degree, scale);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

  static bool isDegree(int64_t value) {
    return value >= kMinExp2Degree && value <= kMaxExp2Degree;
  }
};

} // namespace

void varlen::populateExpandExp2Patterns(RewritePatternSet &patterns,
                                        int64_t degree, bool scale) {
  patterns.add<ExpandExp2>(patterns.getContext(), degree, scale);
}
