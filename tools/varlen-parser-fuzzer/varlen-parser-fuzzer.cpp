//===- varlen-parser-fuzzer.cpp - Random text and bytecode as modules -----===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What libFuzzer makes is read as a module, verified and, if it is one, printed
// and read again. As upstream's mlir-parser-fuzzer and
// mlir-bytecode-parser-fuzzer but with our dialects, whose code guides the
// search: LLVM is not instrumented.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/Compiler.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>
#include <string>

using namespace mlir;

/// Our dialects, which bring most of what their operations are used with, and
/// the rest of that.
static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registry.insert<varlen::VarlenDialect, varlen::kernel::KernelDialect,
                  bufferization::BufferizationDialect, func::FuncDialect,
                  memref::MemRefDialect, vector::VectorDialect>();
  return registry;
}

/// Whether a type has an extent that the parser has read although 64 bits do
/// not hold it; it is printed as another one.
static bool hasWrappedExtent(ModuleOp module) {
  AttrTypeWalker walker;
  walker.addWalk([](ShapedType type) {
    bool wrapped =
        type.hasRank() && llvm::any_of(type.getShape(), [](int64_t n) {
          return n < 0 && ShapedType::isStatic(n);
        });
    return wrapped ? WalkResult::interrupt() : WalkResult::advance();
  });
  auto isWrapped = [&](Type type) {
    return walker.walk(type).wasInterrupted();
  };
  return module
      ->walk([&](Operation *op) {
        bool found = llvm::any_of(op->getResultTypes(), isWrapped) ||
                     walker.walk(op->getAttrDictionary()).wasInterrupted();
        for (Region &region : op->getRegions())
          for (Block &block : region)
            found |= llvm::any_of(block.getArgumentTypes(), isWrapped);
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" LLVM_ATTRIBUTE_USED int LLVMFuzzerTestOneInput(const uint8_t *data,
                                                          size_t size) {
  static const DialectRegistry registry = makeRegistry();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler ignore(&context, [](Diagnostic &) {});
  ParserConfig config(&context);
  // The parser wants the zero at the end of a string, which `data` has not.
  std::string text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
  if (!module || hasWrappedExtent(*module))
    return 0;

  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  if (!parseSourceString<ModuleOp>(printed, config)) {
    llvm::errs() << "expected to read what was printed, got an error for\n"
                 << printed << '\n';
    std::abort();
  }
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(*module, stream)) ||
      !parseSourceString<ModuleOp>(bytecode, config)) {
    llvm::errs() << "expected to read the bytecode that was written, got an "
                    "error for\n"
                 << printed << '\n';
    std::abort();
  }
  return 0;
}
