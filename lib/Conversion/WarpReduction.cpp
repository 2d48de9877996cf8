//===- WarpReduction.cpp - Reductions over the lanes of a warp ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpReduction.h"

#include "varlen/Dialect/Kernel/IR/SharedTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

Value varlen::emitLane(IndexBuilder &index) {
  Value thread =
      index.cast(gpu::ThreadIdOp::create(index.b, gpu::Dimension::x));
  return index.rem(thread, kernel::kWarpLanes);
}

Value varlen::emitWarpReduction(ImplicitLocOpBuilder &b, Value value,
                                function_ref<Value(Value, Value)> combine) {
  Value width = arith::ConstantIntOp::create(b, kernel::kWarpLanes, 32);
  for (int64_t distance = 1; distance < kernel::kWarpLanes; distance *= 2) {
    Value offset = arith::ConstantIntOp::create(b, distance, 32);
    Value other =
        gpu::ShuffleOp::create(b, value, offset, width, gpu::ShuffleMode::XOR)
            .getShuffleResult();
    value = combine(value, other);
  }
  return value;
}
