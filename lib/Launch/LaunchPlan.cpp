//===- LaunchPlan.cpp - What host code does to launch kernels -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Launch/LaunchPlan.h"

#include "varlen/ABI/Passes.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Pipelines/SourceName.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

class Planner {
public:
  explicit Planner(func::FuncOp function) : function(function) {}
  FailureOr<LaunchPlan> run();

private:
  using Kind = PlanOperand::Kind;

  LogicalResult addArguments();
  LogicalResult addSteps(Block &block, std::vector<PlanStep> &steps);
  LogicalResult addStep(Operation *op, std::vector<PlanStep> &steps);
  LogicalResult addCompute(Operation *op, std::vector<PlanStep> &steps);
  LogicalResult addScratch(memref::AllocOp op, std::vector<PlanStep> &steps);
  LogicalResult giveBack(memref::DeallocOp op);
  LogicalResult addLaunch(gpu::LaunchFuncOp op, std::vector<PlanStep> &steps);
  LogicalResult addLoop(scf::WhileOp op, std::vector<PlanStep> &steps);
  LogicalResult addCall(func::CallOp op);
  LogicalResult addDim(memref::DimOp op);
  LogicalResult addView(memref::ReinterpretCastOp op);
  LogicalResult addMetadata(memref::ExtractStridedMetadataOp op);
  FailureOr<size_t> addKernel(gpu::LaunchFuncOp op);

  FailureOr<PlanOperand> get(Operation *user, Value value);
  LogicalResult get(Operation *user, ValueRange values,
                    SmallVectorImpl<PlanOperand> &operands);
  /// The extent of a tensor, of scratch or of a view.
  FailureOr<PlanOperand> getExtent(Operation *user, Value memref, unsigned dim);
  LogicalResult refuse(Operation *op, const Twine &wanted) {
    return op->emitOpError("expected ") << wanted << " in a launcher";
  }

  func::FuncOp function;
  LaunchPlan plan;
  DenseMap<Value, PlanOperand> known;
  int64_t numValues = 0;
  /// The steps that make scratch, by its number, and those whose scratch no
  /// step uses any more.
  std::vector<PlanStep> scratch;
  SmallVector<int64_t> unused;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FailureOr<PlanOperand> Planner::get(Operation *user, Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    // The attribute of an i1 is -1 where it is true.
    bool isFlag = value.getType().isInteger(1);
    return PlanOperand{Kind::Constant, isFlag ? *constant != 0 : *constant, 0};
  }
  auto it = known.find(value);
  if (it == known.end())
    return refuse(user, "numbers that follow from extents as operands");
  return it->second;
}

LogicalResult Planner::get(Operation *user, ValueRange values,
                           SmallVectorImpl<PlanOperand> &operands) {
  for (Value value : values) {
    FailureOr<PlanOperand> operand = get(user, value);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  return success();
}

FailureOr<PlanOperand> Planner::getExtent(Operation *user, Value memref,
                                          unsigned dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return PlanOperand{Kind::Constant, type.getDimSize(dim), 0};
  if (auto alloc = memref.getDefiningOp<memref::AllocOp>())
    return get(user, alloc.getDynamicSizes()[type.getDynamicDimIndex(dim)]);
  if (auto view = memref.getDefiningOp<memref::ReinterpretCastOp>())
    return get(user, cast<Value>(view.getMixedSizes()[dim]));
  auto argument = dyn_cast<BlockArgument>(memref);
  if (!argument || !known.contains(argument))
    return refuse(user, "extents of tensors and scratch");
  return PlanOperand{Kind::Size, argument.getArgNumber(), dim};
}

LogicalResult Planner::addArguments() {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (!type || failed(type.getStridesAndOffset(strides, offset)) ||
        offset != 0)
      return function.emitOpError("expected arguments that are ranked tensors "
                                  "in a launcher, got ")
             << argument.getType();
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      "varlen.name");
    known[argument] = {Kind::Tensor, argument.getArgNumber(), 0};
    plan.arguments.push_back({name ? name.str() : "", type});
  }
  return success();
}

LogicalResult Planner::addDim(memref::DimOp op) {
  std::optional<int64_t> dim = op.getConstantIndex();
  if (!dim)
    return refuse(op, "a constant dimension of a tensor");
  FailureOr<PlanOperand> extent = getExtent(op, op.getSource(), *dim);
  if (failed(extent))
    return failure();
  known[op.getResult()] = *extent;
  return success();
}

LogicalResult Planner::addMetadata(memref::ExtractStridedMetadataOp op) {
  auto memory = known.find(op.getSource());
  if (memory == known.end())
    return refuse(op, "tensors and scratch");
  PlanOperand base = memory->second;
  known[op.getBaseBuffer()] = base;
  known[op.getOffset()] = {};
  for (auto [dim, size] : llvm::enumerate(op.getSizes())) {
    FailureOr<PlanOperand> extent = getExtent(op, op.getSource(), dim);
    if (failed(extent))
      return failure();
    known[size] = *extent;
  }
  auto type = cast<MemRefType>(op.getSource().getType());
  auto [strides, offset] = type.getStridesAndOffset();
  for (auto [dim, stride] : llvm::enumerate(op.getStrides()))
    if (ShapedType::isStatic(strides[dim]))
      known[stride] = {Kind::Constant, strides[dim], 0};
    else if (base.kind == Kind::Tensor)
      known[stride] = {Kind::Stride, base.number, static_cast<unsigned>(dim)};
  return success();
}

/// Launches take the memory of a view, and where it begins there as a number.
LogicalResult Planner::addView(memref::ReinterpretCastOp op) {
  auto memory = known.find(op.getSource());
  if (memory == known.end())
    return refuse(op, "views of tensors and scratch");
  if (op.getType().getRank() == 0 &&
      isConstantIntValue(op.getMixedOffsets().front(), 0)) {
    PlanOperand base = memory->second;
    known[op.getResult()] = base;
  }
  return success();
}

LogicalResult Planner::addCall(func::CallOp op) {
  if (op.getCallee() == "varlen_gpu_status_buffer")
    known[op.getResult(0)] = {Kind::Status, 0, 0};
  else if (op.getCallee() == "varlen_gpu_multiprocessors")
    known[op.getResult(0)] = {Kind::Multiprocessors, 0, 0};
  else
    return refuse(op, "calls of the GPU runtime only");
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult Planner::addCompute(Operation *op, std::vector<PlanStep> &steps) {
  PlanStep step;
  step.op = getPlanOperator(op);
  if (!step.op || op->getNumResults() != 1 ||
      !op->getResult(0).getType().isIntOrIndex())
    return refuse(op, "computations on integers, scratch, loops and launches");
  if (failed(get(op, op->getOperands(), step.operands)))
    return failure();
  if (isa<arith::ShRUIOp>(op) && !op->getResult(0).getType().isInteger(64))
    return refuse(op, "shifts of 64 bits by a constant");
  StringRef wanted = step.op->checkRight(step.operands.back());
  if (!wanted.empty())
    return refuse(op, wanted);
  step.number = numValues++;
  known[op->getResult(0)] = {Kind::Value, step.number, 0};
  steps.push_back(std::move(step));
  return success();
}

LogicalResult Planner::addScratch(memref::AllocOp op,
                                  std::vector<PlanStep> &steps) {
  MemRefType type = op.getType();
  if (!type.getLayout().isIdentity() || !isa<func::FuncOp>(op->getParentOp()))
    return refuse(op, "dense scratch that is allocated once");
  PlanStep step;
  step.kind = PlanStep::Kind::Scratch;
  step.unit = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (ShapedType::isStatic(size))
      step.unit *= size;
  if (failed(get(op, op.getDynamicSizes(), step.operands)))
    return failure();
  // Steps are taken in the order of one stream, so scratch of the same size can
  // be the same: layers in a row need that of one.
  auto *same = llvm::find_if(unused, [&](int64_t number) {
    return scratch[number].unit == step.unit &&
           scratch[number].operands == step.operands;
  });
  if (same != unused.end()) {
    known[op.getResult()] = {Kind::Scratch, *same, 0};
    unused.erase(same);
    return success();
  }
  step.number = static_cast<int64_t>(scratch.size());
  known[op.getResult()] = {Kind::Scratch, step.number, 0};
  scratch.push_back(step);
  steps.push_back(std::move(step));
  return success();
}

LogicalResult Planner::giveBack(memref::DeallocOp op) {
  auto memory = known.find(op.getMemref());
  if (memory == known.end() || memory->second.kind != Kind::Scratch ||
      !isa<func::FuncOp>(op->getParentOp()))
    return refuse(op, "scratch that is given back once");
  unused.push_back(memory->second.number);
  return success();
}

FailureOr<size_t> Planner::addKernel(gpu::LaunchFuncOp op) {
  auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(
      SymbolTable::lookupNearestSymbolFrom(op, op.getKernel()));
  if (!function || op.hasClusterSize() || !op.getAsyncDependencies().empty() ||
      op.getAsyncToken())
    return refuse(op, "launches without clusters and tokens");
  PlanKernel kernel;
  kernel.name = op.getKernelName().str();
  gpu::KernelDim3 block = op.getBlockSizeOperandValues();
  for (auto [i, value] :
       llvm::enumerate(std::array{block.x, block.y, block.z})) {
    std::optional<int64_t> threads = getConstantIntValue(value);
    if (!threads)
      return refuse(op, "a constant number of threads");
    kernel.block[i] = *threads;
  }
  Value shared = op.getDynamicSharedMemorySize();
  std::optional<int64_t> bytes = shared ? getConstantIntValue(shared) : 0;
  if (!bytes)
    return refuse(op, "a constant size of shared memory");
  kernel.sharedBytes = *bytes;
  for (Type type : function.getArgumentTypes()) {
    if (!isa<LLVM::LLVMPointerType, IntegerType>(type) ||
        (isa<IntegerType>(type) && !type.isInteger(32) && !type.isInteger(64)))
      return refuse(op, "kernels on pointers and integers of 32 or 64 bits");
    kernel.bits.push_back(isa<IntegerType>(type) ? type.getIntOrFloatBitWidth()
                                                 : 64);
  }
  if (kernel.bits.size() != op.getNumKernelOperands())
    return refuse(op, "kernels on bare pointers");
  plan.kernels.push_back(std::move(kernel));
  return plan.kernels.size() - 1;
}

LogicalResult Planner::addLaunch(gpu::LaunchFuncOp op,
                                 std::vector<PlanStep> &steps) {
  PlanStep step;
  step.kind = PlanStep::Kind::Launch;
  FailureOr<size_t> kernel = addKernel(op);
  if (failed(kernel))
    return failure();
  step.kernel = *kernel;
  gpu::KernelDim3 grid = op.getGridSizeOperandValues();
  SmallVector<PlanOperand> blocks;
  if (failed(get(op, {grid.x, grid.y, grid.z}, blocks)) ||
      failed(get(op, op.getKernelOperands(), step.operands)))
    return failure();
  llvm::copy(blocks, step.grid.begin());
  steps.push_back(std::move(step));
  return success();
}

LogicalResult Planner::addLoop(scf::WhileOp op, std::vector<PlanStep> &steps) {
  PlanLoop loop;
  auto bind = [&](Value value, const PlanOperand &operand) {
    known[value] = {Kind::Value, numValues, 0};
    return PlanBinding(numValues++, operand);
  };
  SmallVector<PlanOperand> inits, values, next;
  if (failed(get(op, op.getInits(), inits)))
    return failure();
  for (auto [argument, init] : llvm::zip_equal(op.getBeforeArguments(), inits))
    loop.state.push_back(bind(argument, init));
  if (failed(addSteps(*op.getBeforeBody(), loop.head)))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  FailureOr<PlanOperand> again = get(condition, condition.getCondition());
  if (failed(again) || failed(get(condition, condition.getArgs(), values)))
    return failure();
  loop.condition = *again;
  for (auto [argument, result, value] :
       llvm::zip_equal(op.getAfterArguments(), op.getResults(), values)) {
    loop.values.push_back(bind(argument, value));
    known[result] = known.lookup(argument);
  }
  if (failed(addSteps(*op.getAfterBody(), loop.body)) ||
      failed(get(op, op.getYieldOp().getResults(), next)))
    return failure();
  loop.next.assign(next.begin(), next.end());
  PlanStep step;
  step.kind = PlanStep::Kind::Loop;
  step.loop.push_back(std::move(loop));
  steps.push_back(std::move(step));
  return success();
}

LogicalResult Planner::addStep(Operation *op, std::vector<PlanStep> &steps) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](arith::ConstantOp) { return success(); })
      .Case([&](memref::DimOp dim) { return addDim(dim); })
      .Case([&](memref::ExtractStridedMetadataOp metadata) {
        return addMetadata(metadata);
      })
      .Case([&](memref::ReinterpretCastOp view) { return addView(view); })
      .Case([&](func::CallOp call) { return addCall(call); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto cast) {
        FailureOr<PlanOperand> operand = get(cast, cast.getIn());
        // Extending what is not negative changes nothing.
        if (failed(operand) || !cast.getType().isIntOrIndex() ||
            cast.getIn().getType().isInteger(1))
          return refuse(cast, "casts of numbers");
        known[cast.getResult()] = *operand;
        return success();
      })
      .Case([&](arith::TruncIOp cut) {
        // A launch takes as many bits as its parameter has.
        FailureOr<PlanOperand> operand = get(cut, cut.getIn());
        if (failed(operand) ||
            !llvm::all_of(cut->getUsers(), [](Operation *user) {
              return isa<gpu::LaunchFuncOp>(user);
            }))
          return refuse(cut, "numbers that only launches truncate");
        known[cut.getResult()] = *operand;
        return success();
      })
      .Case([&](memref::AllocOp alloc) { return addScratch(alloc, steps); })
      .Case([&](memref::DeallocOp dealloc) { return giveBack(dealloc); })
      .Case([&](gpu::LaunchFuncOp launch) { return addLaunch(launch, steps); })
      .Case([&](scf::WhileOp loop) { return addLoop(loop, steps); })
      .Default([&](Operation *other) { return addCompute(other, steps); });
}

LogicalResult Planner::addSteps(Block &block, std::vector<PlanStep> &steps) {
  for (Operation &op : block.without_terminator())
    if (failed(addStep(&op, steps)))
      return failure();
  return success();
}

FailureOr<LaunchPlan> Planner::run() {
  plan.name = getSourceName(function).str();
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expected structured control flow in a "
                                "launcher");
  if (function.getNumResults() != 0)
    return function.emitOpError("expected results that are arguments in a "
                                "launcher");
  if (failed(addArguments()) ||
      failed(addSteps(function.getBody().front(), plan.steps)))
    return failure();
  if (plan.kernels.empty())
    return function.emitOpError(
        "expected varlen operations or linalg in a launcher, found no kernel");
  return plan;
}

static FailureOr<std::vector<LaunchPlan>> makeLaunchPlans(ModuleOp module) {
  std::vector<LaunchPlan> plans;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    FailureOr<LaunchPlan> plan = Planner(function).run();
    if (failed(plan))
      return failure();
    plans.push_back(std::move(*plan));
  }
  if (plans.empty())
    return module.emitError("expected a public function in a launcher");
  return plans;
}

FailureOr<std::vector<LaunchPlan>>
varlen::planLaunches(ModuleOp module, const VarlenToNVVMOptions &pipeline,
                     bool strided) {
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(checkCName(function, function.getName())))
      return failure();
  PassManager manager(module.getContext());
  // What was read has been verified.
  manager.enableVerifier(false);
  manager.addPass(createInlinerPass());
  VarlenAddResultArgumentsOptions results;
  results.strided = strided;
  manager.addPass(createVarlenAddResultArguments(results));
  buildVarlenToLaunches(manager, pipeline);
  // Extents of views are those of what they view, and views an address and
  // numbers.
  manager.addNestedPass<func::FuncOp>(
      memref::createResolveRankedShapeTypeResultDimsPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  // Operations that only an operation without a step used.
  manager.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  // Scratch is given back where it is used last.
  manager.addNestedPass<func::FuncOp>(
      bufferization::createOptimizeAllocationLivenessPass());
  if (failed(manager.run(module)))
    return failure();
  return makeLaunchPlans(module);
}

LogicalResult varlen::checkCName(Operation *op, StringRef name) {
  if (!name.empty() && !llvm::isDigit(name.front()) &&
      llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return success();
  return op->emitOpError("expected a name that C can have");
}
