//===- Function.h - A compiled function and its calls -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_FUNCTION_H
#define VARLEN_TOOLS_RUN_FUNCTION_H

#include "Safetensors.h"
#include "Signature.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"

namespace varlen_run {

/// The entry function with its arguments bound. Calls do not allocate.
class Function {
public:
  /// The inputs and the engine must outlive the function.
  static llvm::Expected<Function> bind(const mlir::ExecutionEngine &engine,
                                       const Signature &signature,
                                       std::vector<Tensor> &inputs);
  Function(Function &&) = default;
  ~Function() { releaseResults(); }

  /// Runs the function. An error is one that compiled code has found.
  llvm::Error call();
  /// The results of the last call: valid until the next.
  llvm::Expected<std::vector<NamedTensor>> getResults() const;

private:
  Function(const Signature &signature, std::vector<Tensor> &inputs)
      : signature(&signature), inputs(&inputs) {}
  void releaseResults();

  const Signature *signature;
  std::vector<Tensor> *inputs;
  void (*entry)(void **) = nullptr;
  /// Memref descriptors of the arguments, as words: allocated, aligned, offset,
  /// sizes, strides.
  std::vector<std::vector<int64_t>> descriptors;
  /// The struct that results are returned in, and where each result is in it.
  std::vector<int64_t> resultWords;
  std::vector<int64_t> resultOffsets;
  bool hasResults = false;
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_FUNCTION_H
