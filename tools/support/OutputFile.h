//===- OutputFile.h - Files written whole or not at all ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_SUPPORT_OUTPUTFILE_H
#define VARLEN_TOOLS_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace varlen_tools {

/// A file of the command line: what it is there for, and its path.
struct NamedFile {
  std::string role, path;
};

/// Checks that no two outputs are the same file, and that none is a file that
/// is read, or a folder.
llvm::Error checkOutputs(llvm::ArrayRef<NamedFile> inputs,
                         llvm::ArrayRef<NamedFile> outputs);

/// Makes what can go wrong with a stream an error of writing to it. By default
/// a reader that has gone, or a limit of a file's size, ends the process
/// without a word.
void ignoreStreamSignals();

/// A file under a temporary name in the folder where it will be. It gets its
/// name when all that a run writes is complete, and is removed if it does not.
/// Where the name is that of a device or a FIFO, there is nothing to replace:
/// that is written to at once.
class OutputFile {
public:
  static llvm::Expected<OutputFile>
  write(llvm::StringRef path,
        llvm::function_ref<void(llvm::raw_ostream &)> print);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  llvm::Error keep();

private:
  OutputFile(std::string path, std::string target, std::string temporary)
      : path(std::move(path)), target(std::move(target)),
        temporary(std::move(temporary)) {}

  /// As the user has it, and where links lead.
  std::string path, target;
  /// Empty: nothing is left to be done.
  std::string temporary;
};

} // namespace varlen_tools

#endif // VARLEN_TOOLS_SUPPORT_OUTPUTFILE_H
