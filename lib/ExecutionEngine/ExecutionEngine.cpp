//===- ExecutionEngine.cpp - Running what the pipelines make --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ExecutionEngine/ExecutionEngine.h"

#include "CodeGeneration.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Runtime/MemRefCopy.h"
#include "varlen/Runtime/Runtime.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::varlen;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// LLVM's passes
//===----------------------------------------------------------------------===//

/// What LLVM still has to do for code that our passes have blocked and
/// vectorised: a fifth of the time of -O1, for the same speed. instcombine puts
/// the addresses in order, so that loops need no strength reduction.
static constexpr llvm::StringLiteral attentionPasses =
    "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm)";

/// For the loops around it, which come from linalg as scalar code.
static constexpr llvm::StringLiteral otherPasses =
    "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),indvars,loop-vectorize,slp-vectorizer,"
    "instcombine<no-verify-fixpoint>,simplifycfg";

/// For kernels in the executor, which wait for what they call. That bf16 pairs
/// are only looked at as integers, the last but one sees.
static constexpr llvm::StringLiteral kernelPasses =
    "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg";

/// Runs the optimiser's passes on each function of the module.
static Error optimize(llvm::Module &code, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::FunctionPassManager attention, kernel, other;
  if (Error error = builder.parsePassPipeline(attention, attentionPasses))
    return error;
  if (Error error = builder.parsePassPipeline(kernel, kernelPasses))
    return error;
  if (Error error = builder.parsePassPipeline(other, otherPasses))
    return error;
  for (llvm::Function &function : code) {
    if (function.isDeclaration())
      continue;
    bool isAttention = function.hasFnAttribute(kWorkFunctionAttrName);
    (isExecutorKernel(function) ? kernel
     : isAttention              ? attention
                                : other)
        .run(function, functions);
  }
  return Error::success();
}

namespace {
/// Skips strength reduction of loops, a third of code generation, for loops
/// that need it no more. Other code in the process may want it, so this is not
/// the option of LLVM's tools but a property of one LLVM context.
class SkipLoopStrengthReduction : public llvm::OptPassGate {
public:
  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) const override {
    return name != "Loop Strength Reduction";
  }
  bool isEnabled() const override { return true; }
};
} // namespace

std::function<Error(llvm::Module *)>
varlen::makeOptimizingTransformer(const CPUTarget &target,
                                  llvm::TargetMachine &machine) {
  std::string tuneCPU = getCodegenNames(target).tuneCPU;
  return [tuneCPU, &machine](llvm::Module *code) {
    static SkipLoopStrengthReduction gate;
    code->getContext().setOptPassGate(gate);
    for (llvm::Function &function : *code)
      if (!function.isDeclaration())
        function.addFnAttr("tune-cpu", tuneCPU);
    return optimize(*code, machine);
  };
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

void varlen::initializeNativeTarget() {
  [[maybe_unused]] static bool initialized =
      (llvm::InitializeNativeTarget(), llvm::InitializeNativeTargetAsmPrinter(),
       // Of inline assembly; a process without it is ended by any.
       llvm::InitializeNativeTargetAsmParser(), true);
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
makeMachine(const CPUTarget &target, std::optional<llvm::Reloc::Model> model,
            bool isJIT) {
  CodegenNames names = getCodegenNames(target);
  std::string message;
  llvm::Triple triple(names.triple);
  const llvm::Target *found =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return llvm::createStringError(message);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, names.cpu, names.features, {}, model, {}, kCodeGenLevel, isJIT));
}

Expected<std::unique_ptr<llvm::TargetMachine>>
varlen::makeTargetMachine(const CPUTarget &target) {
  return makeMachine(target, {}, /*isJIT=*/true);
}

Expected<std::unique_ptr<llvm::TargetMachine>>
varlen::makeFileTargetMachine(const CPUTarget &target) {
  initializeNativeTarget();
  return makeMachine(target, llvm::Reloc::PIC_, /*isJIT=*/false);
}

void varlen::forEachRuntimeSymbol(
    llvm::function_ref<void(llvm::StringRef, void *)> visit) {
  auto add = [&](llvm::StringRef name, auto *function) {
    visit(name, reinterpret_cast<void *>(function));
  };
  add("varlen_work_tiles", varlen_work_tiles);
  add("varlen_free_tiles", varlen_free_tiles);
  add("varlen_split_tiles", varlen_split_tiles);
  add("varlen_check_block_table", varlen_check_block_table);
  add("varlen_append_runs", varlen_append_runs);
  add("varlen_allocate", varlen_allocate);
  add("varlen_free", varlen_free);
  add("varlen_extent_error", varlen_extent_error);
  add("varlen_parallel_for", varlen_parallel_for);
  add("varlen_set_num_threads", varlen_set_num_threads);
  add("varlen_get_num_threads", varlen_get_num_threads);
  add("varlen_set_parallel_for", varlen_set_parallel_for);
  add("varlen_last_error", varlen_last_error);
  add("varlen_clear_error", varlen_clear_error);
  add("memrefCopy", memrefCopy);
}

void varlen::registerRuntimeSymbols(ExecutionEngine &engine) {
  engine.registerSymbols([](llvm::orc::MangleAndInterner intern) {
    llvm::orc::SymbolMap symbols;
    forEachRuntimeSymbol([&](llvm::StringRef name, void *address) {
      symbols[intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported};
    });
    return symbols;
  });
}

Expected<std::unique_ptr<ExecutionEngine>> varlen::createExecutionEngine(
    Operation *module, const CPUTarget &target,
    llvm::function_ref<void(ExecutionEngine &)> addSymbols) {
  initializeNativeTarget();
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  ExecutionEngineOptions options;
  auto transformer = makeOptimizingTransformer(target, **machine);
  options.transformer = transformer;
  options.jitCodeGenOptLevel = kCodeGenLevel;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  addSymbols(**engine);
  // Constructors: those of GPU modules.
  (*engine)->initialize();
  return engine;
}
