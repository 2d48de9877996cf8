//===- tensor.cpp - Tests of bulk copies, with and without tensor maps ----===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-tensor-test

#include "Copies.h"

static const Shape oneWarp;

static void testEncode() {
  struct Case {
    Map map;
    const char *error;
  };
  const Case cases[] = {
      {encode(Float16, {64, 64}, {128}, {64, 64}, 3), ""},
      {encode(13, {64}, {}, {64}, 0), "data type 13: wanted 0 to 12"},
      {encode(Float16, {64, 64}, {100}, {64, 64}, 0),
       "stride of dimension 1 is 100 bytes: wanted a multiple of 16 below "
       "2^40"},
      {encode(Float16, {64, 64}, {128}, {64, 257}, 0),
       "box dimension 1 is 257: wanted 1 to 256"},
      {encode(Float16, {64, 64}, {128}, {4, 1}, 0),
       "inner box dimension of 8 bytes: wanted a multiple of 16"},
      {encode(Float16, {64, 64}, {128}, {64, 1}, 2),
       "inner box dimension of 128 bytes: wanted at most 64, the span of the "
       "swizzle"},
      {encode(Float16, {0}, {}, {8}, 0), "dimension 0 is 0: wanted 1 to 2^32"},
      {encode(Float16, {1, 1, 1, 1, 1, 1}, {16, 16, 16, 16, 16},
              {8, 1, 1, 1, 1, 1}, 0),
       "rank 6: wanted 1 to 5"},
  };
  for (const Case &test : cases)
    EXPECT(test.map.error == test.error, "'%s', got '%s'", test.error,
           test.map.error.c_str());
  EXPECT(!encode(Float16, {64}, {}, {64}, 0, device() + 8).error.empty(),
         "a misaligned base");
}

/// Loads one box and waits for it.
static void loadBox(const Map &map, uint32_t at, uint32_t bytes,
                    std::vector<int32_t> coordinates, uint32_t site) {
  init(0, 1, site);
  if (tid() == 0) {
    varlen_sim_mbarrier_arrive_expect_tx(smem(0), bytes, site);
    varlen_sim_tma_load(smem(at), &map.map, smem(0),
                        static_cast<uint32_t>(coordinates.size()),
                        coordinates.data(), 0, site);
  }
  varlen_sim_mbarrier_wait_parity(smem(0), 0, site);
}

static void testRanks() {
  // A 5-d tensor of int32 whose element (a, b, c, d, e) holds its coordinates,
  // one per hexadecimal digit, and all its leading slices.
  const uint32_t extent[5] = {8, 6, 5, 4, 3};
  auto *elements = reinterpret_cast<uint32_t *>(device());
  uint32_t count = 8 * 6 * 5 * 4 * 3;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t rest = i, value = 0;
    for (uint32_t d = 0; d < 5; ++d) {
      value |= rest % extent[d] << (4 * d);
      rest /= extent[d];
    }
    elements[i] = value | 0x100000;
  }
  for (uint32_t rank = 1; rank <= 5; ++rank) {
    std::vector<uint64_t> dims(extent, extent + rank), strides;
    uint64_t stride = 4;
    for (uint32_t d = 0; d + 1 < rank; ++d)
      strides.push_back(stride *= extent[d]);
    const uint32_t boxSizes[5] = {4, 3, 2, 2, 2};
    std::vector<uint32_t> box(boxSizes, boxSizes + rank);
    // Over both ends of some dimensions.
    const int32_t starts[5] = {6, -1, 4, 1, 2};
    std::vector<int32_t> start(starts, starts + rank);
    Map map = encode(Int32, dims, strides, box, 0);
    EXPECT(map.error.empty(), "%s", map.error.c_str());
    uint32_t elementsInBox = 1;
    for (uint32_t size : box)
      elementsInBox *= size;
    expectClean("rank", oneWarp, [&] {
      loadBox(map, 1024, elementsInBox * 4, start, AT);
      for (uint32_t i = tid(); i < elementsInBox; i += 32) {
        uint32_t rest = i, wanted = 0x100000;
        bool inside = true;
        for (uint32_t d = 0; d < rank; ++d) {
          int32_t x = start[d] + static_cast<int32_t>(rest % box[d]);
          rest /= box[d];
          inside &= x >= 0 && x < static_cast<int32_t>(extent[d]);
          wanted |= static_cast<uint32_t>(x) << (4 * d);
        }
        uint32_t got = load<uint32_t>(1024 + i * 4, AT);
        EXPECT(got == (inside ? wanted : 0), "rank %u element %u: %x, got %x",
               rank, i, inside ? wanted : 0, got);
      }
    });
  }
}

/// Where 16-byte columns of 8 rows go, from the figures of the PTX ISA: row r
/// of the table is row r of the atom in shared memory, with the column that is
/// found at each place.
static const int swizzle128[8][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
    {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
    {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
    {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
static const int swizzle64[8][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {1, 0, 3, 2},
                                    {1, 0, 3, 2}, {2, 3, 0, 1}, {2, 3, 0, 1},
                                    {3, 2, 1, 0}, {3, 2, 1, 0}};
static const int swizzle32[8][2] = {{0, 1}, {0, 1}, {0, 1}, {0, 1},
                                    {1, 0}, {1, 0}, {1, 0}, {1, 0}};

static void testSwizzles() {
  for (uint32_t i = 0; i < 1024; ++i)
    device()[i] = static_cast<char>(i / 16);
  for (int mode = 1; mode <= 3; ++mode) {
    uint32_t span = 16U << mode, columns = span / 16;
    Map map = encode(UInt8, {span, 8}, {span}, {span, 8}, mode);
    EXPECT(map.error.empty(), "%s", map.error.c_str());
    expectClean("swizzle", oneWarp, [&] {
      loadBox(map, 1024, span * 8, {0, 0}, AT);
      for (uint32_t row = 0; row < 8; ++row)
        for (uint32_t column = 0; column < columns; ++column) {
          int source = mode == 3   ? swizzle128[row][column]
                       : mode == 2 ? swizzle64[row][column]
                                   : swizzle32[row][column];
          auto wanted = static_cast<uint8_t>(row * columns +
                                             static_cast<uint32_t>(source));
          auto got = load<uint8_t>(1024 + row * span + column * 16, AT);
          EXPECT(got == wanted, "mode %d row %u column %u: %u, got %u", mode,
                 row, column, wanted, got);
        }
    });
  }
}

static void testStores() {
  auto *floats = reinterpret_cast<float *>(device());
  Map map = encode(Float32, {32, 8}, {128}, {32, 4}, 3);
  for (bool reduce : {false, true}) {
    expectClean("store", oneWarp, [&] {
      if (tid() == 0)
        for (int i = 0; i < 512; ++i)
          floats[i] = 1;
      varlen_sim_barrier(0, 0, AT);
      // Rows of 128 bytes, swizzled as the map has it.
      for (uint32_t row = 0; row < 4; ++row) {
        uint32_t at = 1024 + row * 128 + (tid() / 4 ^ row) * 16 + tid() % 4 * 4;
        store<float>(at, static_cast<float>(row * 32 + tid()), AT);
      }
      varlen_sim_fence_proxy(3, AT);
      varlen_sim_barrier(0, 0, AT);
      if (tid() == 0) {
        // Half of the box is outside.
        int32_t coordinates[] = {0, 6};
        if (reduce)
          varlen_sim_tma_reduce(&map.map, smem(1024), 2, coordinates,
                                VARLEN_SIM_ADD, AT);
        else
          varlen_sim_tma_store(&map.map, smem(1024), 2, coordinates, AT);
        varlen_sim_bulk_commit(AT);
        varlen_sim_bulk_wait_group(0, 0, AT);
        for (int i = 0; i < 512; ++i) {
          float wanted = 1;
          if (i >= 192 && i < 256)
            wanted = static_cast<float>(i - 192 + reduce);
          EXPECT(floats[i] == wanted, "element %d: %f, got %f", i,
                 static_cast<double>(wanted), static_cast<double>(floats[i]));
        }
      }
    });
  }
}

static void testBulk() {
  for (int i = 0; i < 256; ++i)
    device()[i] = static_cast<char>(i);
  expectClean("bulk", oneWarp, [] {
    init(0, 1, AT);
    if (tid() == 0) {
      varlen_sim_mbarrier_arrive_expect_tx(smem(0), 256, AT);
      varlen_sim_bulk_load(smem(256), device(), smem(0), 256, 0, AT);
    }
    varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
    for (uint32_t i = tid(); i < 256; i += 32)
      EXPECT(load<uint8_t>(256 + i, AT) == i, "byte %u", i);
    varlen_sim_barrier(0, 0, AT);
    // Data that the async proxy wrote needs no fence to be read by it.
    if (tid() == 0) {
      varlen_sim_bulk_store(device() + 1024, smem(256), 256, AT);
      varlen_sim_bulk_commit(AT);
      varlen_sim_bulk_wait_group(0, 1, AT);
      EXPECT(device()[1024 + 77] == 77, "stored");
    }
  });
  expectReport("size", "bulk copy of 24 bytes", oneWarp, [] {
    init(0, 1, AT);
    if (tid() == 0)
      varlen_sim_bulk_load(smem(256), device(), smem(0), 24, 0, AT);
  });
}

static void testFaults() {
  static Map map = encode(Float32, {32, 8}, {128}, {32, 4}, 0);
  auto issue = [](uint32_t expected, uint32_t site) {
    int32_t coordinates[] = {0, 0};
    if (tid() == 0) {
      varlen_sim_mbarrier_arrive_expect_tx(smem(0), expected, site);
      varlen_sim_tma_load(smem(1024), &map.map, smem(0), 2, coordinates, 0,
                          site);
    }
  };
  auto wait = [] { varlen_sim_mbarrier_wait_parity(smem(0), 0, AT); };
  expectReport("no wait", "race", oneWarp, [&] {
    init(0, 1, AT);
    issue(512, AT);
    varlen_sim_syncwarp(~0U, AT);
    load<float>(1024 + tid() * 4, AT);
    wait();
  });
  expectReport("wrong count", "0 of 1 arrivals missing, 16 bytes missing",
               oneWarp, [&] {
                 init(0, 1, AT);
                 issue(528, AT);
                 wait();
               });
  expectReport("no fence after init", "without fence.mbarrier_init", oneWarp,
               [&] {
                 if (tid() == 0)
                   varlen_sim_mbarrier_init(smem(0), 1, AT);
                 varlen_sim_barrier(0, 0, AT);
                 issue(512, AT);
                 wait();
               });
  expectReport("over what is read", "not ordered after the read", oneWarp, [&] {
    init(0, 1, AT);
    for (int i = 0; i < 4; ++i)
      store<float>(1024 + static_cast<uint32_t>(i) * 128 + tid() * 4, 0, AT);
    varlen_sim_fence_proxy(1, AT);
    varlen_sim_syncwarp(~0U, AT);
    load<float>(1024 + (31 - tid()) * 4, AT);
    if (tid() == 31)
      varlen_sim_barrier_arrive(4, 64, AT);
    issue(512, AT);
    wait();
  });
  expectReport("generic writes before", "without fence.proxy.async", oneWarp,
               [&] {
                 init(0, 1, AT);
                 store<float>(1024 + tid() * 4, 0, AT);
                 varlen_sim_syncwarp(~0U, AT);
                 issue(512, AT);
                 wait();
               });
  expectReport("store without fence", "async-proxy read", oneWarp, [&] {
    for (uint32_t i = 0; i < 4; ++i)
      store<float>(1024 + i * 128 + tid() * 4, 0, AT);
    varlen_sim_barrier(0, 0, AT);
    if (tid() == 0) {
      int32_t coordinates[] = {0, 0};
      varlen_sim_tma_store(&map.map, smem(1024), 2, coordinates, AT);
      varlen_sim_bulk_commit(AT);
      varlen_sim_bulk_wait_group(0, 0, AT);
    }
  });
  expectReport(
      "exit", "exits without waiting for its bulk stores", oneWarp, [&] {
        for (uint32_t i = 0; i < 4; ++i)
          store<float>(1024 + i * 128 + tid() * 4, 0, AT);
        varlen_sim_fence_proxy(1, AT);
        varlen_sim_barrier(0, 0, AT);
        if (tid() == 0) {
          int32_t coordinates[] = {0, 0};
          varlen_sim_tma_store(&map.map, smem(1024), 2, coordinates, AT);
          varlen_sim_bulk_commit(AT);
        }
      });
  expectReport("overwritten too early", "race", oneWarp, [&] {
    for (uint32_t i = 0; i < 4; ++i)
      store<float>(1024 + i * 128 + tid() * 4, 0, AT);
    varlen_sim_fence_proxy(1, AT);
    varlen_sim_barrier(0, 0, AT);
    if (tid() == 0) {
      int32_t coordinates[] = {0, 0};
      varlen_sim_tma_store(&map.map, smem(1024), 2, coordinates, AT);
      varlen_sim_bulk_commit(AT);
    }
    varlen_sim_barrier(0, 0, AT);
    store<float>(1024 + tid() * 4, 1, AT);
    if (tid() == 0)
      varlen_sim_bulk_wait_group(0, 0, AT);
  });
  expectReport("no map", "is not that of a tensor map", oneWarp, [] {
    init(0, 1, AT);
    int32_t coordinates[] = {0, 0};
    alignas(64) char other[128] = {};
    if (tid() == 0)
      varlen_sim_tma_load(smem(1024), other, smem(0), 2, coordinates, 0, AT);
  });
  expectReport("rank", "1 coordinates for a tensor map of rank 2", oneWarp, [] {
    init(0, 1, AT);
    int32_t coordinates[] = {0, 0};
    if (tid() == 0)
      varlen_sim_tma_load(smem(1024), &map.map, smem(0), 1, coordinates, 0, AT);
  });
  // A tensor that is larger than its memory.
  static Map large = encode(Float32, {32, 1 << 20}, {128}, {32, 4}, 0);
  expectReport("memory", "TMA load of 128 bytes", oneWarp, [] {
    init(0, 1, AT);
    int32_t coordinates[] = {0, 1 << 19};
    if (tid() == 0)
      varlen_sim_tma_load(smem(1024), &large.map, smem(0), 2, coordinates, 0,
                          AT);
  });
}

int main() {
  // Memory must be there before a launch that uses it.
  device();
  testEncode();
  testRanks();
  testSwizzles();
  testStores();
  testBulk();
  testFaults();
  return summary();
}
