//===- Emit.cpp - Kernels as files ----------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"

#include "EmitFile.h"
#include "EmitLauncher.h"
#include "varlen/ExecutionEngine/CompileThreads.h"
#include "varlen/Launch/Manifest.h"
#include "varlen/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::varlen;

namespace cl = llvm::cl;

namespace {
enum class KernelFile { PTX, Cubin, Fatbin, Launcher };

struct EmitOptions {
  cl::OptionCategory category{
      "Options of --emit=ptx, --emit=cubin, --emit=fatbin and "
      "--emit=c-launcher"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<input file>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Output file"),
                              cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<KernelFile> file{
      "emit", cl::desc("Run varlen-to-nvvm and write the kernels as"),
      cl::values(
          clEnumValN(KernelFile::PTX, "ptx", "PTX text"),
          clEnumValN(KernelFile::Cubin, "cubin", "machine code"),
          clEnumValN(KernelFile::Fatbin, "fatbin", "machine code and PTX"),
          clEnumValN(KernelFile::Launcher, "c-launcher",
                     "C that launches them by the CUDA driver API, with the "
                     "kernels in it")),
      cl::Required, cl::cat(category)};
  cl::opt<GPUFormat> image{
      "image", cl::desc("What the kernels in a C launcher are"),
      cl::values(
          clEnumValN(GPUFormat::PTX, "ptx", "PTX text"),
          clEnumValN(GPUFormat::Cubin, "cubin", "machine code"),
          clEnumValN(GPUFormat::Fatbin, "fatbin", "machine code and PTX")),
      cl::init(GPUFormat::Cubin), cl::cat(category)};
  cl::opt<std::string> manifest{
      "manifest",
      cl::desc("Kernels take bare pointers; write to this file, as JSON, how "
               "they are launched"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> header{"header",
                              cl::desc("Write declarations of a C launcher to "
                                       "this file"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> strided{
      "strided",
      cl::desc("Tensors of a manifest or a C launcher have any strides but the "
               "last, which is 1"),
      cl::cat(category)};
  cl::opt<bool> splitNumbers{
      "split-numbers",
      cl::desc("Kernels of a manifest or a C launcher take numbers of 64 bits "
               "as two of 32 bits, the low one first"),
      cl::cat(category)};
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

/// The format of the kernels, wherever they are written.
static GPUFormat getFormat(const EmitOptions &options) {
  switch (options.file) {
  case KernelFile::PTX:
    return GPUFormat::PTX;
  case KernelFile::Cubin:
    return GPUFormat::Cubin;
  case KernelFile::Fatbin:
    return GPUFormat::Fatbin;
  case KernelFile::Launcher:
    return options.image;
  }
  llvm_unreachable("unknown file");
}

int varlen::emitKernels(int argc, char **argv, DialectRegistry &registry) {
  llvm::InitLLVM init(argc, argv);
  varlen_tools::ignoreStreamSignals();
  EmitOptions options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Variable-length attention kernels\n");
  bool isLauncher = options.file == KernelFile::Launcher;
  bool isPlanned = isLauncher || !options.manifest.empty();
  if (!isLauncher && !options.header.empty())
    return fail("expected --header with --emit=c-launcher only");
  if (!isPlanned && (options.strided || options.splitNumbers))
    return fail("expected --strided and --split-numbers with --manifest or "
                "--emit=c-launcher only");

  if (int status = checkFiles(options.input, {{"-o", options.output},
                                              {"--manifest", options.manifest},
                                              {"--header", options.header}}))
    return status;

  llvm::SourceMgr sources;
  // Threads that cannot be started are no error.
  CompileThreads threads;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.setThreadPool(threads);
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = readFile(options.input, sources, context);
  if (!module)
    return 1;
  // Kernels are named after functions; LLVM aborts at names that PTX has not.
  for (auto function : module->getOps<func::FuncOp>())
    if (failed(checkCName(function, function.getName())))
      return 1;
  VarlenToNVVMOptions pipeline;
  pipeline.chip = std::string(options.chip);
  pipeline.ptx = static_cast<int64_t>(options.ptx);
  pipeline.format = getFormat(options);
  pipeline.allowSpills = static_cast<bool>(options.allowSpills);
  pipeline.report = static_cast<bool>(options.report);
  pipeline.barePointers = isPlanned;
  pipeline.splitNumbers = static_cast<bool>(options.splitNumbers);
  std::vector<LaunchPlan> plans;
  PassManager manager(&context);
  // What was read has been verified, and the pipelines' own tests verify what
  // passes make: it would be a third of their time.
  manager.enableVerifier(false);
  if (isPlanned) {
    FailureOr<std::vector<LaunchPlan>> made =
        planLaunches(*module, pipeline, options.strided);
    if (failed(made))
      return 1;
    plans = std::move(*made);
    buildVarlenLaunchesToLLVM(manager, pipeline);
  } else {
    buildVarlenToNVVM(manager, pipeline);
  }
  if (failed(manager.run(*module)))
    return 1;
  FailureOr<StringRef> code = findKernelCode(*module);
  if (failed(code))
    return 1;

  OutputFiles files;
  if (!options.manifest.empty())
    if (int status = files.add(options.manifest, [&](llvm::raw_ostream &os) {
          emitManifest(plans, pipeline, os);
          return success();
        }))
      return status;
  if (!options.header.empty())
    if (int status = files.add(options.header, [&](llvm::raw_ostream &os) {
          return emitLauncherHeader(*module, plans, os);
        }))
      return status;
  int status = files.add(options.output, [&](llvm::raw_ostream &os) {
    if (isLauncher)
      return emitLauncher(*module, plans, *code, os);
    os << *code;
    return success();
  });
  return status ? status : files.keep();
}
