//===- Binding.cpp - Tensors of a call ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Binding.h"

#include "Status.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <string>

using namespace varlen_capi;

static long long print(int64_t value) { return value; }

static bool isOnHost(int32_t device) {
  return device == VARLEN_CPU || device == VARLEN_CUDA_HOST ||
         device == VARLEN_CUDA_MANAGED;
}

static bool isOnDevice(int32_t device) {
  return device == VARLEN_CUDA || device == VARLEN_CUDA_MANAGED;
}

static bool hasElements(const Parameter &parameter,
                        const VarlenTensor &tensor) {
  // MLIR's integers have no sign.
  bool sameKind =
      tensor.dtype.code == parameter.code ||
      (parameter.code == VARLEN_INT && tensor.dtype.code == VARLEN_UINT);
  return sameKind && tensor.dtype.bits == parameter.bits &&
         tensor.dtype.lanes == 1;
}

/// A DLPack type by the names of MLIR, and in numbers, as the caller wrote it.
static std::string printElements(int code, int bits, int lanes) {
  const char *kind = code == VARLEN_BOOL            ? "bool"
                     : code == VARLEN_BFLOAT        ? "bf"
                     : code == VARLEN_FLOAT         ? "f"
                     : code == VARLEN_UINT          ? "ui"
                     : code == VARLEN_INT           ? "i"
                     : code == VARLEN_FLOAT8_E4M3FN ? "f8E4M3FN"
                                                    : nullptr;
  std::string numbers = "(" + std::to_string(code) + ", " +
                        std::to_string(bits) + ", " + std::to_string(lanes) +
                        ")";
  if (!kind)
    return "DLPack's " + numbers;
  bool isComplete = code == VARLEN_BOOL || code == VARLEN_FLOAT8_E4M3FN;
  std::string name = isComplete ? kind : kind + std::to_string(bits);
  return (lanes == 1 ? name : "vectors of " + name) + ", DLPack's " + numbers;
}

VarlenStatus Binding::add(const Parameter &parameter,
                          const VarlenTensor *tensor, bool needsData) {
  const char *name = parameter.name.c_str();
  if (!tensor)
    return fail(VARLEN_INVALID_ARGUMENT, "%s: expected a tensor, got null",
                name);
  if (!(onDevice ? isOnDevice : isOnHost)(tensor->device.device_type))
    return fail(VARLEN_INVALID_ARGUMENT,
                "%s: expected a tensor in memory of %s, got device type %d",
                name, onDevice ? "a CUDA device" : "the CPU",
                tensor->device.device_type);
  if (!hasElements(parameter, *tensor))
    return fail(VARLEN_INVALID_ARGUMENT, "%s: expected elements of %s, got %s",
                name, printElements(parameter.code, parameter.bits, 1).c_str(),
                printElements(tensor->dtype.code, tensor->dtype.bits,
                              tensor->dtype.lanes)
                    .c_str());
  if (tensor->ndim != parameter.getRank() || (tensor->ndim && !tensor->shape))
    return fail(VARLEN_INVALID_ARGUMENT,
                "%s: expected a tensor of rank %lld, got %s%d", name,
                print(parameter.getRank()),
                tensor->ndim == parameter.getRank() ? "no shape for rank " : "",
                tensor->ndim);
  for (int64_t d = 0, rank = parameter.getRank(); d < rank; ++d) {
    int64_t extent = tensor->shape[d], wanted = parameter.shape[d];
    if (extent < 0 || (wanted != VARLEN_DYNAMIC && extent != wanted))
      return fail(VARLEN_INVALID_ARGUMENT,
                  "%s: expected extent %lld %s %lld, got %lld", name, print(d),
                  wanted == VARLEN_DYNAMIC ? "of at least" : "to be",
                  wanted == VARLEN_DYNAMIC ? 0 : print(wanted), print(extent));
  }
  if (!parameter.isScalar)
    return addDescriptor(parameter, *tensor, needsData);
  // Its address is the argument; extents may depend on it.
  if (!tensor->data)
    return fail(VARLEN_INVALID_ARGUMENT, "%s: expected a scalar, got null",
                name);
  addresses.push_back(static_cast<char *>(tensor->data) + tensor->byte_offset);
  spans.push_back({nullptr, nullptr});
  return VARLEN_OK;
}

VarlenStatus Binding::addDescriptor(const Parameter &parameter,
                                    const VarlenTensor &tensor,
                                    bool needsData) {
  const char *name = parameter.name.c_str();
  int64_t rank = parameter.getRank();
  size_t begin = words.size();
  words.resize(begin + parameter.getNumWords());
  int64_t *descriptor = &words[begin];
  char *data = tensor.data
                   ? static_cast<char *>(tensor.data) + tensor.byte_offset
                   : nullptr;
  descriptor[Allocated] = descriptor[Aligned] =
      reinterpret_cast<intptr_t>(data);
  descriptor[Offset] = 0;
  bool isEmpty = false, tooLarge = false, overlapsItself = false;
  for (int64_t d = 0; d < rank; ++d)
    isEmpty |= tensor.shape[d] == 0;
  // From the last index to the first: `dense` is the stride that makes a
  // tensor without gaps. Bytes that indices reach, upwards and downwards.
  int64_t dense = 1, up = 0, down = 0;
  for (int64_t d = rank - 1; d >= 0; --d) {
    int64_t extent = tensor.shape[d], wanted = dense, stride = dense;
    if (!parameter.isDense && parameter.strides[d] != VARLEN_DYNAMIC)
      wanted = parameter.strides[d];
    else if (!parameter.isDense && tensor.strides)
      wanted = tensor.strides[d];
    // A stride that no index uses may be anything.
    if (tensor.strides && extent > 1 && !isEmpty)
      stride = tensor.strides[d];
    else
      stride = wanted;
    if (stride != wanted)
      return fail(VARLEN_INVALID_ARGUMENT,
                  "%s: expected stride %lld to be %lld, got %lld", name,
                  print(d), print(wanted), print(stride));
    descriptor[Sizes + d] = extent;
    descriptor[Sizes + rank + d] = stride;
    int64_t reach = 0;
    if (extent > 1 && !isEmpty)
      tooLarge |= __builtin_mul_overflow(extent - 1, stride, &reach) ||
                  __builtin_mul_overflow(reach, parameter.elementBytes, &reach);
    tooLarge |= __builtin_add_overflow(reach < 0 ? down : up, reach,
                                       reach < 0 ? &down : &up);
    tooLarge |=
        __builtin_mul_overflow(dense, std::max<int64_t>(extent, 1), &dense);
    overlapsItself |= parameter.isWritten && extent > 1 && stride == 0;
  }
  if (tooLarge || up > INT64_MAX - parameter.elementBytes)
    return fail(VARLEN_INVALID_ARGUMENT,
                "%s: expected a tensor of less than 2^63 bytes", name);
  if (overlapsItself && !isEmpty)
    return fail(VARLEN_INVALID_ARGUMENT,
                "%s: expected strides that are not 0, as it is written to",
                name);
  addPointer(descriptor);
  if (!needsData)
    return VARLEN_OK;
  if (!data && !isEmpty)
    return fail(VARLEN_INVALID_ARGUMENT, "%s: expected data, got null", name);
  if (reinterpret_cast<uintptr_t>(data) % parameter.elementBytes && !isEmpty)
    return fail(VARLEN_INVALID_ARGUMENT,
                "%s: expected data aligned to its elements of %lld bytes, got "
                "address %p",
                name, print(parameter.elementBytes), static_cast<void *>(data));
  if (isEmpty)
    spans.push_back({nullptr, nullptr});
  else
    spans.push_back({data + down, data + up + parameter.elementBytes});
  return VARLEN_OK;
}

namespace {
/// A dimension of memory in bytes.
struct Dimension {
  int64_t extent, stride;
};

/// The memory of a tensor, of which dimensions with larger strides are first.
struct Memory {
  llvm::SmallVector<Dimension, 4> dims;
  int64_t elementBytes;

  /// Bytes from the first one to the last, of dimensions from `first` on.
  int64_t getReach(size_t first) const {
    int64_t reach = elementBytes;
    for (const Dimension &dim : llvm::ArrayRef(dims).drop_front(first))
      reach += (dim.extent - 1) * dim.stride;
    return reach;
  }
};
} // namespace

/// Whether two tensors, of which `b` begins `offset` bytes after `a`, have a
/// byte in common, by dimensions from `first` on. Where their strides differ
/// they may have one, unless one ends before the other begins.
static bool overlap(const Memory &a, const Memory &b, size_t first,
                    int64_t offset) {
  int64_t reachOfA = a.getReach(first), reachOfB = b.getReach(first);
  if (offset >= reachOfA || -offset >= reachOfB)
    return false;
  if (a.dims.size() <= first || b.dims.size() <= first)
    return true;
  const Dimension &ofA = a.dims[first], &ofB = b.dims[first];
  int64_t stride = ofA.stride, inA = a.getReach(first + 1),
          inB = b.getReach(first + 1);
  if (stride != ofB.stride || inA > stride || inB > stride)
    return true;
  // Slices of one buffer, such as keys and values side by side in its rows:
  // row i of one may overlap rows of the other for a few differences of their
  // numbers.
  for (int64_t distance = llvm::divideFloorSigned(offset - inA, stride) + 1;
       distance * stride < offset + inB; ++distance)
    if (distance < ofA.extent && -distance < ofB.extent &&
        ::overlap(a, b, first + 1, offset - distance * stride))
      return true;
  return false;
}

bool Binding::overlap(size_t i, size_t other) const {
  const Span &a = spans[i], &b = spans[other];
  if (a.begin >= b.end || b.begin >= a.end)
    return false;
  // So that sums of bytes below are numbers.
  constexpr int64_t most = int64_t(1) << 60;
  if (a.end - a.begin > most || b.end - b.begin > most)
    return true;
  auto memoryOf = [&](size_t tensor) {
    const Parameter &parameter = getParameter(tensor);
    Memory memory{{}, parameter.elementBytes};
    for (int64_t d = 0, rank = parameter.getRank(); d < rank; ++d)
      if (int64_t extent = getSize(tensor, d); extent > 1)
        memory.dims.push_back(
            {extent, std::abs(getStride(tensor, d)) * parameter.elementBytes});
    llvm::sort(memory.dims, [](const Dimension &x, const Dimension &y) {
      return x.stride > y.stride;
    });
    return memory;
  };
  return ::overlap(memoryOf(i), memoryOf(other), 0, b.begin - a.begin);
}

static VarlenStatus checkCount(const char *what, size_t wanted, size_t got,
                               const VarlenTensor *const *tensors) {
  if (got != wanted)
    return fail(VARLEN_INVALID_ARGUMENT, "expected %zu %s, got %zu", wanted,
                what, got);
  if (wanted && !tensors)
    return fail(VARLEN_INVALID_ARGUMENT, "expected %zu %s, got null", wanted,
                what);
  return VARLEN_OK;
}

VarlenStatus Binding::addArguments(const VarlenTensor *const *tensors,
                                   size_t count, bool needsData) {
  if (VarlenStatus status =
          checkCount("arguments", function.arguments.size(), count, tensors))
    return status;
  for (size_t i = 0; i < count; ++i)
    if (VarlenStatus status = add(function.arguments[i], tensors[i], needsData))
      return status;
  return VARLEN_OK;
}

VarlenStatus Binding::checkOverlap(size_t i) const {
  for (size_t other = 0; other < i; ++other) {
    const Parameter *written = &getParameter(i), *second = &getParameter(other);
    if (!written->isWritten)
      std::swap(written, second);
    if (written->isWritten && overlap(i, other))
      return fail(VARLEN_INVALID_ARGUMENT,
                  "%s: expected memory that no other tensor of the call has, "
                  "got some of %s",
                  written->name.c_str(), second->name.c_str());
  }
  return VARLEN_OK;
}

VarlenStatus Binding::checkOverlap() const {
  for (size_t i = 0; i < spans.size(); ++i)
    if (VarlenStatus status = checkOverlap(i))
      return status;
  return VARLEN_OK;
}

VarlenStatus Binding::addResults(const VarlenTensor *const *tensors,
                                 size_t count, const int64_t *extents) {
  if (VarlenStatus status =
          checkCount("results", function.results.size(), count, tensors))
    return status;
  for (size_t i = 0; i < count; ++i) {
    const Parameter &result = function.results[i];
    if (VarlenStatus status = add(result, tensors[i], /*needsData=*/true))
      return status;
    for (int64_t d = 0; d < result.getRank(); ++d, ++extents)
      if (tensors[i]->shape[d] != *extents)
        return fail(VARLEN_INVALID_ARGUMENT,
                    "%s: expected extent %lld to be %lld, which follows from "
                    "the arguments, got %lld",
                    result.name.c_str(), print(d), print(*extents),
                    print(tensors[i]->shape[d]));
    if (VarlenStatus status = checkOverlap(spans.size() - 1))
      return status;
  }
  return VARLEN_OK;
}

void Binding::addAbsentResults(const int64_t *extents) {
  for (const Parameter &result : function.results) {
    int64_t rank = result.getRank(), stride = 1;
    size_t begin = words.size();
    words.resize(begin + result.getNumWords());
    for (int64_t d = rank - 1; d >= 0; --d) {
      words[begin + Sizes + d] = extents[d];
      words[begin + Sizes + rank + d] = stride;
      // The strides of an absent result are never used.
      stride = static_cast<int64_t>(static_cast<uint64_t>(stride) *
                                    static_cast<uint64_t>(extents[d]));
    }
    extents += rank;
    addPointer(&words[begin]);
  }
}

VarlenStatus Binding::findExtents(const int64_t *&extents) {
  extents = nullptr;
  if (!function.shapes)
    return VARLEN_OK;
  size_t begin = words.size();
  words.resize(begin + ExtentsDescriptorWords + function.numExtents);
  int64_t *descriptor = &words[begin];
  int64_t *data = descriptor + ExtentsDescriptorWords;
  descriptor[Allocated] = descriptor[Aligned] =
      reinterpret_cast<intptr_t>(data);
  descriptor[Sizes] = function.numExtents;
  descriptor[Sizes + 1] = 1;
  addPointer(descriptor);
  Invocation invocation({});
  VarlenStatus status = invocation.run(function.shapes, addresses.data());
  values.pop_back();
  addresses.pop_back();
  extents = data;
  return status;
}
