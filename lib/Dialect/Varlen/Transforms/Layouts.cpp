//===- Layouts.cpp - Layouts of attention on buffers ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/Layouts.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::setUnusedStrides(AttentionOpInterface op) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || type.getRank() == 0 || type.isLastDimUnitStride() ||
        ShapedType::isDynamic(type.getShape().back()) ||
        type.getShape().back() > 1 ||
        failed(type.getStridesAndOffset(strides, offset)))
      continue;
    auto whole =
        memref::ExtractStridedMetadataOp::create(b, op.getLoc(), operand.get());
    SmallVector<OpFoldResult> known = whole.getConstifiedMixedStrides();
    known.back() = b.getIndexAttr(1);
    strides.back() = 1;
    auto layout = StridedLayoutAttr::get(op.getContext(), offset, strides);
    operand.set(memref::ReinterpretCastOp::create(
        b, op.getLoc(),
        MemRefType::get(type.getShape(), type.getElementType(), layout,
                        type.getMemorySpace()),
        operand.get(), whole.getConstifiedMixedOffset(),
        whole.getConstifiedMixedSizes(), known));
  }
}

LogicalResult varlen::verifyLayout(AttentionOpInterface op,
                                   NamedValue operand) {
  auto type = cast<MemRefType>(operand.value.getType());
  if (type.isLastDimUnitStride())
    return success();
  return op.emitOpError("expected ")
         << operand.name << " to be a memref whose last stride is 1, got "
         << type;
}

LogicalResult varlen::verifyLayouts(AttentionOpInterface op) {
  for (NamedValue input : op.getInputs())
    if (failed(verifyLayout(op, input)))
      return failure();
  for (const ShapedByInputs &output : op.getShapedDestinations())
    if (output.value && failed(verifyLayout(op, output)))
      return failure();
  return success();
}
