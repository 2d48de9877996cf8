//===- EmitFile.h - Files that varlen-opt reads and writes ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_EMITFILE_H
#define VARLEN_OPT_EMITFILE_H

#include "../support/OutputFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llvm {
class raw_pwrite_stream;
class SourceMgr;
} // namespace llvm

namespace mlir::varlen {

/// Says what is wrong; 1, the exit code of the program.
int fail(const Twine &message);

/// The module of a file, "-" being the standard input; null, with an error, if
/// it has none.
OwningOpRef<ModuleOp> readFile(StringRef path, llvm::SourceMgr &sources,
                               MLIRContext &context);

/// Says which of these may not be written, if any; the exit code of the
/// program.
/// "-" and "" are no files.
int checkFiles(StringRef input, ArrayRef<varlen_tools::NamedFile> outputs);

/// What a program writes: all of it, or no file at all.
class OutputFiles {
public:
  using Write = function_ref<LogicalResult(llvm::raw_pwrite_stream &)>;

  /// Calls `write` with a stream to a file, "-" being the standard output, that
  /// is removed unless it is kept. Returns the exit code of the program.
  int add(StringRef path, Write write);
  /// Gives all files their names. Returns the exit code of the program.
  int keep();

private:
  std::vector<varlen_tools::OutputFile> files;
  std::string standardOutput;
};

/// Writes one file.
int writeFile(StringRef path, OutputFiles::Write write);

} // namespace mlir::varlen

#endif // VARLEN_OPT_EMITFILE_H
