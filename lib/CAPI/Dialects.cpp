//===- Dialects.cpp - For hosts that have an MlirContext ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen-c/Dialects.h"

#include "Status.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/InitAll.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"

#include <string>

using namespace mlir;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Varlen, varlen,
                                      mlir::varlen::VarlenDialect)
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Kernel, kernel,
                                      mlir::varlen::kernel::KernelDialect)

void varlenRegisterAllDialects(MlirDialectRegistry registry) {
  varlen::registerAllDialects(*unwrap(registry));
  varlen::registerAllExtensions(*unwrap(registry));
}

void varlenRegisterRequiredUpstream(MlirDialectRegistry registry) {
  varlen::registerRequiredUpstream(*unwrap(registry));
}

void varlenRegisterAllPasses() {
  // Registering a pipeline twice is an error.
  [[maybe_unused]] static bool done = (varlen::registerAllPasses(), true);
}

VarlenStatus varlenCompileModule(MlirModule module,
                                 const VarlenCompileOptions *options,
                                 VarlenProgram *program) {
  if (!module.ptr)
    return varlen_capi::fail(VARLEN_INVALID_ARGUMENT,
                             "expected a module, got null");
  // The compilation has a context of its own, which the host's does not notice.
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(unwrap(module), stream)))
    return varlen_capi::fail(VARLEN_INVALID_ARGUMENT,
                             "the module cannot be written as bytecode");
  return varlenCompile(bytecode.data(), bytecode.size(), options, program);
}
