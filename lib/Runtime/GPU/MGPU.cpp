//===- MGPU.cpp - The functions of upstream's lowering --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin functions over the runtime. What lives here is what only they have: a
// null stream, memref descriptors, memory that the host shares.
//
//===----------------------------------------------------------------------===//

#include "varlen/Runtime/MGPU.h"

#include "../Error.h"
#include "Host.h"
#include "Lock.h"
#include "varlen/Runtime/GPU.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace varlen_runtime;
using namespace varlen_runtime::gpu;

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

void *mgpuModuleLoad(void *data, size_t size) { return addModule(data, size); }

void *mgpuModuleLoadJIT(void *data, int32_t /*level*/) {
  return addModule(data, 0);
}

void mgpuModuleUnload(void *module) { removeModule(module); }

void *mgpuModuleGetFunction(void *module, const char *name) {
  return getKernel(module, name);
}

void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t sharedBytes, void *stream,
                      void **parameters, void ** /*extra*/,
                      size_t /*numParameters*/) {
  launch(function, {1, 1, 1}, {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
         sharedBytes, stream, parameters);
}

void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t sharedBytes, void *stream,
                             void **parameters, void ** /*extra*/) {
  launch(function, {clusterX, clusterY, clusterZ}, {gridX, gridY, gridZ},
         {blockX, blockY, blockZ}, sharedBytes, stream, parameters);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

void *mgpuStreamCreate() { return getPlace().stream; }

void mgpuStreamDestroy(void * /*stream*/) {}

void mgpuStreamSynchronize(void *stream) {
  if (hasCallersStream() && (!stream || stream == getPlace().stream))
    return;
  Place place = getPlace(stream);
  if (place.isValid)
    noteError(backend().synchronize(place.stream));
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  Place place = getPlace(stream);
  if (place.isValid && mayContinue())
    noteError(backend().wait(place.stream, event));
}

void *mgpuEventCreate() {
  Place place = getPlace();
  return place.isValid ? noteNull(backend().create_event(place.stream))
                       : nullptr;
}

void mgpuEventDestroy(void *event) {
  Place place = event ? getPlace() : Place{nullptr, false};
  if (place.isValid)
    backend().destroy_event(event, place.stream);
}

void mgpuEventSynchronize(void *event) {
  Place place = event ? getPlace() : Place{nullptr, false};
  if (place.isValid)
    noteError(backend().synchronize_event(event, place.stream));
}

void mgpuEventRecord(void *event, void *stream) {
  Place place = getPlace(stream);
  if (place.isValid && mayContinue())
    noteError(backend().record(event, place.stream));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// Memory that the host shares, which is freed in another way.
struct Shared {
  Shared *next;
  void *memory;
};
} // namespace

static pthread_mutex_t sharedMutex = PTHREAD_MUTEX_INITIALIZER;
static Shared *shared = nullptr;

static void *allocateShared(const Place &place, uint64_t bytes) {
  auto *entry = static_cast<Shared *>(malloc(sizeof(Shared)));
  if (!entry) {
    setError("no memory to keep account of memory");
    return nullptr;
  }
  entry->memory = backend().allocate_shared(bytes ? bytes : 1, place.stream);
  if (!entry->memory) {
    free(entry);
    return nullptr;
  }
  Lock lock(sharedMutex);
  entry->next = shared;
  shared = entry;
  return entry->memory;
}

/// Whether the memory was shared. It is no longer.
static bool takeShared(void *memory) {
  Lock lock(sharedMutex);
  Shared **link = &shared;
  while (*link && (*link)->memory != memory)
    link = &(*link)->next;
  Shared *entry = *link;
  if (!entry)
    return false;
  *link = entry->next;
  free(entry);
  return true;
}

void *mgpuMemAlloc(uint64_t bytes, void *stream, int8_t isHostShared) {
  if (!mayContinue())
    return nullptr;
  Place place = getPlace(stream);
  if (!place.isValid)
    return nullptr;
  return isHostShared ? noteNull(allocateShared(place, bytes))
                      : allocate(place, bytes);
}

void mgpuMemFree(void *memory, void *stream) {
  Place place = memory ? getPlace(stream) : Place{nullptr, false};
  if (!place.isValid)
    return;
  if (takeShared(memory))
    backend().free_shared(memory, place.stream);
  else
    backend().free(memory, place.stream);
}

void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  if (bytes == 0 || !mayContinue())
    return;
  Place place = getPlace(stream);
  if (place.isValid)
    noteError(backend().copy(to, from, bytes, place.stream));
}

static void fill(void *memory, uint32_t value, int32_t width, size_t count,
                 void *stream) {
  if (count == 0 || !mayContinue())
    return;
  Place place = getPlace(stream);
  if (place.isValid)
    noteError(backend().fill(memory, value, width, count, place.stream));
}

void mgpuMemset32(void *memory, uint32_t value, size_t count, void *stream) {
  fill(memory, value, 4, count, stream);
}

void mgpuMemset16(void *memory, uint16_t value, size_t count, void *stream) {
  fill(memory, value, 2, count, stream);
}

void mgpuMemHostRegister(void *memory, uint64_t bytes) {
  Place place = bytes ? getPlace() : Place{nullptr, false};
  if (place.isValid)
    noteError(backend().register_host(memory, bytes, place.stream));
}

void mgpuMemHostUnregister(void *memory) {
  Place place = getPlace();
  if (place.isValid)
    backend().unregister_host(memory, place.stream);
}

namespace {
/// A memref descriptor; its sizes and strides follow.
struct Descriptor {
  char *allocated;
  char *aligned;
  int64_t offset;
  int64_t sizes[1];
};
} // namespace

/// The bytes from the first element to the last of a memref.
static int64_t getSpan(int64_t rank, const Descriptor &descriptor,
                       int64_t elementBytes) {
  int64_t last = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (descriptor.sizes[d] == 0)
      return 0;
    last += (descriptor.sizes[d] - 1) * descriptor.sizes[rank + d];
  }
  return (last + 1) * elementBytes;
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t elementBytes) {
  auto &memref = *static_cast<Descriptor *>(descriptor);
  mgpuMemHostRegister(memref.aligned + memref.offset * elementBytes,
                      getSpan(rank, memref, elementBytes));
}

void mgpuMemHostUnregisterMemRef(int64_t /*rank*/, void *descriptor,
                                 int64_t elementBytes) {
  auto &memref = *static_cast<Descriptor *>(descriptor);
  mgpuMemHostUnregister(memref.aligned + memref.offset * elementBytes);
}

void mgpuSetDefaultDevice(int32_t device) { varlen_gpu_set_device(device); }

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Whether the map could be made.
static bool encode(void *map, int32_t type, uint32_t rank, void *address,
                   const uint64_t *extents, const uint64_t *strides,
                   const uint32_t *box, const uint32_t *boxStrides,
                   int32_t interleave, int32_t swizzle, int32_t l2Promotion,
                   int32_t outOfBoundsFill) {
  varlen_gpu_tensor_map what = {};
  what.type = static_cast<uint32_t>(type);
  what.rank = rank;
  what.address = address;
  what.extents = extents;
  what.strides = strides;
  what.box = box;
  what.box_strides = boxStrides;
  what.interleave = static_cast<uint32_t>(interleave);
  what.swizzle = static_cast<uint32_t>(swizzle);
  what.l2_promotion = static_cast<uint32_t>(l2Promotion);
  what.out_of_bounds_fill = static_cast<uint32_t>(outOfBoundsFill);
  return varlen_gpu_encode_tensor_map(map, &what) == 0;
}

void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *extents,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *boxStrides, int32_t interleave,
                              int32_t swizzle, int32_t l2Promotion,
                              int32_t outOfBoundsFill) {
  encode(map, type, rank, address, extents, strides, box, boxStrides,
         interleave, swizzle, l2Promotion, outOfBoundsFill);
}

/// The size of one of the driver's element types.
static int64_t getTypeBytes(int32_t type) {
  static const int8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < int32_t(sizeof bytes) ? bytes[type] : 0;
}

void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor,
                                     int32_t type, int32_t interleave,
                                     int32_t swizzle, int32_t l2Promotion,
                                     int32_t outOfBoundsFill, int64_t *box) {
  int64_t elementBytes = getTypeBytes(type);
  if (rank < 1 || rank > 5 || elementBytes == 0) {
    setError("a tensor map of rank %" PRId64 " and element type %" PRId32
             ": expected rank 1 to 5 and a type of the driver",
             rank, type);
    return noteNull<void>(nullptr);
  }
  auto &memref = *static_cast<Descriptor *>(descriptor);
  uint64_t extents[5], strides[5];
  uint32_t boxes[5], boxStrides[5];
  // A memref names the slowest dimension first, a map the fastest.
  for (int64_t d = 0; d < rank; ++d) {
    extents[d] = memref.sizes[rank - 1 - d];
    boxes[d] = static_cast<uint32_t>(box[rank - 1 - d]);
    boxStrides[d] = 1;
    if (d > 0)
      strides[d - 1] = memref.sizes[2 * rank - 1 - d] * elementBytes;
  }
  alignas(64) char map[128] = {};
  if (!encode(map, type, static_cast<uint32_t>(rank),
              memref.aligned + memref.offset * elementBytes, extents, strides,
              boxes, boxStrides, interleave, swizzle, l2Promotion,
              outOfBoundsFill))
    return nullptr;
  Place place = getPlace();
  return place.isValid ? getKept(place, "a tensor map", map, sizeof map)
                       : nullptr;
}
