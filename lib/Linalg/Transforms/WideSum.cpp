//===- WideSum.cpp - Sums of narrow floats in f32 -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideSum.h"

#include "ContractionForm.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

/// An elementwise conversion between floats, into new memory.
static Value emitConversion(ImplicitLocOpBuilder &b, Value source,
                            FloatType element) {
  Value target = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), source), element);
  return emitElementwise(b, source, target,
                         [&](ImplicitLocOpBuilder &inner, ValueRange x) {
                           return Values{convertScalarToDtype(
                               inner, inner.getLoc(), x[0], element,
                               /*isUnsignedCast=*/false)};
                         })
      .getResult(0);
}

void varlen::widenSum(linalg::LinalgOp op) {
  auto element = dyn_cast<FloatType>(
      getElementTypeOrSelf(op.getDpsInitOperand(0)->get().getType()));
  if (!op.hasPureTensorSemantics() || !element || element.getWidth() >= 32 ||
      failed(getContractionForm(op)))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value sum = emitConversion(b, op.getDpsInitOperand(0)->get(), b.getF32Type());
  Value wide =
      linalg::ContractOp::create(b, TypeRange{sum.getType()}, op.getDpsInputs(),
                                 ValueRange{sum}, op.getIndexingMaps())
          .getResult(0);
  op->replaceAllUsesWith(ValueRange{emitConversion(b, wide, element)});
  op->erase();
}
