//===- MergeConstants.cpp - Each constant of a function once --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/MergeConstants.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/FoldUtils.h"

using namespace mlir;

void varlen::mergeConstants(FunctionOpInterface function) {
  OperationFolder folder(function.getContext());
  function.walk([&](Operation *op) {
    Operation *parent = op->getParentOp();
    if (!op->hasTrait<OpTrait::ConstantLike>() ||
        !(parent == function || isa<gpu::LaunchOp>(parent) ||
          isa<scf::SCFDialect>(parent->getDialect())))
      return;
    if (op->use_empty())
      op->erase();
    else
      folder.insertKnownConstant(op);
  });
}
