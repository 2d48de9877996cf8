//===- Roles.cpp - Which warps of a kernel do what ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

RolesOp kernel::getRoles(gpu::GPUFuncOp kernel) {
  auto roles = kernel.getBody().getOps<RolesOp>();
  return roles.empty() ? RolesOp() : *roles.begin();
}

LogicalResult kernel::verifyRoles(gpu::GPUFuncOp kernel) {
  auto all = kernel.getBody().getOps<RolesOp>();
  if (all.empty())
    return success();
  RolesOp roles = *all.begin();
  if (!llvm::hasSingleElement(all))
    return (*std::next(all.begin()))
        .emitOpError("expected one kernel.roles in a kernel, got several");
  int64_t threads = (roles.getConsumers() + roles.getProducers()) * kWarpLanes;
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block || llvm::product_of(*block, int64_t{1}) != threads)
    return roles.emitOpError("expected a kernel with a known_block_size of ")
           << threads << " threads, those of both roles";
  return success();
}

static ThreadRange getAllThreads(gpu::GPUFuncOp kernel) {
  return {0, kernel.getKnownBlockSize()->front()};
}

ThreadRange kernel::getCopyingThreads(gpu::GPUFuncOp kernel) {
  RolesOp roles = getRoles(kernel);
  if (!roles)
    return getAllThreads(kernel);
  return {static_cast<int64_t>(roles.getConsumers()) * kWarpLanes,
          static_cast<int64_t>(roles.getProducers()) * kWarpLanes};
}

ThreadRange kernel::getComputingThreads(gpu::GPUFuncOp kernel) {
  RolesOp roles = getRoles(kernel);
  if (!roles)
    return getAllThreads(kernel);
  return {0, static_cast<int64_t>(roles.getConsumers()) * kWarpLanes};
}
