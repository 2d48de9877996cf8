//===- Passes.td - Passes for NVIDIA GPUs ------------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_NVVM_PASSES_TD
#define VARLEN_TARGET_NVVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenAttachTarget : Pass<"varlen-attach-target", "::mlir::ModuleOp"> {
  let summary = "Say which chip the kernels of a module are for";
  let description = [{
    Puts an `#nvvm.target` on every `gpu.module`. `ptx` is ten times the version
    of PTX that is written, and so of the drivers that can read it. Kernels with
    a `nvvm.maxntid` get a `nvvm.maxnreg`, what one CTA of that size can have. A
    `llvm.loop_annotation` that a branch has kept from a loop of `scf` becomes
    the annotation that LLVM reads.

    *Requires*: nothing. *Guarantees*: the above; an error for a chip that is
    not in the table of GPUs and for a version of PTX that does not know it; with
    `needs-toolkit` one for a CUDA toolkit that `gpu-module-to-binary` would not
    take. *Numerics*: none.

    ```mlir
    gpu.module @kernels { ... }
    ```
    becomes
    ```mlir
    gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx90">] { ... }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"",
           "GPU to generate code for, a name of its table">,
    Option<"ptx", "ptx", "int64_t", "90", "Version of PTX, times 10">,
    Option<"needsToolkit", "needs-toolkit", "bool", "false",
           "Check the toolkit that CUDA_ROOT, CUDA_HOME or CUDA_PATH names, if one does">];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

def VarlenWaitForGrids : Pass<"varlen-wait-for-grids", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Let kernels start while those before them still run";
  let description = [{
    Each kernel begins by waiting for the kernels before it in its stream (`nvvm.griddepcontrol
    wait`), and then lets those behind it start. A constant of the module,
    `varlen_waits_for_grids`, says so to programs that launch them (varlen/Runtime/GPU.h): such a
    launch may be a programmatic dependent one, whose CTAs are on their way while the kernel before
    runs. Any other launch finds nothing to wait for.

    Kernels behind may start only when this one has waited: then all before it are done,
    and what may run beside them is this kernel alone.

    *Requires*: kernels of the llvm dialect; a chip that has `griddepcontrol`.
    *Guarantees*: the above. *Numerics*: none.

    ```mlir
    llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
      %x = llvm.load %p : !llvm.ptr<1> -> f32
    ```
    becomes
    ```mlir
    llvm.mlir.global external constant @varlen_waits_for_grids(1 : i8) {addr_space = 1 : i32} : i8
    llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
      nvvm.griddepcontrol wait
      nvvm.griddepcontrol launch_dependents
      %x = llvm.load %p : !llvm.ptr<1> -> f32
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def VarlenAssemble : Pass<"varlen-assemble", "::mlir::ModuleOp"> {
  let summary = "PTX to machine code, with ptxas's notes read";
  let description = [{
    Runs `ptxas` on the PTX of each `gpu.binary`. Unlike upstream's
    `gpu-module-to-binary` it reads what ptxas says: spilled registers (more than
    256 bytes of a thread's, unless `allow-spills`; fewer are a warning), a
    serialised `wgmma` (C7510 to C7519) and an ignored `setmaxnreg` (C7508) are
    errors. A remark gives the registers of each kernel
    with `report`. With `fatbin` the PTX goes along, for newer chips
    (`fatbinary`).

    *Requires*: `gpu-module-to-binary{format=isa}`; ptxas in `toolkit`/bin, else
    in $CUDA_HOME/bin or PATH. *Guarantees*: no object is PTX text.
    *Numerics*: none.

    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "...">]
    ```
    becomes
    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, bin = "...">]
    ```
  }];
  let options = [
    Option<"fatbin", "fatbin", "bool", "false",
           "Make a fat binary of machine code and PTX">,
    Option<"toolkit", "toolkit", "std::string", "",
           "Folder of a CUDA toolkit">,
    Option<"allowSpills", "allow-spills", "bool", "false",
           "Accept kernels that spill registers">,
    Option<"report", "report", "bool", "false",
           "A remark on each kernel's registers">];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numAssembled", "assembled", "Objects assembled">];
}

def VarlenExpandDeviceMath : Pass<"varlen-expand-device-math"> {
  let summary = "Functions of kernels in instructions that a GPU has";
  let description = [{
    In kernels, and in launches that are not outlined yet, functions of f32 become
    upstream's polynomials and expansions, or one instruction where there is an
    exact one (`sqrt`, `floor`, ...) and for `exp2`. f16 and bf16 are computed in
    f32 and rounded after each operation; conversions of f8E4M3FN go by f16 and by integers. Functions of f64, and `arith.remf`,
    become calls of libdevice. `fpowi` is a power of floats with the sign that an odd
    exponent leaves, or, if that is constant, products.

    *Requires*: nothing. *Guarantees*: in kernels, no operation of math but those
    that LLVM has for GPUs; an error names one that has no form there. *Numerics*:
    a polynomial is off by a few units in the last place of f32, `tanh` by at most
    3; `sin` and `cos` by 1e-6 up to 10^5, and by as many times more as the angle is
    larger; `powf` is `exp(y * log(x))`, off by as many more as that product is
    large, and of a denormal x that of the smallest normal number; `exp2` gives 0 where f32 has less than all of its places.

    ```mlir
    %y = math.rsqrt %x : bf16
    ```
    becomes
    ```mlir
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %x : bf16 to f32
    %root = llvm.call_intrinsic "llvm.sqrt.f32"(%wide) : (f32) -> f32
    %inverse = arith.divf %one, %root : f32
    %y = arith.truncf %inverse : f32 to bf16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def VarlenFlattenKernelArguments
    : Pass<"varlen-flatten-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "Kernels on bare pointers and numbers, in a fixed order";
  let description = [{
    A memref that a kernel takes becomes its pointer, a memref of rank 0, and those of
    its offset, extents and strides that its type does not have; strides of dense
    memory follow from extents. Parameters are, in this order,

    1. a pointer for each memref, and other pointers;
    2. for each memref its offset, extents and strides, as `index`;
    3. numbers;

    each kind in the order in which the values are made in the function that launches
    the kernel: its arguments first. So the order follows from that function's type and
    from what the kernel needs, and operations around it do not change it. Constants go
    into the kernel. Lowered with `use-bare-ptr-memref-call-conv` and
    `use-bare-pointers-for-kernels`, a parameter is 64 bits.

    *Requires*: one launch of each kernel, on strided memrefs. *Guarantees*: the above.
    *Numerics*: none.

    ```mlir
    gpu.launch_func @kernels::@f ... args(%n : index, %x : memref<?x64xf32, strided<[?, 1]>>)
    ```
    becomes
    ```mlir
    %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %x
    gpu.launch_func @kernels::@f ... args(%base : memref<f32>, %sizes#0 : index,
                                          %strides#0 : index, %n : index)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"];
  let options = [
    Option<"splitNumbers", "split-numbers", "bool", "false",
           "Pass numbers of 64 bits as two of 32 bits, the low one first">];
  let statistics = [Statistic<"numFlattened", "flattened", "Kernels">];
}

def VarlenUseDeviceMemory
    : Pass<"varlen-use-device-memory", "::mlir::ModuleOp"> {
  let summary = "Let host code allocate its buffers on the GPU";
  let description = [{
    In a function for a GPU every buffer is in device memory: calls of `malloc`
    and `free` become calls of `varlen_gpu_allocate` and `varlen_gpu_free`
    (GPU.h). Upstream's `gpu.alloc` would do, were it not for the stream that
    each of them makes and waits for.

    *Requires*: host code in the llvm dialect. *Guarantees*: the above.
    *Numerics*: none.

    ```mlir
    %p = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
    ```
    becomes
    ```mlir
    %p = llvm.call @varlen_gpu_allocate(%bytes) : (i64) -> !llvm.ptr
    ```
  }];
}

#endif // VARLEN_TARGET_NVVM_PASSES_TD
