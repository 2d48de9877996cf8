//===- MemRefAddress.h - The pointer in a memref ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KERNEL_TRANSFORMS_MEMREFADDRESS_H
#define LIB_DIALECT_KERNEL_TRANSFORMS_MEMREFADDRESS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen::kernel {

/// The aligned pointer of a memref: shared memory's in its address space, all
/// others in the generic one.
Value getAddress(ImplicitLocOpBuilder &b, Value memref);

/// The pointer, `distance` elements further on.
Value advance(ImplicitLocOpBuilder &b, Value pointer, Type element,
              LLVM::GEPArg distance);

} // namespace mlir::varlen::kernel

#endif // LIB_DIALECT_KERNEL_TRANSFORMS_MEMREFADDRESS_H
