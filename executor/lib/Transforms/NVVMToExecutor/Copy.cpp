//===- Copy.cpp - Asynchronous copies -------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

static Lowered lower(NVVM::CpAsyncOp op, CallBuilder &b) {
  Value size = b.i32Constant(op.getSize());
  return b.replaceWithCall("varlen_sim_cp_async",
                           {b.flat(op.getDst()), b.flat(op.getSrc()), size,
                            op.getCpSize() ? op.getCpSize() : size});
}

/// The CTAs of the cluster that get a copy; 0: only this one.
static Value getMulticast(CallBuilder &b, Value mask) {
  return mask ? b.toInteger(mask, 32) : b.i32Constant(0);
}

static Lowered lower(NVVM::CpAsyncBulkGlobalToSharedClusterOp op,
                     CallBuilder &b) {
  return b.replaceWithCall("varlen_sim_bulk_load",
                           {b.flat(op.getDstMem()), b.flat(op.getSrcMem()),
                            b.flat(op.getMbar()), op.getSize(),
                            getMulticast(b, op.getMulticastMask())});
}

static Lowered lower(NVVM::CpAsyncBulkSharedCTAToSharedClusterOp op,
                     CallBuilder &b) {
  return b.replaceWithCall("varlen_sim_bulk_copy_cluster",
                           {b.flat(op.getDstMem()), b.flat(op.getSrcMem()),
                            b.flat(op.getMbar()), op.getSize()});
}

static Lowered lower(NVVM::CpAsyncBulkSharedCTAToGlobalOp op, CallBuilder &b) {
  if (op.getByteMask())
    return b.refuse("a byte mask");
  return b.replaceWithCall(
      "varlen_sim_bulk_store",
      {b.flat(op.getDstMem()), b.flat(op.getSrcMem()), op.getSize()});
}

static Lowered lower(NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op,
                     CallBuilder &b) {
  if (op.getPredicate())
    return b.refuse("a predicate");
  if (op.getMode() != NVVM::TMALoadMode::TILE)
    return b.refuse("mode " + stringifyEnum(op.getMode()));
  Value coordinates = b.storeWords(op.getCoordinates());
  return b.replaceWithCall(
      "varlen_sim_tma_load",
      {b.flat(op.getDstMem()), b.flat(op.getTmaDescriptor()),
       b.flat(op.getMbar()), b.i32Constant(op.getCoordinates().size()),
       coordinates, getMulticast(b, op.getMulticastMask())});
}

static Lowered lower(NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op,
                     CallBuilder &b) {
  if (op.getPredicate())
    return b.refuse("a predicate");
  if (op.getMode() != NVVM::TMAStoreMode::TILE)
    return b.refuse("mode " + stringifyEnum(op.getMode()));
  Value coordinates = b.storeWords(op.getCoordinates());
  return b.replaceWithCall(
      "varlen_sim_tma_store",
      {b.flat(op.getTmaDescriptor()), b.flat(op.getSrcMem()),
       b.i32Constant(op.getCoordinates().size()), coordinates});
}

static Lowered lower(NVVM::CpAsyncBulkTensorReduceOp op, CallBuilder &b) {
  if (op.getMode() != NVVM::TMAStoreMode::TILE)
    return b.refuse("mode " + stringifyEnum(op.getMode()));
  Value coordinates = b.storeWords(op.getCoordinates());
  return b.replaceWithCall(
      "varlen_sim_tma_reduce",
      {b.flat(op.getTmaDescriptor()), b.flat(op.getSrcMem()),
       b.i32Constant(op.getCoordinates().size()), coordinates,
       b.i32Constant(static_cast<int64_t>(op.getRedKind()))});
}

Lowered executor::lowerCopy(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case<NVVM::CpAsyncOp, NVVM::CpAsyncBulkGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkSharedCTAToSharedClusterOp,
            NVVM::CpAsyncBulkSharedCTAToGlobalOp,
            NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp,
            NVVM::CpAsyncBulkTensorReduceOp>(
          [&](auto op) { return lower(op, b); })
      .Case([&](NVVM::CpAsyncCommitGroupOp) {
        return b.replaceWithCall("varlen_sim_cp_async_commit");
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
        return b.replaceWithCall("varlen_sim_cp_async_wait_group",
                                 {b.i32Constant(wait.getN())});
      })
      .Case([&](NVVM::CpAsyncMBarrierArriveOp arrive) {
        return b.replaceWithCall(
            "varlen_sim_cp_async_mbarrier_arrive",
            {b.flat(arrive.getAddr()), b.i32Constant(arrive.getNoinc())});
      })
      .Case([&](NVVM::CpAsyncBulkCommitGroupOp) {
        return b.replaceWithCall("varlen_sim_bulk_commit");
      })
      .Case([&](NVVM::CpAsyncBulkWaitGroupOp wait) {
        return b.replaceWithCall("varlen_sim_bulk_wait_group",
                                 {b.i32Constant(wait.getGroup()),
                                  b.i32Constant(wait.getRead().has_value())});
      })
      .Case([&](kernel::PublishMapOp publish) {
        return b.replaceWithCall(
            "varlen_sim_tensormap_cp_fenceproxy",
            {b.flat(publish.getGlobal()), b.flat(publish.getShared())});
      })
      .Case([&](NVVM::CpAsyncBulkTensorPrefetchOp prefetch) {
        return b.replaceWithCall("varlen_sim_tma_prefetch",
                                 {b.flat(prefetch.getTmaDescriptor())});
      })
      .Default([](Operation *) { return Lowered::No; });
}
