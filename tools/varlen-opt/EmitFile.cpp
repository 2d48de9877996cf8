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

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

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

int varlen::checkFiles(StringRef input,
                       ArrayRef<varlen_tools::NamedFile> outputs) {
  auto isFile = [](StringRef path) { return !path.empty() && path != "-"; };
  std::vector<varlen_tools::NamedFile> inputs, given;
  if (isFile(input))
    inputs.push_back({"the module", input.str()});
  llvm::copy_if(outputs, std::back_inserter(given),
                [&](const auto &file) { return isFile(file.path); });
  llvm::Error error = varlen_tools::checkOutputs(inputs, given);
  return error ? fail(llvm::toString(std::move(error))) : 0;
}

int OutputFiles::add(StringRef path, Write write) {
  // A code generator goes back in what it writes, which a pipe cannot.
  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  if (failed(write(stream)))
    return 1;
  if (path == "-") {
    standardOutput += stream.str();
    return 0;
  }
  auto file = varlen_tools::OutputFile::write(
      path, [&](llvm::raw_ostream &os) { os << stream.str(); });
  if (!file)
    return fail(llvm::toString(file.takeError()));
  files.push_back(std::move(*file));
  return 0;
}

int OutputFiles::keep() {
  llvm::outs() << standardOutput;
  llvm::outs().flush();
  if (std::error_code code = llvm::outs().error()) {
    llvm::outs().clear_error();
    return fail("stdout: cannot be written: " + code.message());
  }
  for (varlen_tools::OutputFile &file : files)
    if (llvm::Error error = file.keep())
      return fail(llvm::toString(std::move(error)));
  return 0;
}

int varlen::writeFile(StringRef path, OutputFiles::Write write) {
  OutputFiles files;
  if (int code = files.add(path, write))
    return code;
  return files.keep();
}
