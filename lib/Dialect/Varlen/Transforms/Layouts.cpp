//===- Layouts.cpp - Layouts of attention on buffers ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/Layouts.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::varlen;

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
