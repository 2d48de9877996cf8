//===- HostMemory.h - What is not in device memory --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_LINALGTOKERNEL_HOSTMEMORY_H
#define VARLEN_LIB_CONVERSION_LINALGTOKERNEL_HOSTMEMORY_H

#include "mlir/IR/Value.h"

namespace mlir::varlen {

/// Whether the memref is a global or on the stack of the host, or an argument
/// of a private function that is given only such memory. All other memory of a
/// function for a GPU is the device's.
bool isHostMemory(Value memref);

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_LINALGTOKERNEL_HOSTMEMORY_H
