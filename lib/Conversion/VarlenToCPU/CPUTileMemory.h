//===- CPUTileMemory.h - Memory of tiles on a CPU ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H
#define VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

inline MemRefType memoryType(Value memory) {
  return cast<MemRefType>(memory.getType());
}

inline FloatType elementOf(Value memory) {
  return cast<FloatType>(memoryType(memory).getElementType());
}

/// Elements in a cache line of 64 bytes.
inline int64_t getCacheLineElements(Type element) {
  return 512 / element.getIntOrFloatBitWidth();
}

/// A scalar or vector in another float type; nothing if it has it already.
Value emitConvert(ImplicitLocOpBuilder &b, Value value, Type element);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_CPUTILEMEMORY_H
