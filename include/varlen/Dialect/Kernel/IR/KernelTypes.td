//===- KernelTypes.td - Types of the kernel dialect --------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_TYPES_TD
#define KERNEL_TYPES_TD

include "varlen/Dialect/Kernel/IR/KernelDialect.td"

class Kernel_Type<string name, string typeMnemonic> : TypeDef<Kernel_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Kernel_Pending : Kernel_Type<"Pending", "pending"> {
  let summary = "An accumulator that a tensor core may still be writing";
  let description = [{
    `!kernel.pending<vector<1x8x2x2xf32>>`: made by `kernel.start`, readable
    after `kernel.wait`.
  }];
  let parameters = (ins "::mlir::VectorType":$fragment);
  let assemblyFormat = "`<` $fragment `>`";
  let genVerifyDecl = 1;
}

def Kernel_Ring : Kernel_Type<"Ring", "ring"> {
  let summary = "Shared-memory slots that are filled and read in turn";
  let description = [{
    `!kernel.ring<memref<...>, memref<...>>`: a slot has one shared tile, or numbers, of
    each listed type.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::MemRefType">:$slot);
  let assemblyFormat = "`<` $slot `>`";
  let genVerifyDecl = 1;
}

def Kernel_Shared : Type<
    CPred<"::mlir::varlen::kernel::isSharedTile($_self)">,
    "shared tile (memref<SLABS x R x 64 x T, #gpu.address_space<workgroup>>, T f16 or bf16, "
    "R a positive multiple of 8, less than 2^31 bytes)", "::mlir::MemRefType">;

def Kernel_SharedNumbers : Type<
    CPred<"::mlir::varlen::kernel::areSharedNumbers($_self)">,
    "numbers in shared memory (memref<N x T, #gpu.address_space<workgroup>>, T i32 or i64, "
    "N positive, at most 1024 bytes)", "::mlir::MemRefType">;
def Kernel_Counters : MemRefRankOf<[I32, I64], [1]>;

def Kernel_Maps : Type<
    CPred<"::mlir::varlen::kernel::areTensorMaps($_self)">,
    "tensor maps in global memory (memref<N x 128 x i8>)", "::mlir::MemRefType">;

def Kernel_Global : Type<
    CPred<"::mlir::varlen::kernel::isGlobal($_self)">,
    "memref of rank 1 to 4 in global memory with a last stride of 1, of f16, bf16, f32, i32, i8 or f8E4M3FN",
    "::mlir::MemRefType">;
def Kernel_Tile : Type<
    CPred<"::mlir::varlen::kernel::isTile($_self)">,
    "static rank-2 tensor", "::mlir::RankedTensorType">;
def Kernel_Fragment : Type<
    CPred<"::mlir::varlen::kernel::isFragment($_self)">,
    "fragment (vector<M x N x 2 x 2>, its row projection M x 1 x 2 x 1 or its "
    "column projection 1 x N x 1 x 2, of at most 65536 elements)",
    "::mlir::VectorType">;
def Kernel_Accumulator : Type<
    CPred<"::mlir::varlen::kernel::isAccumulator($_self)">,
    "accumulator of wgmma (!llvm.struct<(f32, f32, ...)> of 4 to 128 registers, a multiple of 4)">;
def Kernel_TileOrFragment : AnyTypeOf<[Kernel_Tile, Kernel_Fragment]>;

#endif // KERNEL_TYPES_TD
