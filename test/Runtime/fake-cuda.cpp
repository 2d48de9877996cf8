//===- fake-cuda.cpp - What the fake driver refuses, and finds ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What cuda.cpp relies on: that errors of the runtime would be seen.
//
//===----------------------------------------------------------------------===//

// RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda \
// RUN:   %varlen-build/bin/varlen-fake-cuda-test

#include "../Expect.h"
#include "Inputs/FakeCUDA/FakeCUDA.h"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <thread>

using Address = unsigned long long;
using Handle = void *;

static void *library;

/// A call of the driver by its name; what its arguments are converted to is for
/// the caller to say.
template <typename... Arguments>
static int call(const char *name, Arguments... arguments) {
  auto *entry = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  EXPECT(entry, "the fake has no %s", name);
  return entry ? entry(arguments...) : -1;
}

enum {
  InvalidValue = 1,
  InvalidContext = 201,
  InvalidHandle = 400,
  IllegalAddress = 700,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureIsolation = 905,
  CaptureImplicit = 906,
  CapturedEvent = 907
};

struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Handle stream, attributes;
  unsigned numAttributes;
};

struct PoolProperties {
  int allocationType, handleTypes, locationType, location;
  void *security;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

/// A new context, which is current, with a stream, a pool and a kernel.
struct Setup {
  Handle context = nullptr, stream = nullptr, other = nullptr, pool = nullptr,
         module = nullptr, function = nullptr;

  Setup() {
    EXPECT(call("cuCtxCreate_v2", &context, 0u, 0) == 0);
    EXPECT(call("cuStreamCreate", &stream, 1u) == 0);
    EXPECT(call("cuStreamCreate", &other, 1u) == 0);
    PoolProperties properties = {};
    properties.allocationType = properties.locationType = 1;
    EXPECT(call("cuMemPoolCreate", &pool, &properties) == 0);
    static const char ptx[] = ".version 7.0\n.target sm_80\n"
                              ".entry store(.param .u64 to) {}";
    EXPECT(call("cuModuleLoadDataEx", &module, ptx, 0u, nullptr, nullptr) == 0);
    EXPECT(call("cuModuleGetFunction", &function, module, "store") == 0);
  }
  ~Setup() { EXPECT(call("cuCtxDestroy_v2", context) == 0); }

  Address allocate(Handle where, size_t bytes = 64) const {
    Address address = 0;
    EXPECT(call("cuMemAllocFromPoolAsync", &address, bytes, pool, where) == 0);
    return address;
  }
  int free(Address address, Handle where) const {
    return call("cuMemFreeAsync", address, where);
  }
  int fill(Address address, Handle where) const {
    return call("cuMemsetD32Async", address, 7u, size_t(4), where);
  }
  int launch(Address to, Handle where, unsigned sharedBytes = 0,
             unsigned threads = 32) const {
    LaunchConfig config = {{1, 1, 1}, {threads, 1, 1}, sharedBytes,
                           where,     nullptr,         0};
    void *parameters[] = {&to};
    return call("cuLaunchKernelEx", &config, function, parameters, nullptr);
  }
};

static int synchronize(Handle stream) {
  return call("cuStreamSynchronize", stream);
}

static uint32_t load(Address address) {
  uint32_t value;
  memcpy(&value, reinterpret_cast<void *>(address), sizeof value);
  return value;
}

/// Kernel: *to = 9
static void store(const FakeCudaLaunch *launch) {
  auto *to = *static_cast<uint32_t **>(launch->parameters[0]);
  if (launch->access(to, 4))
    *to = 9;
}

/// Work is done when a thread waits for it; parameters do not.
static void testOrder() {
  Setup setup;
  Address memory = setup.allocate(setup.stream);
  EXPECT(setup.fill(memory, setup.stream) == 0);
  EXPECT(setup.launch(memory + 8, setup.stream) == 0);
  EXPECT(load(memory) != 7 && load(memory + 8) != 9);
  EXPECT(synchronize(setup.other) == 0 && load(memory) != 7);
  EXPECT(synchronize(setup.stream) == 0);
  EXPECT(load(memory) == 7 && load(memory + 8) == 9 && load(memory + 4) == 7);
  // An event orders streams.
  Handle event = nullptr;
  EXPECT(call("cuEventCreate", &event, 2u) == 0);
  Address second = setup.allocate(setup.stream);
  EXPECT(call("cuEventRecord", event, setup.stream) == 0);
  EXPECT(call("cuStreamWaitEvent", setup.other, event, 0u) == 0);
  EXPECT(setup.launch(second, setup.other) == 0);
  EXPECT(synchronize(setup.other) == 0 && load(second) == 9);
}

/// Memory is there from its allocation to its free, in the order of streams.
static void testMemory() {
  {
    Setup setup;
    Address memory = setup.allocate(setup.stream);
    EXPECT(setup.free(memory, setup.stream) == 0);
    // In the same stream it is given again at once, elsewhere when it is free.
    EXPECT(setup.allocate(setup.stream) == memory);
    EXPECT(setup.free(memory, setup.stream) == 0);
    EXPECT(setup.allocate(setup.other) != memory);
    EXPECT(synchronize(setup.stream) == 0);
    EXPECT(setup.allocate(setup.other) == memory);
    EXPECT(setup.free(memory, setup.other) == 0);
    EXPECT(setup.free(memory, setup.other) == InvalidValue);
    EXPECT(setup.free(memory + 1024, setup.other) == InvalidValue);
  }
  {
    Setup setup; // used after it is freed
    Address memory = setup.allocate(setup.stream);
    EXPECT(setup.free(memory, setup.stream) == 0);
    EXPECT(setup.launch(memory, setup.stream) == 0);
    EXPECT(synchronize(setup.stream) == IllegalAddress);
    EXPECT(setup.fill(memory, setup.stream) == IllegalAddress);
  }
  {
    Setup setup; // used before it is made, in another stream
    Address memory = setup.allocate(setup.stream);
    EXPECT(setup.fill(memory, setup.other) == 0);
    EXPECT(synchronize(setup.other) == IllegalAddress);
  }
  {
    Setup setup; // past its end; memory of the host
    Address memory = setup.allocate(setup.stream, 62);
    EXPECT(setup.launch(memory + 60, setup.stream) == 0);
    EXPECT(synchronize(setup.stream) == IllegalAddress);
  }
  {
    Setup setup;
    static uint32_t ours;
    EXPECT(setup.launch(reinterpret_cast<uintptr_t>(&ours), setup.stream) == 0);
    EXPECT(synchronize(setup.stream) == IllegalAddress && ours == 0);
  }
}

static void testRefusals() {
  Setup setup, foreign;
  EXPECT(call("cuCtxSetCurrent", setup.context) == 0);
  Address memory = setup.allocate(setup.stream);
  EXPECT(setup.launch(memory, foreign.stream) == InvalidHandle);
  EXPECT(setup.launch(memory, &memory) == InvalidHandle);
  EXPECT(foreign.launch(memory, setup.stream) == InvalidHandle);
  EXPECT(synchronize(foreign.stream) == InvalidHandle);
  Handle function = setup.function;
  setup.function = nullptr;
  EXPECT(setup.launch(memory, setup.stream) == InvalidHandle);
  setup.function = function;
  EXPECT(setup.launch(memory, setup.stream, 64 << 10) == InvalidValue);
  EXPECT(call("cuFuncSetAttribute", function, 8, 64 << 10) == 0);
  EXPECT(setup.launch(memory, setup.stream, 64 << 10) == 0);
  EXPECT(call("cuFuncSetAttribute", function, 8, 1 << 20) == InvalidValue);
  EXPECT(setup.launch(memory, setup.stream, 0, 2048) == InvalidValue);
  EXPECT(setup.launch(memory, setup.stream, 0, 0) == InvalidValue);
  EXPECT(call("cuMemsetD32Async", memory + 2, 7u, size_t(1), setup.stream) ==
         InvalidValue);
  EXPECT(call("cuModuleUnload", foreign.module) == InvalidContext);
  EXPECT(call("cuModuleUnload", setup.module) == 0);
  EXPECT(setup.launch(memory, setup.stream) == InvalidHandle);
  EXPECT(call("cuStreamDestroy_v2", setup.stream) == 0);
  EXPECT(synchronize(setup.stream) == InvalidHandle);
  int before = fakeCudaCount().defaultStream;
  EXPECT(setup.fill(memory, nullptr) == 0);
  EXPECT(fakeCudaCount().defaultStream == before + 1);
  std::thread([&] {
    EXPECT(setup.launch(memory, setup.other) == InvalidContext);
    EXPECT(setup.fill(memory, nullptr) == InvalidContext);
  }).join();
}

static int begin(Handle stream, int mode = 0) {
  return call("cuStreamBeginCapture_v2", stream, mode);
}

static int end(Handle stream) {
  Handle graph = nullptr;
  int error = call("cuStreamEndCapture", stream, &graph);
  EXPECT((graph == nullptr) == (error != 0));
  if (graph)
    EXPECT(call("cuGraphDestroy", graph) == 0);
  return error;
}

static void testCapture() {
  Setup setup;
  Address memory = setup.allocate(setup.stream);
  EXPECT(synchronize(setup.stream) == 0);
  // What is captured is done when the graph is launched, each time.
  Handle graph = nullptr, executable = nullptr;
  EXPECT(begin(setup.stream) == 0);
  EXPECT(setup.fill(memory, setup.stream) == 0);
  Address inside = setup.allocate(setup.stream);
  EXPECT(setup.launch(inside, setup.stream) == 0);
  EXPECT(setup.free(memory, setup.stream) == InvalidValue);
  EXPECT(setup.free(inside, setup.stream) == 0);
  EXPECT(call("cuStreamEndCapture", setup.stream, &graph) == 0);
  EXPECT(synchronize(setup.stream) == 0 && load(memory) != 7);
  EXPECT(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull) == 0);
  for (int i = 0; i < 2; ++i)
    EXPECT(call("cuGraphLaunch", executable, setup.stream) == 0);
  EXPECT(synchronize(setup.stream) == 0 && load(memory) == 7);
  EXPECT(setup.allocate(setup.stream) != inside);
  EXPECT(call("cuGraphExecDestroy", executable) == 0);
  EXPECT(call("cuGraphDestroy", graph) == 0);
  EXPECT(call("cuGraphDestroy", graph) == InvalidValue);

  EXPECT(begin(setup.stream) == 0);
  EXPECT(synchronize(setup.stream) == CaptureUnsupported);
  EXPECT(setup.fill(memory, setup.stream) == CaptureInvalidated);
  EXPECT(end(setup.stream) == CaptureInvalidated);

  // An event from outside, and one from inside.
  Handle event = nullptr;
  EXPECT(call("cuEventCreate", &event, 2u) == 0);
  EXPECT(call("cuEventRecord", event, setup.other) == 0);
  EXPECT(begin(setup.stream) == 0);
  EXPECT(call("cuStreamWaitEvent", setup.stream, event, 0u) ==
         CaptureIsolation);
  EXPECT(end(setup.stream) == CaptureInvalidated);
  EXPECT(begin(setup.stream) == 0);
  EXPECT(call("cuEventRecord", event, setup.stream) == 0);
  EXPECT(call("cuEventSynchronize", event) == CapturedEvent);
  EXPECT(end(setup.stream) == 0);

  // Unsafe calls, by the modes of the capture and of the thread.
  Address now = 0;
  auto allocate = [&] { return call("cuMemAlloc_v2", &now, size_t(64)); };
  EXPECT(begin(setup.stream) == 0);
  EXPECT(allocate() == CaptureUnsupported);
  EXPECT(end(setup.stream) == CaptureInvalidated);
  EXPECT(begin(setup.stream) == 0);
  int mode = 2;
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode) == 0 && mode == 0);
  EXPECT(allocate() == 0 && call("cuMemFree_v2", now) == 0);
  EXPECT(call("cuThreadExchangeStreamCaptureMode", &mode) == 0 && mode == 2);
  EXPECT(end(setup.stream) == 0);
  for (int mode : {0, 1}) {
    EXPECT(begin(setup.stream, mode) == 0);
    std::thread([&] {
      EXPECT(call("cuCtxSetCurrent", setup.context) == 0);
      EXPECT(allocate() == (mode == 0 ? CaptureUnsupported : 0));
    }).join();
    EXPECT(end(setup.stream) == (mode == 0 ? CaptureInvalidated : 0));
  }
  EXPECT(call("cuMemFree_v2", now) == 0);

  // A function that is not loaded yet.
  Handle module = nullptr, function = nullptr;
  static const char ptx[] = ".version 7.0\n.entry store(.param .u64 to) {}";
  EXPECT(call("cuModuleLoadDataEx", &module, ptx, 0u, nullptr, nullptr) == 0);
  EXPECT(call("cuModuleEnumerateFunctions", &function, 1u, module) == 0);
  setup.function = function;
  EXPECT(begin(setup.stream) == 0);
  EXPECT(setup.launch(memory, setup.stream) == CaptureUnsupported);
  EXPECT(end(setup.stream) == CaptureInvalidated);
  EXPECT(call("cuFuncLoad", function) == 0);
  EXPECT(begin(setup.stream) == 0);
  EXPECT(setup.launch(memory, setup.stream) == 0);
  EXPECT(end(setup.stream) == 0);

  // The default stream depends on blocking streams that are captured.
  Handle blocking = nullptr;
  EXPECT(call("cuStreamCreate", &blocking, 0u) == 0);
  EXPECT(begin(blocking) == 0);
  EXPECT(setup.fill(memory, nullptr) == CaptureImplicit);
  EXPECT(end(blocking) == 0);
}

int main() {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT(library, "no fake driver");
  EXPECT(call("cuDeviceGetCount", nullptr) == 3); // not initialized
  EXPECT(call("cuInit", 0u) == 0);
  fakeCudaSetKernel("store", store);
  testOrder();
  testMemory();
  testRefusals();
  testCapture();
  return summary();
}
