//===- fuzz-arrays.h - What a fuzzed function is called with ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of every type, arrays between pages that cannot be accessed, and the
// descriptors by which compiled functions take them.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_INTEGRATION_FUZZARRAYS_H
#define VARLEN_TEST_INTEGRATION_FUZZARRAYS_H

#ifdef FUZZ_EXECUTOR
#include "varlen/Runtime/GPUExecutor.h"
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

enum class Type { F16, BF16, F32, F64 };

inline int64_t bytesOf(Type type) {
  return type == Type::F64 ? 8 : type == Type::F32 ? 4 : 2;
}

inline double load(const char *data, Type type, int64_t index) {
  data += index * bytesOf(type);
  if (type == Type::F64) {
    double value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  if (type == Type::F32) {
    float value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  if (type == Type::F16) {
    _Float16 value;
    std::memcpy(&value, data, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t half;
  std::memcpy(&half, data, sizeof half);
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline void store(char *data, Type type, int64_t index, float value) {
  data += index * bytesOf(type);
  if (type == Type::F64) {
    double wide = value;
    std::memcpy(data, &wide, sizeof wide);
  } else if (type == Type::F32) {
    std::memcpy(data, &value, sizeof value);
  } else if (type == Type::F16) {
    auto half = static_cast<_Float16>(value);
    std::memcpy(data, &half, sizeof half);
  } else {
    // Truncation makes as good a random number as rounding.
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    auto half = static_cast<uint16_t>(bits >> 16);
    std::memcpy(data, &half, sizeof half);
  }
}

//===----------------------------------------------------------------------===//
// Arrays between two pages that cannot be accessed
//===----------------------------------------------------------------------===//

constexpr unsigned char canary = 0xA5;

class GuardedArray {
public:
  explicit GuardedArray(int64_t mostBytes) {
    int64_t page = sysconf(_SC_PAGESIZE);
    capacity = (mostBytes + page - 1) / page * page;
    void *map = mmap(nullptr, capacity + 2 * page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
      std::perror("mmap");
      std::exit(2);
    }
    begin = static_cast<char *>(map) + page;
    if (mprotect(begin, capacity, PROT_READ | PROT_WRITE) != 0) {
      std::perror("mprotect");
      std::exit(2);
    }
  }

  /// Places `size` bytes at the end of the mapping, or at its beginning. The
  /// alignment matters at the end only: it is bought with canaries.
  char *place(int64_t size, bool atEnd, int64_t alignment) {
    if (size > capacity) {
      std::fprintf(stderr, "wanted %lld bytes, the array has %lld\n",
                   static_cast<long long>(size),
                   static_cast<long long>(capacity));
      std::exit(2);
    }
    bytes = size;
    data = atEnd ? begin + (capacity - size) / alignment * alignment : begin;
    leftCanaries = std::min<int64_t>(data - begin, 256);
    rightCanaries = std::min<int64_t>(begin + capacity - (data + size), 256);
    std::memset(data - leftCanaries, canary, leftCanaries);
    std::memset(data + size, canary, rightCanaries);
#ifdef FUZZ_EXECUTOR
    varlen_sim_unregister(registered);
    registered = data;
    varlen_sim_register(data, size);
#endif
    return data;
  }

  bool intact() const {
    auto isCanary = [](char byte) {
      return static_cast<unsigned char>(byte) == canary;
    };
    return std::all_of(data - leftCanaries, data, isCanary) &&
           std::all_of(data + bytes, data + bytes + rightCanaries, isCanary);
  }

  char *data = nullptr;
  int64_t bytes = 0;

private:
  char *begin = nullptr;
  [[maybe_unused]] const char *registered = nullptr;
  int64_t capacity = 0, leftCanaries = 0, rightCanaries = 0;
};

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// Of row-major arrays.
template <int Rank> struct MemRef {
  char *allocated, *aligned;
  int64_t offset, sizes[Rank], strides[Rank];
};

template <int Rank>
MemRef<Rank> makeMemRef(const GuardedArray &array,
                        const int64_t (&sizes)[Rank]) {
  MemRef<Rank> memref{array.data, array.data, 0, {}, {}};
  int64_t stride = 1;
  for (int i = Rank - 1; i >= 0; --i) {
    memref.sizes[i] = sizes[i];
    memref.strides[i] = stride;
    stride *= sizes[i];
  }
  return memref;
}

#endif // VARLEN_TEST_INTEGRATION_FUZZARRAYS_H
