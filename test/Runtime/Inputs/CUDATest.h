//===- CUDATest.h - A process that uses CUDA, for tests ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's side of the tests: its own calls of the driver, kernels, and what
// compiled code does with them. With the fake driver kernels are functions of
// the host that do the same.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_RUNTIME_CUDATEST_H
#define VARLEN_TEST_RUNTIME_CUDATEST_H

#include "../../Expect.h"
#include "FakeCUDA/FakeCUDA.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/MGPU.h"
#include "varlen/Runtime/Runtime.h"

#include <cstdint>
#include <string>
#include <vector>

/// The error since the last call, which it clears.
inline std::string takeError() {
  const char *error = varlen_last_error();
  std::string text = error ? error : "";
  varlen_clear_error();
  return text;
}

inline void expectError(const std::string &part, int line) {
  std::string error = takeError();
  bool isExpected =
      part.empty() ? error.empty() : error.find(part) != std::string::npos;
  EXPECT(isExpected, "line %d: an error with '%s', got '%s'", line,
         part.c_str(), error.c_str());
}
#define EXPECT_ERROR(part) expectError(part, __LINE__)
#define EXPECT_NO_ERROR() expectError("", __LINE__)

using Handle = void *;

/// The driver, as the host calls it.
struct HostDriver {
  int (*cuInit)(unsigned);
  int (*cuDeviceGetCount)(int *);
  int (*cuDevicePrimaryCtxRetain)(Handle *, int);
  int (*cuDevicePrimaryCtxRelease_v2)(int);
  int (*cuCtxCreate_v2)(Handle *, unsigned, int);
  int (*cuCtxDestroy_v2)(Handle);
  int (*cuCtxGetCurrent)(Handle *);
  int (*cuCtxSetCurrent)(Handle);
  int (*cuStreamCreate)(Handle *, unsigned);
  int (*cuStreamDestroy_v2)(Handle);
  int (*cuStreamSynchronize)(Handle);
  int (*cuStreamBeginCapture_v2)(Handle, int);
  int (*cuStreamEndCapture)(Handle, Handle *);
  int (*cuGraphInstantiateWithFlags)(Handle *, Handle, unsigned long long);
  int (*cuGraphLaunch)(Handle, Handle);
  int (*cuGraphExecDestroy)(Handle);
  int (*cuGraphDestroy)(Handle);
  int (*cuMemAlloc_v2)(unsigned long long *, size_t);
  int (*cuMemFree_v2)(unsigned long long);
};
extern HostDriver host;

/// The fake's own functions; null with a real driver.
struct Fake {
  decltype(&fakeCudaSetKernel) setKernel;
  decltype(&fakeCudaFail) fail;
  decltype(&fakeCudaCalls) calls;
  decltype(&fakeCudaCount) count;
  decltype(&fakeCudaLastRefusal) lastRefusal;
};
extern const Fake *fake;

/// Whether the driver can list the kernels of a module, as those of CUDA 12.4
/// and later can: varlen_gpu_prepare loads them then.
extern bool listsKernels;

/// Opens the driver. False, with a message printed, if there is none.
bool openHost();

/// A call of the host that has to work.
#define HOST(call) EXPECT(host.call == 0)

/// What compiled code does when it is loaded, and what it calls.
struct Kernels {
  void *module;
  Kernels();
  ~Kernels();

  /// memory[0..n-1] += value
  void add(int32_t *memory, uint32_t n, int32_t value) const;
  /// memory[0..n-1] += other[0..n-1]
  void sum(int32_t *memory, const int32_t *other, uint32_t n) const;
  /// Stores an error as a kernel does.
  void report(void *status, int64_t code, int64_t index) const;
  /// memory[0] = bytes of dynamic shared memory
  void shared(int32_t *memory, int32_t bytes) const;

  /// What a compiled function does: allocates, launches on the thread's stream,
  /// frees. memory[0..n-1] += 3.
  void layer(int32_t *memory, uint32_t n) const;

  void launch(const char *name, int32_t sharedBytes, void **parameters,
              uint32_t threads) const;
};

constexpr uint32_t rows = 1000;

/// Memory of the device, all zeros.
int32_t *makeRows();
/// What is in it, after the calling thread's stream has been waited for.
std::vector<int32_t> load(const int32_t *memory);
/// Whether each is `value`.
bool isAll(const std::vector<int32_t> &values, int32_t value);

/// A stream of the host's.
struct HostStream {
  Handle handle = nullptr;
  HostStream() { HOST(cuStreamCreate(&handle, 1)); }
  ~HostStream() { HOST(cuStreamDestroy_v2(handle)); }
};

/// Runs what a driver can fail at, once (CUDAFailures.cpp).
void testFailures();

#endif // VARLEN_TEST_RUNTIME_CUDATEST_H
