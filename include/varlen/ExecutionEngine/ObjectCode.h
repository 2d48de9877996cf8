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
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::varlen {

/// Generates code for `module`, in the llvm dialect, as an object file. Each of
/// `functions`, which return nothing, can be looked up in it: as a function of
/// an array with the addresses of its arguments.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileToObject(ModuleOp module, const CPUTarget &target,
                llvm::ArrayRef<std::string> functions);

/// An object file of compileToObject in this process.
class LoadedObject {
public:
  using Entry = void (*)(void **arguments);
  /// Calls visit(name, address) for what the code may call beside functions of
  /// the process.
  using Symbols = llvm::function_ref<void(
      llvm::function_ref<void(llvm::StringRef, void *)> visit)>;

  /// `object` is copied.
  static llvm::Expected<std::unique_ptr<LoadedObject>>
  create(llvm::MemoryBufferRef object, Symbols symbols);
  ~LoadedObject();

  llvm::Expected<Entry> lookup(llvm::StringRef function) const;

private:
  explicit LoadedObject(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace mlir::varlen

#endif // VARLEN_EXECUTIONENGINE_OBJECTCODE_H
