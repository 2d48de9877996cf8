//===- ExpandNarrowFloats.cpp - f16 and bf16 without library calls --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a CPU has no instruction for it, LLVM calls compiler-rt to round to a
// narrow float, one lane at a time, and compiler-rt is not always there.
//
//===----------------------------------------------------------------------===//

#include "LegalizeForCPU.h"
#include "varlen/Support/LaneType.h"
#include "varlen/Support/WidenNarrowFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/DialectConversion.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

static bool isNarrow(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isF16() || type.isBF16();
}

namespace {

/// Arithmetic on lanes of i32 (and f32 by bitcast), scalar or vector.
struct Lanes {
  Lanes(ImplicitLocOpBuilder &b, Type like)
      : b(b), integer(getLaneType(like, b.getI32Type())),
        narrow(getLaneType(like, b.getI16Type())),
        real(getLaneType(like, b.getF32Type())) {}

  Value constant(uint32_t bits) {
    return createScalarOrSplatConstant(b, b.getLoc(), integer, APInt(32, bits));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, uint32_t y) {
    return arith::SubIOp::create(b, x, constant(y));
  }
  Value bitAnd(Value x, uint32_t y) {
    return arith::AndIOp::create(b, x, constant(y));
  }
  Value bitOr(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value shl(Value x, uint32_t y) {
    return arith::ShLIOp::create(b, x, constant(y));
  }
  Value shr(Value x, uint32_t y) {
    return arith::ShRUIOp::create(b, x, constant(y));
  }
  Value atLeast(Value x, uint32_t y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value asReal(Value x) { return arith::BitcastOp::create(b, real, x); }
  Value asInteger(Value x) { return arith::BitcastOp::create(b, integer, x); }
  /// The bits of a 16-bit float, in 32.
  Value widen(Value x) {
    return arith::ExtUIOp::create(b, integer,
                                  arith::BitcastOp::create(b, narrow, x));
  }
  /// The low 16 bits as a 16-bit float of `type`.
  Value narrowTo(Type type, Value x) {
    return arith::BitcastOp::create(b, type,
                                    arith::TruncIOp::create(b, narrow, x));
  }

  ImplicitLocOpBuilder &b;
  Type integer, narrow, real;
};

} // namespace

/// Round to nearest even by adding just under half of the last place kept.
static Value roundToBF16(Lanes lanes, Type type, Value x) {
  Value bits = lanes.asInteger(x);
  Value odd = lanes.bitAnd(lanes.shr(bits, 16), 1);
  Value rounded = lanes.add(bits, lanes.add(odd, lanes.constant(0x7fff)));
  // A NaN keeps the payload it can, and is made quiet so that one is left.
  Value quiet = lanes.bitOr(bits, lanes.constant(0x00400000));
  Value isNaN = arith::CmpFOp::create(lanes.b, arith::CmpFPredicate::UNO, x, x);
  return lanes.narrowTo(type,
                        lanes.shr(lanes.select(isNaN, quiet, rounded), 16));
}

static Value extendBF16(Lanes lanes, Value x) {
  return lanes.asReal(lanes.shl(lanes.widen(x), 16));
}

/// Moves the fields into place and lets a multiplication correct the exponent,
/// which also normalises denormals.
static Value extendF16(Lanes lanes, Value x) {
  Value half = lanes.widen(x);
  Value sign = lanes.shl(lanes.bitAnd(half, 0x8000), 16);
  Value fields = lanes.shl(lanes.bitAnd(half, 0x7fff), 13);
  Value power = lanes.asReal(lanes.constant((127 + 112) << 23));
  Value finite = lanes.asInteger(
      arith::MulFOp::create(lanes.b, lanes.asReal(fields), power));
  Value special = lanes.bitOr(fields, lanes.constant(0x7f800000));
  Value magnitude =
      lanes.select(lanes.atLeast(fields, 0x1f << 23), special, finite);
  return lanes.asReal(lanes.bitOr(magnitude, sign));
}

/// The magnitude of a finite f32 rounded to a format with so many bits of
/// fraction and an exponent of that bias, as its bits; past the largest number
/// of the format they are more than those of it.
static Value roundMagnitude(Lanes lanes, Value magnitude, unsigned fraction,
                            unsigned bias) {
  unsigned dropped = 23 - fraction;
  // Normal numbers: round to nearest even in place, then shift the exponent.
  Value odd = lanes.bitAnd(lanes.shr(magnitude, dropped), 1);
  Value rounded = lanes.add(
      magnitude, lanes.add(odd, lanes.constant((1u << (dropped - 1)) - 1)));
  Value normal = lanes.shr(lanes.sub(rounded, (127 - bias) << 23), dropped);
  // Smaller ones: adding a power of two rounds to its last place, the one of
  // denormals.
  uint32_t power = (127 - bias + 1 + dropped) << 23;
  Value sum = arith::AddFOp::create(lanes.b, lanes.asReal(magnitude),
                                    lanes.asReal(lanes.constant(power)));
  Value denormal = lanes.sub(lanes.asInteger(sum), power);
  return lanes.select(lanes.atLeast(magnitude, (127 - bias + 1) << 23), normal,
                      denormal);
}

static Value roundToF16(Lanes lanes, Type type, Value x) {
  Value bits = lanes.asInteger(x);
  Value sign = lanes.bitAnd(lanes.shr(bits, 16), 0x8000);
  Value magnitude = lanes.bitAnd(bits, 0x7fffffff);
  Value result = roundMagnitude(lanes, magnitude, /*fraction=*/10, /*bias=*/15);
  // From 2^16 up, infinity; past it, a quiet NaN with the payload it can keep.
  result = lanes.select(lanes.atLeast(magnitude, 0x47800000),
                        lanes.constant(0x7c00), result);
  Value payload = lanes.bitOr(lanes.bitAnd(lanes.shr(magnitude, 13), 0x3ff),
                              lanes.constant(0x7e00));
  result = lanes.select(lanes.atLeast(magnitude, 0x7f800001), payload, result);
  return lanes.narrowTo(type, lanes.bitOr(result, sign));
}

/// Whether only conversions know the type.
static bool isStorage(Type type) {
  return isa<Float8E4M3FNType>(getElementTypeOrSelf(type));
}

/// An f8E4M3FN in f32: as f16 with an exponent that is 8 too small, denormals
/// included, or, where that takes more, as f32 whose exponent is 120 too small.
static Value extendF8(Lanes lanes, Value x, bool asF16) {
  ImplicitLocOpBuilder &b = lanes.b;
  Type word = asF16 ? lanes.narrow : lanes.integer;
  auto constant = [&](uint32_t bits) {
    return createScalarOrSplatConstant(
        b, b.getLoc(), word,
        APInt(getElementTypeOrSelf(word).getIntOrFloatBitWidth(), bits));
  };
  auto bitAnd = [&](Value x, uint32_t bits) -> Value {
    return arith::AndIOp::create(b, x, constant(bits));
  };
  Value bits =
      arith::BitcastOp::create(b, getLaneType(x.getType(), b.getI8Type()), x);
  Value wide = arith::ExtSIOp::create(b, word, bits);
  Value isNaN = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      bitAnd(wide, 0x7f), constant(0x7f));
  // The sign has been extended over the bits in front of the magnitude.
  Value fields =
      bitAnd(arith::ShLIOp::create(b, wide, constant(asF16 ? 7 : 20)),
             asF16 ? 0xbf80 : 0x87f00000);
  fields = arith::SelectOp::create(
      b, isNaN, constant(asF16 ? 0x7e00 : 0x7fc00000), fields);
  Value result;
  if (asF16) {
    Type half = getLaneType(x.getType(), b.getF16Type());
    Value bitsOfHalf = arith::BitcastOp::create(b, half, fields);
    result = arith::ExtFOp::create(b, lanes.real, bitsOfHalf);
  } else {
    result = lanes.asReal(fields);
  }
  Value power = createScalarOrSplatConstant(
      b, b.getLoc(), lanes.real, APFloat(std::ldexp(1.0f, asF16 ? 8 : 120)));
  return arith::MulFOp::create(b, result, power);
}

static Value roundToF8(Lanes lanes, Type type, Value x) {
  ImplicitLocOpBuilder &b = lanes.b;
  Value bits = lanes.asInteger(x);
  Value sign = lanes.bitAnd(lanes.shr(bits, 24), 0x80);
  Value magnitude = lanes.bitAnd(bits, 0x7fffffff);
  Value result = roundMagnitude(lanes, magnitude, /*fraction=*/3, /*bias=*/7);
  // Past 448 there is nothing but NaN.
  result =
      lanes.select(lanes.atLeast(result, 0x7f), lanes.constant(0x7f), result);
  Type byte = getLaneType(type, b.getI8Type());
  Value narrow = arith::TruncIOp::create(b, byte, lanes.bitOr(result, sign));
  return arith::BitcastOp::create(b, type, narrow);
}

LogicalResult varlen::widenNarrowFloats(Operation *root) {
  MLIRContext *context = root->getContext();
  Type f32 = Float32Type::get(context);
  TypeConverter arithmetic;
  arith::populateEmulateUnsupportedFloatsConversions(
      arithmetic, {BFloat16Type::get(context), Float16Type::get(context)}, f32);
  RewritePatternSet ofArithmetic(context);
  arith::populateEmulateUnsupportedFloatsPatterns(ofArithmetic, arithmetic);
  ConversionTarget wideArithmetic(*context);
  arith::populateEmulateUnsupportedFloatsLegality(wideArithmetic, arithmetic);
  if (failed(applyPartialConversion(root, wideArithmetic,
                                    std::move(ofArithmetic))))
    return failure();

  TypeConverter functions;
  SetVector<Type> supported;
  supported.insert(f32);
  supported.insert(Float64Type::get(context));
  math::populateExtendToSupportedTypesTypeConverter(functions, supported, f32);
  RewritePatternSet ofFunctions(context);
  math::populateExtendToSupportedTypesPatterns(ofFunctions, functions);
  ConversionTarget wideFunctions(*context);
  math::populateExtendToSupportedTypesConversionTarget(wideFunctions,
                                                       functions);
  return applyPartialConversion(root, wideFunctions, std::move(ofFunctions));
}

namespace {

/// Writes conversions between narrow types and f32 as integer arithmetic, for
/// the types that a target has no instruction for; all between narrow types and
/// f64 go through f32.
class ConversionExpander {
public:
  /// Whether there is no instruction for each.
  ConversionExpander(bool bf16, bool f16) : bf16(bf16), f16(f16) {}

  void expand(arith::ExtFOp op) const;
  void expandStorage(arith::ExtFOp op) const;
  void expand(arith::TruncFOp op) const;
  void expandStorage(arith::TruncFOp op) const;

private:
  bool isExpanded(Type narrow) const {
    return getElementTypeOrSelf(narrow).isBF16() ? bf16 : f16;
  }

  bool bf16, f16;
};

} // namespace

void ConversionExpander::expandStorage(arith::ExtFOp op) const {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  Value result =
      extendF8(Lanes(b, op.getIn().getType()), op.getIn(), /*asF16=*/!f16);
  if (element.isF64())
    result = arith::ExtFOp::create(b, type, result);
  else if (!element.isF32())
    result = arith::TruncFOp::create(b, type, result);
  op.replaceAllUsesWith(result);
  op.erase();
  if (auto truncate = result.getDefiningOp<arith::TruncFOp>())
    expand(truncate);
}

void ConversionExpander::expand(arith::ExtFOp op) const {
  Type from = op.getIn().getType();
  if (isStorage(from))
    return expandStorage(op);
  bool toF64 = getElementTypeOrSelf(op.getType()).isF64();
  if (!isNarrow(from) || (!isExpanded(from) && !toF64))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Lanes lanes(b, from);
  Value result;
  if (!isExpanded(from))
    result = arith::ExtFOp::create(b, lanes.real, op.getIn());
  else if (getElementTypeOrSelf(from).isBF16())
    result = extendBF16(lanes, op.getIn());
  else
    result = extendF16(lanes, op.getIn());
  if (result.getType() != op.getType())
    result = arith::ExtFOp::create(b, op.getType(), result);
  op.replaceAllUsesWith(result);
  op.erase();
}

void ConversionExpander::expandStorage(arith::TruncFOp op) const {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Lanes lanes(b, op.getType());
  Value x = op.getIn();
  arith::ExtFOp extend;
  if (getElementTypeOrSelf(x.getType()).isF64())
    x = arith::TruncFOp::create(b, lanes.real, x);
  else if (isNarrow(x.getType()))
    x = extend = arith::ExtFOp::create(b, lanes.real, x);
  op.replaceAllUsesWith(roundToF8(lanes, op.getType(), x));
  op.erase();
  if (extend)
    expand(extend);
}

void ConversionExpander::expand(arith::TruncFOp op) const {
  Type type = op.getType();
  if (isStorage(type))
    return expandStorage(op);
  bool fromF64 = getElementTypeOrSelf(op.getIn().getType()).isF64();
  if (!isNarrow(type) || (!isExpanded(type) && !fromF64))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Lanes lanes(b, type);
  Value x = op.getIn();
  if (fromF64)
    x = arith::TruncFOp::create(b, lanes.real, x);
  Value result;
  if (!isExpanded(type))
    result = arith::TruncFOp::create(b, type, x);
  else if (getElementTypeOrSelf(type).isBF16())
    result = roundToBF16(lanes, type, x);
  else
    result = roundToF16(lanes, type, x);
  op.replaceAllUsesWith(result);
  op.erase();
}

void varlen::expandF8Conversions(Operation *root) {
  ConversionExpander expander(/*bf16=*/false, /*f16=*/false);
  root->walk([&](Operation *op) {
    if (auto extend = dyn_cast<arith::ExtFOp>(op);
        extend && isStorage(extend.getIn().getType()))
      expander.expandStorage(extend);
    else if (auto truncate = dyn_cast<arith::TruncFOp>(op);
             truncate && isStorage(truncate.getType()))
      expander.expandStorage(truncate);
  });
}

/// Whether something computes with a narrow type, or on one.
static bool computesOnNarrow(Operation *op) {
  bool computes =
      isa_and_present<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      isa<vector::ContractionOp, vector::FMAOp, vector::OuterProductOp,
          vector::ReductionOp, vector::MultiDimReductionOp>(op);
  if (!computes || isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp,
                       arith::ExtFOp, arith::TruncFOp>(op))
    return false;
  return llvm::any_of(op->getOperandTypes(), isNarrow) ||
         llvm::any_of(op->getResultTypes(), isNarrow);
}

LogicalResult varlen::expandNarrowFloats(ModuleOp module,
                                         const CPUTarget &target) {
  WalkResult arithmetic = module.walk([](Operation *op) {
    return computesOnNarrow(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
  });
  if (arithmetic.wasInterrupted() && failed(widenNarrowFloats(module)))
    return failure();
  ConversionExpander expander(/*bf16=*/!target.hasBF16Dot,
                              /*f16=*/!target.hasF16Conversion);
  module.walk([&](Operation *op) {
    if (auto extend = dyn_cast<arith::ExtFOp>(op))
      expander.expand(extend);
    else if (auto truncate = dyn_cast<arith::TruncFOp>(op))
      expander.expand(truncate);
  });
  return success();
}
