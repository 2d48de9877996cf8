//===- Intrinsics.cpp - Intrinsics that are called by name ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's intrinsics for NVPTX in llvm.call_intrinsic. What is not in the table
// is refused, and so is all inline PTX: that of wgmma is gone already.
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

/// Bits of an integer, a float or a vector of them; 0 of any other type, and of
/// one that no register holds.
static unsigned getRegisterBits(Type type) {
  constexpr int64_t most = 128;
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  if (!element.isIntOrFloat() ||
      (vector && (vector.isScalable() || vector.getNumElements() > most)))
    return 0;
  int64_t bits = (vector ? vector.getNumElements() : 1) *
                 static_cast<int64_t>(element.getIntOrFloatBitWidth());
  return bits <= most ? bits : 0;
}

/// Parts that say how exact an operation is, which the executor leaves open, or
/// repeat the type.
static bool isPrecision(StringRef part) {
  return llvm::is_contained({"approx", "ftz", "rn", "f", "f32"}, part);
}

/// The result, of 32 bits, of an intrinsic by its name less "llvm.nvvm."; null
/// if the executor does not have it.
static Value lowerArithmetic(CallBuilder &b, StringRef intrinsic,
                             ValueRange inputs) {
  SmallVector<StringRef> parts;
  intrinsic.split(parts, '.');
  StringRef name = parts.front();
  ArrayRef<StringRef> rest = ArrayRef(parts).drop_front();
  bool isExact = llvm::all_of(rest, isPrecision);
  auto isOf = [&](Type type, size_t count) {
    return inputs.size() == count &&
           llvm::all_of(inputs.getTypes(),
                        [&](Type input) { return input == type; });
  };
  auto isF32 = [&](size_t count) { return isOf(b.f32, count); };
  if (llvm::is_contained({"ex2", "lg2", "rcp", "rsqrt", "tanh"}, name))
    return isExact && isF32(1) ? b.call(("varlen_sim_" + name).str(), b.f32,
                                        inputs, /*isPure=*/true)
                               : Value();
  // A pair of narrow floats, high operand first.
  if (name == "ff2bf16x2" || name == "ff2f16x2")
    return rest.equals({"rn"}) && isF32(2)
               ? b.call(name == "ff2bf16x2" ? "varlen_sim_cvt_bf16x2"
                                            : "varlen_sim_cvt_f16x2",
                        b.i32, inputs, /*isPure=*/true)
               : Value();
  if (name == "f2tf32")
    return rest.equals({"rna"}) && isF32(1)
               ? b.call("varlen_sim_cvt_tf32", b.i32, inputs, /*isPure=*/true)
               : Value();
  if (name == "prmt" && rest.empty() && isOf(b.i32, 3))
    return b.call("varlen_sim_prmt", b.i32, inputs, /*isPure=*/true);
  if (name == "sqrt" && isExact && isF32(1))
    return LLVM::SqrtOp::create(b, b.f32, inputs);
  if (name == "fma" && isExact && isF32(3))
    return LLVM::FMAOp::create(b, b.f32, inputs);
  if (name == "add" && isExact && isF32(2))
    return LLVM::FAddOp::create(b, inputs[0], inputs[1]);
  if (name == "mul" && isExact && isF32(2))
    return LLVM::FMulOp::create(b, inputs[0], inputs[1]);
  if (!isF32(2) || !llvm::all_of(rest, [](StringRef part) {
        return isPrecision(part) || part == "nan";
      }))
    return {};
  bool keepsNaN = llvm::is_contained(rest, "nan");
  if (name == "fmax")
    return keepsNaN ? Value(LLVM::MaximumOp::create(b, b.f32, inputs))
                    : Value(LLVM::MaxNumOp::create(b, b.f32, inputs));
  if (name == "fmin")
    return keepsNaN ? Value(LLVM::MinimumOp::create(b, b.f32, inputs))
                    : Value(LLVM::MinNumOp::create(b, b.f32, inputs));
  return {};
}

/// The field that an intrinsic sets, by its name behind "tensormap.replace.";
/// nothing if the executor does not have it.
static std::optional<int64_t> getMapField(StringRef name) {
  return llvm::StringSwitch<std::optional<int64_t>>(name)
      .Case("global.address", VARLEN_SIM_MAP_GLOBAL_ADDRESS)
      .Case("rank", VARLEN_SIM_MAP_RANK)
      .Case("box.dim", VARLEN_SIM_MAP_BOX_DIM)
      .Case("global.dim", VARLEN_SIM_MAP_GLOBAL_DIM)
      .Case("global.stride", VARLEN_SIM_MAP_GLOBAL_STRIDE)
      .Case("element.stride", VARLEN_SIM_MAP_ELEMENT_STRIDE)
      .Case("elemtype", VARLEN_SIM_MAP_ELEMTYPE)
      .Case("interleave.layout", VARLEN_SIM_MAP_INTERLEAVE_LAYOUT)
      .Case("swizzle.mode", VARLEN_SIM_MAP_SWIZZLE_MODE)
      .Case("fill.mode", VARLEN_SIM_MAP_FILL_MODE)
      .Default(std::nullopt);
}

/// `name` is the intrinsic's, behind "tensormap.replace.": a field of a map in
/// shared memory.
static Lowered lowerMapField(LLVM::CallIntrinsicOp op, StringRef name,
                             CallBuilder &b) {
  ValueRange arguments = op.getArgs();
  bool isShared = name.consume_back(".p3");
  std::optional<int64_t> field = getMapField(name);
  if (!isShared || !field || arguments.size() < 2 || arguments.size() > 3)
    return b.refuse("'" + op.getIntrin() + "'");
  Value dimension = arguments.size() == 3 ? arguments[1] : b.i32Constant(0);
  return b.replaceWithCall("varlen_sim_tensormap_replace",
                           {b.flat(arguments[0]), b.i32Constant(*field),
                            dimension, b.toInteger(arguments.back(), 64)});
}

static Lowered lower(LLVM::CallIntrinsicOp op, CallBuilder &b) {
  StringRef name = op.getIntrin();
  std::string what = ("'" + name + "'").str();
  // One that may be approximate is an instruction on a GPU, no call of libm.
  if (name == "llvm.tanh.f32")
    return b.replaceOp(
        b.call("varlen_sim_tanh", b.f32, op.getArgs(), /*isPure=*/true));
  // LLVM's own intrinsics mean the same on every target.
  if (!name.consume_front("llvm.nvvm."))
    return Lowered::Yes;
  if (name.consume_front("tensormap.replace."))
    return lowerMapField(op, name, b);
  if (op->getNumResults() != 1)
    return b.refuse(what);
  Type type = op->getResult(0).getType();
  bool isRegister = name.consume_front("read.ptx.sreg.");
  unsigned bits = getRegisterBits(type);
  if (bits == 0 || (!isRegister && bits != 32))
    return b.refuse(what);
  Value result = isRegister ? readSpecialRegister(b, name)
                            : lowerArithmetic(b, name, op.getArgs());
  return result ? b.replaceOp(b.fromInteger(result, type)) : b.refuse(what);
}

Lowered executor::lowerIntrinsic(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case([&](LLVM::CallIntrinsicOp call) { return lower(call, b); })
      .Case([&](LLVM::InlineAsmOp assembly) {
        return b.refuse("'" + assembly.getAsmString() + "'");
      })
      .Case([&](NVVM::InlinePtxOp assembly) {
        return b.refuse("'" + assembly.getPtxCode() + "'");
      })
      .Default([](Operation *) { return Lowered::No; });
}
