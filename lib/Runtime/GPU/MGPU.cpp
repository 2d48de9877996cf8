//===- MGPU.cpp - The functions that compiled host code calls -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin functions over the backend. What lives here is what no backend should
// have to know: that modules are loaded late, which stream is meant, what a
// memref descriptor looks like.
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/Runtime.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

using varlen_runtime::setError;

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

static const varlen_gpu_backend *chosen = nullptr;

void varlen_gpu_set_backend(const varlen_gpu_backend *backend) {
  chosen = backend;
}

const varlen_gpu_backend *varlen_gpu_get_backend() {
  return chosen ? chosen : varlen_gpu_cuda();
}

static const varlen_gpu_backend &backend() { return *varlen_gpu_get_backend(); }

int32_t varlen_gpu_capability() { return backend().get_capability(); }

int64_t varlen_gpu_multiprocessors() {
  int32_t count = backend().get_multiprocessors();
  return count < 1 ? 1 : count;
}

void varlen_gpu_fail(const char *format, ...) {
  char text[480];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  setError("%s", text);
}

//===----------------------------------------------------------------------===//
// Modules. A constructor of compiled code loads them; there may be no device
// then, and nobody to tell. So that only notes where the module is
//===----------------------------------------------------------------------===//

namespace {

/// A kernel that has been asked for.
struct Kernel {
  Kernel *next;
  struct Module *module;
  void *function; // of the backend; null until the first launch
  char name[1];   // as long as it is
};

struct Module {
  const void *data;
  size_t size;
  pthread_mutex_t mutex;
  const varlen_gpu_backend *owner; // of what follows
  void *loaded;
  Kernel *kernels;
};

/// Holds a mutex.
class Lock {
public:
  explicit Lock(pthread_mutex_t &mutex) : mutex(mutex) {
    pthread_mutex_lock(&mutex);
  }
  ~Lock() { pthread_mutex_unlock(&mutex); }

private:
  pthread_mutex_t &mutex;
};

} // namespace

static void *makeModule(void *data, size_t size) {
  auto *module = static_cast<Module *>(calloc(1, sizeof(Module)));
  if (!module) {
    setError("no memory for a GPU module");
    return nullptr;
  }
  module->data = data;
  module->size = size;
  pthread_mutex_init(&module->mutex, nullptr);
  return module;
}

void *mgpuModuleLoad(void *data, size_t size) { return makeModule(data, size); }

void *mgpuModuleLoadJIT(void *data, int32_t /*level*/) {
  return makeModule(data, 0);
}

/// Forgets what the backend has made of the module.
static void unload(Module &module) {
  if (module.loaded)
    module.owner->unload(module.loaded);
  module.loaded = nullptr;
  for (Kernel *kernel = module.kernels; kernel; kernel = kernel->next)
    kernel->function = nullptr;
}

void mgpuModuleUnload(void *opaque) {
  auto *module = static_cast<Module *>(opaque);
  if (!module)
    return;
  unload(*module);
  while (Kernel *kernel = module->kernels) {
    module->kernels = kernel->next;
    free(kernel);
  }
  pthread_mutex_destroy(&module->mutex);
  free(module);
}

void *mgpuModuleGetFunction(void *opaque, const char *name) {
  auto *module = static_cast<Module *>(opaque);
  if (!module)
    return nullptr;
  Lock lock(module->mutex);
  for (Kernel *kernel = module->kernels; kernel; kernel = kernel->next)
    if (strcmp(kernel->name, name) == 0)
      return kernel;
  auto *kernel = static_cast<Kernel *>(malloc(sizeof(Kernel) + strlen(name)));
  if (!kernel) {
    setError("no memory for kernel '%s'", name);
    return nullptr;
  }
  kernel->next = module->kernels;
  kernel->module = module;
  kernel->function = nullptr;
  memcpy(kernel->name, name, strlen(name) + 1);
  module->kernels = kernel;
  return kernel;
}

/// The backend's function, loading the module first if need be.
static void *resolve(Kernel &kernel) {
  Module &module = *kernel.module;
  Lock lock(module.mutex);
  if (module.loaded && module.owner != &backend())
    unload(module);
  if (!module.loaded) {
    module.owner = &backend();
    module.loaded = backend().load(module.data, module.size);
    if (!module.loaded)
      return nullptr;
  }
  if (!kernel.function)
    kernel.function = backend().find(module.loaded, kernel.name);
  return kernel.function;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static void launch(void *opaque, const intptr_t (&cluster)[3],
                   const intptr_t (&grid)[3], const intptr_t (&block)[3],
                   int32_t sharedBytes, void *stream, void **parameters) {
  auto *kernel = static_cast<Kernel *>(opaque);
  if (!kernel) {
    setError(
        "a kernel of a module that could not be loaded cannot be launched");
    return;
  }
  varlen_gpu_launch what;
  for (int d = 0; d < 3; ++d) {
    // No work: upstream's lowering launches all the same, drivers refuse it.
    if (grid[d] == 0)
      return;
    if (grid[d] < 0 || grid[d] > INT32_MAX || block[d] < 1 || block[d] > 1024) {
      setError("kernel '%s': a grid of %" PRIdPTR " x %" PRIdPTR " x %" PRIdPTR
               " and blocks of %" PRIdPTR " x %" PRIdPTR " x %" PRIdPTR
               " cannot be launched",
               kernel->name, grid[0], grid[1], grid[2], block[0], block[1],
               block[2]);
      return;
    }
    what.grid[d] = static_cast<uint32_t>(grid[d]);
    what.block[d] = static_cast<uint32_t>(block[d]);
    what.cluster[d] = static_cast<uint32_t>(cluster[d]);
  }
  what.shared_bytes = static_cast<uint32_t>(sharedBytes);
  if (void *function = resolve(*kernel))
    backend().launch(function, &what, stream, parameters);
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

static thread_local bool hasStream = false;
static thread_local void *callersStream = nullptr;

void varlen_gpu_set_stream(void *stream) {
  hasStream = true;
  callersStream = stream;
}

void varlen_gpu_unset_stream() {
  hasStream = false;
  callersStream = nullptr;
}

/// Whether the stream is not ours: neither destroyed nor waited for.
static bool isCallers(void *stream) {
  return hasStream && stream == callersStream;
}

void *mgpuStreamCreate() {
  return hasStream ? callersStream : backend().create_stream();
}

void mgpuStreamDestroy(void *stream) {
  if (stream && !isCallers(stream))
    backend().destroy_stream(stream);
}

void mgpuStreamSynchronize(void *stream) {
  if (!isCallers(stream))
    backend().synchronize(stream);
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  backend().wait(stream, event);
}

void *mgpuEventCreate() { return backend().create_event(); }

void mgpuEventDestroy(void *event) {
  if (event)
    backend().destroy_event(event);
}

void mgpuEventSynchronize(void *event) { backend().wait(nullptr, event); }

void mgpuEventRecord(void *event, void *stream) {
  backend().record(event, stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *mgpuMemAlloc(uint64_t bytes, void *stream, int8_t isHostShared) {
  // An empty buffer has an address, too.
  return backend().allocate(bytes ? bytes : 1, stream, isHostShared);
}

void mgpuMemFree(void *memory, void *stream) {
  if (memory)
    backend().free(memory, stream);
}

void *varlen_gpu_allocate(uint64_t bytes) {
  return mgpuMemAlloc(bytes, callersStream, /*isHostShared=*/0);
}

void varlen_gpu_free(void *memory) { mgpuMemFree(memory, callersStream); }

void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  if (bytes)
    backend().copy(to, from, bytes, stream);
}

void mgpuMemset32(void *memory, uint32_t value, size_t count, void *stream) {
  if (count)
    backend().fill(memory, value, 4, count, stream);
}

void mgpuMemset16(void *memory, uint16_t value, size_t count, void *stream) {
  if (count)
    backend().fill(memory, value, 2, count, stream);
}

void mgpuMemHostRegister(void *memory, uint64_t bytes) {
  if (bytes)
    backend().register_host(memory, bytes);
}

void mgpuMemHostUnregister(void *memory) { backend().unregister_host(memory); }

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

void mgpuMemHostRegisterMemRef(int64_t rank, void *opaque,
                               int64_t elementBytes) {
  auto &descriptor = *static_cast<Descriptor *>(opaque);
  mgpuMemHostRegister(descriptor.aligned + descriptor.offset * elementBytes,
                      getSpan(rank, descriptor, elementBytes));
}

void mgpuMemHostUnregisterMemRef(int64_t /*rank*/, void *opaque,
                                 int64_t elementBytes) {
  auto &descriptor = *static_cast<Descriptor *>(opaque);
  mgpuMemHostUnregister(descriptor.aligned + descriptor.offset * elementBytes);
}

void mgpuSetDefaultDevice(int32_t device) { backend().set_device(device); }

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *extents,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *boxStrides, int32_t interleave,
                              int32_t swizzle, int32_t l2Promotion,
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
  backend().encode(map, &what);
}

/// Of the driver's element types.
static int64_t getTypeBytes(int32_t type) {
  static const int8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < int32_t(sizeof bytes) ? bytes[type] : 0;
}

void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *opaque, int32_t type,
                                     int32_t interleave, int32_t swizzle,
                                     int32_t l2Promotion,
                                     int32_t outOfBoundsFill, int64_t *box) {
  int64_t elementBytes = getTypeBytes(type);
  if (rank < 1 || rank > 5 || elementBytes == 0) {
    setError("a tensor map of rank %" PRId64 " and element type %" PRId32
             ": expected rank 1 to 5 and a type of the driver",
             rank, type);
    return nullptr;
  }
  auto &descriptor = *static_cast<Descriptor *>(opaque);
  uint64_t extents[5], strides[5];
  uint32_t boxes[5], boxStrides[5];
  // A memref names the slowest dimension first, a map the fastest.
  for (int64_t d = 0; d < rank; ++d) {
    extents[d] = descriptor.sizes[rank - 1 - d];
    boxes[d] = static_cast<uint32_t>(box[rank - 1 - d]);
    boxStrides[d] = 1;
    if (d > 0)
      strides[d - 1] = descriptor.sizes[2 * rank - 1 - d] * elementBytes;
  }
  alignas(64) char map[128];
  memset(map, 0, sizeof map);
  mgpuTensorMapEncodeTiled(
      map, type, static_cast<uint32_t>(rank),
      descriptor.aligned + descriptor.offset * elementBytes, extents, strides,
      boxes, boxStrides, interleave, swizzle, l2Promotion, outOfBoundsFill);
  void *copy = mgpuMemAlloc(sizeof map, nullptr, 0);
  if (copy)
    mgpuMemcpy(copy, map, sizeof map, nullptr);
  return copy;
}

//===----------------------------------------------------------------------===//
// What kernels report
//===----------------------------------------------------------------------===//

static pthread_mutex_t statusMutex = PTHREAD_MUTEX_INITIALIZER;
static void *statusBuffer = nullptr;
static const varlen_gpu_backend *statusOwner = nullptr;

void *varlen_gpu_status_buffer() {
  Lock lock(statusMutex);
  if (statusBuffer && statusOwner == &backend())
    return statusBuffer;
  void *buffer = mgpuMemAlloc(sizeof(varlen_gpu_status), nullptr, 0);
  if (buffer &&
      backend().fill(buffer, 0, 4, sizeof(varlen_gpu_status) / 4, nullptr) ==
          0 &&
      backend().synchronize(nullptr) == 0) {
    statusBuffer = buffer;
    statusOwner = &backend();
    return buffer;
  }
  return nullptr;
}

static void describeLength(const varlen_gpu_status &status, uint64_t list,
                           const char *name) {
  if (list == 0)
    return setError(
        "%s is empty: expected at least 1 entry, the 0 it starts with", name);
  if (list == 1)
    return setError("cu_seqlens_q has %" PRId64 " entries and %s %" PRId64
                    ": expected the same number",
                    status.bound, name, status.value);
  return setError("%s has %" PRId64 " entries: expected %" PRId64
                  ", one for each sequence of cu_seqlens_q",
                  name, status.value, status.bound);
}

static void describe(const varlen_gpu_status &status) {
  static const char *const names[] = {"cu_seqlens_q", "cu_seqlens_k",
                                      "seqused_q", "seqused_k", "q_offset"};
  uint64_t list = static_cast<uint64_t>(status.code) >> 3;
  const char *name = list < 5 ? names[list] : "?";
  switch (status.code & 7) {
  case VARLEN_STATUS_START:
    return setError("%s[0] = %" PRId64 ": cu_seqlens must start at 0", name,
                    status.value);
  case VARLEN_STATUS_DECREASE:
    return setError("%s[%" PRId64 "] = %" PRId64 " is smaller than %s[%" PRId64
                    "] = %" PRId64 ": cu_seqlens must not decrease",
                    name, status.index, status.value, name, status.index - 1,
                    status.bound);
  case VARLEN_STATUS_END:
    return setError("%s[%" PRId64 "] = %" PRId64 " is larger than the %" PRId64
                    " rows of %s: cu_seqlens must end within them",
                    name, status.index, status.value, status.bound,
                    list == 0 ? "q" : "k");
  case VARLEN_STATUS_USED:
    return setError("%s[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
                    ", the length of the sequence's slot in %s",
                    name, status.index, status.value, status.bound,
                    list == 2 ? names[0] : names[1]);
  case VARLEN_STATUS_LENGTH:
    return describeLength(status, list, name);
  case VARLEN_STATUS_LONG:
    return setError("sequence %" PRId64 " of %s has %" PRId64
                    " rows: expected at most %" PRId64,
                    status.index, name, status.value, status.bound);
  case VARLEN_STATUS_EXTENT:
    return varlen_extent_error(static_cast<int64_t>(list), status.value,
                               status.bound);
  default:
    return setError("a kernel has reported the unknown error %" PRId64,
                    status.code);
  }
}

int32_t varlen_gpu_check(void *stream) {
  if (backend().synchronize(stream))
    return 1;
  {
    Lock lock(statusMutex);
    // Nobody has asked for it: no kernel reports.
    if (!statusBuffer || statusOwner != &backend())
      return 0;
  }
  varlen_gpu_status status = {};
  if (backend().copy(&status, statusBuffer, sizeof status, stream) ||
      backend().synchronize(stream))
    return 1;
  if (status.code == 0)
    return 0;
  backend().fill(statusBuffer, 0, 4, sizeof status / 4, stream);
  describe(status);
  return 1;
}
