//===- ConvertNVVMToExecutorWgmma.cpp - Accumulators as handles -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The registers of an accumulator are written while the kernel runs on. So the
// struct that wgmma gives becomes a handle, and so do all values that it flows
// from and to: insertions, selects, block arguments. A register is read where
// it is extracted; the executor sees there whether anybody has waited for it.
//
// NVVM has no wgmma with A in registers, and no wait that says which registers
// it waits for. Kernels write both as inline assembly with tied operands. These
// are first brought to the form of the others, as calls of functions that exist
// only while this file runs.
//
//===----------------------------------------------------------------------===//

#include "ConvertNVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

/// Bits of VARLEN_SIM_WGMMA_* in Device.h.
enum : int64_t {
  FlagBF16 = 1 << 0,
  FlagTF32 = 1 << 1,
  FlagAMN = 1 << 2,
  FlagBMN = 1 << 3,
  FlagNegA = 1 << 4,
  FlagNegB = 1 << 5,
  FlagInPlace = 1 << 6
};

static constexpr llvm::StringLiteral pendingName = "varlen_sim.pending_wgmma";

static Type getAccumulatorType(CallBuilder &b, int64_t registers) {
  return LLVM::LLVMStructType::getLiteral(b.get().getContext(),
                                          SmallVector<Type>(registers, b.f32));
}

static int64_t getNumRegisters(Type type) {
  return static_cast<int64_t>(
      cast<LLVM::LLVMStructType>(type).getBody().size());
}

//===----------------------------------------------------------------------===//
// Inline assembly
//===----------------------------------------------------------------------===//

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
  Value result = LLVM::PoisonOp::create(b.get(), b.getLoc(),
                                        getAccumulatorType(b, scalars.size()));
  for (auto [i, scalar] : llvm::enumerate(scalars))
    result =
        LLVM::InsertValueOp::create(b.get(), b.getLoc(), result, scalar,
                                    ArrayRef<int64_t>{static_cast<int64_t>(i)});
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
    OpBuilder::InsertionGuard guard(b.get());
    b.get().setInsertionPoint(extract);
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
    return LLVM::ExtractValueOp::create(b.get(), value.getLoc(), value,
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
  int64_t flags = match[3] == "bf16"   ? FlagBF16
                  : match[3] == "tf32" ? FlagTF32
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
    flags |= FlagNegA;
  if (immediates[2] < 0)
    flags |= FlagNegB;
  ArrayRef<int64_t> transposed = ArrayRef(immediates).drop_front(3);
  if (a.size() == 1 && !transposed.empty()) {
    flags |= transposed.front() ? FlagAMN : 0;
    transposed = transposed.drop_front();
  }
  if (!transposed.empty() && transposed.front())
    flags |= FlagBMN;

  b.setOp(op);
  Value accumulator;
  if (llvm::all_of(operands.tied, [](Value value) { return !!value; }))
    accumulator = gatherAccumulator(b, operands.tied);
  else if (immediates[0] == 0)
    accumulator = LLVM::PoisonOp::create(b.get(), op.getLoc(),
                                         getAccumulatorType(b, columns / 2));
  else
    return refuse();
  SmallVector<Value> arguments = {accumulator};
  llvm::append_range(arguments, a);
  llvm::append_range(arguments,
                     ArrayRef<Value>{descriptor.front(), b.i32Constant(columns),
                                     b.i32Constant(immediates[0]),
                                     b.i32Constant(flags), b.site()});
  auto call = LLVM::CallOp::create(b.get(), op.getLoc(), accumulator.getType(),
                                   pendingName, arguments);
  op.getRes().replaceAllUsesWith(call.getResult());
  op.erase();
  return success();
}

/// Brings what is written as assembly to the form of the rest.
static LogicalResult rewriteAssembly(CallBuilder &b,
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
    StringRef text = op.getAsmString().trim();
    int64_t pending = 0;
    if (!text.consume_front("wgmma.wait_group.sync.aligned")) {
      if (failed(rewriteWgmma(op, b)))
        return failure();
    } else if (text.trim(" \t;").getAsInteger(10, pending) ||
               failed(rewriteTiedWait(op, pending, b))) {
      return failure();
    }
  }
  // What only fed the assembly does not read a register.
  llvm::sort(extractions);
  extractions.erase(llvm::unique(extractions), extractions.end());
  for (Operation *extract : extractions)
    if (extract->use_empty())
      extract->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The web of values
//===----------------------------------------------------------------------===//

static bool isPending(Operation *op) {
  auto call = dyn_cast<LLVM::CallOp>(op);
  return call && call.getCallee() == StringRef(pendingName);
}

/// Calls `visit` with what flows into and out of `value` unchanged.
static void forEachNeighbour(Value value, function_ref<void(Value)> visit) {
  if (Operation *op = value.getDefiningOp()) {
    if (auto insert = dyn_cast<LLVM::InsertValueOp>(op)) {
      visit(insert.getContainer());
    } else if (auto select = dyn_cast<LLVM::SelectOp>(op)) {
      visit(select.getTrueValue());
      visit(select.getFalseValue());
    }
  } else {
    auto argument = cast<BlockArgument>(value);
    Block *block = argument.getOwner();
    for (Block *before : block->getPredecessors()) {
      auto branch = cast<BranchOpInterface>(before->getTerminator());
      for (unsigned i = 0; i < before->getNumSuccessors(); ++i)
        if (before->getSuccessor(i) == block)
          visit(branch.getSuccessorOperands(i)[argument.getArgNumber()]);
    }
  }
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isa<LLVM::SelectOp>(op) ||
        (isa<LLVM::InsertValueOp>(op) && use.get() == op->getOperand(0))) {
      visit(op->getResult(0));
    } else if (auto branch = dyn_cast<BranchOpInterface>(op)) {
      if (std::optional<BlockArgument> argument =
              branch.getSuccessorBlockArgument(use.getOperandNumber()))
        visit(*argument);
    }
  }
}

namespace {
/// Turns the accumulators of one function into handles.
class AccumulatorRewriter {
public:
  AccumulatorRewriter(CallBuilder &b, LLVM::LLVMFuncOp function)
      : b(b), function(function) {}
  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult check(Value value);
  void rewrite(Operation *op);
  Value makeWgmma(NVVM::WgmmaMmaAsyncOp op);
  Value makePending(LLVM::CallOp op);
  bool isAccumulator(Value value) const {
    return web.contains(value) || handles.contains(value);
  }
  int64_t isInPlace(Value value) const { return single.contains(value); }

  CallBuilder &b;
  LLVM::LLVMFuncOp function;
  /// The values as they were, in the order they were found.
  llvm::SetVector<Value> web;
  /// Those that have taken their place.
  llvm::DenseSet<Value> handles;
  /// With one use: its registers may be reused.
  llvm::DenseSet<Value> single;
};
} // namespace

LogicalResult AccumulatorRewriter::check(Value value) {
  auto type = dyn_cast<LLVM::LLVMStructType>(value.getType());
  if (type && llvm::all_of(type.getBody(),
                           [&](Type member) { return member == b.f32; }))
    return success();
  Operation *op = value.getDefiningOp();
  return emitError(value.getLoc())
         << (op ? op->getName().getStringRef() : StringRef("a block argument"))
         << " has no equivalent in the executor: an accumulator of "
         << value.getType() << ", expected a struct of f32";
}

/// Whether the executor has the input type.
static bool isKnownInput(NVVM::WgmmaMmaAsyncOp op) {
  return op.getTypeA() == op.getTypeB() &&
         (op.getTypeA() == NVVM::WGMMATypes::bf16 ||
          op.getTypeA() == NVVM::WGMMATypes::f16 ||
          op.getTypeA() == NVVM::WGMMATypes::tf32);
}

LogicalResult AccumulatorRewriter::collect() {
  WalkResult walked = function.walk([&](Operation *op) {
    if (auto wgmma = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op)) {
      if (!isKnownInput(wgmma)) {
        op->emitOpError("has no equivalent in the executor: inputs of ")
            << stringifyEnum(wgmma.getTypeA()) << " and "
            << stringifyEnum(wgmma.getTypeB());
        return WalkResult::interrupt();
      }
      web.insert(wgmma.getResults());
      web.insert(wgmma.getInouts());
    } else if (isPending(op)) {
      web.insert(op->getResult(0));
      web.insert(op->getOperand(0));
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (size_t i = 0; i < web.size(); ++i)
    forEachNeighbour(web[i], [&](Value value) { web.insert(value); });
  for (Value value : web) {
    if (failed(check(value)))
      return failure();
    if (value.hasOneUse())
      single.insert(value);
  }
  return success();
}

Value AccumulatorRewriter::makeWgmma(NVVM::WgmmaMmaAsyncOp op) {
  int64_t flags = (op.getTypeA() == NVVM::WGMMATypes::bf16 ? FlagBF16 : 0) |
                  (op.getTypeA() == NVVM::WGMMATypes::tf32 ? FlagTF32 : 0) |
                  (op.getLayoutA() == NVVM::MMALayout::col ? FlagAMN : 0) |
                  // Row-major B is N-major: transposed.
                  (op.getLayoutB() == NVVM::MMALayout::row ? FlagBMN : 0) |
                  (op.getScaleA() == NVVM::WGMMAScaleIn::neg ? FlagNegA : 0) |
                  (op.getScaleB() == NVVM::WGMMAScaleIn::neg ? FlagNegB : 0) |
                  (isInPlace(op.getInouts()) ? FlagInPlace : 0);
  return b.call("varlen_sim_wgmma", b.pointer,
                {op.getInouts(), op.getDescriptorA(), op.getDescriptorB(),
                 b.i32Constant(op.getShape().getN()),
                 b.i32Constant(op.getScaleD() == NVVM::WGMMAScaleOut::one),
                 b.i32Constant(flags), b.site()});
}

Value AccumulatorRewriter::makePending(LLVM::CallOp op) {
  SmallVector<Value> arguments(op.getArgOperands());
  Value &flags = arguments[arguments.size() - 2];
  if (isInPlace(arguments.front()))
    flags = LLVM::OrOp::create(b.get(), op.getLoc(), flags,
                               b.i32Constant(FlagInPlace));
  // Descriptors of A and B, or four registers and one descriptor.
  bool inRegisters = arguments.size() == 10;
  return b.call(inRegisters ? "varlen_sim_wgmma_rs" : "varlen_sim_wgmma",
                b.pointer, arguments);
}

/// Where registers are written that `op` puts into an accumulator: in front of
/// a fence, if the values are there already. An insertion costs nothing, so
/// where in the text it stands means nothing.
static Operation *findWrite(Operation *op) {
  Operation *write = op;
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    auto assembly = dyn_cast<LLVM::InlineAsmOp>(before);
    if (isa<NVVM::WgmmaFenceAlignedOp>(before) ||
        (assembly && assembly.getAsmString().contains("wgmma.fence"))) {
      write = before;
      continue;
    }
    if (!isMemoryEffectFree(before) ||
        llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() == before;
        }))
      break;
  }
  return write;
}

void AccumulatorRewriter::rewrite(Operation *op) {
  b.setOp(op);
  if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) {
    if (isAccumulator(extract.getContainer()))
      extract.getResult().replaceAllUsesWith(
          b.call("varlen_sim_acc_get", b.f32,
                 {extract.getContainer(),
                  b.i32Constant(extract.getPosition()[0]), b.site()}));
    return;
  }
  if (op->getNumResults() != 1 || !web.contains(op->getResult(0)))
    return;
  Value result = op->getResult(0);
  if (isa<LLVM::SelectOp>(op)) {
    result.setType(b.pointer);
    return;
  }
  Value handle =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](LLVM::InsertValueOp insert) {
            b.get().setInsertionPoint(findWrite(insert));
            Value container = insert.getContainer();
            return b.call("varlen_sim_acc_set", b.pointer,
                          {container, b.i32Constant(insert.getPosition()[0]),
                           insert.getValue(),
                           b.i32Constant(isInPlace(container)), b.site()});
          })
          .Case([&](NVVM::WgmmaMmaAsyncOp wgmma) { return makeWgmma(wgmma); })
          .Case([&](LLVM::CallOp call) { return makePending(call); })
          // Undefined, zero, constant zeros: a new one.
          .Default([&](Operation *empty) {
            b.get().setInsertionPoint(findWrite(empty));
            return b.call(
                "varlen_sim_acc_new", b.pointer,
                {b.i32Constant(getNumRegisters(result.getType())), b.site()});
          });
  handles.insert(handle);
  if (single.contains(result))
    single.insert(handle);
  result.replaceAllUsesWith(handle);
}

/// Whether the executor can make the value anew.
static bool isEmptyAccumulator(Operation *op) {
  if (auto constant = dyn_cast<LLVM::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    return splat && splat.getElementType().isF32() &&
           splat.getSplatValue<APFloat>().isPosZero();
  }
  return isa<LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp>(op);
}

LogicalResult AccumulatorRewriter::run() {
  if (failed(collect()))
    return failure();
  if (web.empty())
    return success();
  for (Block &block : function.getBody())
    for (BlockArgument argument : block.getArguments())
      if (web.contains(argument))
        argument.setType(b.pointer);
  SmallVector<Operation *> ops, dead;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    bool isResult = op->getNumResults() == 1 && web.contains(op->getResult(0));
    bool isKnown =
        !isResult || isPending(op) || isEmptyAccumulator(op) ||
        isa<LLVM::InsertValueOp, LLVM::SelectOp, NVVM::WgmmaMmaAsyncOp>(op);
    if (!isKnown)
      return op->emitOpError("has no equivalent in the executor: an "
                             "accumulator of wgmma");
    bool isRead =
        isa<LLVM::ExtractValueOp>(op) && isAccumulator(op->getOperand(0));
    if ((isResult && !isa<LLVM::SelectOp>(op)) || isRead)
      dead.push_back(op);
    rewrite(op);
  }
  // Only now: the sets above know values by their address.
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  return success();
}

LogicalResult executor::lowerAccumulators(CallBuilder &b,
                                          LLVM::LLVMFuncOp function) {
  if (failed(rewriteAssembly(b, function)))
    return failure();
  return AccumulatorRewriter(b, function).run();
}

//===----------------------------------------------------------------------===//
// What has no accumulator
//===----------------------------------------------------------------------===//

Lowered executor::lowerWgmma(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case([&](NVVM::WgmmaFenceAlignedOp) {
        return b.replaceWithCall("varlen_sim_wgmma_fence", {b.site()});
      })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp) {
        return b.replaceWithCall("varlen_sim_wgmma_commit", {b.site()});
      })
      .Case([&](NVVM::WgmmaWaitGroupSyncOp wait) {
        return b.replaceWithCall("varlen_sim_wgmma_wait_group",
                                 {b.i32Constant(wait.getGroup()), b.site()});
      })
      .Case([&](LLVM::InlineAsmOp assembly) {
        StringRef text = assembly.getAsmString().trim().rtrim(" ;");
        if (text == "wgmma.fence.sync.aligned")
          return b.replaceWithCall("varlen_sim_wgmma_fence", {b.site()});
        if (text == "wgmma.commit_group.sync.aligned")
          return b.replaceWithCall("varlen_sim_wgmma_commit", {b.site()});
        int64_t pending = 0;
        if (text.consume_front("wgmma.wait_group.sync.aligned") &&
            !text.trim().getAsInteger(10, pending))
          return b.replaceWithCall("varlen_sim_wgmma_wait_group",
                                   {b.i32Constant(pending), b.site()});
        return Lowered::No;
      })
      .Default([](Operation *) { return Lowered::No; });
}
