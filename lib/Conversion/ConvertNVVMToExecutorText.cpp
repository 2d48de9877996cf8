//===- ConvertNVVMToExecutorText.cpp - Inline PTX and named intrinsics ----===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions that a kernel names by text: PTX in nvvm.inline_ptx and
// llvm.inline_asm, LLVM's intrinsics in llvm.call_intrinsic. One instruction
// each; what is not in the tables is refused.
//
//===----------------------------------------------------------------------===//

#include "ConvertNVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

//===----------------------------------------------------------------------===//
// One instruction
//===----------------------------------------------------------------------===//

namespace {
/// An instruction whose operands are numbered placeholders.
struct Instruction {
  /// The mnemonic's parts: ex2, approx, ftz, f32.
  SmallVector<StringRef> parts;
  SmallVector<StringRef> operands;
  /// By placeholder; null: a result.
  SmallVector<Value> values;
  Type resultType;

  StringRef getName() const { return parts.front(); }
  StringRef getOperand(size_t i) const {
    return i < operands.size() ? operands[i] : StringRef();
  }
  bool has(StringRef part) const { return llvm::is_contained(parts, part); }
};
} // namespace

/// Reads one instruction; false if it is anything else.
static bool parse(StringRef text, Instruction &instruction) {
  text = text.trim();
  if (text.consume_front("{") && !text.consume_back("}"))
    return false;
  text = text.trim();
  if (!text.consume_back(";") || text.contains(';') || text.starts_with("@"))
    return false;
  auto [mnemonic, rest] = text.split(' ');
  mnemonic.split(instruction.parts, '.');
  SmallVector<StringRef> operands;
  rest.trim().split(operands, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef operand : operands)
    instruction.operands.push_back(operand.trim());
  return true;
}

/// Bits of an integer, a float or a vector of them; 0 of any other type, and of
/// one that no register holds.
static unsigned getRegisterBits(Type type) {
  constexpr int64_t most = 128;
  auto vector = dyn_cast_or_null<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  if (!element || !element.isIntOrFloat() ||
      (vector && (vector.isScalable() || vector.getNumElements() > most)))
    return 0;
  int64_t bits = (vector ? vector.getNumElements() : 1) *
                 static_cast<int64_t>(element.getIntOrFloatBitWidth());
  return bits <= most ? bits : 0;
}

/// Whether the first operand is the result, and there is one.
static bool hasResult(const Instruction &instruction) {
  StringRef operand = instruction.getOperand(0);
  return instruction.resultType && (operand == "$0" || operand == "%0");
}

/// The value of a placeholder ($1 or %1) or an integer; null if it is neither,
/// or a result.
static Value getValue(CallBuilder &b, const Instruction &instruction,
                      StringRef operand) {
  int64_t number = 0;
  if (!operand.getAsInteger(0, number))
    return llvm::isInt<32>(number) || llvm::isUInt<32>(number)
               ? b.i32Constant(number)
               : Value();
  if (!operand.consume_front("$") && !operand.consume_front("%"))
    return {};
  if (operand.getAsInteger(10, number) || number < 0 ||
      number >= static_cast<int64_t>(instruction.values.size()))
    return {};
  return instruction.values[number];
}

static Value getOperand(CallBuilder &b, const Instruction &instruction,
                        size_t i) {
  return getValue(b, instruction, instruction.getOperand(i));
}

/// The address of [$1], [$1+16]; null if the operand is none.
static Value getAddress(CallBuilder &b, const Instruction &instruction,
                        size_t i) {
  StringRef text = instruction.getOperand(i);
  if (!text.consume_front("[") || !text.consume_back("]"))
    return {};
  auto [base, offset] = text.split('+');
  Value address = getValue(b, instruction, base.trim());
  // An offset of PTX has 32 bits.
  int32_t bytes = 0;
  if (!address || (!offset.empty() && offset.trim().getAsInteger(0, bytes)))
    return {};
  if (address.getType() == b.i32 || address.getType() == b.i64) {
    // A shared address of 32 bits, or a global one of 64: a flat pointer.
    address = LLVM::IntToPtrOp::create(b.get(), b.getLoc(), b.pointer,
                                       b.toInteger(address, 64));
  }
  if (!isa<LLVM::LLVMPointerType>(address.getType()))
    return {};
  if (bytes == 0)
    return address;
  // An index that is an attribute has fewer.
  LLVM::GEPArg index = llvm::isInt<LLVM::kGEPConstantBitWidth>(bytes)
                           ? LLVM::GEPArg(bytes)
                           : LLVM::GEPArg(b.i32Constant(bytes));
  return LLVM::GEPOp::create(b.get(), b.getLoc(), address.getType(),
                             b.get().getI8Type(), address, index);
}

//===----------------------------------------------------------------------===//
// Arithmetic. The same parts name PTX and LLVM's intrinsics
//===----------------------------------------------------------------------===//

/// Parts that say how exact an operation is, which the executor leaves open, or
/// repeat the type.
static bool isPrecision(StringRef part) {
  return llvm::is_contained({"approx", "ftz", "rn", "full", "f", "f32"}, part);
}

static Value lowerArithmetic(CallBuilder &b, const Instruction &instruction,
                             ArrayRef<Value> inputs) {
  if (!llvm::all_of(inputs, [](Value value) { return !!value; }))
    return {};
  StringRef name = instruction.getName();
  ArrayRef<StringRef> rest = ArrayRef(instruction.parts).drop_front();
  bool isExact = llvm::all_of(rest, isPrecision);
  auto isOf = [&](Type type, size_t count) {
    return inputs.size() == count && llvm::all_of(inputs, [&](Value value) {
             return value.getType() == type;
           });
  };
  auto isF32 = [&](size_t count) { return isOf(b.f32, count); };
  if (llvm::is_contained({"ex2", "lg2", "rcp", "rsqrt", "tanh"}, name))
    return isExact && isF32(1) ? b.call(("varlen_sim_" + name).str(), b.f32,
                                        inputs, /*isPure=*/true)
                               : Value();
  // A pair of narrow floats, high operand first.
  bool isPairOfBF16 =
      name == "ff2bf16x2" || (name == "cvt" && instruction.has("bf16x2"));
  if (isPairOfBF16 || name == "ff2f16x2" ||
      (name == "cvt" && instruction.has("f16x2"))) {
    if (!isF32(2) || instruction.has("relu") || !instruction.has("rn"))
      return {};
    return b.fromInteger(
        b.call(isPairOfBF16 ? "varlen_sim_cvt_bf16x2" : "varlen_sim_cvt_f16x2",
               b.i32, inputs, true),
        instruction.resultType);
  }
  if ((name == "cvt" && instruction.has("tf32") && instruction.has("rna")) ||
      (name == "f2tf32" && instruction.has("rna")))
    return isF32(1) ? b.fromInteger(
                          b.call("varlen_sim_cvt_tf32", b.i32, inputs, true),
                          instruction.resultType)
                    : Value();
  OpBuilder &builder = b.get();
  Location loc = b.getLoc();
  if (name == "sqrt" && isExact && isF32(1))
    return LLVM::SqrtOp::create(builder, loc, b.f32, inputs);
  if (name == "fma" && isExact && isF32(3))
    return LLVM::FMAOp::create(builder, loc, b.f32, inputs);
  if (name == "add" && isExact && isF32(2))
    return LLVM::FAddOp::create(builder, loc, inputs[0], inputs[1]);
  if (name == "mul" && isExact && isF32(2))
    return LLVM::FMulOp::create(builder, loc, inputs[0], inputs[1]);
  isExact = llvm::all_of(rest, [](StringRef part) {
    return isPrecision(part) || part == "NaN" || part == "nan";
  });
  bool keepsNaN = instruction.has("NaN") || instruction.has("nan");
  if ((name == "max" || name == "fmax") && isExact && isF32(2))
    return keepsNaN
               ? Value(LLVM::MaximumOp::create(builder, loc, b.f32, inputs))
               : Value(LLVM::MaxNumOp::create(builder, loc, b.f32, inputs));
  if ((name == "min" || name == "fmin") && isExact && isF32(2))
    return keepsNaN
               ? Value(LLVM::MinimumOp::create(builder, loc, b.f32, inputs))
               : Value(LLVM::MinNumOp::create(builder, loc, b.f32, inputs));
  if (name == "prmt" && isOf(b.i32, 3))
    return b.call("varlen_sim_prmt", b.i32, inputs, true);
  return {};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Weak if none is named.
static int64_t getOrder(const Instruction &instruction) {
  for (auto [name, order] : {std::pair("relaxed", VARLEN_SIM_RELAXED),
                             std::pair("volatile", VARLEN_SIM_RELAXED),
                             std::pair("acquire", VARLEN_SIM_ACQUIRE),
                             std::pair("release", VARLEN_SIM_RELEASE),
                             std::pair("acq_rel", VARLEN_SIM_ACQ_REL)})
    if (instruction.has(name))
      return order;
  return VARLEN_SIM_WEAK;
}

/// Whether an access may have all parts that are not among `others`.
static bool isPlainAccess(const Instruction &instruction,
                          ArrayRef<StringRef> others) {
  auto isKnown = [](StringRef part) {
    return llvm::StringSwitch<bool>(part)
        .Cases({"weak", "relaxed", "acquire", "release", "acq_rel"}, true)
        .Cases({"volatile", "cta", "cluster", "gpu", "sys", "global"}, true)
        .Cases({"shared", "shared::cta", "shared::cluster", "nc"}, true)
        .Cases({"L1::no_allocate", "L1::evict_last", "L2::128B"}, true)
        .Case("noftz", true)
        .Default(false);
  };
  return llvm::all_of(
      ArrayRef(instruction.parts).drop_front(), [&](StringRef part) {
        return isKnown(part) || llvm::is_contained(others, part);
      });
}

/// A scalar type of PTX; null if it is none.
static Type getType(CallBuilder &b, StringRef name) {
  return llvm::StringSwitch<Type>(name)
      .Cases({"b16", "u16", "s16"}, b.get().getI16Type())
      .Cases({"b32", "u32", "s32"}, b.i32)
      .Cases({"b64", "u64", "s64"}, b.i64)
      .Case("f32", b.f32)
      .Case("f64", b.get().getF64Type())
      .Default(Type());
}

static Lowered lowerLoad(CallBuilder &b, const Instruction &instruction) {
  StringRef typeName = instruction.parts.back();
  Type type = getType(b, typeName);
  Value address = getAddress(b, instruction, 1);
  if (!type || !address || !isPlainAccess(instruction, {typeName}) ||
      instruction.operands.size() != 2 || !hasResult(instruction) ||
      getRegisterBits(instruction.resultType) != getRegisterBits(type))
    return Lowered::No;
  address = checkAccess(b, "load", address, type);
  if (getOrder(instruction) != VARLEN_SIM_WEAK)
    b.call("varlen_sim_poll", {b.site()});
  auto load = LLVM::LoadOp::create(b.get(), b.getLoc(), type, address);
  load.setVolatile_(getOrder(instruction) != VARLEN_SIM_WEAK);
  return b.replaceOp(b.bitcast(load, instruction.resultType));
}

static Lowered lowerStore(CallBuilder &b, const Instruction &instruction) {
  StringRef typeName = instruction.parts.back();
  Type type = getType(b, typeName);
  Value address = getAddress(b, instruction, 0);
  Value value = getOperand(b, instruction, 1);
  if (!type || !address || !value || !isPlainAccess(instruction, {typeName}) ||
      instruction.operands.size() != 2)
    return Lowered::No;
  bool isPointer = isa<LLVM::LLVMPointerType>(value.getType());
  unsigned bits = isPointer ? 8 * b.getSize(value.getType())
                            : getRegisterBits(value.getType());
  if (bits != getRegisterBits(type))
    return Lowered::No;
  address = checkAccess(b, "store", address, value.getType());
  auto store = LLVM::StoreOp::create(b.get(), b.getLoc(), value, address);
  store.setVolatile_(getOrder(instruction) != VARLEN_SIM_WEAK);
  return b.eraseOp();
}

namespace {
struct AtomicType {
  /// That of Device.h.
  int64_t number;
  unsigned bits;
};
} // namespace

static std::optional<AtomicType> getAtomicType(StringRef name) {
  return llvm::StringSwitch<std::optional<AtomicType>>(name)
      .Cases({"b32", "u32", "s32"}, AtomicType{VARLEN_SIM_I32, 32})
      .Cases({"b64", "u64", "s64"}, AtomicType{VARLEN_SIM_I64, 64})
      .Case("f16", AtomicType{VARLEN_SIM_F16, 16})
      .Case("bf16", AtomicType{VARLEN_SIM_BF16, 16})
      .Case("f32", AtomicType{VARLEN_SIM_F32, 32})
      .Case("f64", AtomicType{VARLEN_SIM_F64, 64})
      .Case("f16x2", AtomicType{VARLEN_SIM_F16X2, 32})
      .Case("bf16x2", AtomicType{VARLEN_SIM_BF16X2, 32})
      .Default(std::nullopt);
}

/// red (no result) and atom.
static Lowered lowerAtomic(CallBuilder &b, const Instruction &instruction) {
  size_t first = instruction.getName() == "atom" ? 1 : 0;
  StringRef typeName = instruction.parts.back();
  bool isUnsigned = typeName.starts_with("u");
  std::optional<AtomicType> type = getAtomicType(typeName);
  std::optional<int64_t> op;
  StringRef opName;
  for (StringRef part : ArrayRef(instruction.parts).drop_front())
    if (auto found =
            llvm::StringSwitch<std::optional<int64_t>>(part)
                .Case("add", VARLEN_SIM_ADD)
                .Case("min", isUnsigned ? VARLEN_SIM_UMIN : VARLEN_SIM_MIN)
                .Case("max", isUnsigned ? VARLEN_SIM_UMAX : VARLEN_SIM_MAX)
                .Case("inc", VARLEN_SIM_INC)
                .Case("dec", VARLEN_SIM_DEC)
                .Case("and", VARLEN_SIM_AND)
                .Case("or", VARLEN_SIM_OR)
                .Case("xor", VARLEN_SIM_XOR)
                .Case("exch", VARLEN_SIM_EXCH)
                .Default(std::nullopt)) {
      op = found;
      opName = part;
    }
  Value address = getAddress(b, instruction, first);
  Value value = getOperand(b, instruction, first + 1);
  if (!type || !op || !address || !value ||
      !isPlainAccess(instruction, {typeName, opName}) ||
      instruction.operands.size() != first + 2 ||
      getRegisterBits(value.getType()) != type->bits ||
      (first && (!hasResult(instruction) ||
                 getRegisterBits(instruction.resultType) != type->bits)))
    return Lowered::No;
  Value old =
      callAtomic(b, *op, type->number, address, value,
                 std::max<int64_t>(getOrder(instruction), VARLEN_SIM_RELAXED));
  return first ? b.replaceOp(b.bitcast(old, instruction.resultType))
               : b.eraseOp();
}

static Lowered lowerCpAsync(CallBuilder &b, const Instruction &instruction) {
  if (instruction.has("commit_group"))
    return b.replaceWithCall("varlen_sim_cp_async_commit");
  if (instruction.has("wait_all"))
    return b.replaceWithCall("varlen_sim_cp_async_wait_all");
  if (instruction.has("wait_group")) {
    Value pending = getOperand(b, instruction, 0);
    return pending && pending.getType() == b.i32
               ? b.replaceWithCall("varlen_sim_cp_async_wait_group", {pending})
               : Lowered::No;
  }
  bool isPlain = (instruction.has("ca") || instruction.has("cg")) &&
                 (instruction.has("shared") || instruction.has("shared::cta"));
  Value to = getAddress(b, instruction, 0);
  Value from = getAddress(b, instruction, 1);
  Value size = getOperand(b, instruction, 2);
  if (!isPlain || !to || !from || !size || size.getType() != b.i32)
    return Lowered::No;
  Value sourceSize = getOperand(b, instruction, 3);
  if ((sourceSize && sourceSize.getType() != b.i32) ||
      instruction.operands.size() > (sourceSize ? 4 : 3))
    return Lowered::No;
  return b.replaceWithCall(
      "varlen_sim_cp_async",
      {b.flat(to), b.flat(from), size, sourceSize ? sourceSize : size});
}

static Lowered lowerFence(CallBuilder &b, const Instruction &instruction) {
  if (instruction.has("mbarrier_init"))
    return b.replaceWithCall("varlen_sim_fence_mbarrier_init");
  if (!instruction.has("proxy"))
    return executor::lowerFence(
        b, instruction.has("cta")       ? NVVM::MemScopeKind::CTA
           : instruction.has("cluster") ? NVVM::MemScopeKind::CLUSTER
           : instruction.has("sys")     ? NVVM::MemScopeKind::SYS
                                        : NVVM::MemScopeKind::GPU);
  if (!instruction.has("async"))
    return Lowered::No;
  return lowerProxyFence(
      b, instruction.has("shared::cta") ? NVVM::ProxyKind::async_shared
         : instruction.has("global")    ? NVVM::ProxyKind::async_global
                                        : NVVM::ProxyKind::async);
}

//===----------------------------------------------------------------------===//
// The operations
//===----------------------------------------------------------------------===//

static Lowered lowerInstruction(CallBuilder &b,
                                const Instruction &instruction) {
  StringRef name = instruction.getName();
  if (name == "ld")
    return lowerLoad(b, instruction);
  if (name == "atom")
    return lowerAtomic(b, instruction);
  if (hasResult(instruction)) {
    SmallVector<Value> inputs;
    for (size_t i = 1; i < instruction.operands.size(); ++i)
      inputs.push_back(getOperand(b, instruction, i));
    Value result = lowerArithmetic(b, instruction, inputs);
    return result && getRegisterBits(result.getType()) ==
                         getRegisterBits(instruction.resultType)
               ? b.replaceOp(b.bitcast(result, instruction.resultType))
               : Lowered::No;
  }
  // The others have no result.
  if (instruction.resultType)
    return Lowered::No;
  if (name == "st")
    return lowerStore(b, instruction);
  if (name == "red")
    return lowerAtomic(b, instruction);
  if (name == "cp" && instruction.has("async") && !instruction.has("bulk"))
    return lowerCpAsync(b, instruction);
  if (name == "fence" || name == "membar")
    return lowerFence(b, instruction);
  // Hints.
  if (name == "prefetch" || name == "griddepcontrol" || name == "applypriority")
    return b.eraseOp();
  if (name == "trap" || name == "exit")
    return b.replaceWithCall(("varlen_sim_" + name).str());
  return Lowered::No;
}

/// Reads the type of the result; false if the operation has one that no
/// instruction here has.
static bool readResult(Operation *op, Instruction &instruction) {
  if (op->getNumResults() == 0)
    return true;
  instruction.resultType = op->getResult(0).getType();
  return op->getNumResults() == 1 && getRegisterBits(instruction.resultType);
}

static Lowered lowerAssembly(CallBuilder &b, bool isKnown, StringRef text,
                             ValueRange inputs) {
  Operation *op = b.getOp();
  Instruction instruction;
  if (isKnown && parse(text, instruction) && readResult(op, instruction)) {
    instruction.values.assign(op->getNumResults(), Value());
    llvm::append_range(instruction.values, inputs);
    if (lowerInstruction(b, instruction) == Lowered::Yes)
      return Lowered::Yes;
  }
  return b.refuse("'" + text + "'");
}

static Lowered lower(NVVM::InlinePtxOp op, CallBuilder &b) {
  bool isKnown = !op.getPredicate() && op.getReadWriteArgs().empty();
  return lowerAssembly(b, isKnown, op.getPtxCode(), op.getReadOnlyArgs());
}

static Lowered lower(LLVM::InlineAsmOp op, CallBuilder &b) {
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',', /*MaxSplit=*/-1,
                            /*KeepEmpty=*/false);
  size_t results = llvm::count_if(constraints, [](StringRef constraint) {
    return constraint.starts_with("=");
  });
  return lowerAssembly(b, results == op->getNumResults(), op.getAsmString(),
                       op.getOperands());
}

static Lowered lower(LLVM::CallIntrinsicOp op, CallBuilder &b) {
  StringRef name = op.getIntrin();
  std::string what = ("'" + name + "'").str();
  // LLVM's own intrinsics mean the same on every target.
  if (!name.consume_front("llvm.nvvm."))
    return Lowered::Yes;
  Instruction instruction;
  if (!readResult(op, instruction) || !instruction.resultType)
    return b.refuse(what);
  Value result;
  if (name.consume_front("read.ptx.sreg.")) {
    result = readSpecialRegister(b, name);
  } else {
    name.split(instruction.parts, '.');
    result = lowerArithmetic(b, instruction, llvm::to_vector(op.getArgs()));
    if (result && getRegisterBits(result.getType()) !=
                      getRegisterBits(instruction.resultType))
      return b.refuse(what);
  }
  return result ? b.replaceOp(b.fromInteger(result, instruction.resultType))
                : b.refuse(what);
}

Lowered executor::lowerText(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case<NVVM::InlinePtxOp, LLVM::InlineAsmOp, LLVM::CallIntrinsicOp>(
          [&](auto op) { return lower(op, b); })
      .Default([](Operation *) { return Lowered::No; });
}
