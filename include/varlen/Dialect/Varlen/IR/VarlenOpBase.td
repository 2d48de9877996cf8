//===- VarlenOpBase.td - What operations of varlen share ---*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OP_BASE_TD
#define VARLEN_OP_BASE_TD

include "varlen/Dialect/Varlen/IR/VarlenDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

class Varlen_Op<string mnemonic, list<Trait> traits = []>
    : Op<Varlen_Dialect, mnemonic, traits>;

def Varlen_Float : AnyTypeOf<[F16, BF16, F32, F64], "f16, bf16, f32 or f64">;
/// Also what quantised keys and values are of.
def Varlen_KeyElement
    : AnyTypeOf<[F16, BF16, F32, F64, I8, F8E4M3FN], "f16, bf16, f32, f64, i8 or f8E4M3FN">;
def Varlen_ComputeFloat : AnyTypeOf<[F32, F64], "f32 or f64">;
def Varlen_Index : AnyTypeOf<[I32, I64], "i32 or i64">;
class Varlen_Tensor<Type element, int rank>
    : ConfinedType<TensorRankOf<[element], [rank]>, [],
                   "rank-" # rank # " tensor of " # element.summary,
                   "::mlir::RankedTensorType">;
class Varlen_MemRef<Type element, int rank>
    : ConfinedType<MemRefRankOf<[element], [rank]>, [],
                   "rank-" # rank # " memref of " # element.summary,
                   "::mlir::MemRefType">;
class Varlen_Shaped<Type element, int rank>
    : AnyTypeOf<[TensorRankOf<[element], [rank]>, MemRefRankOf<[element], [rank]>],
                "rank-" # rank # " tensor or memref of " # element.summary>;
/// Rows of T x H x D, or in pages, P x page x H x D.
class Varlen_RowsOrPages<Type element>
    : AnyTypeOf<[TensorRankOf<[element], [3, 4]>, MemRefRankOf<[element], [3, 4]>],
                "rank-3 or rank-4 tensor or memref of " # element.summary>;
/// A value of tile loops and of steps: the type alone says what it is.
def Varlen_Tile : Varlen_Tensor<Varlen_Float, 2>;
/// Keys or values, which may be quantised.
def Varlen_KeyTile : Varlen_Tensor<Varlen_KeyElement, 2>;

#endif // VARLEN_OP_BASE_TD
