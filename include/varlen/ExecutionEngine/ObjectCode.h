//===- ObjectCode.h - Machine code that can be kept -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles modules that varlen-to-cpu has lowered to object files in memory,
// and loads such objects, which may have been stored in a file, into this
// process.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTIONENGINE_OBJECTCODE_H
#define VARLEN_EXECUTIONENGINE_OBJECTCODE_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::varlen {

/// Generates code for `module`, in the llvm dialect, as object files: several
/// for a large module, which are made at the same time, on the threads of
/// varlen_parallel_for. The same module has the same files, however many
/// threads there are. Each of `functions` can be looked up in them: as a
/// function of an array with the addresses of its arguments and, last, of where
/// to store what it returns. Takes functions out of `module`. With
/// VARLEN_CODEGEN=fast in the environment LLVM selects instructions without
/// optimising them: a third of the time of compilation less, for slower code.
llvm::Expected<std::vector<std::string>>
compileToObjects(ModuleOp module, const CPUTarget &target,
                 llvm::ArrayRef<std::string> functions);

/// The object files of compileToObjects in this process.
class LoadedObjects {
public:
  using Entry = void (*)(void **arguments);
  /// Calls visit(name, address) for what the code may call beside functions of
  /// the process.
  using Symbols = llvm::function_ref<void(
      llvm::function_ref<void(llvm::StringRef, void *)> visit)>;

  /// Copies the files, and runs the constructors of the module, if it has any.
  static llvm::Expected<std::unique_ptr<LoadedObjects>>
  create(llvm::ArrayRef<std::string> objects, Symbols symbols);
  /// Runs its destructors.
  ~LoadedObjects();

  llvm::Expected<Entry> lookup(llvm::StringRef function) const;

private:
  explicit LoadedObjects(std::unique_ptr<llvm::orc::LLJIT> jit);
  void runIfPresent(llvm::StringRef function) const;

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace mlir::varlen

#endif // VARLEN_EXECUTIONENGINE_OBJECTCODE_H
