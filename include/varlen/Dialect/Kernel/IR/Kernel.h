//===- Kernel.h - The kernel dialect ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_IR_KERNEL_H
#define VARLEN_DIALECT_KERNEL_IR_KERNEL_H

#include "varlen/Dialect/Kernel/IR/SharedTile.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::gpu {
class GPUFuncOp;
class LaunchOp;
} // namespace mlir::gpu

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/KernelDialect.h.inc" // IWYU pragma: export

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace mlir::varlen::kernel {

/// Whether warps share the columns of a tile, as there are not rows for all of
/// them: its fragment is then that of its transpose.
bool isSharedByColumns(RankedTensorType tile, int64_t warps);

/// Whether `type` is a shared tile, see Kernel_Shared.
bool isSharedTile(Type type);
/// Whether it is the type of a few numbers in shared memory.
bool areSharedNumbers(Type type);
/// The type of `count` of them; `element` is i32 or i64.
MemRefType getSharedNumbersType(int64_t count, Type element);
/// The types of the shared tiles that hold a tile of floats: one, or with f32
/// those of its planes, whose sum it is.
SmallVector<MemRefType> getSharedTileTypes(RankedTensorType tile);
int64_t getSharedRows(MemRefType tile);
int64_t getSharedColumns(MemRefType tile);
/// Whether `type` is global memory that a rows clause can describe.
bool isGlobal(Type type);
/// Whether `type` is memory of tensor maps.
bool areTensorMaps(Type type);
/// Whether elements are those of quantised rows, which copies convert.
bool isQuantised(Type element);
/// Whether `type` is a tile as a value.
bool isTile(Type type);
/// Whether registers have room for a vector: whether its elements may become
/// values of their own.
bool isInRegisters(VectorType vector);
/// Whether `type` is a fragment of a tile or of a statistic.
bool isFragment(Type type);
/// Whether `type` is the registers of an accumulator, see Kernel_Accumulator.
bool isAccumulator(Type type);
/// Whether a tile or fragment has one value for each row, or for each column.
bool isRowStatistic(Type type);
bool isColumnStatistic(Type type);
/// Whether it is one or the other.
bool isStatistic(Type type);
/// Each thread's part of a tile that `warps` warps share; null if it cannot be
/// shared, which is when R is neither 1 nor a multiple of 16 * warps, or C
/// neither 1 nor a multiple of 8, or registers have no room for the part.
VectorType getFragmentType(RankedTensorType tile, int64_t warps);

/// The rows clause: which rows of global memory a tile stands for. `table` says
/// where pages are; null if rows are packed.
struct RowsOperands {
  Value row, head, first, group, valid;
  Value table = {};
};

} // namespace mlir::varlen::kernel

#define GET_TYPEDEF_CLASSES
#include "varlen/Dialect/Kernel/IR/KernelTypes.h.inc" // IWYU pragma: export

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

#define GET_OP_CLASSES
#include "varlen/Dialect/Kernel/IR/KernelOps.h.inc" // IWYU pragma: export

#endif // VARLEN_DIALECT_KERNEL_IR_KERNEL_H
