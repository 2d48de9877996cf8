//===- CPU.cpp - The varlen-to-cpu pipeline -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three stages, each of its own use: tensors to buffers, attention to vector
// loops on threads, everything to the llvm dialect. Compile time counts (a
// JIT's first result): no step is there that changes nothing.
//
//===----------------------------------------------------------------------===//

#include "varlen/ABI/Passes.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/CPU/Passes.h"
#include "varlen/Target/CPUTarget.h"
#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::buildVarlenBufferize(OpPassManager &manager,
                                  const VarlenAssignScheduleOptions &schedule) {
  manager.addPass(
      createVarlenCheckRegistration({RegistrationStage::Bufferize}));
  // Before passes call functions of the runtime.
  manager.addPass(createVarlenRenameFunctions());
  // Before others, while public and private still mean what the user wrote.
  manager.addPass(createVarlenExportFunctions());
  // Schedules are for the op on tensors; what gets none is written out while
  // it still is one.
  manager.addPass(createVarlenAssignSchedule(schedule));
  // On a GPU nothing would run it then.
  bool isGPU = !schedule.chip.empty();
  if (!isGPU)
    manager.addPass(createVarlenGuardAttn());
  manager.addPass(
      createVarlenDecomposeAttn({/*unscheduled=*/true, /*mergesOnly=*/isGPU}));
  manager.addPass(createVarlenAddDestinations());
  // While extensions are operations on tensors.
  manager.addNestedPass<func::FuncOp>(createVarlenNarrowContractions());
  // Tensor code that has no bufferization of its own.
  manager.addPass(createConvertElementwiseToLinalgPass());
  manager.addPass(createConvertTensorToLinalgPass());
  // Extents in terms of the arguments: upstream compares the bounds of a chain
  // of loops, each of which has its extents from the one before, in a time that
  // doubles with each of them (docs/notes/cpu-level.md).
  manager.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  // While producers and consumers are known.
  manager.addNestedPass<func::FuncOp>(createVarlenDecomposeLinalg());
  if (isGPU) {
    manager.addNestedPass<func::FuncOp>(createVarlenKeepOnDevice());
    manager.addNestedPass<func::FuncOp>(createVarlenFuseLinalg());
  } else {
    manager.addNestedPass<func::FuncOp>(
        createVarlenTileLinalg({schedule.target}));
    // Of tiles, once it is known which of them are computed together.
    manager.addNestedPass<func::FuncOp>(createVarlenFuseReductions());
  }
  // A tensor.empty that ends up in a slice is that slice.
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addNestedPass<func::FuncOp>(createVarlenSeparateResults());
  // What a branch of a check allocates is then known to have the identity
  // layout; its results would be copied otherwise.
  manager.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  bufferize.allowReturnAllocsFromLoops = true;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  // Right after bufferization, before anybody allocates by hand: the caller
  // owns results, and no argument is freed or returned.
  bufferization::buildBufferDeallocationPipeline(manager);
  // After the last use, not at the end of the block: a model of many layers
  // then has the buffers of one.
  if (!isGPU)
    manager.addNestedPass<func::FuncOp>(
        bufferization::createOptimizeAllocationLivenessPass());
  manager.addPass(createConvertBufferizationToMemRefPass());
  // The user's own linalg and vectors, and the copies that bufferization made:
  // now, while attention is one operation and these passes have little to walk.
  manager.addPass(createVarlenExpandCopies());
  if (isGPU) {
    manager.addPass(createVarlenLaunchLinalg());
    // What attention computes is exact enough with the instructions that its
    // own kernels use; these are not.
    manager.addPass(createVarlenExpandDeviceMath());
  } else {
    manager.addNestedPass<func::FuncOp>(
        createVarlenVectorizeLinalg({schedule.target}));
    // Unrolled: what goes through memory instead is a buffer on the stack, in
    // the body of the loop that a transfer is in, one more with each trip.
    manager.addPass(createConvertVectorToSCFPass(
        VectorTransferToSCFOptions().enableFullUnroll()));
    manager.addPass(createConvertVectorToLLVMPass());
  }
}

static VarlenExpandExp2Options
getExp2Options(const VarlenToCPUOptions &options) {
  const CPUTarget *target = lookupCPUTarget(options.target);
  VarlenExpandExp2Options exp2;
  exp2.scale = target && target->hasScale;
  return exp2;
}

void varlen::buildVarlenTilesToVectors(OpPassManager &manager,
                                       const VarlenToCPUOptions &options) {
  // Before others are fused with what products read.
  manager.addPass(createVarlenPairFactors());
  manager.addNestedPass<func::FuncOp>(createVarlenFuseReductions());
  manager.addPass(createVarlenPlaceTiles());
  manager.addPass(createVarlenExpandScores());
  // Before vectorisation, which interleaves the arithmetic of several vectors;
  // but instructions that scale are there for whole vectors only.
  VarlenExpandExp2Options exp2 = getExp2Options(options);
  if (!exp2.scale)
    manager.addPass(createVarlenExpandExp2(exp2));
  manager.addPass(bufferization::createOneShotBufferizePass());
  manager.addPass(createVarlenExpandCopies());
  manager.addNestedPass<func::FuncOp>(
      createVarlenVectorizeLinalg({options.target}));
}

void varlen::buildVarlenAttnToLoops(OpPassManager &manager,
                                    const VarlenToCPUOptions &options) {
  manager.addPass(
      createVarlenCheckRegistration({RegistrationStage::Bufferize}));
  manager.addPass(createVarlenTileAttn());
  manager.addPass(createVarlenSplitKV());
  manager.addPass(createVarlenSpecializeFew());
  manager.addPass(createConvertVarlenToCPU());
  manager.addPass(createVarlenExpandQueries());
  manager.addPass(createVarlenOnlineSoftmax());
  manager.addPass(createVarlenExpandRows());
  manager.addPass(createVarlenChooseCopies());
  manager.addPass(createVarlenExpandTableSums());
  manager.addPass(createVarlenExpandAppend());
  buildVarlenTilesToVectors(manager, options);
  manager.addPass(createVarlenExpandGather());
  manager.addPass(createVarlenBoundAllocs());
  // Also what functions of vectors have become.
  manager.addPass(createVarlenExpandExp2(getExp2Options(options)));
  // The views of tiling; also the buffers that no tile reads.
  manager.addPass(createCSEPass());
  // While captured values still are memrefs.
  manager.addPass(createVarlenOutlineWork());
  manager.addPass(createVarlenSplitWork());
  manager.addPass(createForallToForLoopPass());
  manager.addPass(createConvertVarlenToRuntime());
}

void varlen::buildVarlenLowerToLLVM(OpPassManager &manager,
                                    const VarlenToCPUOptions &options) {
  const CPUTarget *target = lookupCPUTarget(options.target);
  manager.addPass(createVarlenCheckRegistration({RegistrationStage::ToLLVM}));
  // For modules that begin here: before anything else is declared.
  manager.addPass(createVarlenRenameFunctions());
  // While loops say what they carry, and functions are not LLVM's.
  manager.addPass(createVarlenLegalizeForCPU({options.target}));
  // What changes nothing outside of a function runs on several at a time.
  manager.addPass(createVarlenConvertPrints());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  // memref.reshape, which upstream lowers in no other way.
  functions.addPass(memref::createExpandOpsPass());
  // Address arithmetic of views, which makes affine maps; then control flow;
  // then everything at once.
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createSCFToControlFlowPass());
  // Masks, and instructions of one CPU, are none of the conversions below.
  ConvertVectorToLLVMPassOptions vectors;
  vectors.x86Vector = target && target->arch == llvm::Triple::x86_64;
  functions.addPass(createConvertVectorToLLVMPass(vectors));
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  // Neighbouring accesses compute the same addresses, and what is not there
  // need not be translated.
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCSEPass());
  manager.addPass(createVarlenRestoreNames());
  manager.addPass(createVarlenFinalizeLLVM({options.target}));
}

void varlen::buildVarlenToCPU(OpPassManager &manager,
                              const VarlenToCPUOptions &options) {
  buildVarlenBufferize(manager, {options.target, /*chip=*/""});
  buildVarlenAttnToLoops(manager, options);
  buildVarlenLowerToLLVM(manager, options);
}
