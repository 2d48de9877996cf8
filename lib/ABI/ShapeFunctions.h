//===- ShapeFunctions.h - Functions of the extents of results ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_ABI_SHAPEFUNCTIONS_H
#define VARLEN_LIB_ABI_SHAPEFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::varlen {

/// Whether a function has results with extents.
bool hasExtents(func::FuncOp function);

/// Adds, behind a function `f` with extents, the function `f_shapes`, which
/// stores them. Extents that do not follow from those of arguments, and another
/// symbol of that name, are errors. `run` runs passes on an operation.
LogicalResult
addShapeFunction(func::FuncOp function, SymbolTable &symbols,
                 function_ref<LogicalResult(OpPassManager &, Operation *)> run);

/// The dialects of operations that shape functions are made of.
void addShapeFunctionDialects(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_LIB_ABI_SHAPEFUNCTIONS_H
