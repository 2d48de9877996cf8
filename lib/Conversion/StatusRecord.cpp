//===- StatusRecord.cpp - Errors that kernels report ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StatusRecord.h"

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::varlen;

// Four integers, in this order.
static_assert(offsetof(varlen_gpu_status, code) == 0 &&
              offsetof(varlen_gpu_status, index) == 8 &&
              offsetof(varlen_gpu_status, value) == 16 &&
              offsetof(varlen_gpu_status, bound) == 24 &&
              sizeof(varlen_gpu_status) == 32);

void varlen::emitStatus(ImplicitLocOpBuilder &b, Value status,
                        const GPUFault &fault) {
  auto i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(value));
  };
  auto store = [&](int32_t number, Value field, LLVM::AtomicOrdering ordering) {
    Value address = LLVM::GEPOp::create(b, status.getType(), i64, status,
                                        ArrayRef<LLVM::GEPArg>{number});
    LLVM::StoreOp::create(b, arith::IndexCastOp::create(b, i64, field), address,
                          /*alignment=*/8, /*isVolatile=*/false,
                          /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                          ordering);
  };
  // Kernels of several streams may find an error at once, and the record may be
  // in memory of the host, which reads it meanwhile: the scope is the system.
  Value found = LLVM::AtomicCmpXchgOp::create(
      b, status, constant(0), constant(VARLEN_STATUS_BUSY),
      LLVM::AtomicOrdering::acq_rel, LLVM::AtomicOrdering::monotonic,
      /*syncscope=*/"", /*alignment=*/8);
  Value isFirst = LLVM::ExtractValueOp::create(b, found, 1);
  emitIf(b, isFirst, [&] {
    auto plain = LLVM::AtomicOrdering::not_atomic;
    store(1, fault.at, plain);
    store(2, fault.value, plain);
    store(3, fault.bound, plain);
    store(0, fault.code, LLVM::AtomicOrdering::release);
  });
}

FailureOr<Value> varlen::emitStatusRecord(ImplicitLocOpBuilder &b,
                                          Operation *user) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  FailureOr<func::FuncOp> get = getRuntimeFunction(
      user->getParentOfType<ModuleOp>(), user, "varlen_gpu_status_buffer",
      b.getFunctionType({}, pointer));
  if (failed(get))
    return failure();
  return func::CallOp::create(b, *get, ValueRange{}).getResult(0);
}

GPUFault varlen::firstOf(ImplicitLocOpBuilder &b, ArrayRef<GPUFault> faults) {
  IndexBuilder index{b};
  Value zero = index.constant(0);
  GPUFault first{arith::ConstantIntOp::create(b, 0, 1), zero, zero, zero, zero};
  for (const GPUFault &fault : llvm::reverse(faults)) {
    auto choose = [&](Value &field, Value value) {
      field = index.select(fault.wrong, value, field);
    };
    first.wrong = index.either(fault.wrong, first.wrong);
    choose(first.code, fault.code);
    choose(first.at, fault.at);
    choose(first.value, fault.value);
    choose(first.bound, fault.bound ? fault.bound : zero);
  }
  return first;
}

void varlen::appendCuChecks(SmallVectorImpl<GPUFault> &checks,
                            IndexBuilder &index, Value s, Value sequences,
                            const PackedRows &rows, Value rowsInMemory,
                            int64_t list) {
  Value isFirst = index.equal(s, 0), isLast = index.equal(s, sequences);
  Value isSequence = index.less(s, sequences);
  checks.push_back({index.both(isFirst, index.notEqual(rows.begin, 0)),
                    index.constant(VARLEN_STATUS_START + list), s, rows.begin,
                    Value()});
  checks.push_back({index.both(isSequence, index.less(rows.end, rows.begin)),
                    index.constant(VARLEN_STATUS_DECREASE + list),
                    index.add(s, 1), rows.end, rows.begin});
  Value most = index.constant(VARLEN_MAX_SEQUENCE);
  Value length = index.sub(rows.end, rows.begin);
  checks.push_back({index.both(isSequence, index.less(most, length)),
                    index.constant(VARLEN_STATUS_LONG + list), s, length,
                    most});
  checks.push_back({index.both(isLast, index.less(rowsInMemory, rows.begin)),
                    index.constant(VARLEN_STATUS_END + list), s, rows.begin,
                    rowsInMemory});
}
