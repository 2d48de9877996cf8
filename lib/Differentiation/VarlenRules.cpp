//===- VarlenRules.cpp - Rules of the varlen dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// varlen.attn, varlen.attn_into
//===----------------------------------------------------------------------===//

/// Destinations are not read: their cotangents are zero.
static LogicalResult pullBack(AttentionOpInterface op, VJPBuilder &b) {
  if (op.isBufferized())
    return op->emitError("expected tensors to differentiate, got memrefs");
  auto grad = AttnGradOp::create(b, op, b.getCotangentOrZero(op->getResult(0)),
                                 b.getCotangent(op->getResult(1)));
  b.accumulate(op.getQ(), grad.getDq());
  b.accumulate(op.getK(), grad.getDk());
  b.accumulate(op.getV(), grad.getDv());
  if (op.getSink())
    b.accumulate(op.getSink(), grad.getDsink());
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#include "Models.h"

void varlen::registerVarlenVJPExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    attach<PullBackModel, AttnOp, AttnIntoOp>(*context);
  });
}
