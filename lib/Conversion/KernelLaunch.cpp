//===- KernelLaunch.cpp - Launches of kernels in one dimension ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLaunch.h"

#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::varlen;

/// Threads of a block where any number would do.
static constexpr int64_t kLaunchThreads = 128;

void varlen::emitLaunch(ImplicitLocOpBuilder &b, const Twine &name,
                        Value blocks, int64_t threads,
                        function_ref<void(Value, Value, Value)> body) {
  IndexBuilder index{b};
  Value one = index.constant(1);
  auto launch = gpu::LaunchOp::create(b, blocks, one, one,
                                      index.constant(threads), one, one);
  launch.setFunctionAttr(FlatSymbolRefAttr::get(b.getStringAttr(name)));
  // One binary for all kernels of a program.
  launch.setModuleAttr(FlatSymbolRefAttr::get(b.getStringAttr("kernels")));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launch.getBody().front());
  body(launch.getBlockIds().x, launch.getGridSize().x, launch.getThreadIds().x);
  gpu::TerminatorOp::create(b);
}

void varlen::emitLaunchOfThreads(ImplicitLocOpBuilder &b, const Twine &name,
                                 Value extent, function_ref<void(Value)> body) {
  IndexBuilder index{b};
  emitLaunch(b, name, index.ceilDiv(extent, kLaunchThreads), kLaunchThreads,
             [&](Value block, Value, Value thread) {
               Value i = index.add(index.mul(block, kLaunchThreads), thread);
               emitIf(b, index.less(i, extent), [&] { body(i); });
             });
}

void varlen::emitLaunchOfWarps(ImplicitLocOpBuilder &b, const Twine &name,
                               Value extent,
                               function_ref<void(Value, Value)> body) {
  IndexBuilder index{b};
  Value lanes = index.constant(kernel::kWarpLanes);
  emitLaunchOfThreads(b, name, index.mul(extent, lanes), [&](Value thread) {
    body(index.div(thread, lanes), index.rem(thread, lanes));
  });
}

void varlen::emitIfOnHost(ImplicitLocOpBuilder &b, Value condition,
                          function_ref<void()> body) {
  emitWhile(
      b, condition, [](ValueRange again) { return again.front(); },
      [&](ValueRange) {
        body();
        return Values{arith::ConstantIntOp::create(b, 0, 1)};
      });
}
