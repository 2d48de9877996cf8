//===- Passes.td - Passes around pipelines -----------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_PIPELINES_PASSES_TD
#define VARLEN_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenCheckRegistration
    : Pass<"varlen-check-registration", "::mlir::ModuleOp"> {
  let summary = "An error for what a host has forgotten to register";
  let description = [{
    Upstream implements interfaces of its operations, dialects and attributes outside
    of their dialects, and a host registers these implementations. Where one is
    missing, passes fail far from the cause, skip what they should lower, or crash.
    Every stage of the pipelines begins with this pass, which names the missing
    implementations and the function that registers them: `registerRequiredUpstream`
    for upstream's, `registerAllExtensions` for Varlen's (`varlen/InitAll.h`).

    | `for` | implementations of | that are needed for |
    |---|---|---|
    | `bufferize` | `BufferizableOpInterface`, `TilingInterface` | operations of loaded dialects |
    | `to-llvm` | `ConvertToLLVMPatternInterface` | dialects of host code |
    | `kernels` | `ConvertToLLVMPatternInterface`, `gpu::TargetAttrInterface` | dialects of kernels, `#nvvm.target` |
    | `ptx` | `LLVMTranslationDialectInterface` | the gpu, llvm and nvvm dialects |

    Dialects that only a user's own operations are of (cf and vector among tensors,
    complex, index) are checked if the module has such operations.

    *Requires*: nothing. *Guarantees*: the above. *Numerics*: none.
  }];
  let options = [
    Option<"stage", "for", "::mlir::varlen::RegistrationStage",
           "::mlir::varlen::RegistrationStage::Bufferize", "What runs next",
           [{::llvm::cl::values(
               clEnumValN(::mlir::varlen::RegistrationStage::Bufferize,
                          "bufferize", "bufferization"),
               clEnumValN(::mlir::varlen::RegistrationStage::ToLLVM,
                          "to-llvm", "host code to the llvm dialect"),
               clEnumValN(::mlir::varlen::RegistrationStage::Kernels,
                          "kernels", "kernels to the nvvm dialect"),
               clEnumValN(::mlir::varlen::RegistrationStage::PTX,
                          "ptx", "kernels to PTX"))}]>];
}

def VarlenRenameFunctions : Pass<"varlen-rename-functions", "::mlir::ModuleOp"> {
  let summary = "Keep names of the source and names that code calls apart";
  let description = [{
    A function or a `memref.global` may have any name, also that of a function of libc,
    libm, the runtimes of LLVM or of this project, which code calls without having been told
    to. A definition with such a name, public or private, is renamed. The attribute
    `varlen.source_name` of a function keeps its name in the source, from which
    `varlen-restore-names` names its C interface. So code calls the function that it means,
    and callers find the renamed one at `_mlir_ciface_<name>`. The symbol `<name>` itself,
    which takes unpacked memrefs, is not defined: an object has one definition of a name.

    Pipelines run it twice: before passes call functions of the runtime, and before the
    conversion to the llvm dialect, for modules that begin there.

    *Requires*: nothing. *Guarantees*: nothing that the module defines has a name that later
    passes, or LLVM, call. *Numerics*: none.

    ```mlir
    func.func @exp(%x: memref<?xf64>) attributes {llvm.emit_c_interface} { ... }
    ```
    becomes
    ```mlir
    func.func @source_exp(%x: memref<?xf64>)
        attributes {llvm.emit_c_interface, varlen.source_name = "exp"} { ... }
    ```
  }];
  let statistics = [Statistic<"numRenamed", "renamed", "Functions and globals with another name">];
}

def VarlenRestoreNames : Pass<"varlen-restore-names", "::mlir::ModuleOp"> {
  let summary = "Give C interfaces of renamed functions their names of the source";
  let description = [{
    What `varlen-rename-functions` has renamed is called by its C interface.

    *Requires*: functions of the llvm dialect. *Guarantees*: no `varlen.source_name` is left.
    *Numerics*: none.

    ```mlir
    llvm.func @_mlir_ciface_source_exp(%x: !llvm.ptr) attributes {varlen.source_name = "exp"} { ... }
    ```
    becomes
    ```mlir
    llvm.func @_mlir_ciface_exp(%x: !llvm.ptr) { ... }
    ```
  }];
}

class Varlen_LowerAttn<string name, string about>
    : Pass<name, "::mlir::ModuleOp"> {
  string contract = about # [{

    An attention on memrefs writes its `outs`. One on tensors, before a host's
    bufferization, becomes one on buffers: of the operands, and new ones for its
    results. A buffer has any strides but the last, which is 1; an error names an
    operand with others. Strides of tensors are then known at run time only.

    *Requires*: the dialects and the implementations of interfaces that
    `registerRequiredUpstream` registers; an error names those that are missing.
    *Guarantees*: nothing but attentions in functions of the module is changed: no
    other operation, no `gpu.module` and no nested module. Functions and kernels
    that are added have names of their own. *Numerics*: those of the whole
    pipeline, to the bit.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numLowered", "lowered", "Attentions">];
}

def VarlenLowerAttnToCPU : Varlen_LowerAttn<"varlen-lower-attn-to-cpu", [{
    Every `varlen.attn` and `varlen.attn_grad` becomes a call of a private function
    of vectors, loops and calls of the runtime (`varlen/Runtime/Runtime.h`), in
    what convert-vector-to-llvm and convert-to-llvm take; it says which processor it is for.}]> {
  let summary = "Attention to loops, in another project's pipeline for a CPU";
  let description = contract # [{

    ```mlir
    varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) : ...
    ```
    becomes
    ```mlir
    call @f_attn(%q, %k, %v, %cu, %cu, %out, %lse) : ...
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "CPU to generate code for: host, or a name of the target table">];
}

def VarlenLowerAttnToGPU : Varlen_LowerAttn<"varlen-lower-attn-to-gpu", [{
    Every `varlen.attn` and `varlen.attn_grad` becomes a call of a private function
    that allocates device memory for lists of work and launches kernels
    (`gpu.launch_func`), in a `gpu.module` of the llvm and nvvm dialects that has
    no target yet: upstream's gpu-lower-to-nvvm-pipeline goes on from there. In a
    kernel for Hopper are `kernel.wgmma` and `kernel.wgmma_wait`, too, of which
    upstream's convert-nvvm-to-llvm, which that pipeline has, makes PTX.
    Operands are in device memory. The function calls `varlen/Runtime/GPU.h`.

    Kernels copy rows asynchronously, 16 bytes at a time, where a type says that
    these are aligned: of buffers with the identity layout. Rows of others are read
    element by element. With `dense-tensors` operands that are tensors become such
    buffers, and a host's bufferization copies those that have other strides.}]> {
  let summary = "Attention to kernels, in another project's pipeline for a GPU";
  let description = contract # [{

    ```mlir
    varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) : ...
    ```
    becomes
    ```mlir
    call @f_attn(%q, %k, %v, %cu, %cu, %out, %lse) : ...
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "GPU to generate code for, a name of its table">,
    Option<"denseTensors", "dense-tensors", "bool", /*default=*/"false",
           "Buffers of operands that are tensors have the identity layout">];
}

#endif // VARLEN_PIPELINES_PASSES_TD
