//===- EmitHost.cpp - Functions for a CPU as files ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"
#include "EmitFile.h"
#include "EmitHeader.h"
#include "varlen/ABI/Passes.h"
#include "varlen/ExecutionEngine/CompileThreads.h"
#include "varlen/ExecutionEngine/ExecutionEngine.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/CPUTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::varlen;

namespace cl = llvm::cl;

namespace {
enum class HostFormat { LLVM, Object, Shared };

struct HostOptions {
  cl::OptionCategory category{
      "Options of --emit=llvm, --emit=obj and --emit=so"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<input file>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Output file"),
                              cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<HostFormat> format{
      "emit", cl::desc("Run varlen-to-cpu and write"),
      cl::values(clEnumValN(HostFormat::LLVM, "llvm", "LLVM IR, as text"),
                 clEnumValN(HostFormat::Object, "obj", "an object file"),
                 clEnumValN(HostFormat::Shared, "so",
                            "a shared library, with the runtime in it")),
      cl::Required, cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("CPU to generate code for"),
                              cl::init("host"), cl::cat(category)};
  cl::opt<bool> strided{
      "strided", cl::desc("Tensors have any strides but the last, which is 1"),
      cl::cat(category)};
  cl::opt<std::string> header{"header",
                              cl::desc("Write declarations in C to this file"),
                              cl::value_desc("file"), cl::cat(category)};
};
} // namespace

/// Names of tensors are for headers and for files of varlen-run. LLVM IR has
/// none.
static void removeNames(ModuleOp module) {
  auto name = StringAttr::get(module.getContext(), "varlen.name");
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, name);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      function.removeResultAttr(i, name);
  }
}

/// Objects of several modules go into one program: only what a header declares
/// has a name in it.
static void hideOthers(llvm::Module &code) {
  for (llvm::Function &function : code)
    if (!function.isDeclaration() &&
        !function.getName().starts_with("_mlir_ciface_"))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
}

static LogicalResult generate(ModuleOp module, const HostOptions &options,
                              const CPUTarget &target,
                              llvm::raw_pwrite_stream &os) {
  auto failWith = [&](llvm::Error error) {
    return module.emitError(llvm::toString(std::move(error)));
  };
  auto machine = makeFileTargetMachine(target);
  if (!machine)
    return failWith(machine.takeError());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return failure();
  code->setDataLayout((*machine)->createDataLayout());
  code->setTargetTriple((*machine)->getTargetTriple());
  hideOthers(*code);
  if (llvm::Error error =
          makeOptimizingTransformer(target, **machine)(code.get()))
    return failWith(std::move(error));
  if (options.format == HostFormat::LLVM) {
    os << *code;
    return success();
  }
  llvm::legacy::PassManager manager;
  if ((*machine)->addPassesToEmitFile(manager, os, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return module.emitError("the target has no object files");
  manager.run(*code);
  return success();
}

/// The static runtime: beside the tool, in a build and where it is installed.
static std::string findRuntime(const char *program) {
  std::string tool = llvm::sys::fs::getMainExecutable(
      program, reinterpret_cast<void *>(&findRuntime));
  for (StringRef folder : {"../lib", "../lib/x86_64-linux-gnu",
                           "../lib/aarch64-linux-gnu", "../lib64"}) {
    SmallString<128> path(llvm::sys::path::parent_path(tool));
    llvm::sys::path::append(path, folder, "libVarlenRuntime.a");
    if (llvm::sys::fs::exists(path))
      return std::string(path);
  }
  return "";
}

/// Links an object to a shared library at `path`, by the system's compiler;
/// messages name what it is to be.
static int link(StringRef object, StringRef path, StringRef output,
                const char *program) {
  std::string runtime = findRuntime(program);
  if (runtime.empty())
    return fail("found no libVarlenRuntime.a beside the tool; --emit=obj "
                "leaves linking to others");
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName("cc");
  if (!compiler)
    return fail("found no cc in PATH, which links shared libraries");
  std::string error;
  StringRef arguments[] = {"cc", "-shared", "-pthread", "-o",
                           path, object,    runtime,    "-lm"};
  if (llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt, {}, 0, 0,
                                &error) != 0)
    return fail(output + ": cc could not link it" +
                (error.empty() ? "" : ": " + error));
  return 0;
}

int varlen::emitHost(int argc, char **argv, DialectRegistry &registry) {
  llvm::InitLLVM init(argc, argv);
  varlen_tools::ignoreStreamSignals();
  HostOptions options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Variable-length attention for a CPU\n");
  const CPUTarget *target = lookupCPUTarget(options.target);
  if (!target)
    return fail("expected target to be one of " + getCPUTargetNames() +
                ", got " + options.target);
  if (int code = checkFiles(options.input, {{"-o", options.output},
                                            {"--header", options.header}}))
    return code;
  llvm::SourceMgr sources;
  // Threads that cannot be started are no error.
  CompileThreads threads;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.setThreadPool(threads);
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = readFile(options.input, sources, context);
  if (!module)
    return 1;

  PassManager interface(&context), pipeline(&context);
  // What was read has been verified.
  interface.enableVerifier(false);
  pipeline.enableVerifier(false);
  interface.addPass(createInlinerPass());
  VarlenAddResultArgumentsOptions results;
  results.shapes = true;
  results.strided = options.strided;
  interface.addPass(createVarlenAddResultArguments(results));
  VarlenToCPUOptions cpu;
  cpu.target = std::string(options.target);
  buildVarlenToCPU(pipeline, cpu);
  if (failed(interface.run(*module)))
    return 1;
  OutputFiles files;
  if (!options.header.empty())
    if (int code = files.add(options.header, [&](llvm::raw_ostream &os) {
          return emitHeader(*module, os);
        }))
      return code;
  removeNames(*module);
  if (failed(pipeline.run(*module)))
    return 1;
  auto write = [&](llvm::raw_pwrite_stream &os) {
    return generate(*module, options, *target, os);
  };
  if (options.format != HostFormat::Shared) {
    int code = files.add(options.output, write);
    return code ? code : files.keep();
  }
  if (options.output == "-")
    return fail("expected a file for a shared library, by -o");
  SmallString<128> object, library;
  for (auto [suffix, path] : {std::pair("o", &object), {"so", &library}})
    if (std::error_code code =
            llvm::sys::fs::createTemporaryFile("varlen", suffix, *path))
      return fail("no temporary file: " + code.message());
  llvm::FileRemover removeObject(object), removeLibrary(library);
  if (int code = writeFile(object, write))
    return code;
  if (int code = link(object, library, options.output, argv[0]))
    return code;
  auto linked = llvm::MemoryBuffer::getFile(library);
  if (std::error_code code = linked.getError())
    return fail(library + ": cannot be read: " + code.message());
  int code = files.add(options.output, [&](llvm::raw_ostream &os) {
    os << (*linked)->getBuffer();
    return success();
  });
  return code ? code : files.keep();
}
