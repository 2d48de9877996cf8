//===- MemRefAddress.cpp - The pointer in a memref ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemRefAddress.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::varlen;

Value kernel::getAddress(ImplicitLocOpBuilder &b, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  auto space = gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type)
                   ? NVVM::NVVMMemorySpace::Shared
                   : NVVM::NVVMMemorySpace::Generic;
  auto pointer =
      LLVM::LLVMPointerType::get(b.getContext(), static_cast<unsigned>(space));
  Type i64 = b.getI64Type();
  auto extents = LLVM::LLVMArrayType::get(i64, type.getRank());
  auto descriptor = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, pointer, i64, extents, extents});
  Value value =
      UnrealizedConversionCastOp::create(b, descriptor, memref).getResult(0);
  return LLVM::ExtractValueOp::create(b, value, ArrayRef<int64_t>{1});
}

Value kernel::advance(ImplicitLocOpBuilder &b, Value pointer, Type element,
                      LLVM::GEPArg distance) {
  return LLVM::GEPOp::create(b, pointer.getType(), element, pointer,
                             ArrayRef<LLVM::GEPArg>{distance});
}
