//===- Pipelines.h - From varlen.attn to a target ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_PIPELINES_PIPELINES_H
#define VARLEN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace mlir::varlen {

struct VarlenAssignScheduleOptions;

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

struct VarlenToCPUOptions : PassPipelineOptions<VarlenToCPUOptions> {
  PassOptions::Option<std::string> target{
      *this, "target",
      llvm::cl::desc("CPU to generate code for: host, or a name of the target "
                     "table (avx2, avx512, avx512_bf16, neon)"),
      llvm::cl::init("host")};
};

/// Adds the passes that take functions on tensors with varlen.attn to the llvm
/// dialect. Runs on a module.
void buildVarlenToCPU(OpPassManager &manager,
                      const VarlenToCPUOptions &options);

/// The stages of the pipeline above, in order: tensors to buffers with owners,
/// and schedules (any target's) for what is tiled; varlen.attn on buffers to
/// vector loops that run on the threads of the runtime; loops and upstream
/// operations to the llvm dialect.
void buildVarlenBufferize(OpPassManager &manager,
                          const VarlenAssignScheduleOptions &schedule);
void buildVarlenAttnToLoops(OpPassManager &manager,
                            const VarlenToCPUOptions &options);
void buildVarlenLowerToLLVM(OpPassManager &manager,
                            const VarlenToCPUOptions &options);

/// The part of buildVarlenAttnToLoops that writes linalg on the tiles of a step
/// (varlen-online-softmax) as loops over vectors.
void buildVarlenTilesToVectors(OpPassManager &manager,
                               const VarlenToCPUOptions &options);

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

/// What becomes of the kernels.
enum class GPUFormat {
  /// A gpu.module in the llvm and nvvm dialects, with the instructions of the
  /// kernel dialect that these lack.
  MLIR,
  /// A gpu.binary of PTX text, machine code, or both.
  PTX,
  Cubin,
  Fatbin,
  /// Functions of the host, for the executor.
  Sim,
};

struct VarlenToNVVMOptions : PassPipelineOptions<VarlenToNVVMOptions> {
  PassOptions::Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("GPU to generate code for, a name of its table (sm_80, "
                     "sm_90, ...)"),
      llvm::cl::init("sm_80")};
  PassOptions::Option<int64_t> ptx{
      *this, "ptx", llvm::cl::desc("Version of PTX to write, times 10"),
      llvm::cl::init(90)};
  PassOptions::Option<GPUFormat> format{
      *this, "format", llvm::cl::desc("What becomes of the kernels"),
      llvm::cl::init(GPUFormat::Cubin),
      llvm::cl::values(
          clEnumValN(GPUFormat::MLIR, "mlir", "the nvvm dialect"),
          clEnumValN(GPUFormat::PTX, "ptx", "PTX text"),
          clEnumValN(GPUFormat::Cubin, "cubin", "machine code, by ptxas"),
          clEnumValN(GPUFormat::Fatbin, "fatbin", "machine code and PTX"),
          clEnumValN(GPUFormat::Sim, "sim",
                     "functions of the host, for the executor"))};
  PassOptions::Option<bool> allowSpills{
      *this, "allow-spills",
      llvm::cl::desc("Accept kernels that spill registers"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> barePointers{
      *this, "bare-pointers",
      llvm::cl::desc("Kernels take pointers and numbers, in a fixed order, "
                     "instead of memref descriptors"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> splitNumbers{
      *this, "split-numbers",
      llvm::cl::desc("With bare-pointers: numbers of 64 bits are two of 32 "
                     "bits, the low one first"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> report{
      *this, "report", llvm::cl::desc("A remark on each kernel's registers"),
      llvm::cl::init(false)};
};

/// Adds the passes that take functions on tensors with varlen.attn to host code
/// in the llvm dialect and kernels in `format`. All tensors of such a function
/// are in device memory. Runs on a module.
void buildVarlenToNVVM(OpPassManager &manager,
                       const VarlenToNVVMOptions &options);

/// The pipeline above without its last stage: to host code that launches
/// kernels (gpu.launch_func) of the llvm and nvvm dialects.
void buildVarlenToLaunches(OpPassManager &manager,
                           const VarlenToNVVMOptions &options);

/// Stages of the pipeline above that follow buildVarlenBufferize, in order:
/// varlen.attn on buffers to kernels on tiles; tiles to fragments and tensor
/// core instructions; the kernels to the llvm and nvvm dialects; host code that
/// launches kernels to the llvm dialect, and the kernels to `format`. The last
/// two take any kernels.
void buildVarlenAttnToTiles(OpPassManager &manager,
                            const VarlenToNVVMOptions &options);
void buildVarlenTilesToInstructions(OpPassManager &manager,
                                    const VarlenToNVVMOptions &options);
void buildVarlenKernelsToNVVM(OpPassManager &manager,
                              const VarlenToNVVMOptions &options);
void buildVarlenLaunchesToLLVM(OpPassManager &manager,
                               const VarlenToNVVMOptions &options);

/// The code of the kernels of a module that varlen-to-nvvm has lowered to a
/// gpu.binary; an error is emitted if it has none.
FailureOr<StringRef> findKernelCode(ModuleOp module);

void registerPipelines();

} // namespace mlir::varlen

#endif // VARLEN_PIPELINES_PIPELINES_H
