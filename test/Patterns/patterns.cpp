//===- patterns.cpp - Tests of patterns that others apply -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Patterns of several passes in one rewrite, as a user of the libraries would
// apply them.
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-patterns-test

#include "../Expect.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/InitAll.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::varlen;

static constexpr llvm::StringLiteral step = R"mlir(
func.func @step(%q: tensor<8x16xf32>, %k: tensor<4x16xf32>, %acc: tensor<8x16xf32>,
                %m: tensor<8x1xf32>) -> tensor<8x16xf32> {
  %0:3 = varlen.online_attn qk ins(%q, %k, %k : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
      outs(%acc, %m, %m : tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 0.25
  %1:3 = varlen.online_merge qk %0#0, %0#1, %0#2 with %acc, %m, %m scale 0.25
      : tensor<8x16xf32>, tensor<8x1xf32>
  return %1#0 : tensor<8x16xf32>
}
)mlir";

static constexpr llvm::StringLiteral product = R"mlir(
!tile = memref<1x64x64xbf16, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @product(%q: !tile, %k: !tile, %out: memref<64x1x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
    %qt = kernel.tile %q : !tile to tensor<64x64xbf16>
    %kt = kernel.tile %k : !tile to tensor<64x64xbf16>
    %s = linalg.contract indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>,
                                          affine_map<(m, n, d) -> (m, n)>]
        ins(%qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zeros : tensor<64x64xf32>) -> tensor<64x64xf32>
    kernel.store %s to %out rows(%c0, %c0, %c0, %c1) valid(%c64) : tensor<64x64xf32> to memref<64x1x64xf32>
    gpu.return
  }
}
)mlir";

/// How many operations of these kinds are in `root`.
template <typename... Ops> static int count(Operation *root) {
  int found = 0;
  root->walk([&](Operation *op) { found += isa<Ops...>(op); });
  return found;
}

/// Steps become linalg and its exponentials polynomials, in one greedy rewrite.
static void testOnlineSoftmax(MLIRContext &context) {
  auto module = parseSourceString<ModuleOp>(step, &context);
  RewritePatternSet patterns(&context);
  populateOnlineSoftmaxPatterns(patterns);
  populateExpandExp2Patterns(patterns, /*degree=*/5, /*scale=*/false);
  EXPECT(succeeded(applyPatternsGreedily(*module, std::move(patterns))));
  EXPECT((count<OnlineAttnOp, OnlineMergeOp, math::Exp2Op>(*module) == 0));
  EXPECT(count<linalg::ContractOp>(*module) == 2);
  EXPECT(succeeded(module->verify()));
}

/// Tiles become fragments and their products instructions, in one conversion.
static void testContract(MLIRContext &context) {
  auto module = parseSourceString<ModuleOp>(product, &context);
  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  ConversionTarget target(context);
  RewritePatternSet patterns(&context);
  constexpr int64_t warps = 4;
  kernel::populateDistributePatternsAndLegality(converter, patterns, target,
                                                warps);
  kernel::populateLowerContractPatternsAndLegality(converter, patterns, target,
                                                   warps);
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  EXPECT(
      succeeded(applyPartialConversion(*module, target, std::move(patterns))));
  EXPECT((count<linalg::ContractOp, kernel::ContractOp>(*module) == 0));
  EXPECT(succeeded(module->verify()));
}

int main() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerUpstream(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  testOnlineSoftmax(context);
  testContract(context);
  return summary();
}
