//===- Body.h - What the body of an operation computes ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_BODY_H
#define VARLEN_SUPPORT_BODY_H

#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// Whether a result lacks a loop, so that several values make one of it.
bool isReduced(linalg::LinalgOp op, OpOperand &init);

/// Whether a value that the body of `op` reads or computes differs along a
/// loop.
bool variesAlong(linalg::LinalgOp op, Value value, unsigned dim);

/// Adds to the indices that the body reads where the operation, which is part
/// of one with larger loops, has its first element of them. upstream's
/// offsetIndices makes affine.apply of it, which has no vector form.
void moveIndices(OpBuilder &b, linalg::GenericOp op, ValueRange origin);

/// An operation on tensors whose loops are parallel as far as the result has
/// them; `maps` are of `inputs`, then of `init`, as are the elements that
/// `body` gets. Returns the result.
Value emitGeneric(ImplicitLocOpBuilder &b, ValueRange inputs, Value init,
                  ArrayRef<AffineMap> maps,
                  function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body);

/// An operation on tensors of one shape that computes each element by itself;
/// `body` gets the elements of `inputs`, then of `inits`.
linalg::GenericOp
emitElementwise(ImplicitLocOpBuilder &b, ValueRange inputs, ValueRange inits,
                function_ref<Values(ImplicitLocOpBuilder &, ValueRange)> body);

/// Erases the operations of a block that nothing needs, last ones first.
void eraseDeadOps(Block &block);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_BODY_H
