//===- CodeGeneration.h - From LLVM IR to an object file --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTIONENGINE_CODEGENERATION_H
#define VARLEN_LIB_EXECUTIONENGINE_CODEGENERATION_H

#include "llvm/Support/Error.h"

#include <string>

namespace llvm {
class Function;
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::varlen {

/// Whether this is a kernel for the executor, or a part of one.
bool isExecutorKernel(const llvm::Function &function);

/// Generates code for what makeOptimizingTransformer has optimised, as an
/// object file. Errors of `code` go to the handler of its LLVM context.
llvm::Error emitObject(llvm::Module &code, llvm::TargetMachine &machine,
                       std::string &object);

} // namespace mlir::varlen

#endif // VARLEN_LIB_EXECUTIONENGINE_CODEGENERATION_H
