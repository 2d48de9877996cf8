//===- Copies.h - What tests of asynchronous copies share -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_EXECUTOR_COPIES_H
#define VARLEN_TEST_EXECUTOR_COPIES_H

#include "Harness.h"

/// Thread 0 initialises an mbarrier at `offset`, and all may use it.
inline void init(uint32_t offset, uint32_t count, uint32_t site) {
  if (tid() == 0) {
    varlen_sim_mbarrier_init(smem(offset), count, site);
    varlen_sim_fence_mbarrier_init(site);
  }
  varlen_sim_barrier(0, 0, site);
}

inline char *device() {
  static auto *memory = static_cast<char *>(varlen_sim_malloc(1 << 16));
  return memory;
}

enum { UInt8 = 0, Int32 = 3, Float16 = 6, Float32 = 7 };

struct Map {
  varlen_sim_tensor_map map;
  std::string error;
};

inline Map encode(int type, std::vector<uint64_t> dims,
                  std::vector<uint64_t> strides, std::vector<uint32_t> box,
                  int swizzle, void *base = device()) {
  Map result;
  std::vector<uint32_t> ones(dims.size(), 1);
  if (varlen_sim_tensor_map_encode_tiled(
          &result.map, type, static_cast<uint32_t>(dims.size()), base,
          dims.data(), strides.data(), box.data(), ones.data(), 0, swizzle, 0,
          0))
    result.error = varlen_sim_tensor_map_error();
  return result;
}

#endif // VARLEN_TEST_EXECUTOR_COPIES_H
