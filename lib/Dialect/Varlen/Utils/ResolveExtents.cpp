//===- ResolveExtents.cpp - Extents of tiles as those of memory -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/ResolveExtents.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::resolveExtents(Operation *root) {
  SmallVector<Operation *> extents;
  root->walk([&](tensor::DimOp extent) { extents.push_back(extent); });
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  bufferization::ToTensorOp::getCanonicalizationPatterns(patterns, context);
  // Each extent becomes that of another value, so this ends.
  (void)applyOpPatternsGreedily(
      extents, std::move(patterns),
      GreedyRewriteConfig().setStrictness(
          GreedyRewriteStrictness::ExistingAndNewOps));
}
