//===- gpu.cpp - Tests of the host side of GPU code -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-gpu-test

#include "../Expect.h"
#include "varlen/Runtime/GPUExecutor.h"
#include "varlen/Runtime/MGPU.h"
#include "varlen/Runtime/Runtime.h"

#include <cstdio>
#include <cstring>
#include <string>

/// The error since the last call, which it clears.
static std::string takeError() {
  const char *error = varlen_last_error();
  std::string text = error ? error : "";
  varlen_clear_error();
  return text;
}

static void expectError(const std::string &part, int line) {
  std::string error = takeError();
  EXPECT(error.find(part) != std::string::npos,
         "line %d: an error with '%s', got '%s'", line, part.c_str(),
         error.c_str());
}
#define EXPECT_ERROR(part) expectError(part, __LINE__)

//===----------------------------------------------------------------------===//
// A kernel, as the compiler makes it
//===----------------------------------------------------------------------===//

/// out[block * threads + thread] = value
static void store(void **arguments) {
  auto *out = *static_cast<int32_t **>(arguments[0]);
  int32_t value = *static_cast<int32_t *>(arguments[1]);
  uint32_t index =
      varlen_sim_sreg(VARLEN_SIM_CTAID_X) * varlen_sim_sreg(VARLEN_SIM_NTID_X) +
      varlen_sim_sreg(VARLEN_SIM_TID_X);
  auto *place =
      static_cast<int32_t *>(varlen_sim_store_global(out + index, 4, 0));
  *place = value;
}

static const varlen_sim_kernel_info kernels[] = {
    {"store", store, 0, {32, 1, 1}, 0, {0, 0, 0}, 0, 0}};
static const varlen_gpu_executor_image image = {
    "test.1", "file.mlir:3:5 (llvm.store)\0", 1, kernels, 1, nullptr, 0};

static char blob[] = "varlen-executor:test.1";
static char ptx[] = ".version 9.0\n.target sm_80\n";

static void launch(void *function, intptr_t blocks, intptr_t threads,
                   int32_t *out, int32_t value) {
  void *parameters[] = {&out, &value};
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
                   nullptr, 2);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

static void testLaunch() {
  varlen_gpu_executor_register(&image);
  // Before there is a backend, as constructors of compiled code do.
  void *module = mgpuModuleLoad(blob, strlen(blob));
  varlen_gpu_set_backend(varlen_gpu_executor());
  void *function = mgpuModuleGetFunction(module, "store");
  EXPECT(function == mgpuModuleGetFunction(module, "store"));
  auto *out = static_cast<int32_t *>(mgpuMemAlloc(64 * 4, nullptr, 0));
  mgpuMemset32(out, 7, 64, nullptr);
  EXPECT(out[63] == 7);
  launch(function, 2, 32, out, 5);
  EXPECT_ERROR("");
  EXPECT(out[0] == 5 && out[63] == 5);

  // No block, no work.
  launch(function, 0, 32, out, 6);
  EXPECT_ERROR("");
  EXPECT(out[0] == 5);
  // What a kernel demands, what a grid can be, what the memory holds.
  launch(function, 2, 64, out, 6);
  EXPECT_ERROR("launch");
  launch(function, -1, 32, out, 6);
  EXPECT_ERROR("a grid of -1 x 1 x 1");
  launch(function, 3, 32, out, 6);
  EXPECT_ERROR("file.mlir:3:5 (llvm.store)");
  launch(mgpuModuleGetFunction(module, "load"), 1, 32, out, 6);
  EXPECT_ERROR("the module has no kernel 'load'");
  launch(nullptr, 1, 32, out, 6);
  EXPECT_ERROR("a module that could not be loaded");

  int32_t host[64];
  mgpuMemcpy(host, out, sizeof host, nullptr);
  EXPECT(memcmp(host, out, sizeof host) == 0);
  mgpuMemFree(out, nullptr);
  mgpuModuleUnload(module);
  EXPECT_ERROR("");
}

static void testModules() {
  void *module = mgpuModuleLoadJIT(ptx, 2);
  launch(mgpuModuleGetFunction(module, "store"), 1, 32, nullptr, 0);
  EXPECT_ERROR("compiled for a GPU");
  mgpuModuleUnload(module);
  static char other[] = "varlen-executor:test.2";
  module = mgpuModuleLoad(other, strlen(other));
  launch(mgpuModuleGetFunction(module, "store"), 1, 32, nullptr, 0);
  EXPECT_ERROR("has registered the kernels 'test.2'");
  mgpuModuleUnload(module);
  mgpuSetDefaultDevice(1);
  EXPECT_ERROR("no GPU 1");
}

static void testTensorMap() {
  alignas(64) static float matrix[32][32];
  struct {
    float *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } descriptor = {&matrix[0][0], &matrix[0][0], 0, {32, 32}, {32, 1}};
  int64_t box[2] = {8, 32};
  void *map = mgpuTensorMapEncodeTiledMemref(2, &descriptor, /*type=*/7, 0, 0,
                                             0, 0, box);
  EXPECT_ERROR("");
  EXPECT(map);
  mgpuMemFree(map, nullptr);
  EXPECT(!mgpuTensorMapEncodeTiledMemref(6, &descriptor, 7, 0, 0, 0, 0, box));
  EXPECT_ERROR("rank 6");
  // A box that no tensor map can have.
  box[0] = 512;
  mgpuMemFree(
      mgpuTensorMapEncodeTiledMemref(2, &descriptor, 7, 0, 0, 0, 0, box),
      nullptr);
  EXPECT_ERROR("encoding a tensor map");
}

static void testStatus() {
  EXPECT(varlen_gpu_check(nullptr) == 0);
  auto *status = static_cast<varlen_gpu_status *>(varlen_gpu_status_buffer());
  EXPECT(status == varlen_gpu_status_buffer());
  EXPECT(status->code == 0);
  *status = {VARLEN_STATUS_DECREASE + VARLEN_STATUS_CU_K, 3, 5, 7};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("cu_seqlens_k[3] = 5 is smaller than cu_seqlens_k[2] = 7: "
               "cu_seqlens must not decrease");
  EXPECT(status->code == 0);
  *status = {VARLEN_STATUS_USED + VARLEN_STATUS_USED_Q, 1, 9, 4};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("seqused_q[1] = 9: expected 0 to 4, the length of the "
               "sequence's slot in cu_seqlens_q");
  *status = {VARLEN_STATUS_LENGTH + VARLEN_STATUS_OFFSET, 0, 3, 4};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("q_offset has 3 entries: expected 4");
  *status = {VARLEN_STATUS_LONG + VARLEN_STATUS_CU_Q, 2, 7, 6};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("sequence 2 of cu_seqlens_q has 7 rows: expected at most 6");
  *status = {VARLEN_STATUS_LENGTH + VARLEN_STATUS_TABLE, 0, 3, 4};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("block_table has 3 rows: expected 4, one for each sequence of "
               "seqused_k");
  *status = {VARLEN_STATUS_USED + VARLEN_STATUS_TABLE, 6, 337, 336};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("seqused_k[6] = 337: expected 0 to 336, the rows of the pages "
               "that block_table has of a sequence");
  *status = {VARLEN_STATUS_END + VARLEN_STATUS_TABLE,
             3 * VARLEN_STATUS_COLUMNS + 15, -1, 40};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("block_table[3, 15] = -1: expected 0 to 39, the pages of k");
  struct {
    int64_t code, index, value, bound;
    const char *message;
  } ofAppend[] = {
      {VARLEN_STATUS_START + VARLEN_STATUS_NEW_CU, 0, 1, 0,
       "cu_seqlens[0] = 1: cu_seqlens must start at 0"},
      {VARLEN_STATUS_END + VARLEN_STATUS_NEW_CU, 7, 339, 338,
       "cu_seqlens[7] = 339 is larger than the 338 rows of k: cu_seqlens must "
       "end within them"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_CU, 0, 0, 0,
       "cu_seqlens is empty"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_USED, 0, 6, 7,
       "seqused_k has 6 entries: expected 7, one for each sequence of "
       "cu_seqlens"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_PAGES, 0, 6, 7,
       "block_table has 6 rows: expected 7, one for each sequence of "
       "cu_seqlens"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_SLOTS, 0, 7, 6,
       "cu_seqlens has 7 sequences: expected at most 6, the slots of k_cache"},
      {VARLEN_STATUS_LONG + VARLEN_STATUS_NEW_PAGES, 4, 200, 48,
       "sequence 4 of cu_seqlens has 200 rows: expected at most 48, those of "
       "the pages that block_table has of a sequence"},
      {VARLEN_STATUS_USED + VARLEN_STATUS_NEW_SLOTS, 3, 14, 13,
       "seqused_k[0] = 14: expected 0 to 13, as 3 new rows must fit into a "
       "slot of k_cache"},
      {VARLEN_STATUS_USED + VARLEN_STATUS_NEW_PAGES,
       4 * VARLEN_STATUS_COLUMNS + 200, -1, 136,
       "seqused_k[4] = -1: expected 0 to 136, as 200 new rows must fit into "
       "the pages that block_table has of a sequence"},
      {VARLEN_STATUS_END + VARLEN_STATUS_NEW_PAGES,
       4 * VARLEN_STATUS_COLUMNS + 12, 35, 35,
       "block_table[4, 12] = 35: expected 0 to 34, the pages of k_cache, for "
       "new rows of the sequence"},
      {VARLEN_STATUS_USED + VARLEN_STATUS_SAME_PAGE,
       6 * VARLEN_STATUS_COLUMNS + 2, 30, 4 * VARLEN_STATUS_COLUMNS + 5,
       "block_table[6, 2] = 30: expected a page that nothing else writes to, "
       "and block_table[4, 5] is the same"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_COS, 4, 202, 203,
       "cos has 202 rows: expected at least 203, the positions of the keys of "
       "sequence 4"},
      {VARLEN_STATUS_LENGTH + VARLEN_STATUS_SIN, 0, 9, 10,
       "sin has 9 rows: expected at least 10, the positions of the keys of "
       "sequence 0"},
      {VARLEN_STATUS_EXTENT +
           8 * VARLEN_EXTENT_RULE(VARLEN_TENSOR_V_SCALE_PAGE,
                                  VARLEN_EXTENT_ROWS,
                                  VARLEN_TENSOR_K_CACHE_PAGE),
       0, 15, 16,
       "a page of v_scale has 15 rows: expected 16, as many as a page of "
       "k_cache"}};
  for (auto &each : ofAppend) {
    *status = {each.code, each.index, each.value, each.bound};
    EXPECT(varlen_gpu_check(nullptr) != 0);
    EXPECT_ERROR(each.message);
  }
  int64_t rule =
      VARLEN_EXTENT_RULE(VARLEN_TENSOR_V, VARLEN_EXTENT_ROWS, VARLEN_TENSOR_K);
  *status = {VARLEN_STATUS_EXTENT + 8 * rule, 0, 9, 10};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("v has 9 rows: expected 10, as many as k");
  *status = {VARLEN_STATUS_EXTENT, 0, 9, 10};
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("unknown rule 0 about extents");
  EXPECT(varlen_gpu_check(nullptr) == 0);
}

static void testStream() {
  int caller = 0;
  varlen_gpu_set_stream(&caller);
  EXPECT(mgpuStreamCreate() == &caller);
  mgpuStreamDestroy(&caller);
  varlen_gpu_unset_stream();
  EXPECT(mgpuStreamCreate() != &caller);
}

int main() {
  testLaunch();
  testModules();
  testTensorMap();
  testStatus();
  testStream();
  return summary();
}
