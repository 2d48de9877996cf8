//===- KernelLaunch.cpp - Launches of kernels in one dimension ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLaunch.h"

#include "varlen/Support/IndexBuilder.h"

using namespace mlir;
using namespace mlir::varlen;

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
