//===- WgmmaAssembly.cpp - wgmma as assembly ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVVM has no wgmma with A in registers, and no wait that says which registers
// it waits for. Kernels write both as inline assembly with tied operands.
//
//===----------------------------------------------------------------------===//

#include "../TiedWait.h"
#include "NVVMToExecutor.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

static Type getAccumulatorType(CallBuilder &b, int64_t registers) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(),
                                          SmallVector<Type>(registers, b.f32));
}

/// The accumulator whose registers, from the first to the last, the scalars
/// start with; null if they do not.
static Value findAccumulator(ValueRange scalars) {
  auto first = scalars.front().getDefiningOp<LLVM::ExtractValueOp>();
  if (!first || first.getPosition() != ArrayRef<int64_t>{0})
    return {};
  Value accumulator = first.getContainer();
  auto type = dyn_cast<LLVM::LLVMStructType>(accumulator.getType());
  if (!type || type.getBody().size() > scalars.size())
    return {};
  for (int64_t i = 0; i < getNumRegisters(type); ++i) {
    auto extract = scalars[i].getDefiningOp<LLVM::ExtractValueOp>();
    if (!extract || extract.getContainer() != accumulator ||
        extract.getPosition() != ArrayRef<int64_t>{i})
      return {};
  }
  return accumulator;
}

/// The scalars as one accumulator.
static Value gatherAccumulator(CallBuilder &b, ValueRange scalars) {
  if (Value accumulator = findAccumulator(scalars);
      accumulator &&
      getNumRegisters(accumulator.getType()) == int64_t(scalars.size()))
    return accumulator;
  Value result =
      LLVM::PoisonOp::create(b, getAccumulatorType(b, scalars.size()));
  for (auto [i, scalar] : llvm::enumerate(scalars))
    result = b.setMember(result, scalar, i);
  return result;
}

namespace {
/// The operands of inline assembly: what is tied to each output, and what each
/// placeholder stands for.
struct AsmOperands {
  SmallVector<Value> tied;
  SmallVector<Value> placeholders;
};
} // namespace

static AsmOperands readOperands(LLVM::InlineAsmOp op) {
  AsmOperands result;
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',', /*MaxSplit=*/-1,
                            /*KeepEmpty=*/false);
  unsigned next = 0;
  for (StringRef constraint : constraints) {
    if (constraint.starts_with("~"))
      continue;
    if (constraint.starts_with("=")) {
      result.tied.emplace_back();
      result.placeholders.emplace_back();
      continue;
    }
    if (next == op.getOperands().size())
      break;
    Value value = op.getOperands()[next++];
    unsigned output = 0;
    if (!constraint.getAsInteger(10, output) && output < result.tied.size())
      result.tied[output] = value;
    result.placeholders.push_back(value);
  }
  return result;
}

/// Extractions of the assembly's results become those of `accumulator`.
static LogicalResult
forwardResults(LLVM::InlineAsmOp op, CallBuilder &b,
               function_ref<Value(int64_t index)> getRegister) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto extract = dyn_cast<LLVM::ExtractValueOp>(user);
    if (!extract)
      return op.emitOpError("has no equivalent in the executor: the registers "
                            "of a tied wait used as a whole");
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(extract);
    extract.getResult().replaceAllUsesWith(
        getRegister(extract.getPosition()[0]));
    extract.erase();
  }
  op.erase();
  return success();
}

/// wgmma.wait_group with accumulators tied in and out.
static LogicalResult rewriteTiedWait(LLVM::InlineAsmOp op, int64_t pending,
                                     CallBuilder &b) {
  AsmOperands operands = readOperands(op);
  if (llvm::is_contained(operands.tied, Value()))
    return op.emitOpError("has no equivalent in the executor: a wait with an "
                          "output that is tied to no input");
  b.setOp(op);
  b.call("varlen_sim_wgmma_wait_group", {b.i32Constant(pending), b.site()});
  ValueRange tied(operands.tied);
  if (Value all = findAccumulator(tied);
      all && getNumRegisters(all.getType()) == int64_t(tied.size())) {
    op.getRes().replaceAllUsesWith(all);
    op.erase();
    return success();
  }
  // Several accumulators, and perhaps other registers among them.
  SmallVector<std::pair<Value, int64_t>> registers;
  while (registers.size() < tied.size()) {
    ValueRange rest = tied.drop_front(registers.size());
    Value accumulator = findAccumulator(rest);
    if (!accumulator) {
      registers.emplace_back(rest.front(), -1);
      continue;
    }
    for (int64_t i = 0; i < getNumRegisters(accumulator.getType()); ++i)
      registers.emplace_back(accumulator, i);
  }
  return forwardResults(op, b, [&](int64_t index) -> Value {
    auto [value, position] = registers[index];
    if (position < 0)
      return value;
    return LLVM::ExtractValueOp::create(b, value.getLoc(), value,
                                        ArrayRef<int64_t>{position});
  });
}

/// "{$0, $1}, {$2, $3}, $4, 1" -> "$0, $1", "$2, $3", "$4", "1".
static SmallVector<StringRef> splitOperands(StringRef text) {
  SmallVector<StringRef> result;
  text = text.trim();
  while (!text.empty()) {
    if (text.consume_front("{")) {
      auto [group, rest] = text.split('}');
      result.push_back(group);
      text = rest.ltrim(", \t\n");
      continue;
    }
    auto [operand, rest] = text.split(',');
    result.push_back(operand.trim());
    text = rest.ltrim();
  }
  return result;
}

/// The values of placeholders "$4, $5".
static SmallVector<Value> getPlaceholders(StringRef text,
                                          const AsmOperands &operands) {
  SmallVector<Value> values;
  SmallVector<StringRef> names;
  text.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : names) {
    size_t index = 0;
    name = name.trim();
    if (!name.consume_front("$") || name.getAsInteger(10, index) ||
        index >= operands.placeholders.size() || !operands.placeholders[index])
      return {};
    values.push_back(operands.placeholders[index]);
  }
  return values;
}

/// wgmma.mma_async, with A by descriptor or in registers.
static LogicalResult rewriteWgmma(LLVM::InlineAsmOp op, CallBuilder &b) {
  auto refuse = [&] {
    return op.emitOpError("has no equivalent in the executor: '")
           << op.getAsmString() << "'";
  };
  static const llvm::Regex mnemonic(
      "^wgmma\\.mma_async\\.sync\\.aligned\\.m64n([0-9]+)k([0-9]+)\\.f32\\."
      "([a-z0-9]+)\\.([a-z0-9]+)[ \t](.*);$");
  SmallVector<StringRef> match;
  if (!mnemonic.match(op.getAsmString().trim(), &match) || match[3] != match[4])
    return refuse();
  int64_t columns = 0;
  match[1].getAsInteger(10, columns);
  int64_t flags = match[3] == "bf16"   ? VARLEN_SIM_WGMMA_BF16
                  : match[3] == "tf32" ? VARLEN_SIM_WGMMA_TF32
                                       : 0;
  if (!flags && match[3] != "f16")
    return refuse();
  if (match[2] != (match[3] == "tf32" ? "8" : "16"))
    return refuse();
  AsmOperands operands = readOperands(op);
  // Accumulator, A, descriptor of B, scale of D, signs of A and B, then which
  // of A (not in registers) and B are transposed.
  SmallVector<StringRef> texts = splitOperands(match[5]);
  if (texts.size() < 6 || int64_t(operands.tied.size()) != columns / 2)
    return refuse();
  SmallVector<Value> a = getPlaceholders(texts[1], operands);
  SmallVector<Value> descriptor = getPlaceholders(texts[2], operands);
  if ((a.size() != 1 && a.size() != 4) || descriptor.size() != 1)
    return refuse();
  SmallVector<int64_t> immediates;
  for (StringRef text : ArrayRef(texts).drop_front(3))
    if (text.getAsInteger(10, immediates.emplace_back()))
      return refuse();
  if (immediates[1] < 0)
    flags |= VARLEN_SIM_WGMMA_NEG_A;
  if (immediates[2] < 0)
    flags |= VARLEN_SIM_WGMMA_NEG_B;
  ArrayRef<int64_t> transposed = ArrayRef(immediates).drop_front(3);
  if (a.size() == 1 && !transposed.empty()) {
    flags |= transposed.front() ? VARLEN_SIM_WGMMA_A_MN : 0;
    transposed = transposed.drop_front();
  }
  if (!transposed.empty() && transposed.front())
    flags |= VARLEN_SIM_WGMMA_B_MN;

  b.setOp(op);
  Value accumulator;
  if (llvm::all_of(operands.tied, [](Value value) { return !!value; }))
    accumulator = gatherAccumulator(b, operands.tied);
  else if (immediates[0] == 0)
    accumulator = LLVM::PoisonOp::create(b, getAccumulatorType(b, columns / 2));
  else
    return refuse();
  SmallVector<Value> arguments = {accumulator};
  llvm::append_range(arguments, a);
  llvm::append_range(arguments,
                     ArrayRef<Value>{descriptor.front(), b.i32Constant(columns),
                                     b.i32Constant(immediates[0]),
                                     b.i32Constant(flags), b.site()});
  auto call =
      LLVM::CallOp::create(b, accumulator.getType(), kPendingWgmma, arguments);
  op.getRes().replaceAllUsesWith(call.getResult());
  op.erase();
  return success();
}

LogicalResult executor::rewriteWgmmaAssembly(CallBuilder &b,
                                             LLVM::LLVMFuncOp function) {
  SmallVector<LLVM::InlineAsmOp> ops;
  function.walk([&](LLVM::InlineAsmOp op) {
    if (op.getAsmString().trim().starts_with("wgmma.") && op->getNumResults())
      ops.push_back(op);
  });
  SmallVector<Operation *> extractions;
  for (LLVM::InlineAsmOp op : ops) {
    for (Value operand : op.getOperands())
      if (auto extract = operand.getDefiningOp<LLVM::ExtractValueOp>())
        extractions.push_back(extract);
    std::optional<int64_t> pending = getTiedPending(op);
    if (failed(pending ? rewriteTiedWait(op, *pending, b)
                       : rewriteWgmma(op, b)))
      return failure();
  }
  // What only fed the assembly does not read a register.
  llvm::sort(extractions);
  extractions.erase(llvm::unique(extractions), extractions.end());
  for (Operation *extract : extractions)
    if (extract->use_empty())
      extract->erase();
  return success();
}
