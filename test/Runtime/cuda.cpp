//===- cuda.cpp - The GPU runtime in processes that use CUDA --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With the fake driver here, and with a real one in the folder of `make
// gpu-kit`: what only the fake can tell is asked only of it.
//
//===----------------------------------------------------------------------===//

// RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda \
// RUN:   %varlen-build/bin/varlen-cuda-test | FileCheck %s
// RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda-12.3 \
// RUN:   %varlen-build/bin/varlen-cuda-test | FileCheck %s --check-prefix=OLDER
// CHECK: all tests passed (fake driver)
// OLDER: all tests passed (fake driver, which cannot list kernels)

#include "Inputs/CUDATest.h"

#include <atomic>
#include <memory>
#include <thread>

static int getDeviceCount() {
  int count = 0;
  HOST(cuDeviceGetCount(&count));
  return count;
}

static Handle getCurrent() {
  Handle context = nullptr;
  HOST(cuCtxGetCurrent(&context));
  return context;
}

/// A thread without a context works on device 0, and has none afterwards.
static void testNoContext(const Kernels &kernels) {
  EXPECT(!getCurrent());
  int32_t *memory = makeRows();
  kernels.layer(memory, rows);
  EXPECT(isAll(load(memory), 3));
  varlen_gpu_free(memory);
  EXPECT(varlen_gpu_check(nullptr) == 0);
  EXPECT(!getCurrent());
  EXPECT_NO_ERROR();
}

/// Work goes to the host's stream and context; the thread's context stays.
static void testHostStream(const Kernels &kernels) {
  Handle first = nullptr, second = nullptr;
  HOST(cuCtxCreate_v2(&first, 0, 0));
  HOST(cuCtxCreate_v2(&second, 0, 0));
  for (Handle context : {first, second}) {
    HOST(cuCtxSetCurrent(context));
    HostStream stream;
    // Another context than that of the stream is current.
    HOST(cuCtxSetCurrent(context == first ? second : first));
    varlen_gpu_set_stream(stream.handle);
    int32_t *memory = makeRows();
    kernels.layer(memory, rows);
    kernels.layer(memory, rows);
    EXPECT(isAll(load(memory), 6));
    EXPECT(varlen_gpu_check(stream.handle) == 0);
    varlen_gpu_free(memory);
    EXPECT(getCurrent() == (context == first ? second : first));
    varlen_gpu_release();
    varlen_gpu_unset_stream();
  }
  EXPECT_NO_ERROR();
  HOST(cuCtxDestroy_v2(first));
  HOST(cuCtxDestroy_v2(second));
  HOST(cuCtxSetCurrent(nullptr));
}

/// A context that takes the place of another is another.
static void testContextsInTurn(const Kernels &kernels) {
  for (int i = 0; i < 3; ++i) {
    Handle context = nullptr;
    HOST(cuCtxCreate_v2(&context, 0, 0));
    int32_t *memory = makeRows();
    kernels.layer(memory, rows);
    EXPECT(isAll(load(memory), 3));
    varlen_gpu_free(memory);
    varlen_gpu_release();
    HOST(cuCtxDestroy_v2(context));
    EXPECT_NO_ERROR();
  }
  HOST(cuCtxSetCurrent(nullptr));
}

/// Each device has its own code, memory and errors.
static void testDevices(const Kernels &kernels) {
  int32_t *memories[2] = {};
  int count = getDeviceCount() < 2 ? 1 : 2;
  for (int device = 0; device < count; ++device) {
    EXPECT(varlen_gpu_set_device(device) == 0);
    memories[device] = makeRows();
    kernels.add(memories[device], rows, device + 1);
    kernels.report(varlen_gpu_status_buffer(),
                   VARLEN_STATUS_START + VARLEN_STATUS_CU_Q, device + 7);
  }
  for (int device = 0; device < count; ++device) {
    EXPECT(varlen_gpu_set_device(device) == 0);
    EXPECT(isAll(load(memories[device]), device + 1));
    EXPECT_NO_ERROR();
    EXPECT(varlen_gpu_check(nullptr) != 0);
    EXPECT_ERROR("cu_seqlens_q[0] = " + std::to_string(device + 7));
    EXPECT(varlen_gpu_check(nullptr) == 0);
    varlen_gpu_free(memories[device]);
  }
  EXPECT(varlen_gpu_set_device(getDeviceCount()) != 0);
  EXPECT_ERROR("no GPU " + std::to_string(getDeviceCount()));
  EXPECT(varlen_gpu_set_device(0) == 0);
}

/// What one of several threads does on a device, in a stream of its own or of
/// the host. Gives what was wrong; `numErrors` counts the errors of kernels it
/// got.
static std::string runThread(const Kernels &kernels, int thread, int device,
                             void *stream, int &numErrors) {
  constexpr int numLayers = 10;
  varlen_gpu_set_device(device);
  if (stream)
    varlen_gpu_set_stream(stream);
  int32_t *memory = makeRows();
  for (int i = 0; i < numLayers; ++i)
    kernels.layer(memory, rows);
  EXPECT(isAll(load(memory), 3 * numLayers), "thread %d", thread);
  kernels.shared(memory, 64 << 10);
  EXPECT(load(memory)[0] == 64 << 10, "thread %d", thread);
  varlen_gpu_free(memory);
  varlen_gpu_synchronize();
  std::string text = takeError();
  kernels.report(varlen_gpu_status_buffer(),
                 VARLEN_STATUS_START + VARLEN_STATUS_CU_K, thread + 1);
  for (int i = 0; i < 2; ++i)
    numErrors += varlen_gpu_check(nullptr) != 0;
  std::string error = takeError();
  if (numErrors && error.find("cu_seqlens_k[0] = ") == std::string::npos)
    text += error;
  varlen_gpu_unset_stream();
  return text;
}

/// Eight threads at once on all devices, which make first calls in their
/// contexts, too. What one thread's kernels report is reported once.
static void testThreads(const Kernels &kernels) {
  constexpr int numThreads = 8;
  int numDevices = getDeviceCount() < 2 ? 1 : 2;
  for (int device = 0; device < numDevices; ++device) {
    varlen_gpu_set_device(device);
    varlen_gpu_release();
  }
  int numErrors[numThreads] = {};
  std::string texts[numThreads];
  std::vector<std::thread> threads;
  std::atomic<int> numReady{0};
  for (int t = 0; t < numThreads; ++t)
    threads.emplace_back([&, t] {
      int device = t % numDevices;
      Handle context = nullptr, stream = nullptr;
      HOST(cuDevicePrimaryCtxRetain(&context, device));
      if (t < numThreads / 2) {
        HOST(cuCtxSetCurrent(context));
        HOST(cuStreamCreate(&stream, 1));
        HOST(cuCtxSetCurrent(nullptr));
      }
      ++numReady;
      while (numReady < numThreads)
        std::this_thread::yield();
      texts[t] = runThread(kernels, t, device, stream, numErrors[t]);
      if (stream)
        HOST(cuStreamDestroy_v2(stream));
      HOST(cuDevicePrimaryCtxRelease_v2(device));
    });
  int sum = 0;
  for (int t = 0; t < numThreads; ++t) {
    threads[t].join();
    EXPECT(texts[t].empty(), "thread %d: %s", t, texts[t].c_str());
    sum += numErrors[t];
  }
  // All reports of a device may have been made before the first was read.
  EXPECT(sum >= numDevices && sum <= numThreads, "%d errors", sum);
  for (int device = 0; device < numDevices; ++device) {
    varlen_gpu_set_device(device);
    EXPECT(varlen_gpu_check(nullptr) == 0);
  }
  varlen_gpu_set_device(0);
  EXPECT_NO_ERROR();
}

/// What a thread without a stream has allocated others use at once, in streams
/// of their own.
static void testBetweenThreads(const Kernels &kernels) {
  auto *memory = static_cast<int32_t *>(varlen_gpu_allocate(4 * rows));
  void *stream = mgpuStreamCreate();
  std::thread([&] {
    EXPECT(mgpuStreamCreate() != stream);
    mgpuMemset32(memory, 2, rows, nullptr);
    kernels.add(memory, rows, 3);
    EXPECT(isAll(load(memory), 5));
    varlen_gpu_free(memory);
    EXPECT_NO_ERROR();
  }).join();
  EXPECT_NO_ERROR();
}

/// Ten layers as a graph, three times; `workspace` is that of a layer.
static void captureLayers(const Kernels &kernels, void *workspace,
                          uint64_t bytes) {
  HostStream stream;
  varlen_gpu_set_stream(stream.handle);
  EXPECT(varlen_gpu_prepare() == 0);
  int32_t *memory = makeRows();
  if (!listsKernels) {
    kernels.layer(memory, rows);
    mgpuMemset32(memory, 0, rows, nullptr);
  }
  varlen_gpu_set_workspace(workspace, bytes);
  int before = fake ? fake->count().allocations : 0;
  HOST(cuStreamBeginCapture_v2(stream.handle, 0));
  for (int i = 0; i < 10; ++i)
    kernels.layer(memory, rows);
  Handle graph = nullptr, executable = nullptr;
  HOST(cuStreamEndCapture(stream.handle, &graph));
  EXPECT_NO_ERROR();
  HOST(cuGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 3; ++i)
    HOST(cuGraphLaunch(executable, stream.handle));
  if (fake && workspace)
    EXPECT(fake->count().allocations == before);
  varlen_gpu_set_workspace(nullptr, 0);
  EXPECT(isAll(load(memory), 90));
  EXPECT(varlen_gpu_check(stream.handle) == 0);
  varlen_gpu_free(memory);
  varlen_gpu_synchronize();
  EXPECT_NO_ERROR();
  HOST(cuGraphExecDestroy(executable));
  HOST(cuGraphDestroy(graph));
  varlen_gpu_unset_stream();
}

static void testCapture(const Kernels &kernels) {
  Handle context = nullptr;
  HOST(cuCtxCreate_v2(&context, 0, 0));
  // Memory in graphs, then memory of the host.
  captureLayers(kernels, nullptr, 0);
  varlen_gpu_measure_workspace();
  int32_t *memory = makeRows();
  uint64_t before = varlen_gpu_workspace_size();
  kernels.layer(memory, rows);
  uint64_t bytes = varlen_gpu_workspace_size();
  EXPECT(before >= 4 * rows && bytes >= 12 * rows, "%zu", size_t(bytes));
  varlen_gpu_free(memory);
  unsigned long long workspace = 0;
  HOST(cuMemAlloc_v2(&workspace, bytes));
  captureLayers(kernels, reinterpret_cast<void *>(workspace), bytes);
  HOST(cuMemFree_v2(workspace));

  // A call that has not prepared gets an error, and the capture is not lost.
  varlen_gpu_release();
  auto stream = std::make_unique<HostStream>();
  varlen_gpu_set_stream(stream->handle);
  Handle graph = nullptr;
  HOST(cuStreamBeginCapture_v2(stream->handle, 0));
  kernels.add(nullptr, rows, 1);
  EXPECT_ERROR(
      "kernels cannot be made while the stream is captured: expected a "
      "call of varlen_gpu_prepare before");
  EXPECT(!varlen_gpu_status_buffer());
  EXPECT_ERROR("the status of kernels cannot be made while");
  EXPECT(varlen_gpu_prepare() != 0);
  EXPECT_ERROR("what a first call needs cannot be made while");
  EXPECT(varlen_gpu_check(stream->handle) != 0);
  EXPECT_ERROR("a stream cannot be checked while it is captured");
  HOST(cuStreamEndCapture(stream->handle, &graph));
  HOST(cuGraphDestroy(graph));
  varlen_gpu_release();
  varlen_gpu_unset_stream();

  // Where preparing is not enough, another error says what is.
  if (!listsKernels) {
    varlen_gpu_set_stream(stream->handle);
    EXPECT(varlen_gpu_prepare() == 0);
    HOST(cuStreamBeginCapture_v2(stream->handle, 0));
    kernels.add(nullptr, rows, 1);
    EXPECT_ERROR("kernel 'add' cannot be loaded while the stream is captured: "
                 "expected a call of its function before");
    HOST(cuStreamEndCapture(stream->handle, &graph));
    HOST(cuGraphDestroy(graph));
    varlen_gpu_release();
    varlen_gpu_unset_stream();
  }

  // While another thread captures with cuStreamBeginCapture's "global" mode.
  HOST(cuStreamBeginCapture_v2(stream->handle, 0));
  std::thread([&] {
    HOST(cuCtxSetCurrent(context));
    EXPECT(varlen_gpu_prepare() == 0);
    EXPECT_NO_ERROR();
  }).join();
  HOST(cuStreamEndCapture(stream->handle, &graph));
  HOST(cuGraphDestroy(graph));
  EXPECT_NO_ERROR();
  varlen_gpu_release();
  stream.reset();
  HOST(cuCtxDestroy_v2(context));
}

static void testWorkspace(const Kernels &kernels) {
  HostStream stream;
  varlen_gpu_set_stream(stream.handle);
  int32_t *memory = makeRows();
  kernels.layer(memory, rows);
  unsigned long long workspace = 0;
  HOST(cuMemAlloc_v2(&workspace, 1 << 20));
  auto *begin = reinterpret_cast<char *>(workspace);
  varlen_gpu_set_workspace(begin, 1 << 20);
  int before = fake ? fake->count().allocations : 0;
  for (int i = 0; i < 5; ++i)
    kernels.layer(memory, rows);
  if (fake)
    EXPECT(fake->count().allocations == before);
  EXPECT(varlen_gpu_workspace_size() == 8192);

  // Gaps are used again, nothing overlaps.
  void *a = varlen_gpu_allocate(100), *b = varlen_gpu_allocate(300),
       *c = varlen_gpu_allocate(1);
  EXPECT(a == begin && b == begin + 256 && c == begin + 768);
  varlen_gpu_free(b);
  EXPECT(varlen_gpu_allocate(513) == begin + 1024);
  EXPECT(varlen_gpu_allocate(512) == b);
  varlen_gpu_set_workspace(begin, 8192 - 256);
  kernels.layer(memory, rows);
  EXPECT_ERROR("a workspace of 7936 bytes is too small: expected 8192 or more");
  varlen_gpu_set_workspace(begin, 8192);
  EXPECT(!varlen_gpu_allocate(UINT64_MAX));
  EXPECT_ERROR("a workspace of 8192 bytes is too small");
  varlen_gpu_set_workspace(begin + 16, 8192);
  EXPECT_ERROR("expected memory aligned to 256 bytes");
  varlen_gpu_set_workspace(nullptr, 0);
  // The layer that had no room has not run.
  EXPECT(isAll(load(memory), 18));
  varlen_gpu_free(memory);
  varlen_gpu_synchronize();
  HOST(cuMemFree_v2(workspace));
  varlen_gpu_unset_stream();
  EXPECT_NO_ERROR();
}

static void testErrors(const Kernels &kernels) {
  int32_t *memory = makeRows();
  // Nothing runs after an allocation that has failed, until the error is read.
  EXPECT(!varlen_gpu_allocate(uint64_t(1) << 60));
  kernels.add(memory, rows, 1);
  EXPECT(!varlen_gpu_allocate(8));
  EXPECT_ERROR("allocating 1152921504606846976 bytes on the GPU");
  EXPECT(isAll(load(memory), 0));
  kernels.add(memory, rows, 1);
  EXPECT(isAll(load(memory), 1));

  // More shared memory than a kernel has without asking, more than there is.
  kernels.shared(memory, 64 << 10);
  EXPECT(load(memory)[0] == 64 << 10);
  kernels.shared(memory, 4 << 20);
  EXPECT_ERROR("a kernel wants 4194304 bytes of shared memory: ");
  void *parameters[] = {&memory};
  kernels.launch("subtract", 0, parameters, 1);
  EXPECT_ERROR("the module has no kernel 'subtract'");

  // A kernel that is storing its error is not disturbed.
  auto *status = static_cast<varlen_gpu_status *>(varlen_gpu_status_buffer());
  varlen_gpu_status busy = {VARLEN_STATUS_BUSY, 0, 0, 0}, found = {};
  varlen_gpu_copy(status, &busy, sizeof busy);
  EXPECT(varlen_gpu_check(nullptr) == 0);
  varlen_gpu_copy(&found, status, sizeof found);
  varlen_gpu_synchronize();
  EXPECT(found.code == VARLEN_STATUS_BUSY);
  mgpuMemset32(status, 0, sizeof found / 4, nullptr);
  kernels.report(status, VARLEN_STATUS_START + VARLEN_STATUS_CU_Q, 3);
  kernels.report(status, VARLEN_STATUS_START + VARLEN_STATUS_CU_K, 4);
  EXPECT(varlen_gpu_check(nullptr) != 0);
  EXPECT_ERROR("cu_seqlens_q[0] = 3: cu_seqlens must start at 0");
  EXPECT(varlen_gpu_check(nullptr) == 0);

  // Memory that the host shares is freed as such.
  void *shared = mgpuMemAlloc(64, nullptr, /*isHostShared=*/1);
  mgpuMemFree(shared, nullptr);
  varlen_gpu_free(memory);
  EXPECT_NO_ERROR();
}

/// Kernels start beside those before them if they wait for these, and the host
/// wants it.
static void testOverlap() {
  static bool overlapped;
  fake->setKernel("overlap", [](const FakeCudaLaunch *launch) {
    overlapped = launch->mayOverlap;
  });
  int32_t *memory = makeRows();
  for (bool waits : {false, true}) {
    std::string ptx = ".version 7.0\n.target sm_80\n.address_size 64\n";
    if (waits)
      ptx +=
          ".visible .global .align 1 .b8 " VARLEN_GPU_WAITS_FOR_GRIDS " = 1;\n";
    ptx += ".visible .entry overlap(.param .u64 memory) { ret; }";
    void *module = mgpuModuleLoadJIT(ptx.data(), 2);
    for (bool wanted : {false, true, false}) {
      varlen_gpu_overlap_launches(wanted);
      void *parameters[] = {&memory};
      mgpuLaunchKernel(mgpuModuleGetFunction(module, "overlap"), 1, 1, 1, 32, 1,
                       1, 0, nullptr, parameters, nullptr, 1);
      varlen_gpu_synchronize();
      EXPECT(overlapped == (waits && wanted), "waits %d, wanted %d", waits,
             wanted);
    }
    mgpuModuleUnload(module);
  }
  varlen_gpu_free(memory);
  EXPECT_NO_ERROR();
}

static void testTensorMaps() {
  int32_t *memory = makeRows();
  uint64_t extents[] = {32, 16}, strides[] = {128};
  uint32_t box[] = {16, 8}, steps[] = {1, 1};
  varlen_gpu_tensor_map what = {7,     2, memory, extents, strides, box,
                                steps, 0, 0,      0,       0};
  alignas(64) char map[128];
  int before = fake ? fake->count().allocations : 0;
  EXPECT(varlen_gpu_encode_tensor_map(map, &what) == 0);
  if (fake)
    EXPECT(fake->count().allocations == before);
  box[1] = 512;
  EXPECT(varlen_gpu_encode_tensor_map(map, &what) != 0);
  EXPECT_ERROR("encoding a tensor map: ");

  // Upstream's lowering wants maps in memory: equal ones are one.
  struct {
    int32_t *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } descriptor = {memory, memory, 0, {16, 32}, {32, 1}};
  int64_t boxes[] = {8, 16};
  auto make = [&] {
    return mgpuTensorMapEncodeTiledMemref(2, &descriptor, 7, 0, 0, 0, 0, boxes);
  };
  void *first = make();
  EXPECT(first && make() == first);
  if (fake)
    EXPECT(fake->count().allocations == before + 1);
  boxes[0] = 4;
  EXPECT(make() != first);
  EXPECT_NO_ERROR();
  boxes[0] = 512;
  EXPECT(!make());
  EXPECT_ERROR("encoding a tensor map: ");
  varlen_gpu_free(memory);
}

/// The runtime has given back what it had; it has not used the default stream,
/// and has not asked the driver for what that refuses.
static void testNothingIsLeft(int expectedRefusals) {
  for (int device = 0; device < getDeviceCount(); ++device) {
    varlen_gpu_set_device(device);
    varlen_gpu_release();
  }
  EXPECT_NO_ERROR();
  if (!fake)
    return;
  FakeCudaCounts counts = fake->count();
  EXPECT(counts.primaries == 0, "%d", counts.primaries);
  EXPECT(counts.modules == 0, "%d", counts.modules);
  EXPECT(counts.streams == 0, "%d", counts.streams);
  EXPECT(counts.pools == 0, "%d", counts.pools);
  EXPECT(counts.blocks == 0, "%d", counts.blocks);
  EXPECT(counts.graphs == 0, "%d", counts.graphs);
  EXPECT(counts.registrations == 0, "%d", counts.registrations);
  EXPECT(counts.defaultStream == 0, "%d", counts.defaultStream);
  EXPECT(counts.refusals == expectedRefusals, "%d, the last %s",
         counts.refusals, fake->lastRefusal());
}

int main() {
  if (!openHost())
    return 1;
  {
    Kernels kernels;
    testNoContext(kernels);
    testHostStream(kernels);
    testContextsInTurn(kernels);
    testDevices(kernels);
    for (int i = 0; i < 5; ++i)
      testThreads(kernels);
    std::thread([&] { testBetweenThreads(kernels); }).join();
    std::thread([&] { testCapture(kernels); }).join();
    Handle context = nullptr;
    HOST(cuDevicePrimaryCtxRetain(&context, 0));
    HOST(cuCtxSetCurrent(context));
    testWorkspace(kernels);
    testErrors(kernels);
    bool hasTensorMaps = fake || varlen_gpu_capability() >= 90;
    if (hasTensorMaps)
      testTensorMaps();
    if (fake)
      testOverlap();
    HOST(cuCtxSetCurrent(nullptr));
    HOST(cuDevicePrimaryCtxRelease_v2(0));
    // Two tensor maps that cannot be.
    testNothingIsLeft(/*expectedRefusals=*/2);
  }
  if (fake)
    testFailures();
  if (failures == 0)
    printf("all tests passed (%s driver%s)\n", fake ? "fake" : "real",
           listsKernels ? "" : ", which cannot list kernels");
  return summary();
}
