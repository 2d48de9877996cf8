//===- Math.cpp - Registers and functions ---------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

/// The register's number in Device.h, -1 if it has none.
static int64_t getSpecialRegister(StringRef name) {
  // The registers of three dimensions are consecutive.
  int64_t base = llvm::StringSwitch<int64_t>(name.drop_back())
                     .Case("tid.", VARLEN_SIM_TID_X)
                     .Case("ntid.", VARLEN_SIM_NTID_X)
                     .Case("ctaid.", VARLEN_SIM_CTAID_X)
                     .Case("nctaid.", VARLEN_SIM_NCTAID_X)
                     .Case("clusterid.", VARLEN_SIM_CLUSTERID_X)
                     .Case("nclusterid.", VARLEN_SIM_NCLUSTERID_X)
                     .Case("cluster.ctaid.", VARLEN_SIM_CLUSTER_CTAID_X)
                     .Case("cluster.nctaid.", VARLEN_SIM_CLUSTER_NCTAID_X)
                     .Default(-1);
  if (base >= 0 && name.back() >= 'x' && name.back() <= 'z')
    return base + (name.back() - 'x');
  return llvm::StringSwitch<int64_t>(name)
      .Case("cluster.ctarank", VARLEN_SIM_CLUSTER_CTARANK)
      .Case("cluster.nctarank", VARLEN_SIM_CLUSTER_NCTARANK)
      .Case("laneid", VARLEN_SIM_LANEID)
      .Case("warpid", VARLEN_SIM_WARPID)
      .Case("nwarpid", VARLEN_SIM_NWARPID)
      .Case("warpsize", VARLEN_SIM_WARPSIZE)
      .Case("lanemask.eq", VARLEN_SIM_LANEMASK_EQ)
      .Case("lanemask.le", VARLEN_SIM_LANEMASK_LE)
      .Case("lanemask.lt", VARLEN_SIM_LANEMASK_LT)
      .Case("lanemask.ge", VARLEN_SIM_LANEMASK_GE)
      .Case("lanemask.gt", VARLEN_SIM_LANEMASK_GT)
      .Case("smid", VARLEN_SIM_SMID)
      .Case("nsmid", VARLEN_SIM_NSMID)
      .Case("total.smem.size", VARLEN_SIM_TOTAL_SMEM_SIZE)
      .Case("dynamic.smem.size", VARLEN_SIM_DYNAMIC_SMEM_SIZE)
      .Cases({"clock", "clock64", "globaltimer", "globaltimer.lo"},
             VARLEN_SIM_CLOCK)
      .Default(-1);
}

Value executor::readSpecialRegister(CallBuilder &b, StringRef name) {
  int64_t number = getSpecialRegister(name);
  if (number < 0)
    return {};
  // Time is not the same twice.
  return b.call("varlen_sim_sreg", b.i32, {b.i32Constant(number)},
                /*isPure=*/number != VARLEN_SIM_CLOCK);
}

static Lowered lowerSpecialRegister(CallBuilder &b, StringRef name) {
  Value value = readSpecialRegister(b, name);
  if (!value)
    return Lowered::No;
  return b.replaceOp(b.toInteger(
      value, b.getOp()->getResult(0).getType().getIntOrFloatBitWidth()));
}

/// cvt.rn to a pair of narrow floats.
template <typename ConvertOp>
static Lowered lowerPair(ConvertOp op, StringRef function, CallBuilder &b) {
  if (op.getRnd() != NVVM::FPRoundingMode::RN ||
      op.getSat() != NVVM::SaturationMode::NONE || op.getRelu())
    return b.refuse("rounding other than rn, saturation or relu");
  Value word = b.call(function, b.i32, {op.getSrcHi(), op.getSrcLo()},
                      /*isPure=*/true);
  return b.replaceOp(b.bitcast(word, op.getDst().getType()));
}

/// Rounding to 16 bits, which a host may have no instruction for.
static Lowered lowerRounding(LLVM::FPTruncOp truncate, CallBuilder &b) {
  Type type = truncate.getType();
  if (!type.isBF16() && !type.isF16())
    return Lowered::No;
  Value value = truncate.getArg();
  if (!value.getType().isF32())
    return b.refuse("rounding from f64 to 16 bits");
  Value zero = LLVM::ConstantOp::create(b, b.f32, b.getF32FloatAttr(0.0));
  StringRef function =
      type.isBF16() ? "varlen_sim_cvt_bf16x2" : "varlen_sim_cvt_f16x2";
  Value word = b.call(function, b.i32, {zero, value}, /*isPure=*/true);
  return b.replaceOp(b.fromInteger(word, type));
}

/// The function of libm that does what one of libdevice does; empty: none.
static std::string getLibm(StringRef name) {
  if (!name.consume_front("__nv_"))
    return "";
  name.consume_front("fast_");
  // The names for f64; the names for f32 end in f.
  static const StringRef known[] = {
      "acos",  "acosh", "asin",     "asinh", "atan",  "atan2", "atanh",
      "cbrt",  "ceil",  "copysign", "cos",   "cosh",  "erf",   "erfc",
      "exp",   "exp2",  "expm1",    "fabs",  "floor", "fma",   "fmax",
      "fmin",  "fmod",  "log",      "log10", "log1p", "log2",  "pow",
      "round", "sin",   "sinh",     "sqrt",  "tan",   "tanh",  "trunc"};
  StringRef stem = name;
  return llvm::is_contained(known, name) ||
                 (stem.consume_back("f") && llvm::is_contained(known, stem))
             ? name.str()
             : "";
}

/// Whether the call has the arguments and the result that the function has.
static bool isCallOf(LLVM::CallOp op, StringRef libm) {
  // All of f32 have a name that ends so, and one of f64.
  bool isF32 = libm.ends_with("f") && libm != "erf";
  Type type = isF32 ? Type(Float32Type::get(op.getContext()))
                    : Type(Float64Type::get(op.getContext()));
  size_t arguments = llvm::StringSwitch<size_t>(libm)
                         .Cases({"fma", "fmaf"}, 3)
                         .Cases({"fmax", "fmaxf", "fmin", "fminf"}, 2)
                         .Cases({"atan2", "atan2f", "pow", "powf"}, 2)
                         .Cases({"copysign", "copysignf", "fmod", "fmodf"}, 2)
                         .Default(1);
  return op->getNumResults() == 1 && op.getResult().getType() == type &&
         op.getArgOperands().size() == arguments &&
         llvm::all_of(op.getArgOperands().getTypes(),
                      [&](Type argument) { return argument == type; });
}

/// Whether a pointer is to the first character of a constant string that ends
/// with a 0.
static bool isString(Value pointer) {
  if (auto element = pointer.getDefiningOp<LLVM::GEPOp>()) {
    if (!element.getDynamicIndices().empty() ||
        !llvm::all_of(element.getRawConstantIndices(),
                      [](int32_t index) { return index == 0; }))
      return false;
    pointer = element.getBase();
  }
  auto address = pointer.getDefiningOp<LLVM::AddressOfOp>();
  if (!address)
    return false;
  auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      address, address.getGlobalNameAttr());
  auto text = dyn_cast_if_present<StringAttr>(
      global && global.getConstant() ? global.getValueOrNull() : Attribute());
  return text && text.getValue().ends_with(StringRef("\0", 1));
}

/// What cf.assert calls: the message, the file, the line, the function and the
/// bytes of a character. The site has the place.
static Lowered lowerAssertion(LLVM::CallOp op, CallBuilder &b) {
  if (op.getArgOperands().size() != 5 || op->getNumResults() != 0 ||
      !isString(op.getArgOperands().front()))
    return b.refuse("a message that is no constant string");
  return b.replaceWithCall("varlen_sim_assertfail",
                           b.flat(op.getArgOperands().front()));
}

static Lowered lowerCall(LLVM::CallOp op, CallBuilder &b) {
  if (!op.getCallee())
    return b.refuse("an indirect call");
  if (*op.getCallee() == "__assertfail")
    return lowerAssertion(op, b);
  std::string libm = getLibm(*op.getCallee());
  if (libm.empty())
    return Lowered::Yes;
  if (!isCallOf(op, libm))
    return b.refuse("'" + *op.getCallee() + "' with other types");
  return b.replaceOp(
      b.call(libm, op.getResult().getType(), op.getArgOperands(), true));
}

Lowered executor::lowerMath(CallBuilder &b) {
  Operation *op = b.getOp();
  StringRef name = op->getName().getStringRef();
  if (name.consume_front("nvvm.read.ptx.sreg."))
    return lowerSpecialRegister(b, name);
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case(
          [&](LLVM::FPTruncOp truncate) { return lowerRounding(truncate, b); })
      .Case([&](LLVM::CallOp call) { return lowerCall(call, b); })
      .Case([&](NVVM::RcpApproxFtzF32Op rcp) {
        return b.replaceOp(b.call("varlen_sim_rcp", b.f32, {rcp.getArg()},
                                  /*isPure=*/true));
      })
      .Case([&](NVVM::ConvertF32x2ToBF16x2Op convert) {
        return lowerPair(convert, "varlen_sim_cvt_bf16x2", b);
      })
      .Case([&](NVVM::ConvertF32x2ToF16x2Op convert) {
        return lowerPair(convert, "varlen_sim_cvt_f16x2", b);
      })
      .Case([&](NVVM::ConvertFloatToTF32Op convert) {
        if (convert.getRnd() != NVVM::FPRoundingMode::RNA ||
            convert.getSat() != NVVM::SaturationMode::NONE || convert.getRelu())
          return b.refuse("rounding other than rna, saturation or relu");
        return b.replaceOp(b.call("varlen_sim_cvt_tf32", b.i32,
                                  {convert.getSrc()}, /*isPure=*/true));
      })
      .Case([&](NVVM::PermuteOp permute) {
        if (permute.getMode() != NVVM::PermuteMode::DEFAULT)
          return b.refuse("mode " + stringifyEnum(permute.getMode()));
        return b.replaceOp(
            b.call("varlen_sim_prmt", b.i32,
                   {permute.getLo(), permute.getHi(), permute.getSelector()},
                   /*isPure=*/true));
      })
      .Default([](Operation *) { return Lowered::No; });
}
