//===- Passes.td - Passes of the varlen dialect ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TRANSFORMS_PASSES_TD
#define VARLEN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenOnlineSoftmax : Pass<"varlen-online-softmax"> {
  let summary = "Write varlen.online_attn as linalg on tiles";
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numSteps", "steps", "Steps of online softmax written out">];
}

#endif // VARLEN_TRANSFORMS_PASSES_TD
