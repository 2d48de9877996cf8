//===- ContractionForm.cpp - Which loop of a contraction is what ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::varlen;

static bool isLast(linalg::LinalgOp op, OpOperand &operand, unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return map.getNumResults() &&
         map.getDimPosition(map.getNumResults() - 1) == dim;
}

static bool hasDim(linalg::LinalgOp op, OpOperand &operand, unsigned dim) {
  return op.getMatchingIndexingMap(&operand).isFunctionOfDim(dim);
}

/// Whether an element is a float, or a signed byte in memory that becomes one:
/// what copies factors into panels converts none.
static bool isFactorElement(linalg::LinalgOp op, OpOperand &operand) {
  Type element = getElementTypeOrSelf(operand.get().getType());
  if (isa<FloatType>(element))
    return true;
  return element.isInteger(8) && op.hasPureBufferSemantics() &&
         op.isDpsInput(&operand) &&
         llvm::all_of(op.getMatchingBlockArgument(&operand).getUsers(),
                      llvm::IsaPred<arith::SIToFPOp>);
}

FailureOr<ContractionForm> varlen::getContractionForm(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op))
    return failure();
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.empty() || dims->n.empty() || dims->k.empty())
    return failure();
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingIndexingMap(&operand).isProjectedPermutation() ||
        !isFactorElement(op, operand))
      return failure();
  ContractionForm form;
  form.result = op.getDpsInitOperand(0);
  OpOperand *inputs[] = {op.getDpsInputOperand(0), op.getDpsInputOperand(1)};
  // The columns are the loop of the result's last dimension, rows the inner one
  // of the others.
  unsigned last = op.getMatchingIndexingMap(form.result).getNumResults() - 1;
  form.columns = op.getMatchingIndexingMap(form.result).getDimPosition(last);
  bool isSwapped;
  if (llvm::is_contained(dims->n, form.columns))
    isSwapped = false;
  else if (llvm::is_contained(dims->m, form.columns))
    isSwapped = true;
  else
    return failure();
  form.lhs = inputs[isSwapped];
  form.rhs = inputs[!isSwapped];
  form.hasColumnsLast = isLast(op, *form.rhs, form.columns);
  form.rows = (isSwapped ? dims->n : dims->m).back();
  form.depth = dims->k.back();
  for (unsigned k : dims->k)
    if (isLast(op, *form.lhs, k))
      form.depth = k;
  form.hasRightDepthLast = isLast(op, *form.rhs, form.depth);
  form.hasDepthLast =
      form.hasRightDepthLast && isLast(op, *form.lhs, form.depth);
  // Results first: the sums of contracted loops around the tile are in memory.
  for (bool isOfResult : {true, false})
    for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
      if (dim != form.rows && dim != form.columns && dim != form.depth &&
          hasDim(op, *form.result, dim) == isOfResult)
        form.outer.push_back(dim);
  return form;
}

bool varlen::isBF16Product(const ContractionForm &form,
                           const CPUTarget &target) {
  return target.hasBF16Dot && getElement(form.lhs).isBF16() &&
         getElement(form.rhs).isBF16() && getElement(form.result).isF32();
}

FailureOr<ContractionForm> varlen::getPairForm(linalg::LinalgOp op,
                                               const CPUTarget &target) {
  FailureOr<ContractionForm> form = getContractionForm(op);
  if (failed(form) || !isBF16Product(*form, target) || !form->hasDepthLast)
    return failure();
  // The loop that is last in both factors is the pair; depth is another one.
  unsigned pair = form->depth;
  linalg::ContractionDimensions dims = *linalg::inferContractionDims(op);
  if (op.getStaticLoopRanges()[pair] != 2 || dims.k.size() != 2)
    return failure();
  form->depth = dims.k.front() == pair ? dims.k.back() : dims.k.front();
  AffineMap rhs = op.getMatchingIndexingMap(form->rhs);
  if (rhs.getDimPosition(rhs.getNumResults() - 2) != form->columns)
    return failure();
  llvm::erase(form->outer, form->depth);
  return form;
}
