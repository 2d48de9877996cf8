//===- Compiler.cpp - From a module to machine code -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler.h"

#include "Host.h"
#include "Tensor.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/InitAll.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace varlen_run;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

char PrintedError::ID;

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
    bool isKernel = function.getName().starts_with("varlen_sim.");
    bool isAttention = function.hasFnAttribute(varlen::kWorkFunctionAttrName);
    (isKernel      ? kernel
     : isAttention ? attention
                   : other)
        .run(function, functions);
  }
  return Error::success();
}

DialectRegistry varlen_run::makeRegistry() {
  DialectRegistry registry;
  varlen::registerUpstream(registry);
  varlen::registerAllDialects(registry);
  varlen::registerAllExtensions(registry);
  varlen::registerAllPasses();
  return registry;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

static StringRef getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "";
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context)
    : ScopedDiagnosticHandler(context, [](Diagnostic &diagnostic) {
        // Each line in one piece: progress is printed by another thread.
        std::string line;
        llvm::raw_string_ostream stream(line);
        if (auto location =
                diagnostic.getLocation()->findInstanceOf<FileLineColRange>())
          stream << location.getFilename().getValue() << ':'
                 << location.getStartLine() << ':' << location.getStartColumn()
                 << ": ";
        // Messages of several lines show the operation after the first.
        std::string text = diagnostic.str();
        stream << getSeverity(diagnostic.getSeverity()) << ": "
               << StringRef(text).split('\n').first << '\n';
        llvm::errs() << line;
        return success();
      }) {}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

Error varlen_run::runPipeline(ModuleOp module, StringRef pipeline,
                              bool verify) {
  PassManager manager(module.getContext());
  manager.enableVerifier(verify);
  StringRef passes = pipeline;
  if (passes.consume_front("builtin.module("))
    passes.consume_back(")");
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (failed(parsePassPipeline(passes, manager, stream))) {
    // Which has the names of passes in it, however long these are.
    constexpr size_t maxPrinted = 200;
    StringRef reason = StringRef(message).split('\n').first;
    return makeError("bad pipeline " + quote(pipeline) + ": " +
                     reason.take_front(maxPrinted).str() +
                     (reason.size() > maxPrinted ? "..." : ""));
  }
  if (failed(manager.run(module)))
    return llvm::make_error<PrintedError>();
  return Error::success();
}

static std::string getExecutorPasses(const SimulationOptions &simulation) {
  std::string text = "convert-nvvm-to-executor";
  if (simulation.mutant)
    text =
        "varlen-mutate-kernels{mutant=" + std::to_string(*simulation.mutant) +
        "}," + text;
  return text;
}

std::string varlen_run::getPipeline(ModuleOp module, const Options &options,
                                    StringRef chip, bool isChecked) {
  if (!options.device.isGPU()) {
    std::string text = "varlen-to-cpu{target=" + options.target + "}";
    return isChecked ? text
                     : "generate-runtime-verification{verbose-level=0}," + text;
  }
  bool isExecutor = options.device.kind == Device::Kind::Executor;
  std::string target =
      ("{chip=" + chip + " format=" + (isExecutor ? "mlir" : "fatbin")).str();
  std::string executor =
      isExecutor ? "," + getExecutorPasses(options.simulation) : "";
  if (module.getOps<gpu::GPUModuleOp>().empty())
    return "varlen-to-nvvm" + target + "}" + executor;
  // Kernels that are there already are lowered as ours are, whatever registers
  // they spill. The executor takes operations that PTX has to be written for,
  // which the last stage does.
  return "varlen-kernels-to-nvvm" + target + "}" + executor +
         ",varlen-launches-to-llvm" + target + " allow-spills=true}";
}

//===----------------------------------------------------------------------===//
// Code generation
//===----------------------------------------------------------------------===//

/// A second round of scheduling, which a higher level would add, brings nothing
/// on CPUs that reorder instructions themselves.
static constexpr auto codeGenLevel = llvm::CodeGenOptLevel::Less;

/// A third of code generation, for loops that need it no more. There is no
/// other way to say so than the option of LLVM's tools.
static void disableLoopStrengthReduction() {
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    found->second->addOccurrence(0, found->first, "true");
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const varlen::CPUTarget &target) {
  varlen::CodegenNames names = varlen::getCodegenNames(target);
  std::string message;
  llvm::Triple triple(names.triple);
  const llvm::Target *found =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return makeError(message);
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, names.cpu, names.features, {}, {}, {},
                                 codeGenLevel, /*JIT=*/true));
}

Expected<std::unique_ptr<ExecutionEngine>>
varlen_run::compile(ModuleOp module, const varlen::CPUTarget &target) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  disableLoopStrengthReduction();
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  std::string tuneCPU = varlen::getCodegenNames(target).tuneCPU;
  llvm::TargetMachine &owned = **machine;
  auto transform = [&](llvm::Module *code) {
    for (llvm::Function &function : *code)
      if (!function.isDeclaration())
        function.addFnAttr("tune-cpu", tuneCPU);
    return optimize(*code, owned);
  };
  ExecutionEngineOptions options;
  options.transformer = transform;
  options.jitCodeGenOptLevel = codeGenLevel;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner intern) {
    llvm::orc::SymbolMap symbols;
    forEachHostSymbol([&](StringRef name, void *address) {
      symbols[intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported};
    });
    return symbols;
  });
  // Constructors: those of GPU modules.
  (*engine)->initialize();
  return engine;
}
