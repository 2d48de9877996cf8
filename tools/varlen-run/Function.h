//===- Function.h - A compiled function and its calls -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_FUNCTION_H
#define VARLEN_TOOLS_RUN_FUNCTION_H

#include "Device.h"
#include "Safetensors.h"
#include "Signature.h"
#include "varlen/ExecutionEngine/ObjectCode.h"

namespace varlen_run {

/// The entry function with its arguments bound. Calls do not allocate.
class Function {
public:
  /// What the entry is called in code.
  static std::string getSymbol(const Signature &signature);
  /// The inputs and the code must outlive the function. On a GPU it gets
  /// copies of them.
  static llvm::Expected<Function> bind(const mlir::varlen::LoadedObjects &code,
                                       const Signature &signature,
                                       std::vector<Tensor> &inputs,
                                       const Device &device);
  Function(Function &&) = default;
  ~Function();

  /// Runs the function. An error is one that compiled code has found.
  llvm::Error call();
  /// The results of the last call: valid until the next.
  llvm::Expected<std::vector<NamedTensor>> getResults();
  /// Gives the copies of the inputs the inputs' values again.
  llvm::Error resetInputs();

private:
  Function(const Signature &signature, std::vector<Tensor> &inputs,
           bool isOnGPU)
      : signature(&signature), inputs(&inputs), isOnGPU(isOnGPU) {}
  void releaseResults();
  /// Reads a tensor of the GPU; valid until the next call.
  llvm::Error fetch(NamedTensor &tensor);

  const Signature *signature;
  std::vector<Tensor> *inputs;
  bool isOnGPU;
  /// On a GPU: the inputs' copies, and what was fetched.
  std::vector<void *> copies;
  std::vector<Tensor> fetched;
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
