//===- CUDADriver.h - The CUDA driver's API, opened at run time -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few types and functions of cuda.h that the backend needs. Their binary
// form is stable; the versions are named where the driver has several.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_GPU_CUDADRIVER_H
#define VARLEN_LIB_RUNTIME_GPU_CUDADRIVER_H

#include <cstddef>
#include <cstdint>

namespace varlen_runtime::cuda {

using Result = int;
using Device = int;
using Context = struct ContextOfDriver *;
using Module = struct ModuleOfDriver *;
using Function = struct FunctionOfDriver *;
using Stream = struct StreamOfDriver *;
using Event = struct EventOfDriver *;
using Pool = struct PoolOfDriver *;
using Address = unsigned long long;

enum : Result {
  Success = 0,
  ErrorInvalidImage = 200,
  ErrorNoBinaryForGPU = 209,
  ErrorUnsupportedPTXVersion = 222,
  ErrorNotFound = 500
};

/// CUjit_option, CUfunction_attribute, CUdevice_attribute, CUevent_flags, ...
enum : int {
  JITErrorLogBuffer = 5,
  JITErrorLogBufferSizeBytes = 6,
  FunctionSharedSizeBytes = 1,
  FunctionMaxDynamicSharedSizeBytes = 8,
  DeviceMultiprocessorCount = 16,
  DeviceComputeCapabilityMajor = 75,
  DeviceComputeCapabilityMinor = 76,
  DeviceMaxSharedMemoryPerBlockOptin = 97,
  StreamNonBlocking = 1,
  EventDisableTiming = 2,
  MemAttachGlobal = 1,
  PoolReleaseThreshold = 4,
  LaunchClusterDimension = 4
};

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
  } value;
};

struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// The driver's functions. Null until it is open.
struct Driver {
#define VARLEN_CUDA_FUNCTIONS(F)                                               \
  F(cuInit, (unsigned))                                                        \
  F(cuDriverGetVersion, (int *))                                               \
  F(cuGetErrorName, (Result, const char **))                                   \
  F(cuGetErrorString, (Result, const char **))                                 \
  F(cuDeviceGet, (Device *, int))                                              \
  F(cuDeviceGetCount, (int *))                                                 \
  F(cuDeviceGetName, (char *, int, Device))                                    \
  F(cuDeviceGetAttribute, (int *, int, Device))                                \
  F(cuDeviceGetDefaultMemPool, (Pool *, Device))                               \
  F(cuDevicePrimaryCtxRetain, (Context *, Device))                             \
  F(cuMemPoolSetAttribute, (Pool, int, void *))                                \
  F(cuCtxGetCurrent, (Context *))                                              \
  F(cuCtxSetCurrent, (Context))                                                \
  F(cuCtxGetDevice, (Device *))                                                \
  F(cuModuleLoadDataEx, (Module *, const void *, unsigned, int *, void **))    \
  F(cuModuleUnload, (Module))                                                  \
  F(cuModuleGetFunction, (Function *, Module, const char *))                   \
  F(cuFuncGetAttribute, (int *, int, Function))                                \
  F(cuFuncSetAttribute, (Function, int, int))                                  \
  F(cuLaunchKernelEx, (const LaunchConfig *, Function, void **, void **))      \
  F(cuStreamCreate, (Stream *, unsigned))                                      \
  F(cuStreamDestroy_v2, (Stream))                                              \
  F(cuStreamSynchronize, (Stream))                                             \
  F(cuStreamWaitEvent, (Stream, Event, unsigned))                              \
  F(cuEventCreate, (Event *, unsigned))                                        \
  F(cuEventDestroy_v2, (Event))                                                \
  F(cuEventRecord, (Event, Stream))                                            \
  F(cuEventSynchronize, (Event))                                               \
  F(cuMemAllocAsync, (Address *, size_t, Stream))                              \
  F(cuMemAllocManaged, (Address *, size_t, unsigned))                          \
  F(cuMemFreeAsync, (Address, Stream))                                         \
  F(cuMemFree_v2, (Address))                                                   \
  F(cuPointerGetAttribute, (void *, int, Address))                             \
  F(cuMemcpyAsync, (Address, Address, size_t, Stream))                         \
  F(cuMemsetD8Async, (Address, unsigned char, size_t, Stream))                 \
  F(cuMemsetD16Async, (Address, unsigned short, size_t, Stream))               \
  F(cuMemsetD32Async, (Address, unsigned, size_t, Stream))                     \
  F(cuMemHostRegister_v2, (void *, size_t, unsigned))                          \
  F(cuMemHostUnregister, (void *))                                             \
  F(cuTensorMapEncodeTiled,                                                    \
    (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,        \
     const uint32_t *, const uint32_t *, int, int, int, int))
#define VARLEN_CUDA_DECLARE(name, arguments) Result(*name) arguments;
  VARLEN_CUDA_FUNCTIONS(VARLEN_CUDA_DECLARE)
#undef VARLEN_CUDA_DECLARE
};

/// The driver, opened and initialised by the first call; null, with the calling
/// thread's error set, if there is none.
const Driver *getDriver();

/// Whether the call worked; else sets an error that says what failed.
bool check(const Driver &driver, Result result, const char *what);

} // namespace varlen_runtime::cuda

#endif // VARLEN_LIB_RUNTIME_GPU_CUDADRIVER_H
