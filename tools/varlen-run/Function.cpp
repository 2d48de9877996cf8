//===- Function.cpp - A compiled function and its calls -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Function.h"

#include "Host.h"
#include "varlen/Runtime/Runtime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace varlen_run;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Memref descriptors
//===----------------------------------------------------------------------===//

enum DescriptorWord { Allocated, Aligned, Offset, Sizes };

static int64_t getNumWords(const Slot &slot) {
  return Sizes + 2 * static_cast<int64_t>(slot.shape.size());
}

static std::vector<int64_t> makeDescriptor(const Tensor &tensor, void *data) {
  auto rank = static_cast<int64_t>(tensor.shape.size());
  auto address = reinterpret_cast<intptr_t>(data);
  std::vector<int64_t> words(Sizes + 2 * rank);
  words[Allocated] = words[Aligned] = address;
  int64_t stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    words[Sizes + d] = tensor.shape[d];
    words[Sizes + rank + d] = stride;
    stride *= tensor.shape[d];
  }
  return words;
}

/// Reads a descriptor of a dense row-major buffer.
static Expected<NamedTensor> readDescriptor(const Slot &slot,
                                            const int64_t *words) {
  auto rank = static_cast<int64_t>(slot.shape.size());
  NamedTensor result = {slot.name, slot.dtype, {}, nullptr};
  result.shape.assign(words + Sizes, words + Sizes + rank);
  result.data = reinterpret_cast<const char *>(words[Aligned]) +
                words[Offset] * getBytes(slot.dtype);
  std::optional<int64_t> elements = getNumElements(result.shape);
  if (!elements)
    return makeError("result '" + slot.name + "' has the bad shape " +
                     formatShape(result.shape));
  // What is empty has strides of 0.
  if (*elements == 0)
    return result;
  int64_t stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    if (result.shape[d] > 1 && words[Sizes + rank + d] != stride)
      return makeError("result '" + slot.name +
                       "' is not dense: the pipeline has to return buffers "
                       "with the identity layout");
    stride *= std::max<int64_t>(result.shape[d], 1);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

std::string Function::getSymbol(const Signature &signature) {
  return "_mlir_ciface_" + signature.entry;
}

Expected<Function> Function::bind(const mlir::varlen::LoadedObjects &code,
                                  const Signature &signature,
                                  std::vector<Tensor> &inputs,
                                  const Device &device) {
  Function function(signature, inputs, device.isGPU());
  auto entry = code.lookup(getSymbol(signature));
  if (!entry)
    return makeError("function '" + signature.entry +
                     "' cannot be called: " + toString(entry.takeError()));
  function.entry = *entry;
  for (auto [slot, tensor] : llvm::zip_equal(signature.arguments, inputs)) {
    std::vector<int64_t> &descriptor = function.descriptors.emplace_back();
    if (slot.isScalar)
      continue;
    void *data = tensor.data.get();
    if (function.isOnGPU) {
      Expected<void *> copy = copyToDevice(data, tensor.getNumBytes());
      if (!copy)
        return copy.takeError();
      data = *copy;
      function.copies.push_back(data);
    }
    descriptor = makeDescriptor(tensor, data);
  }
  // The layout of an LLVM struct: every member at its natural alignment.
  int64_t bytes = 0;
  for (const Slot &slot : signature.results) {
    bytes = llvm::alignTo(bytes, slot.isScalar ? getBytes(slot.dtype) : 8);
    function.resultOffsets.push_back(bytes);
    bytes += slot.isScalar ? getBytes(slot.dtype) : 8 * getNumWords(slot);
  }
  function.resultWords.resize(llvm::divideCeil(bytes, 8));
  return function;
}

Error Function::call() {
  releaseResults();
  // A single scalar is returned as such, through the last of the pointers; all
  // other results go to a struct whose address is the first argument.
  bool returnsValue =
      signature->results.size() == 1 && signature->results.front().isScalar;
  bool returnsStruct = !signature->results.empty() && !returnsValue;
  std::vector<void *> values;
  if (returnsStruct)
    values.push_back(resultWords.data());
  for (auto &descriptor : descriptors)
    values.push_back(descriptor.data());
  // The packed entry takes the address of each value.
  std::vector<void *> addresses;
  for (size_t i = 0; i < values.size(); ++i) {
    size_t argument = i - returnsStruct;
    bool isScalar =
        (i > 0 || !returnsStruct) && signature->arguments[argument].isScalar;
    addresses.push_back(isScalar ? (*inputs)[argument].data.get()
                                 : static_cast<void *>(&values[i]));
  }
  if (returnsValue)
    addresses.push_back(resultWords.data());
  varlen_clear_error();
  entry(addresses.data());
  hasResults = true;
  if (isOnGPU)
    return finishDevice();
  if (const char *error = varlen_last_error())
    return makeError(std::string(error));
  return Error::success();
}

Error Function::fetch(NamedTensor &tensor) {
  Expected<Tensor> copy = Tensor::create(tensor.dtype, tensor.shape);
  if (!copy)
    return copy.takeError();
  if (Error error =
          copyFromDevice(copy->data.get(), tensor.data, copy->getNumBytes()))
    return error;
  tensor.data = copy->data.get();
  fetched.push_back(std::move(*copy));
  return Error::success();
}

Expected<std::vector<NamedTensor>> Function::getResults() {
  std::vector<NamedTensor> results;
  const char *data = reinterpret_cast<const char *>(resultWords.data());
  for (auto [slot, offset] :
       llvm::zip_equal(signature->results, resultOffsets)) {
    if (slot.isScalar) {
      results.push_back({slot.name, slot.dtype, {}, data + offset});
      continue;
    }
    Expected<NamedTensor> result =
        readDescriptor(slot, reinterpret_cast<const int64_t *>(data + offset));
    if (!result)
      return result.takeError();
    if (isOnGPU)
      if (Error error = fetch(*result))
        return error;
    results.push_back(std::move(*result));
  }
  for (auto [slot, tensor, descriptor] :
       llvm::zip_equal(signature->arguments, *inputs, descriptors)) {
    if (!slot.isMemRef)
      continue;
    NamedTensor result = {slot.name, slot.dtype, tensor.shape,
                          reinterpret_cast<const char *>(descriptor[Aligned])};
    if (isOnGPU)
      if (Error error = fetch(result))
        return error;
    results.push_back(std::move(result));
  }
  return results;
}

Error Function::resetInputs() {
  for (auto [tensor, descriptor] : llvm::zip_equal(*inputs, descriptors))
    if (isOnGPU && !descriptor.empty())
      if (Error error =
              copyToDevice(reinterpret_cast<void *>(descriptor[Aligned]),
                           tensor.data.get(), tensor.getNumBytes()))
        return error;
  return Error::success();
}

Function::~Function() {
  releaseResults();
  for (void *copy : copies)
    freeOnDevice(copy);
}

void Function::releaseResults() {
  fetched.clear();
  if (!hasResults)
    return;
  hasResults = false;
  for (auto [slot, offset] :
       llvm::zip_equal(signature->results, resultOffsets)) {
    if (slot.isScalar)
      continue;
    auto *buffer = reinterpret_cast<void *>(resultWords[offset / 8]);
    isOnGPU ? freeOnDevice(buffer) : releaseBuffer(buffer);
  }
}
