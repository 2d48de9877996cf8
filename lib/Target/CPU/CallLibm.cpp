//===- CallLibm.cpp - Functions that only libm has ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LegalizeForCPU.h"
#include "varlen/Support/ExpandIntegerPower.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// The most elements that get a call each: more would be no program.
static constexpr int64_t kMaxCalls = 1 << 16;

/// LLVM has powers by an int alone, and calls compiler-rt for them.
static LogicalResult expandPowers(ModuleOp module) {
  SmallVector<Operation *> powers;
  module.walk([&](math::FPowIOp op) { powers.push_back(op); });
  if (powers.empty())
    return success();
  RewritePatternSet patterns(module.getContext());
  math::populateExpansionPatterns(patterns, {"fpowi"});
  varlen::populateExpandIntegerPowerPatterns(patterns);
  return applyOpPatternsGreedily(powers, std::move(patterns));
}

LogicalResult varlen::callLibm(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (!isa<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp,
             math::ErfOp, math::ErfcOp>(op))
      return WalkResult::advance();
    auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
    if (!vector || vector.getNumElements() <= kMaxCalls)
      return WalkResult::advance();
    return WalkResult(op->emitOpError("expected at most ")
                      << kMaxCalls << " elements, each of which is a call, got "
                      << vector);
  });
  if (result.wasInterrupted() || failed(expandPowers(module)))
    return failure();
  RewritePatternSet patterns(module.getContext());
  populateMathToLibmConversionPatterns(patterns);
  ConversionTarget target(*module.getContext());
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  target.addIllegalOp<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp,
                      math::ErfOp, math::ErfcOp>();
  return applyPartialConversion(module, target, std::move(patterns));
}
