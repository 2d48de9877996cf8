//===- ExecutionEngine.h - Running what the pipelines make ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a host needs beside upstream's ExecutionEngine to run a module that
// varlen-to-cpu has lowered.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTIONENGINE_EXECUTIONENGINE_H
#define VARLEN_EXECUTIONENGINE_EXECUTIONENGINE_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::varlen {

/// A higher level would add a second round of scheduling, which gains nothing
/// on out-of-order CPUs.
inline constexpr auto kCodeGenLevel = llvm::CodeGenOptLevel::Less;

/// Initialises LLVM's target of this machine; once, whatever threads call it.
void initializeNativeTarget();

/// The machine that code for `target` is generated with in a JIT. LLVM's
/// targets must be initialised.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const CPUTarget &target);

/// The same for code in files: independent of its position, and for programs
/// that are linked later.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeFileTargetMachine(const CPUTarget &target);

/// LLVM's passes for the code of varlen-to-cpu, a `transformer` of
/// mlir::ExecutionEngineOptions: the loops of attention are blocked and
/// vectorised already, and their passes take a fifth of the time of -O1; other
/// loops are vectorised. `machine` must outlive the transformer.
std::function<llvm::Error(llvm::Module *)>
makeOptimizingTransformer(const CPUTarget &target,
                          llvm::TargetMachine &machine);

/// Calls visit(name, address) for each function of varlen/Runtime that compiled
/// code may call.
void forEachRuntimeSymbol(
    llvm::function_ref<void(llvm::StringRef, void *)> visit);

/// Makes these functions available to compiled code.
void registerRuntimeSymbols(ExecutionEngine &engine);

/// An engine for `module`, in the llvm dialect, with all of the above, for
/// hosts that do not create their own. `addSymbols` is called before
/// constructors run.
llvm::Expected<std::unique_ptr<ExecutionEngine>>
createExecutionEngine(Operation *module, const CPUTarget &target,
                      llvm::function_ref<void(ExecutionEngine &)> addSymbols =
                          registerRuntimeSymbols);

} // namespace mlir::varlen

#endif // VARLEN_EXECUTIONENGINE_EXECUTIONENGINE_H
