//===- varlen-opt.cpp - mlir-opt with varlen ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"
#include "varlen/InitAll.h"

#include "mlir/Debug/Counter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <optional>
#include <pthread.h>

namespace cl = llvm::cl;
using llvm::StringRef;

/// What --emit writes of functions for a CPU, and of kernels for a GPU.
static constexpr StringRef hostFiles[] = {"llvm", "obj", "so"};
static constexpr StringRef kernelFiles[] = {"ptx", "cubin", "fatbin",
                                            "c-launcher"};

static const char overview[] =
    "Variable-length attention optimiser driver: mlir-opt with Varlen's "
    "dialects, passes and pipelines\n\n"
    "  varlen-opt FILE.mlir --varlen-to-cpu -o OUT.mlir   runs passes\n"
    "  varlen-opt FILE.mlir --emit=obj -o OUT.o           writes a file of "
    "another kind:\n"
    "    llvm, obj, so            functions for a CPU; see --emit=obj --help\n"
    "    ptx, cubin, fatbin,\n"
    "    c-launcher               kernels for a GPU; see --emit=ptx --help\n\n"
    "Below are options of mlir-opt, Varlen's passes and its pipelines. "
    "--help-hidden lists\nthe passes of MLIR, and options of LLVM, too.\n";

/// Whether what is asked for is the short help.
static bool wantsHelp(llvm::ArrayRef<char *> arguments) {
  return llvm::any_of(arguments, [](StringRef argument) {
    return argument == "--help" || argument == "-help" || argument == "-h";
  });
}

/// Hides from --help options of LLVM's libraries, which are there because they
/// are linked, and those that MLIR has for all of its tools.
static void hideOptions() {
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  mlir::tracing::DebugCounter::registerCLOptions();
  for (const auto &[name, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == cl::NotHidden)
      option->setHiddenFlag(cl::Hidden);
}

/// Options that say more about what --emit writes. LLVM would take --header for
/// -h, the short form of --help.
static constexpr StringRef emitOptions[] = {
    "header",  "manifest",      "image",        "chip",
    "strided", "split-numbers", "allow-spills", "report"};

/// The value of an option; nothing without it.
static std::optional<StringRef> findOption(llvm::ArrayRef<char *> arguments,
                                           StringRef option) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef name(arguments[i]);
    if (!name.consume_front("--") && !name.consume_front("-"))
      continue;
    if (!name.consume_front(option))
      continue;
    if (name.consume_front("="))
      return name;
    if (name.empty())
      return i + 1 < arguments.size() ? StringRef(arguments[i + 1]) : "";
  }
  return std::nullopt;
}

/// Whether the system lets the process have another thread. MLIR's pool takes
/// for granted that it does.
static bool canStartThreads() {
  pthread_t thread;
  auto doNothing = [](void *) -> void * { return nullptr; };
  if (pthread_create(&thread, nullptr, doNothing, nullptr) != 0)
    return false;
  pthread_join(thread, nullptr);
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A limit of a file's size is an error of writing to it, not a crash.
  signal(SIGXFSZ, SIG_IGN);
  cl::SetVersionPrinter(mlir::varlen::printVersion);
  mlir::DialectRegistry registry;
  llvm::ArrayRef<char *> arguments(argv, argc);
  std::optional<StringRef> emit = findOption(arguments, "emit");
  bool isHostCode = emit && llvm::is_contained(hostFiles, *emit);
  if (emit && !isHostCode && !llvm::is_contained(kernelFiles, *emit)) {
    llvm::errs() << "error: --emit: expected one of "
                 << llvm::join(llvm::ArrayRef(hostFiles), ", ") << ", "
                 << llvm::join(llvm::ArrayRef(kernelFiles), ", ") << ", got '"
                 << *emit << "'\n";
    return 1;
  }
  for (StringRef option : emitOptions)
    if (!emit && findOption(arguments, option)) {
      llvm::errs() << "error: --" << option
                   << ": expected --emit=FORMAT beside it\n";
      return 1;
    }
  bool isShortHelp = !emit && wantsHelp(arguments);
  // Passes that are not registered are not listed.
  if (isShortHelp)
    hideOptions();
  else
    mlir::varlen::registerUpstream(registry);
  mlir::varlen::registerAllDialects(registry);
  mlir::varlen::registerAllExtensions(registry);
  mlir::varlen::registerAllPasses();
  if (isHostCode)
    return mlir::varlen::emitHost(argc, argv, registry);
  if (emit)
    return mlir::varlen::emitKernels(argc, argv, registry);
  llvm::SmallVector<char *> passed(arguments);
  static char noThreads[] = "--mlir-disable-threading";
  if (!canStartThreads())
    passed.insert(passed.begin() + 1, noThreads);
  int count = static_cast<int>(passed.size());
  passed.push_back(nullptr);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(count, passed.data(), overview, registry));
}
