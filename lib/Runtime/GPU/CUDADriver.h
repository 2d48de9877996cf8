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
  ErrorDeinitialized = 4,
  ErrorInvalidImage = 200,
  ErrorNoBinaryForGPU = 209,
  ErrorInvalidPTX = 218,
  ErrorUnsupportedPTXVersion = 222,
  ErrorNotFound = 500,
  ErrorNotSupported = 801
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
  MemHostAllocDeviceMap = 2,
  MemAllocationTypePinned = 1,
  MemLocationTypeDevice = 1,
  PoolReleaseThreshold = 4,
  LaunchClusterDimension = 4,
  LaunchProgrammaticStreamSerialization = 6,
  CaptureModeRelaxed = 2,
  CaptureStatusNone = 0
};

struct PoolProperties {
  int allocationType, handleTypes, locationType, location;
  void *security;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
    int isAllowed;
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
  F(cuDevicePrimaryCtxGetState, (Device, unsigned *, int *))                   \
  F(cuDevicePrimaryCtxRetain, (Context *, Device))                             \
  F(cuDevicePrimaryCtxRelease_v2, (Device))                                    \
  F(cuCtxGetCurrent, (Context *))                                              \
  F(cuCtxPushCurrent_v2, (Context))                                            \
  F(cuCtxPopCurrent_v2, (Context *))                                           \
  F(cuCtxGetDevice, (Device *))                                                \
  F(cuCtxGetId, (Context, unsigned long long *))                               \
  F(cuModuleLoadDataEx, (Module *, const void *, unsigned, int *, void **))    \
  F(cuModuleUnload, (Module))                                                  \
  F(cuModuleGetFunction, (Function *, Module, const char *))                   \
  F(cuModuleGetGlobal_v2, (Address *, size_t *, Module, const char *))         \
  F(cuFuncGetAttribute, (int *, int, Function))                                \
  F(cuFuncSetAttribute, (Function, int, int))                                  \
  F(cuLaunchKernelEx, (const LaunchConfig *, Function, void **, void **))      \
  F(cuStreamCreate, (Stream *, unsigned))                                      \
  F(cuStreamDestroy_v2, (Stream))                                              \
  F(cuStreamGetCtx, (Stream, Context *))                                       \
  F(cuStreamIsCapturing, (Stream, int *))                                      \
  F(cuStreamSynchronize, (Stream))                                             \
  F(cuStreamWaitEvent, (Stream, Event, unsigned))                              \
  F(cuThreadExchangeStreamCaptureMode, (int *))                                \
  F(cuEventCreate, (Event *, unsigned))                                        \
  F(cuEventDestroy_v2, (Event))                                                \
  F(cuEventRecord, (Event, Stream))                                            \
  F(cuEventSynchronize, (Event))                                               \
  F(cuMemPoolCreate, (Pool *, const PoolProperties *))                         \
  F(cuMemPoolDestroy, (Pool))                                                  \
  F(cuMemPoolSetAttribute, (Pool, int, void *))                                \
  F(cuMemAllocFromPoolAsync, (Address *, size_t, Pool, Stream))                \
  F(cuMemAllocManaged, (Address *, size_t, unsigned))                          \
  F(cuMemFreeAsync, (Address, Stream))                                         \
  F(cuMemFree_v2, (Address))                                                   \
  F(cuMemcpyAsync, (Address, Address, size_t, Stream))                         \
  F(cuMemsetD8Async, (Address, unsigned char, size_t, Stream))                 \
  F(cuMemsetD16Async, (Address, unsigned short, size_t, Stream))               \
  F(cuMemsetD32Async, (Address, unsigned, size_t, Stream))                     \
  F(cuMemHostAlloc, (void **, size_t, unsigned))                               \
  F(cuMemFreeHost, (void *))                                                   \
  F(cuMemHostRegister_v2, (void *, size_t, unsigned))                          \
  F(cuMemHostUnregister, (void *))                                             \
  F(cuTensorMapEncodeTiled,                                                    \
    (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,        \
     const uint32_t *, const uint32_t *, int, int, int, int))
/// Functions of CUDA 12.4: null in an older driver.
#define VARLEN_CUDA_NEWER_FUNCTIONS(F)                                         \
  F(cuModuleGetFunctionCount, (unsigned *, Module))                            \
  F(cuModuleEnumerateFunctions, (Function *, unsigned, Module))                \
  F(cuFuncGetName, (const char **, Function))                                  \
  F(cuFuncLoad, (Function))
// NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming)
#define VARLEN_CUDA_DECLARE(name, arguments) Result(*name) arguments;
  VARLEN_CUDA_FUNCTIONS(VARLEN_CUDA_DECLARE)
  VARLEN_CUDA_NEWER_FUNCTIONS(VARLEN_CUDA_DECLARE)
#undef VARLEN_CUDA_DECLARE
  // NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)
};

/// The driver, opened and initialised by the first call; null, with the calling
/// thread's error set, if there is none.
const Driver *getDriver();

/// Whether the call worked; else sets an error that says what failed.
bool check(const Driver &driver, Result result, const char *what);

} // namespace varlen_runtime::cuda

#endif // VARLEN_LIB_RUNTIME_GPU_CUDADRIVER_H
