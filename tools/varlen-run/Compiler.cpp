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
#include "varlen/InitAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/Support/raw_ostream.h"

using namespace varlen_run;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

char PrintedError::ID;

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

/// Whether a function with an argument or a result of type `after` is called as
/// one of type `before` is. Buffers may take the place of tensors, and extents
/// become known that the caller reads from a result, not those that it gives.
static bool isCalledAs(Type after, Type before, bool isArgument) {
  auto buffer = dyn_cast<ShapedType>(after), was = dyn_cast<ShapedType>(before);
  if (!buffer || !was || !isa<MemRefType, RankedTensorType>(after) ||
      !isa<MemRefType, RankedTensorType>(before))
    return after == before;
  if (buffer.getElementType() != was.getElementType() ||
      failed(verifyCompatibleShape(buffer, was)))
    return false;
  return !isArgument ||
         llvm::all_of(llvm::zip_equal(buffer.getShape(), was.getShape()),
                      [](auto extents) {
                        auto [now, then] = extents;
                        return ShapedType::isDynamic(now) || now == then;
                      });
}

namespace {
/// Compares the entry function after each pass on its module with what it was,
/// until it is a function of the llvm dialect.
class SignatureCheck : public PassInstrumentation {
public:
  SignatureCheck(ModuleOp module, func::FuncOp entry, std::string &message)
      : module(module), name(entry.getSymNameAttr()),
        type(entry.getFunctionType()), message(message) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    // Passes run on copies of the module, too, and on several functions at
    // once.
    auto entry = dyn_cast<func::FuncOp>(op);
    if (op == module)
      entry = module.lookupSymbol<func::FuncOp>(name);
    if (!entry || entry->getParentOp() != module ||
        entry.getSymNameAttr() != name || !message.empty())
      return;
    FunctionType changed = entry.getFunctionType();
    llvm::raw_string_ostream stream(message);
    if (changed.getNumInputs() != type.getNumInputs() ||
        changed.getNumResults() != type.getNumResults()) {
      stream << "bad pipeline: expected '" << name.getValue()
             << "' to keep its " << type.getNumInputs() << " arguments and "
             << type.getNumResults() << " results, got "
             << changed.getNumInputs() << " and " << changed.getNumResults()
             << " after " << pass->getArgument();
      return;
    }
    compare("argument", type.getInputs(), changed.getInputs(), pass);
    compare("result", type.getResults(), changed.getResults(), pass);
  }

private:
  void compare(StringRef what, TypeRange before, TypeRange after, Pass *pass) {
    for (auto [i, was, now] : llvm::enumerate(before, after)) {
      if (!message.empty() || isCalledAs(now, was, what == "argument"))
        continue;
      llvm::raw_string_ostream(message)
          << "bad pipeline: expected " << what << ' ' << i << " of '"
          << name.getValue() << "' to stay of type " << was << ", got " << now
          << " after " << pass->getArgument();
    }
  }

  ModuleOp module;
  StringAttr name;
  FunctionType type;
  std::string &message;
};
} // namespace

Error varlen_run::runPipeline(ModuleOp module, StringRef pipeline, bool verify,
                              StringRef entry) {
  PassManager manager(module.getContext());
  manager.enableVerifier(verify);
  std::string changed;
  if (auto function = entry.empty() ? func::FuncOp()
                                    : module.lookupSymbol<func::FuncOp>(entry))
    manager.addInstrumentation(
        std::make_unique<SignatureCheck>(module, function, changed));
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
  return changed.empty() ? Error::success() : makeError(changed);
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

Expected<std::unique_ptr<varlen::LoadedObjects>>
varlen_run::compile(ModuleOp module, const varlen::CPUTarget &target,
                    const std::string &function) {
  auto objects = varlen::compileToObjects(module, target, function);
  if (!objects)
    return objects.takeError();
  return varlen::LoadedObjects::create(*objects, forEachHostSymbol);
}
