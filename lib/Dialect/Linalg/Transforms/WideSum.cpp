//===- WideSum.cpp - Sums of narrow floats in f32 -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideSum.h"

#include "ContractionForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::varlen;

/// An elementwise conversion between floats, into new memory.
static Value emitConversion(ImplicitLocOpBuilder &b, Value source,
                            FloatType element) {
  auto type = cast<RankedTensorType>(source.getType());
  Value target = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), source), element);
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  bool isWider = element.getWidth() > type.getElementTypeBitWidth();
  return linalg::GenericOp::create(
             b, TypeRange{target.getType()}, ValueRange{source},
             ValueRange{target}, ArrayRef<AffineMap>{identity, identity}, loops,
             [&](OpBuilder &builder, Location loc, ValueRange arguments) {
               Value value = arguments.front();
               value =
                   isWider
                       ? arith::ExtFOp::create(builder, loc, element, value)
                             .getResult()
                       : arith::TruncFOp::create(builder, loc, element, value)
                             .getResult();
               linalg::YieldOp::create(builder, loc, value);
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
