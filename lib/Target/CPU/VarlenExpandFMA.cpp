//===- VarlenExpandFMA.cpp - Multiply-add in two steps --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDFMA
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

namespace {

struct VarlenExpandFMA : varlen::impl::VarlenExpandFMABase<VarlenExpandFMA> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (!isa<math::FmaOp, vector::FMAOp>(op))
        return;
      OpBuilder b(op);
      Value product = arith::MulFOp::create(b, op->getLoc(), op->getOperand(0),
                                            op->getOperand(1));
      Value sum =
          arith::AddFOp::create(b, op->getLoc(), product, op->getOperand(2));
      op->getResult(0).replaceAllUsesWith(sum);
      op->erase();
      ++numExpanded;
    });
  }
};

} // namespace
