//===- CUDATest.cpp - A process that uses CUDA, for tests -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDATest.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>

HostDriver host;
const Fake *fake = nullptr;
bool listsKernels = false;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static char ptx[] = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry add(.param .u64 memory, .param .u32 n, .param .u32 value) {
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r3, %r4;
  @%p bra end;
  ld.param.u64 %d0, [memory];
  mul.wide.u32 %d1, %r3, 4;
  add.u64 %d2, %d0, %d1;
  ld.param.u32 %r5, [value];
  ld.global.u32 %r6, [%d2];
  add.u32 %r7, %r6, %r5;
  st.global.u32 [%d2], %r7;
end:
  ret;
}

.visible .entry sum(.param .u64 memory, .param .u64 other, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<6>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r3, %r4;
  @%p bra end;
  ld.param.u64 %d0, [memory];
  ld.param.u64 %d1, [other];
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d3, %d0, %d2;
  add.u64 %d4, %d1, %d2;
  ld.global.u32 %r5, [%d3];
  ld.global.u32 %r6, [%d4];
  add.u32 %r7, %r6, %r5;
  st.global.u32 [%d3], %r7;
end:
  ret;
}

.visible .entry report(.param .u64 status, .param .u64 code, .param .u64 index) {
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %d<4>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p bra end;
  ld.param.u64 %d0, [status];
  atom.acq_rel.gpu.global.cas.b64 %d1, [%d0], 0, -1;
  setp.ne.u64 %p, %d1, 0;
  @%p bra end;
  ld.param.u64 %d2, [index];
  st.global.u64 [%d0+8], %d2;
  st.global.u64 [%d0+16], %d2;
  st.global.u64 [%d0+24], %d2;
  ld.param.u64 %d3, [code];
  st.release.gpu.global.u64 [%d0], %d3;
end:
  ret;
}

.visible .entry shared(.param .u64 memory) {
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [memory];
  mov.u32 %r0, %dynamic_smem_size;
  st.global.u32 [%d0], %r0;
  ret;
}
)";

template <typename T> static T get(const FakeCudaLaunch *launch, int i) {
  T value;
  memcpy(&value, launch->parameters[i], sizeof value);
  return value;
}

static void fakeAdd(const FakeCudaLaunch *launch) {
  auto *memory = get<int32_t *>(launch, 0);
  auto n = get<uint32_t>(launch, 1);
  if (launch->access(memory, 4 * size_t(n)))
    for (uint32_t i = 0; i < n; ++i)
      memory[i] += get<int32_t>(launch, 2);
}

static void fakeSum(const FakeCudaLaunch *launch) {
  auto *memory = get<int32_t *>(launch, 0);
  auto *other = get<const int32_t *>(launch, 1);
  auto n = get<uint32_t>(launch, 2);
  if (launch->access(memory, 4 * size_t(n)) &&
      launch->access(other, 4 * size_t(n)))
    for (uint32_t i = 0; i < n; ++i)
      memory[i] += other[i];
}

static void fakeReport(const FakeCudaLaunch *launch) {
  auto *status = get<varlen_gpu_status *>(launch, 0);
  if (!launch->access(status, sizeof *status) || status->code != 0)
    return;
  auto index = get<int64_t>(launch, 2);
  *status = {get<int64_t>(launch, 1), index, index, index};
}

static void fakeShared(const FakeCudaLaunch *launch) {
  auto *memory = get<int32_t *>(launch, 0);
  if (launch->access(memory, 4))
    *memory = static_cast<int32_t>(launch->sharedBytes);
}

Kernels::Kernels() : module(mgpuModuleLoadJIT(ptx, 2)) {}
Kernels::~Kernels() { mgpuModuleUnload(module); }

void Kernels::launch(const char *name, int32_t sharedBytes, void **parameters,
                     uint32_t threads) const {
  void *function = mgpuModuleGetFunction(module, name);
  void *stream = mgpuStreamCreate();
  mgpuLaunchKernel(function, (threads + 127) / 128, 1, 1, 128, 1, 1,
                   sharedBytes, stream, parameters, nullptr, 0);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

void Kernels::add(int32_t *memory, uint32_t n, int32_t value) const {
  void *parameters[] = {&memory, &n, &value};
  launch("add", 0, parameters, n);
}

void Kernels::sum(int32_t *memory, const int32_t *other, uint32_t n) const {
  void *parameters[] = {&memory, &other, &n};
  launch("sum", 0, parameters, n);
}

void Kernels::report(void *status, int64_t code, int64_t index) const {
  void *parameters[] = {&status, &code, &index};
  launch("report", 0, parameters, 1);
}

void Kernels::shared(int32_t *memory, int32_t bytes) const {
  void *parameters[] = {&memory};
  launch("shared", bytes, parameters, 1);
}

void Kernels::layer(int32_t *memory, uint32_t n) const {
  varlen_gpu_status_buffer();
  auto *first = static_cast<int32_t *>(varlen_gpu_allocate(4 * size_t(n)));
  mgpuMemset32(first, 1, n, nullptr);
  auto *second = static_cast<int32_t *>(varlen_gpu_allocate(4 * size_t(n)));
  mgpuMemset32(second, 2, n, nullptr);
  sum(first, second, n);
  varlen_gpu_free(second);
  sum(memory, first, n);
  varlen_gpu_free(first);
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

bool openHost() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "no CUDA driver: %s\n", dlerror());
    return false;
  }
#define ENTRY(name)                                                            \
  host.name = reinterpret_cast<decltype(host.name)>(dlsym(library, #name));    \
  if (!host.name) {                                                            \
    fprintf(stderr, "the CUDA driver has no %s\n", #name);                     \
    return false;                                                              \
  }
  ENTRY(cuInit)
  ENTRY(cuDeviceGetCount)
  ENTRY(cuDevicePrimaryCtxRetain)
  ENTRY(cuDevicePrimaryCtxRelease_v2)
  ENTRY(cuCtxCreate_v2)
  ENTRY(cuCtxDestroy_v2)
  ENTRY(cuCtxGetCurrent)
  ENTRY(cuCtxSetCurrent)
  ENTRY(cuStreamCreate)
  ENTRY(cuStreamDestroy_v2)
  ENTRY(cuStreamSynchronize)
  ENTRY(cuStreamBeginCapture_v2)
  ENTRY(cuStreamEndCapture)
  ENTRY(cuGraphInstantiateWithFlags)
  ENTRY(cuGraphLaunch)
  ENTRY(cuGraphExecDestroy)
  ENTRY(cuGraphDestroy)
  ENTRY(cuMemAlloc_v2)
  ENTRY(cuMemFree_v2)
#undef ENTRY
  listsKernels = dlsym(library, "cuModuleEnumerateFunctions");
  static Fake found;
#define FIND(member, name)                                                     \
  found.member = reinterpret_cast<decltype(found.member)>(dlsym(library, #name))
  FIND(setKernel, fakeCudaSetKernel);
  FIND(fail, fakeCudaFail);
  FIND(calls, fakeCudaCalls);
  FIND(count, fakeCudaCount);
  FIND(lastRefusal, fakeCudaLastRefusal);
#undef FIND
  if (int error = host.cuInit(0)) {
    fprintf(stderr, "the CUDA driver does not start: error %d\n", error);
    return false;
  }
  if (!found.setKernel)
    return true;
  fake = &found;
  found.setKernel("add", fakeAdd);
  found.setKernel("sum", fakeSum);
  found.setKernel("report", fakeReport);
  found.setKernel("shared", fakeShared);
  return true;
}

int32_t *makeRows() {
  auto *memory = static_cast<int32_t *>(varlen_gpu_allocate(4 * rows));
  mgpuMemset32(memory, 0, rows, nullptr);
  return memory;
}

std::vector<int32_t> load(const int32_t *memory) {
  // Owned by the thread: if waiting fails, the copy may come later.
  static thread_local std::vector<int32_t> values(rows);
  std::fill(values.begin(), values.end(), -1);
  varlen_gpu_copy(values.data(), memory, 4 * rows);
  varlen_gpu_synchronize();
  return values;
}

bool isAll(const std::vector<int32_t> &values, int32_t value) {
  return std::all_of(values.begin(), values.end(),
                     [=](int32_t other) { return other == value; });
}
