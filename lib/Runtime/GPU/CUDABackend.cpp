//===- CUDABackend.cpp - GPUs through the CUDA driver ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call works in the context of its stream and leaves the calling thread
// in the context that it was in.
//
//===----------------------------------------------------------------------===//

#include "CUDAContext.h"
#include "CUDAModule.h"
#include "varlen/Runtime/GPU.h"

#include <cstdio>

using namespace varlen_runtime::cuda;

//===----------------------------------------------------------------------===//
// Contexts and devices
//===----------------------------------------------------------------------===//

static uint64_t getContext(void *stream) {
  Scope scope(stream);
  // Numbers of contexts begin with 0 or 1; it is not said.
  return scope ? scope.context().id + 1 : 0;
}

static void release(uint64_t context) { releaseContext(context - 1); }

static int32_t setDevice(int32_t device) { return !chooseDevice(device); }

static int32_t enter(void *stream, int32_t device) {
  return !enterContext(stream, device);
}

static int32_t getCapability(void *stream) {
  Scope scope(stream);
  return scope ? scope.context().capability : 0;
}

static int32_t getMultiprocessors(void *stream) {
  Scope scope(stream);
  return scope ? scope.context().multiprocessors : 0;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

static void *getStream() {
  Scope scope;
  return scope ? getOwnStream(scope) : nullptr;
}

static int32_t isCapturing(void *stream) {
  Scope scope(stream);
  int status = CaptureStatusNone;
  if (!scope || !scope.check(scope.driver().cuStreamIsCapturing(
                                 static_cast<Stream>(stream), &status),
                             "asking whether the stream is captured"))
    return -1;
  return status != CaptureStatusNone;
}

static int32_t synchronize(void *stream) {
  Scope scope(stream);
  if (!scope)
    return 1;
  OutsideOfCapture outside(scope.driver());
  return !scope.check(
      scope.driver().cuStreamSynchronize(static_cast<Stream>(stream)),
      "waiting for kernels");
}

static void *createEvent(void *stream) {
  Scope scope(stream);
  Event event = nullptr;
  if (scope)
    scope.check(scope.driver().cuEventCreate(&event, EventDisableTiming),
                "creating an event");
  return event;
}

static void destroyEvent(void *event, void *stream) {
  Scope scope(stream);
  if (scope)
    scope.check(scope.driver().cuEventDestroy_v2(static_cast<Event>(event)),
                "destroying an event");
}

static int32_t record(void *event, void *stream) {
  Scope scope(stream);
  return !scope ||
         !scope.check(scope.driver().cuEventRecord(static_cast<Event>(event),
                                                   static_cast<Stream>(stream)),
                      "recording an event");
}

static int32_t waitForEvent(void *stream, void *event) {
  Scope scope(stream);
  return !scope || !scope.check(scope.driver().cuStreamWaitEvent(
                                    static_cast<Stream>(stream),
                                    static_cast<Event>(event), 0),
                                "waiting for an event");
}

static int32_t synchronizeEvent(void *event, void *stream) {
  Scope scope(stream);
  if (!scope)
    return 1;
  OutsideOfCapture outside(scope.driver());
  return !scope.check(
      scope.driver().cuEventSynchronize(static_cast<Event>(event)),
      "waiting for an event");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Address toAddress(const void *memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

/// Keeps the error of an allocation that failed.
static void *checkAllocation(const Scope &scope, Result result, size_t bytes,
                             Address address) {
  char text[64];
  snprintf(text, sizeof text, "allocating %zu bytes on the GPU", bytes);
  if (!scope.check(result, text))
    return nullptr;
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

static void *allocate(size_t bytes, void *stream) {
  Scope scope(stream);
  Pool pool = scope ? getPool(scope) : nullptr;
  if (!pool)
    return nullptr;
  // In a captured stream it is memory of the graph all the same.
  OutsideOfCapture outside(scope.driver());
  Address address = 0;
  Result result = scope.driver().cuMemAllocFromPoolAsync(
      &address, bytes, pool, static_cast<Stream>(stream));
  return checkAllocation(scope, result, bytes, address);
}

static void *allocateShared(size_t bytes, void *stream) {
  Scope scope(stream);
  if (!scope)
    return nullptr;
  OutsideOfCapture outside(scope.driver());
  Address address = 0;
  Result result =
      scope.driver().cuMemAllocManaged(&address, bytes, MemAttachGlobal);
  return checkAllocation(scope, result, bytes, address);
}

static void freeMemory(void *memory, void *stream) {
  Scope scope(stream);
  if (!scope)
    return;
  OutsideOfCapture outside(scope.driver());
  scope.check(scope.driver().cuMemFreeAsync(toAddress(memory),
                                            static_cast<Stream>(stream)),
              "freeing memory of the GPU");
}

static void freeShared(void *memory, void *stream) {
  Scope scope(stream);
  if (!scope)
    return;
  OutsideOfCapture outside(scope.driver());
  scope.check(scope.driver().cuMemFree_v2(toAddress(memory)),
              "freeing memory of the GPU");
}

static int32_t copy(void *to, const void *from, size_t bytes, void *stream) {
  Scope scope(stream);
  return !scope || !scope.check(scope.driver().cuMemcpyAsync(
                                    toAddress(to), toAddress(from), bytes,
                                    static_cast<Stream>(stream)),
                                "copying memory");
}

static int32_t fill(void *memory, uint32_t value, int32_t width, size_t count,
                    void *opaqueStream) {
  Scope scope(opaqueStream);
  if (!scope)
    return 1;
  const Driver &driver = scope.driver();
  auto *stream = static_cast<Stream>(opaqueStream);
  Address address = toAddress(memory);
  Result result =
      width == 1
          ? driver.cuMemsetD8Async(address, static_cast<unsigned char>(value),
                                   count, stream)
      : width == 2
          ? driver.cuMemsetD16Async(address, static_cast<unsigned short>(value),
                                    count, stream)
          : driver.cuMemsetD32Async(address, value, count, stream);
  return !scope.check(result, "filling memory");
}

static void *report(void *stream) {
  Scope scope(stream);
  return scope ? getReport(scope) : nullptr;
}

static int32_t registerHost(void *memory, size_t bytes, void *stream) {
  Scope scope(stream);
  if (!scope)
    return 1;
  OutsideOfCapture outside(scope.driver());
  return !scope.check(scope.driver().cuMemHostRegister_v2(memory, bytes, 0),
                      "registering host memory");
}

static void unregisterHost(void *memory, void *stream) {
  Scope scope(stream);
  if (scope)
    scope.check(scope.driver().cuMemHostUnregister(memory),
                "unregistering host memory");
}

static int32_t encode(void *map, const varlen_gpu_tensor_map *what,
                      void *stream) {
  Scope scope(stream);
  if (!scope)
    return 1;
  Result result = scope.driver().cuTensorMapEncodeTiled(
      map, static_cast<int>(what->type), what->rank, what->address,
      what->extents, what->strides, what->box, what->box_strides,
      static_cast<int>(what->interleave), static_cast<int>(what->swizzle),
      static_cast<int>(what->l2_promotion),
      static_cast<int>(what->out_of_bounds_fill));
  return !scope.check(result, "encoding a tensor map");
}

const varlen_gpu_backend *varlen_gpu_cuda() {
  static const varlen_gpu_backend backend = {"cuda",
                                             getContext,
                                             release,
                                             setDevice,
                                             enter,
                                             leaveContext,
                                             getCapability,
                                             getMultiprocessors,
                                             loadModule,
                                             unloadModule,
                                             findKernel,
                                             findKernels,
                                             launchKernel,
                                             getStream,
                                             isCapturing,
                                             synchronize,
                                             createEvent,
                                             destroyEvent,
                                             record,
                                             waitForEvent,
                                             synchronizeEvent,
                                             allocate,
                                             freeMemory,
                                             allocateShared,
                                             freeShared,
                                             copy,
                                             fill,
                                             report,
                                             registerHost,
                                             unregisterHost,
                                             encode};
  return &backend;
}
