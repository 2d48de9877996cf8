//===- Emit.cpp - Kernels as files ----------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"

#include "varlen/Pipelines/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::varlen;

namespace cl = llvm::cl;

bool varlen::wantsEmit(int argc, char **argv) {
  return llvm::any_of(llvm::ArrayRef(argv, argc), [](const char *argument) {
    StringRef name(argument);
    return (name.consume_front("--") || name.consume_front("-")) &&
           (name == "emit" || name.starts_with("emit="));
  });
}

namespace {
struct EmitOptions {
  cl::OptionCategory category{"Options of --emit"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<input file>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Output file"),
                              cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<GPUFormat> format{
      "emit", cl::desc("Run varlen-to-nvvm and write the kernels as"),
      cl::values(
          clEnumValN(GPUFormat::PTX, "ptx", "PTX text"),
          clEnumValN(GPUFormat::Cubin, "cubin", "machine code"),
          clEnumValN(GPUFormat::Fatbin, "fatbin", "machine code and PTX")),
      cl::Required, cl::cat(category)};
  cl::opt<std::string> chip{"chip", cl::desc("GPU to generate code for"),
                            cl::init("sm_80"), cl::cat(category)};
  cl::opt<int64_t> ptx{"ptx", cl::desc("Version of PTX, times 10"),
                       cl::init(90), cl::cat(category)};
  cl::opt<bool> allowSpills{"allow-spills",
                            cl::desc("Accept kernels that spill registers"),
                            cl::cat(category)};
  cl::opt<bool> report{"report",
                       cl::desc("A remark on each kernel's registers"),
                       cl::cat(category)};
};
} // namespace

int varlen::emitKernels(int argc, char **argv, DialectRegistry &registry) {
  llvm::InitLLVM init(argc, argv);
  EmitOptions options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Variable-length attention kernels\n");

  auto fail = [&](const Twine &message) {
    llvm::errs() << "varlen-opt: " << message << "\n";
    return 1;
  };
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInputFile(options.input, &error);
  if (!file)
    return fail(error);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  MLIRContext context(registry);
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;

  VarlenToNVVMOptions pipeline;
  pipeline.chip = options.chip;
  pipeline.ptx = options.ptx;
  pipeline.format = options.format;
  pipeline.allowSpills = options.allowSpills;
  pipeline.report = options.report;
  PassManager manager(&context);
  buildVarlenToNVVM(manager, pipeline);
  if (failed(manager.run(*module)))
    return 1;
  StringAttr code = findKernelCode(*module);
  if (!code)
    return 1;
  std::unique_ptr<llvm::ToolOutputFile> output =
      openOutputFile(options.output, &error);
  if (!output)
    return fail(error);
  // PTX comes with the 0 that ends a C string.
  StringRef text = code.getValue();
  output->os() << (options.format == GPUFormat::PTX ? text.rtrim('\0') : text);
  // What is half there is removed.
  output->os().flush();
  if (std::error_code code = output->os().error()) {
    output->os().clear_error();
    return fail(options.output + ": cannot be written: " + code.message());
  }
  output->keep();
  return 0;
}
