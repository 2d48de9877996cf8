//===- NVVM.cpp - The varlen-to-nvvm pipeline -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Five stages, each of its own use: tensors to buffers, attention to kernels
// on tiles, tiles to fragments and instructions, kernels to the llvm and nvvm
// dialects, and launches and kernels to what a host can call and a driver
// loads.
//
//===----------------------------------------------------------------------===//

#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Executor/Passes.h"
#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/GPUTarget.h"
#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::buildVarlenAttnToTiles(OpPassManager &manager,
                                    const VarlenToNVVMOptions &options) {
  manager.addPass(createVarlenTileAttn());
  manager.addPass(createVarlenSplitKV());
  manager.addPass(createConvertVarlenToKernel());
  manager.addPass(createConvertTileListsToGPU());
  manager.addPass(createVarlenCheckHostCode());
  VarlenOnlineSoftmaxOptions steps;
  steps.skipsRescaling = true;
  manager.addPass(createVarlenOnlineSoftmax(steps));
  VarlenExpandScoresOptions scores;
  scores.keepsColumns = true;
  manager.addPass(createVarlenExpandScores(scores));
  // Into the kernels go the constants and extents that they use.
  manager.addPass(createGpuLaunchSinkIndexComputationsPass());
  manager.addPass(createGpuKernelOutliningPass());
  manager.addPass(createCanonicalizerPass());
  // Bounds of blocks are clamped to what they are within already.
  manager.addPass(arith::createIntRangeOptimizationsPass());
  manager.addPass(createCSEPass());
}

void varlen::buildVarlenTilesToInstructions(
    OpPassManager &manager, const VarlenToNVVMOptions &options) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  OpPassManager &kernel = kernels.nest<gpu::GPUFuncOp>();
  // Tensor cores have no f32: below this every contraction is of 16 bits.
  kernel.addPass(kernel::createKernelSplitF32());
  kernel.addPass(kernel::createKernelDistribute());
  kernel.addPass(createVarlenExpandGather());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  kernel.addPass(kernel::createKernelDeferRowSum());
  kernel.addPass(kernel::createKernelExpandReductions());
  kernel.addPass(kernel::createKernelPlaceWaits());
  const GPUTarget *gpu = lookupGPUTarget(options.chip);
  kernel::KernelLowerContractOptions contract;
  contract.wgmma = gpu && gpu->hasWgmma;
  if (contract.wgmma) {
    kernel.addPass(kernel::createKernelDeferContract());
    kernel.addPass(kernel::createKernelSplitContract());
  }
  kernel.addPass(kernel::createKernelLowerContract(contract));
  kernel.addPass(kernel::createKernelLowerAccess());
  kernel.addPass(kernel::createKernelExpandMath());
  kernel.addPass(kernel::createKernelCopyByMap());
  // It tells the launches how much shared memory their kernels take.
  kernel::KernelLowerMemoryOptions memory;
  if (gpu)
    memory.sharedBytes = gpu->sharedBytes;
  memory.mbarriers = gpu && gpu->hasTryWait;
  manager.addPass(kernel::createKernelLowerMemory(memory));
  OpPassManager &lowered =
      manager.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel::KernelLowerRolesOptions roles;
  roles.movesRegisters = gpu && gpu->hasSetMaxRegister;
  lowered.addPass(kernel::createKernelLowerRoles(roles));
  // Copies of f32 round, too.
  lowered.addPass(kernel::createKernelPackNarrow());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void varlen::buildVarlenKernelsToNVVM(OpPassManager &manager,
                                      const VarlenToNVVMOptions &options) {
  manager.addPass(createVarlenCheckRegistration({RegistrationStage::Kernels}));
  if (options.barePointers) {
    VarlenFlattenKernelArgumentsOptions flatten;
    flatten.splitNumbers = options.splitNumbers;
    manager.addPass(createVarlenFlattenKernelArguments(flatten));
    manager.addPass(createCanonicalizerPass());
  }
  // For kernels of other producers.
  manager.addPass(createVarlenExpandDeviceMath());
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  // Address arithmetic of views, then control flow; the rest of the order is
  // due to convert-gpu-to-nvvm, which knows better uses for what is left (its
  // maxnumf is a call of libdevice).
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createArithToLLVMConversionPass());
  ConvertGpuOpsToNVVMOpsOptions nvvm;
  nvvm.useBarePtrCallConv = options.barePointers;
  kernels.addPass(createConvertGpuOpsToNVVMOps(nvvm));
  kernels.addPass(createReconcileUnrealizedCastsPass());
  if (const GPUTarget *gpu = lookupGPUTarget(options.chip);
      gpu && gpu->hasGridControl)
    kernels.addPass(createVarlenWaitForGrids());
  VarlenAttachTargetOptions target;
  target.chip = options.chip;
  target.ptx = options.ptx;
  target.needsToolkit =
      options.format != GPUFormat::MLIR && options.format != GPUFormat::Sim;
  manager.addPass(createVarlenAttachTarget(target));
}

void varlen::buildVarlenLaunchesToLLVM(OpPassManager &manager,
                                       const VarlenToNVVMOptions &options) {
  manager.addPass(createVarlenCheckRegistration({RegistrationStage::ToLLVM}));
  // For modules that begin here: before anything else is declared.
  manager.addPass(createVarlenRenameFunctions());
  if (options.format == GPUFormat::Sim)
    manager.addPass(createConvertNVVMToExecutor());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  GpuToLLVMConversionPassOptions host;
  host.kernelBarePtrCallConv = options.barePointers;
  manager.addPass(createGpuToLLVMConversionPass(host));
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createVarlenRestoreNames());
  if (options.format == GPUFormat::MLIR || options.format == GPUFormat::Sim)
    return;
  manager.addPass(createVarlenCheckRegistration({RegistrationStage::PTX}));
  // Instructions that LLVM has no intrinsic for, kernel.wgmma among them.
  manager.nest<gpu::GPUModuleOp>().addPass(createConvertNVVMToLLVMPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = "isa";
  manager.addPass(createGpuModuleToBinaryPass(binary));
  if (options.format == GPUFormat::PTX)
    return;
  VarlenAssembleOptions assemble;
  assemble.allowSpills = options.allowSpills;
  assemble.report = options.report;
  assemble.fatbin = options.format == GPUFormat::Fatbin;
  manager.addPass(createVarlenAssemble(assemble));
}

void varlen::buildVarlenToLaunches(OpPassManager &manager,
                                   const VarlenToNVVMOptions &options) {
  buildVarlenBufferize(manager, {/*target=*/"host", options.chip});
  buildVarlenAttnToTiles(manager, options);
  buildVarlenTilesToInstructions(manager, options);
  buildVarlenKernelsToNVVM(manager, options);
  // Not a part of that stage: hand-written kernels reach the executor as
  // they were written.
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

void varlen::buildVarlenToNVVM(OpPassManager &manager,
                               const VarlenToNVVMOptions &options) {
  buildVarlenToLaunches(manager, options);
  buildVarlenLaunchesToLLVM(manager, options);
  manager.addPass(createVarlenUseDeviceMemory());
}

FailureOr<StringRef> varlen::findKernelCode(ModuleOp module) {
  SmallVector<gpu::BinaryOp> binaries;
  module.walk([&](gpu::BinaryOp binary) { binaries.push_back(binary); });
  if (binaries.empty())
    return emitError(module.getLoc(), "expected a function with varlen "
                                      "operations or linalg, found no kernel");
  if (binaries.size() > 1)
    return binaries.back().emitError("expected kernels of one gpu.module for "
                                     "one file, got ")
           << binaries.size();
  auto object = cast<gpu::ObjectAttr>(binaries.front().getObjects()[0]);
  StringRef code = object.getObject().getValue();
  // PTX comes with the 0 that ends a C string.
  return object.getFormat() == gpu::CompilationTarget::Assembly
             ? code.rtrim('\0')
             : code;
}
