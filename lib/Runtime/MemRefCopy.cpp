//===- MemRefCopy.cpp - Copies between buffers with strides ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Runtime/MemRefCopy.h"

#include <cstring>

/// Strides of a source and a destination over the same extents, in elements.
namespace {
struct Copy {
  int64_t rank;
  const int64_t *sizes, *fromStrides, *toStrides;
  int64_t elementBytes;

  void run(int64_t dim, const char *from, char *to) const;
};
} // namespace

void Copy::run(int64_t dim, const char *from, char *to) const {
  if (dim == rank) {
    memcpy(to, from, static_cast<size_t>(elementBytes));
    return;
  }
  if (dim == rank - 1 && fromStrides[dim] == 1 && toStrides[dim] == 1) {
    memcpy(to, from, static_cast<size_t>(sizes[dim] * elementBytes));
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    run(dim + 1, from + i * fromStrides[dim] * elementBytes,
        to + i * toStrides[dim] * elementBytes);
}

/// The words of a descriptor: allocated, aligned, offset, sizes, strides.
static const int64_t *words(const varlen_unranked_memref *memref) {
  return static_cast<const int64_t *>(memref->descriptor);
}

static char *firstElement(const varlen_unranked_memref *memref,
                          int64_t elementBytes) {
  const int64_t *descriptor = words(memref);
  return reinterpret_cast<char *>(descriptor[1]) + descriptor[2] * elementBytes;
}

void memrefCopy(int64_t element_bytes, varlen_unranked_memref *from,
                varlen_unranked_memref *to) {
  int64_t rank = from->rank;
  const int64_t *sizes = words(from) + 3;
  // The pointers of an empty buffer may be anything.
  for (int64_t d = 0; d < rank; ++d)
    if (sizes[d] == 0)
      return;
  Copy copy = {rank, sizes, sizes + rank, words(to) + 3 + rank, element_bytes};
  copy.run(0, firstElement(from, element_bytes),
           firstElement(to, element_bytes));
}
