//===- Binding.h - Tensors of a call ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks tensors of the caller against the types of a function, and passes them
// as compiled code wants them.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_BINDING_H
#define VARLEN_LIB_CAPI_BINDING_H

#include "Program.h"

#include "llvm/ADT/SmallVector.h"

namespace varlen_capi {

/// The arguments of an Entry.
class Binding {
public:
  /// `onDevice`: tensors are in memory of a GPU.
  explicit Binding(const Function &function, bool onDevice = false)
      : function(function), onDevice(onDevice) {
    // Room for all, so that addresses stay.
    size_t numTensors = function.arguments.size() + function.results.size();
    size_t numWords = ExtentsDescriptorWords + function.numExtents;
    for (const Parameter &parameter : function.arguments)
      numWords += parameter.getNumWords();
    for (const Parameter &parameter : function.results)
      numWords += parameter.getNumWords();
    words.reserve(numWords);
    values.reserve(numTensors + 1);
    addresses.reserve(numTensors + 1);
    spans.reserve(numTensors);
  }

  /// Without `needsData`, only extents are looked at, and scalars.
  VarlenStatus addArguments(const VarlenTensor *const *tensors, size_t count,
                            bool needsData);
  /// That what is written to overlaps nothing else.
  VarlenStatus checkOverlap() const;
  /// Results of the caller, which must have `extents`.
  VarlenStatus addResults(const VarlenTensor *const *tensors, size_t count,
                          const int64_t *extents);
  /// Results with these extents that are nowhere.
  void addAbsentResults(const int64_t *extents);
  /// Calls the function of extents with the arguments so far. The extents are
  /// valid as long as the binding.
  VarlenStatus findExtents(const int64_t *&extents);

  void **getArguments() { return addresses.data(); }
  /// The address of the i-th argument, a tensor.
  int64_t getAddress(size_t i) const { return getDescriptor(i)[Aligned]; }
  int64_t getSize(size_t i, int64_t d) const {
    return getDescriptor(i)[Sizes + d];
  }
  int64_t getStride(size_t i, int64_t d) const {
    return getDescriptor(i)[Sizes + getParameter(i).getRank() + d];
  }

private:
  /// The words of a memref descriptor: strides follow the sizes.
  enum DescriptorWord { Allocated, Aligned, Offset, Sizes };
  enum { ExtentsDescriptorWords = 5 };

  const int64_t *getDescriptor(size_t i) const {
    return *static_cast<const int64_t *const *>(addresses[i]);
  }
  /// Results come behind arguments.
  const Parameter &getParameter(size_t i) const {
    size_t numArguments = function.arguments.size();
    return i < numArguments ? function.arguments[i]
                            : function.results[i - numArguments];
  }

  /// The memory that a tensor begins and ends in.
  struct Span {
    const char *begin, *end;
  };
  /// Whether the i-th tensor and another one may have memory in common.
  bool overlap(size_t i, size_t other) const;
  /// Checks the i-th tensor against the ones before it.
  VarlenStatus checkOverlap(size_t i) const;

  VarlenStatus add(const Parameter &parameter, const VarlenTensor *tensor,
                   bool needsData);
  /// Checks strides and appends a descriptor.
  VarlenStatus addDescriptor(const Parameter &parameter,
                             const VarlenTensor &tensor, bool needsData);
  void addPointer(int64_t *descriptor) {
    values.push_back(descriptor);
    addresses.push_back(&values.back());
  }

  const Function &function;
  bool onDevice;
  llvm::SmallVector<int64_t, 192> words;
  llvm::SmallVector<void *, 24> values, addresses;
  llvm::SmallVector<Span, 16> spans;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_BINDING_H
