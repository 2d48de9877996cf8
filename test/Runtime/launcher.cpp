//===- launcher.cpp - Launchers of libvarlen-c in many threads ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eight threads launch the kernels of one launcher on two devices, at once and
// for the first time, each in a stream and a workspace of its own. The fake
// driver runs a host function in place of the attention.
// tools/sanitize-gpu-runtime.sh builds this with a sanitizer, too.
//
//===----------------------------------------------------------------------===//

// RUN: clang++-22 %sanitize -std=c++17 -Wall -Wextra -Werror %s %capi -ldl \
// RUN:   -pthread -o %t
// RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda %t | FileCheck %s
// CHECK: 8 threads, 160 launches, 2 modules
// CHECK: first launches, captured: 2 of 2

#include "../Expect.h"
#include "Inputs/FakeCUDA/FakeCUDA.h"
#include "varlen-c/Varlen.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

using Handle = void *;
using Address = unsigned long long;

static constexpr int numThreads = 8, numLaunches = 20, numDevices = 2;
static constexpr int64_t rows = 100, heads = 4, kvHeads = 2, dim = 64;

static const char source[] =
    "func.func @attention(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>,\n"
    "                     %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>)\n"
    "    -> (tensor<?x4x64xbf16>, tensor<4x?xf32>) {\n"
    "  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu\n"
    "      {mask = #varlen.mask<causal>} : (tensor<?x4x64xbf16>,\n"
    "      tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>,\n"
    "      tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)\n"
    "  return %out, %lse : tensor<?x4x64xbf16>, tensor<4x?xf32>\n"
    "}\n";

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

static void *library;

/// A call of the driver by its name; what its arguments are converted to is for
/// the caller to say.
template <typename... Arguments>
static int call(const char *name, Arguments... arguments) {
  auto *entry = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  return entry ? entry(arguments...) : -1;
}

template <typename T> static T *getFake(const char *name) {
  return reinterpret_cast<T *>(dlsym(library, name));
}

static void *allocate(int64_t bytes) {
  Address address = 0;
  EXPECT(call("cuMemAlloc_v2", &address, static_cast<size_t>(bytes)) == 0);
  return reinterpret_cast<void *>(address);
}

/// In place of the attention: counts itself in the first word of out, its fifth
/// tensor, whose memory a thread has for itself.
static void count(const FakeCudaLaunch *launch) {
  auto *out = *static_cast<uint32_t **>(launch->parameters[4]);
  if (launch->access(out, sizeof *out))
    ++*out;
}

//===----------------------------------------------------------------------===//
// A thread
//===----------------------------------------------------------------------===//

/// Tensors of one thread, in memory of a device.
struct Tensors {
  int64_t extents[6][3] = {{rows, heads, dim},   {rows, kvHeads, dim},
                           {rows, kvHeads, dim}, {4},
                           {rows, heads, dim},   {heads, rows}};
  VarlenTensor tensors[6] = {};
  const VarlenTensor *pointers[6] = {};

  explicit Tensors(int device) {
    for (int i = 0; i < 6; ++i) {
      int rank = i == 3 ? 1 : i == 5 ? 2 : 3;
      int64_t elements = 1;
      for (int d = 0; d < rank; ++d)
        elements *= extents[i][d];
      uint8_t code = i == 3   ? VARLEN_INT
                     : i == 5 ? VARLEN_FLOAT
                              : VARLEN_BFLOAT;
      uint8_t bits = code == VARLEN_BFLOAT ? 16 : 32;
      VarlenTensor &tensor = tensors[i];
      tensor.data = allocate(elements * bits / 8);
      tensor.device = {VARLEN_CUDA, device};
      tensor.ndim = rank;
      tensor.dtype = {code, bits, 1};
      tensor.shape = extents[i];
      pointers[i] = &tensor;
    }
  }
};

/// Launches, waits and looks at what has run: what was wrong.
static std::string run(VarlenLauncher launcher, int device,
                       std::atomic<int> &numReady) {
  ++numReady;
  while (numReady < numThreads)
    std::this_thread::yield();
  Handle context = nullptr, stream = nullptr;
  if (call("cuDevicePrimaryCtxRetain", &context, device) ||
      call("cuCtxSetCurrent", context) || call("cuStreamCreate", &stream, 1u))
    return "no stream";
  Tensors tensors(device);
  size_t bytes = 0;
  if (varlenLauncherGetWorkspaceSize(launcher, tensors.pointers, 6, &bytes))
    return varlenGetLastError();
  void *workspace = allocate(static_cast<int64_t>(bytes));
  Address out = reinterpret_cast<uintptr_t>(tensors.tensors[4].data);
  for (int i = 0; i < numLaunches; ++i) {
    if (varlenLauncherLaunch(launcher, tensors.pointers, 6, workspace, bytes,
                             stream) ||
        varlenLauncherCheck(workspace, stream))
      return varlenGetLastError();
    uint32_t word = 0;
    memcpy(&word, reinterpret_cast<void *>(out), sizeof word);
    // A launch sets all bits of its results first.
    if (word != 0)
      return "expected one launch on this thread's tensors";
  }
  if (call("cuStreamDestroy_v2", stream))
    return "no end of the stream";
  return "";
}

/// The first launch in a context may be a captured one, whatever the mode is.
static bool testCapture(VarlenLauncher launcher, int mode, bool isPolled) {
  Handle context = nullptr, stream = nullptr, graph = nullptr;
  EXPECT(call("cuCtxCreate_v2", &context, 0u, 0) == 0);
  EXPECT(call("cuStreamCreate", &stream, 1u) == 0);
  Tensors tensors(0);
  size_t bytes = 0;
  EXPECT(varlenLauncherGetWorkspaceSize(launcher, tensors.pointers, 6,
                                        &bytes) == VARLEN_OK);
  void *workspace = allocate(static_cast<int64_t>(bytes));
  EXPECT(call("cuStreamBeginCapture_v2", stream, mode) == 0);
  auto *launch = isPolled ? varlenLauncherEnqueue : varlenLauncherLaunch;
  bool isFine = launch(launcher, tensors.pointers, 6, workspace, bytes,
                       stream) == VARLEN_OK;
  EXPECT(isFine, "%s", varlenGetLastError());
  EXPECT(call("cuStreamEndCapture", stream, &graph) == 0);
  EXPECT(call("cuGraphDestroy", graph) == 0);
  EXPECT(call("cuCtxDestroy_v2", context) == 0);
  return isFine;
}

int main() {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  auto *setKernel = getFake<decltype(fakeCudaSetKernel)>("fakeCudaSetKernel");
  auto *getCount = getFake<decltype(fakeCudaCount)>("fakeCudaCount");
  if (!setKernel || !getCount || call("cuInit", 0u)) {
    fprintf(stderr, "no fake driver\n");
    return 1;
  }
  setKernel("attention_attn", count);
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  VarlenLauncher launcher = {};
  if (varlenLauncherCompile(source, strlen(source), &options, &launcher)) {
    fprintf(stderr, "%s\n", varlenGetLastError());
    return 1;
  }

  std::string texts[numThreads];
  std::vector<std::thread> threads;
  std::atomic<int> numReady{0};
  for (int t = 0; t < numThreads; ++t)
    threads.emplace_back(
        [&, t] { texts[t] = run(launcher, t % numDevices, numReady); });
  for (int t = 0; t < numThreads; ++t) {
    threads[t].join();
    EXPECT(texts[t].empty(), "thread %d: %s", t, texts[t].c_str());
  }
  printf("%d threads, %d launches, %d modules\n", numThreads,
         numThreads * numLaunches, getCount().modules);
  // Global, and thread-local.
  int numCaptured = testCapture(launcher, 0, true);
  numCaptured += testCapture(launcher, 1, false);
  printf("first launches, captured: %d of 2\n", numCaptured);
  EXPECT(getCount().refusals == 0);
  varlenLauncherDestroy(launcher);
  EXPECT(getCount().modules == 0);
  return summary();
}
