//===- InitAll.cpp - Registration of everything varlen --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/InitAll.h"

#include "varlen/ABI/Passes.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/IR/MPIEffects.h"
#include "varlen/Dialect/Varlen/IR/ShardingInterfaceImpl.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/BufferizableOpInterfaceImpl.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/RuntimeVerification.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Executor/Passes.h"
#include "varlen/Import/Passes.h"
#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/CPU/Passes.h"
#include "varlen/Target/NVVM/Passes.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

void varlen::registerAllDialects(DialectRegistry &registry) {
  registry.insert<VarlenDialect, kernel::KernelDialect>();
}

void varlen::registerAllExtensions(DialectRegistry &registry) {
  registerBufferizableOpInterfaceExternalModels(registry);
  registerRuntimeVerifiableOpInterfaceExternalModels(registry);
  registerShardingInterfaceExternalModels(registry);
  registerMPIEffectsExternalModels(registry);
  registerDerivativeExternalModels(registry);
}

void varlen::registerAllPasses() {
  registerVarlenTransformsPasses();
  registerVarlenLinalgPasses();
  kernel::registerKernelTransformsPasses();
  registerVarlenConversionPasses();
  registerVarlenImportPasses();
  registerVarlenABIPasses();
  registerVarlenCPUPasses();
  registerVarlenNVVMPasses();
  registerVarlenExecutorPasses();
  registerVarlenPipelinesPasses();
  registerPipelines();
}

void varlen::printVersion(llvm::raw_ostream &os) {
  os << "Varlen " VARLEN_VERSION "\nLLVM " LLVM_VERSION_STRING "\n";
}
