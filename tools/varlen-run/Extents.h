//===- Extents.h - Sizes in one run of the entry function -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_EXTENTS_H
#define VARLEN_TOOLS_RUN_EXTENTS_H

#include "Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace varlen_run {

/// Extents of dimensions of values.
using KnownExtents = llvm::DenseMap<std::pair<mlir::Value, int64_t>, int64_t>;

/// A function as one chain of calls reaches it.
struct Frame {
  explicit Frame(mlir::func::FuncOp function, mlir::func::CallOp call = {},
                 const Frame *caller = nullptr)
      : function(function), call(call), caller(caller) {}

  mlir::func::FuncOp function;
  /// The call and the frame it stands in; null in the entry function.
  mlir::func::CallOp call;
  const Frame *caller;
  /// The extents that have been found.
  mutable KnownExtents extents;

  /// What the caller passes; not for the entry function.
  mlir::Value getPassed(unsigned argument) const {
    return mlir::func::CallOp(call).getOperand(argument);
  }
};

/// The function that `call` in `caller` enters; none if it has no body here, or
/// is entered already: how deep a recursion goes is not known.
std::optional<Frame> enterCall(mlir::func::CallOp call, const Frame &caller);

/// Finds what sizes and lists are when the entry function runs on `inputs`.
class Extents {
public:
  explicit Extents(llvm::ArrayRef<Tensor> inputs) : inputs(inputs) {}

  /// The extent of dimension `dim` of `value`, in elements; none if the inputs
  /// do not say it.
  std::optional<int64_t> getExtent(mlir::Value value, int64_t dim,
                                   const Frame &frame) const;
  /// The value of a number that counts something.
  std::optional<int64_t> getNumber(mlir::OpFoldResult number,
                                   const Frame &frame) const;
  /// The input that `value` is; null if it is none.
  const Tensor *getInput(mlir::Value value, const Frame &frame) const;

private:
  std::optional<int64_t> evaluate(mlir::Value value, std::optional<int64_t> dim,
                                  const Frame &frame, int steps) const;
  std::optional<int64_t> evaluateReturned(mlir::OpResult value, int64_t dim,
                                          const Frame &frame, int steps) const;
  std::optional<int64_t> evaluateCollapsed(mlir::tensor::CollapseShapeOp op,
                                           int64_t dim, const Frame &frame,
                                           int steps) const;
  std::optional<int64_t> evaluateCarried(mlir::Value value, int64_t dim,
                                         const Frame &frame, int steps) const;

  llvm::ArrayRef<Tensor> inputs;
  /// Extents of what loops carry, while it is seen whether they stay the same.
  mutable KnownExtents carried;
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_EXTENTS_H
