//===- EmitFile.cpp - Files that varlen-opt reads and writes --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitFile.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::varlen;

int varlen::fail(const Twine &message) {
  llvm::errs() << "varlen-opt: " << message << "\n";
  return 1;
}

OwningOpRef<ModuleOp> varlen::readFile(StringRef path, llvm::SourceMgr &sources,
                                       MLIRContext &context) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &error);
  if (!file) {
    fail(error);
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

int varlen::writeFile(
    StringRef path,
    function_ref<LogicalResult(llvm::raw_pwrite_stream &)> write) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &error);
  if (!file)
    return fail(error);
  // A code generator goes back in what it writes, which a pipe cannot.
  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  if (failed(write(stream)))
    return 1;
  file->os() << stream.str();
  file->os().flush();
  if (std::error_code code = file->os().error()) {
    file->os().clear_error();
    return fail(path + ": cannot be written: " + code.message());
  }
  file->keep();
  return 0;
}
