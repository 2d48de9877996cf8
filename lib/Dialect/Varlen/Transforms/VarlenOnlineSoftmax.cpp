//===- VarlenOnlineSoftmax.cpp - The online-softmax step ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  void runOnOperation() override {}
};
} // namespace
