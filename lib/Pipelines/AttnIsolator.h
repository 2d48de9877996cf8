//===- AttnIsolator.h - Attentions in a module of their own -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What leaves everything else alone: passes never see it. Each attention of a
// module becomes a call, and the function that is called is made in a nested
// module, as one on tensors that a caller gives buffers for; passes run there,
// and what they have made is moved out.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_PIPELINES_ATTNISOLATOR_H
#define VARLEN_LIB_PIPELINES_ATTNISOLATOR_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::varlen {

class AttnIsolator {
public:
  /// With `denseTensors` operands that are tensors become buffers with the
  /// identity layout; otherwise with any strides but the last.
  explicit AttnIsolator(ModuleOp module, bool denseTensors = false)
      : module(module), symbols(module), denseTensors(denseTensors) {}
  ~AttnIsolator() {
    if (inner)
      inner->erase();
  }

  /// Makes the calls, and the module of the functions, in which there are none
  /// if there are no attentions. An error is emitted on an attention that
  /// cannot be called.
  LogicalResult isolate();
  ModuleOp getInner() { return inner; }
  int64_t getNumIsolated() const { return numIsolated; }
  /// Moves what is in the module of the functions to the one outside.
  LogicalResult merge();

private:
  LogicalResult isolate(AttentionOpInterface op);
  /// The operands as memrefs; for tensors operations that make some of them.
  FailureOr<SmallVector<Value>> getInputs(AttentionOpInterface op,
                                          OpBuilder &b);
  FailureOr<SmallVector<Value>> getOutputs(AttentionOpInterface op,
                                           OpBuilder &b);
  func::FuncOp makeFunction(AttentionOpInterface op, StringRef name,
                            ArrayRef<Value> inputs, ArrayRef<Value> outputs);

  ModuleOp module;
  SymbolTable symbols;
  ModuleOp inner;
  bool denseTensors;
  int64_t numIsolated = 0;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_PIPELINES_ATTNISOLATOR_H
