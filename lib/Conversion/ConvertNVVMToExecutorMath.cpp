//===- ConvertNVVMToExecutorMath.cpp - Registers and conversions ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvertNVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

/// The register's number in Device.h, -1 if it has none.
static int64_t getSpecialRegister(StringRef name) {
  // Those of three dimensions follow each other.
  int64_t base = llvm::StringSwitch<int64_t>(name.drop_back())
                     .Case("tid.", 0)
                     .Case("ntid.", 3)
                     .Case("ctaid.", 6)
                     .Case("nctaid.", 9)
                     .Case("clusterid.", 12)
                     .Case("nclusterid.", 15)
                     .Case("cluster.ctaid.", 18)
                     .Case("cluster.nctaid.", 21)
                     .Default(-1);
  if (base >= 0 && name.back() >= 'x' && name.back() <= 'z')
    return base + (name.back() - 'x');
  return llvm::StringSwitch<int64_t>(name)
      .Case("cluster.ctarank", 24)
      .Case("cluster.nctarank", 25)
      .Case("laneid", 26)
      .Case("warpid", 27)
      .Case("nwarpid", 28)
      .Case("warpsize", 29)
      .Case("lanemask.eq", 30)
      .Case("lanemask.le", 31)
      .Case("lanemask.lt", 32)
      .Case("lanemask.ge", 33)
      .Case("lanemask.gt", 34)
      .Case("smid", 35)
      .Case("nsmid", 36)
      .Case("total.smem.size", 37)
      .Case("dynamic.smem.size", 38)
      .Cases({"clock", "clock64", "globaltimer", "globaltimer.lo"}, 39)
      .Default(-1);
}

Value executor::readSpecialRegister(CallBuilder &b, StringRef name) {
  int64_t number = getSpecialRegister(name);
  if (number < 0)
    return {};
  // Time is not the same twice.
  return b.call("varlen_sim_sreg", b.i32, {b.i32Constant(number)},
                /*isPure=*/number != 39);
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
  Value zero = LLVM::ConstantOp::create(b.get(), b.getLoc(), b.f32,
                                        b.get().getF32FloatAttr(0.0));
  StringRef function =
      type.isBF16() ? "varlen_sim_cvt_bf16x2" : "varlen_sim_cvt_f16x2";
  Value word = b.call(function, b.i32, {zero, value}, /*isPure=*/true);
  return b.replaceOp(b.fromInteger(word, type));
}

Lowered executor::lowerMath(CallBuilder &b) {
  Operation *op = b.getOp();
  StringRef name = op->getName().getStringRef();
  if (name.consume_front("nvvm.read.ptx.sreg."))
    return lowerSpecialRegister(b, name);
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case(
          [&](LLVM::FPTruncOp truncate) { return lowerRounding(truncate, b); })
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
