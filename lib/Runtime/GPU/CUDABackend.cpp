//===- CUDABackend.cpp - GPUs through the CUDA driver ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Works in the calling thread's context, so that a framework's streams and
// memory can be used; in the primary context of the chosen device if the thread
// has none.
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "CUDADriver.h"
#include "varlen/Runtime/GPU.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

using varlen_runtime::setError;
using namespace varlen_runtime::cuda;

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

static int chosenDevice = 0;

/// The driver, with a context that is current; null with an error if there is
/// none.
static const Driver *enter() {
  const Driver *driver = getDriver();
  if (!driver)
    return nullptr;
  Context context = nullptr;
  if (driver->cuCtxGetCurrent(&context) == Success && context)
    return driver;
  int count = 0;
  if (!check(*driver, driver->cuDeviceGetCount(&count), "counting GPUs"))
    return nullptr;
  if (chosenDevice >= count) {
    setError("no GPU %d: the CUDA driver has found %d", chosenDevice, count);
    return nullptr;
  }
  Device device = 0;
  if (!check(*driver, driver->cuDeviceGet(&device, chosenDevice),
             "opening the GPU") ||
      !check(*driver, driver->cuDevicePrimaryCtxRetain(&context, device),
             "opening the GPU's context") ||
      !check(*driver, driver->cuCtxSetCurrent(context),
             "entering the GPU's context"))
    return nullptr;
  // Freed memory stays for the next allocation: results come and go.
  Pool pool = nullptr;
  uint64_t everything = UINT64_MAX;
  if (driver->cuDeviceGetDefaultMemPool(&pool, device) == Success)
    driver->cuMemPoolSetAttribute(pool, PoolReleaseThreshold, &everything);
  return driver;
}

static int32_t setDevice(int32_t device) {
  const Driver *driver = getDriver();
  if (!driver)
    return 1;
  int count = 0;
  if (!check(*driver, driver->cuDeviceGetCount(&count), "counting GPUs"))
    return 1;
  if (device < 0 || device >= count) {
    setError("no GPU %d: the CUDA driver has found %d", device, count);
    return 1;
  }
  chosenDevice = device;
  return 0;
}

static int32_t getCapability() {
  const Driver *driver = enter();
  if (!driver)
    return 0;
  Device device = 0;
  int major = 0;
  int minor = 0;
  driver->cuCtxGetDevice(&device);
  driver->cuDeviceGetAttribute(&major, DeviceComputeCapabilityMajor, device);
  driver->cuDeviceGetAttribute(&minor, DeviceComputeCapabilityMinor, device);
  return 10 * major + minor;
}

static int32_t getMultiprocessors() {
  const Driver *driver = enter();
  if (!driver)
    return 0;
  Device device = 0;
  int count = 0;
  driver->cuCtxGetDevice(&device);
  driver->cuDeviceGetAttribute(&count, DeviceMultiprocessorCount, device);
  return count;
}

/// "NVIDIA H200 (sm_90)" of the current context.
static void describeDevice(const Driver &driver, char (&text)[128]) {
  Device device = 0;
  char name[96] = "?";
  int major = 0;
  int minor = 0;
  driver.cuCtxGetDevice(&device);
  driver.cuDeviceGetName(name, sizeof name, device);
  driver.cuDeviceGetAttribute(&major, DeviceComputeCapabilityMajor, device);
  driver.cuDeviceGetAttribute(&minor, DeviceComputeCapabilityMinor, device);
  snprintf(text, sizeof text, "%s (sm_%d%d)", name, major, minor);
}

//===----------------------------------------------------------------------===//
// Modules: one per content and context, however many ask for it
//===----------------------------------------------------------------------===//

namespace {
struct LoadedModule {
  LoadedModule *next;
  Context context;
  Module module;
  uint64_t hash;
  size_t size;
  int uses;
};
} // namespace

static pthread_mutex_t modulesMutex = PTHREAD_MUTEX_INITIALIZER;
static LoadedModule *modules = nullptr;

static uint64_t hashBytes(const void *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3;
  return hash;
}

/// The target that PTX names, empty if this is no PTX.
static void readTarget(const char *data, size_t size, char (&target)[32]) {
  static const char word[] = ".target ";
  target[0] = 0;
  const void *found = memmem(data, size, word, sizeof word - 1);
  if (!found || memcmp(data, "\177ELF", 4) == 0)
    return;
  const char *text = static_cast<const char *>(found) + sizeof word - 1;
  for (size_t i = 0; i + 1 < sizeof target && text + i < data + size &&
                     strchr("abcdefghijklmnopqrstuvwxyz0123456789_", text[i]);
       ++i) {
    target[i] = text[i];
    target[i + 1] = 0;
  }
}

static bool loadInto(const Driver &driver, Module &module, const void *data,
                     size_t size) {
  char log[256] = "";
  int options[] = {JITErrorLogBuffer, JITErrorLogBufferSizeBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Result result = driver.cuModuleLoadDataEx(&module, data, 2, options, values);
  if (result == Success)
    return true;
  char device[128];
  describeDevice(driver, device);
  if (result == ErrorNoBinaryForGPU || result == ErrorInvalidImage) {
    char target[32];
    readTarget(static_cast<const char *>(data), size, target);
    setError("the kernels were not made for this GPU, %s%s%s%s", device,
             target[0] ? ", but for " : "", target,
             ": expected code of its own chip");
    return false;
  }
  if (result == ErrorUnsupportedPTXVersion) {
    int version = 0;
    driver.cuDriverGetVersion(&version);
    setError("the CUDA driver (%d.%d) does not know the PTX version of the "
             "kernels: expected an older ptx= or a newer driver",
             version / 1000, version % 1000 / 10);
    return false;
  }
  log[strcspn(log, "\n")] = 0;
  char what[400];
  snprintf(what, sizeof what, "loading kernels on %s%s%s", device,
           log[0] ? ": " : "", log);
  return check(driver, result, what);
}

static void *load(const void *data, size_t size) {
  const Driver *driver = enter();
  if (!driver)
    return nullptr;
  if (size == 0)
    size = strlen(static_cast<const char *>(data));
  static const char executor[] = "varlen-executor:";
  if (size > sizeof executor &&
      memcmp(data, executor, sizeof executor - 1) == 0) {
    setError("the kernels were compiled for the executor (format=sim): a GPU "
             "cannot run them");
    return nullptr;
  }
  Context context = nullptr;
  driver->cuCtxGetCurrent(&context);
  uint64_t hash = hashBytes(data, size);
  pthread_mutex_lock(&modulesMutex);
  LoadedModule *found = modules;
  while (found && (found->context != context || found->hash != hash ||
                   found->size != size))
    found = found->next;
  if (!found) {
    Module module = nullptr;
    if (loadInto(*driver, module, data, size))
      found = static_cast<LoadedModule *>(calloc(1, sizeof(LoadedModule)));
    if (found) {
      *found = {modules, context, module, hash, size, 0};
      modules = found;
    }
  }
  if (found)
    ++found->uses;
  pthread_mutex_unlock(&modulesMutex);
  return found;
}

static void unload(void *opaque) {
  auto *module = static_cast<LoadedModule *>(opaque);
  pthread_mutex_lock(&modulesMutex);
  if (--module->uses == 0) {
    LoadedModule **link = &modules;
    while (*link != module)
      link = &(*link)->next;
    *link = module->next;
    // At the end of the process the context may be gone before the module.
    if (const Driver *driver = getDriver())
      driver->cuModuleUnload(module->module);
    free(module);
  }
  pthread_mutex_unlock(&modulesMutex);
}

static void *find(void *opaque, const char *name) {
  const Driver *driver = enter();
  if (!driver)
    return nullptr;
  Function function = nullptr;
  Result result = driver->cuModuleGetFunction(
      &function, static_cast<LoadedModule *>(opaque)->module, name);
  if (result == ErrorNotFound) {
    setError("the module has no kernel '%s'", name);
    return nullptr;
  }
  return check(*driver, result, "looking for a kernel") ? function : nullptr;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// What a kernel has without asking.
static constexpr uint32_t plainSharedBytes = 48 * 1024;

/// Lets the kernel have this much shared memory.
static bool allowShared(const Driver &driver, Function function,
                        uint32_t bytes) {
  int declared = 0;
  int allowed = 0;
  if (!check(driver,
             driver.cuFuncGetAttribute(&declared, FunctionSharedSizeBytes,
                                       function),
             "reading a kernel's shared memory") ||
      !check(driver,
             driver.cuFuncGetAttribute(
                 &allowed, FunctionMaxDynamicSharedSizeBytes, function),
             "reading a kernel's shared memory"))
    return false;
  if (bytes <= static_cast<uint32_t>(allowed))
    return true;
  Device device = 0;
  int limit = 0;
  driver.cuCtxGetDevice(&device);
  driver.cuDeviceGetAttribute(&limit, DeviceMaxSharedMemoryPerBlockOptin,
                              device);
  if (bytes + declared > static_cast<uint32_t>(limit)) {
    char name[128];
    describeDevice(driver, name);
    setError("a kernel wants %u bytes of shared memory: %s has %d per block",
             bytes + declared, name, limit);
    return false;
  }
  return check(driver,
               driver.cuFuncSetAttribute(function,
                                         FunctionMaxDynamicSharedSizeBytes,
                                         static_cast<int>(bytes)),
               "asking for shared memory");
}

static int32_t launch(void *function, const varlen_gpu_launch *what,
                      void *stream, void **parameters) {
  const Driver *driver = enter();
  if (!driver)
    return 1;
  auto *kernel = static_cast<Function>(function);
  // Static shared memory counts, too; asking is cheap next to a launch that
  // needs this much.
  if (what->shared_bytes > plainSharedBytes / 2 &&
      !allowShared(*driver, kernel, what->shared_bytes))
    return 1;
  LaunchConfig config = {};
  LaunchAttribute cluster = {};
  for (int d = 0; d < 3; ++d) {
    config.grid[d] = what->grid[d];
    config.block[d] = what->block[d];
    cluster.value.cluster[d] = what->cluster[d];
  }
  config.sharedBytes = what->shared_bytes;
  config.stream = static_cast<Stream>(stream);
  if (what->cluster[0] * what->cluster[1] * what->cluster[2] > 1) {
    cluster.id = LaunchClusterDimension;
    config.attributes = &cluster;
    config.numAttributes = 1;
  }
  Result result =
      driver->cuLaunchKernelEx(&config, kernel, parameters, nullptr);
  if (result == Success)
    return 0;
  char text[160];
  snprintf(
      text, sizeof text,
      "launching a grid of %u x %u x %u with blocks of %u x %u x %u and %u "
      "bytes of shared memory",
      what->grid[0], what->grid[1], what->grid[2], what->block[0],
      what->block[1], what->block[2], what->shared_bytes);
  check(*driver, result, text);
  return 1;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

static void *createStream() {
  const Driver *driver = enter();
  Stream stream = nullptr;
  if (driver)
    check(*driver, driver->cuStreamCreate(&stream, StreamNonBlocking),
          "creating a stream");
  return stream;
}

static void destroyStream(void *stream) {
  if (const Driver *driver = enter())
    check(*driver, driver->cuStreamDestroy_v2(static_cast<Stream>(stream)),
          "destroying a stream");
}

static int32_t synchronize(void *stream) {
  const Driver *driver = enter();
  return !driver ||
         !check(*driver,
                driver->cuStreamSynchronize(static_cast<Stream>(stream)),
                "waiting for kernels");
}

static void *createEvent() {
  const Driver *driver = enter();
  Event event = nullptr;
  if (driver)
    check(*driver, driver->cuEventCreate(&event, EventDisableTiming),
          "creating an event");
  return event;
}

static void destroyEvent(void *event) {
  if (const Driver *driver = enter())
    check(*driver, driver->cuEventDestroy_v2(static_cast<Event>(event)),
          "destroying an event");
}

static int32_t record(void *event, void *stream) {
  const Driver *driver = enter();
  return !driver || !check(*driver,
                           driver->cuEventRecord(static_cast<Event>(event),
                                                 static_cast<Stream>(stream)),
                           "recording an event");
}

static int32_t wait(void *stream, void *event) {
  const Driver *driver = enter();
  if (!driver)
    return 1;
  Result result = stream
                      ? driver->cuStreamWaitEvent(static_cast<Stream>(stream),
                                                  static_cast<Event>(event), 0)
                      : driver->cuEventSynchronize(static_cast<Event>(event));
  return !check(*driver, result, "waiting for an event");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Address toAddress(const void *memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

static void *allocate(size_t bytes, void *stream, int32_t isHostShared) {
  const Driver *driver = enter();
  if (!driver)
    return nullptr;
  Address address = 0;
  Result result =
      isHostShared ? driver->cuMemAllocManaged(&address, bytes, MemAttachGlobal)
                   : driver->cuMemAllocAsync(&address, bytes,
                                             static_cast<Stream>(stream));
  char text[64];
  snprintf(text, sizeof text, "allocating %zu bytes on the GPU", bytes);
  if (!check(*driver, result, text))
    return nullptr;
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

static void release(void *memory, void *stream) {
  const Driver *driver = enter();
  if (!driver)
    return;
  static constexpr int isManagedAttribute = 8;
  unsigned isManaged = 0;
  driver->cuPointerGetAttribute(&isManaged, isManagedAttribute,
                                toAddress(memory));
  Result result = isManaged
                      ? driver->cuMemFree_v2(toAddress(memory))
                      : driver->cuMemFreeAsync(toAddress(memory),
                                               static_cast<Stream>(stream));
  check(*driver, result, "freeing memory of the GPU");
}

static int32_t copy(void *to, const void *from, size_t bytes, void *stream) {
  const Driver *driver = enter();
  return !driver ||
         !check(*driver,
                driver->cuMemcpyAsync(toAddress(to), toAddress(from), bytes,
                                      static_cast<Stream>(stream)),
                "copying memory");
}

static int32_t fill(void *memory, uint32_t value, int32_t width, size_t count,
                    void *opaqueStream) {
  const Driver *driver = enter();
  if (!driver)
    return 1;
  auto *stream = static_cast<Stream>(opaqueStream);
  Address address = toAddress(memory);
  Result result =
      width == 1
          ? driver->cuMemsetD8Async(address, static_cast<unsigned char>(value),
                                    count, stream)
      : width == 2
          ? driver->cuMemsetD16Async(
                address, static_cast<unsigned short>(value), count, stream)
          : driver->cuMemsetD32Async(address, value, count, stream);
  return !check(*driver, result, "filling memory");
}

static int32_t registerHost(void *memory, size_t bytes) {
  const Driver *driver = enter();
  return !driver ||
         !check(*driver, driver->cuMemHostRegister_v2(memory, bytes, 0),
                "registering host memory");
}

static void unregisterHost(void *memory) {
  if (const Driver *driver = enter())
    check(*driver, driver->cuMemHostUnregister(memory),
          "unregistering host memory");
}

static int32_t encode(void *map, const varlen_gpu_tensor_map *what) {
  const Driver *driver = enter();
  if (!driver)
    return 1;
  Result result = driver->cuTensorMapEncodeTiled(
      map, static_cast<int>(what->type), what->rank, what->address,
      what->extents, what->strides, what->box, what->box_strides,
      static_cast<int>(what->interleave), static_cast<int>(what->swizzle),
      static_cast<int>(what->l2_promotion),
      static_cast<int>(what->out_of_bounds_fill));
  return !check(*driver, result, "encoding a tensor map");
}

const varlen_gpu_backend *varlen_gpu_cuda() {
  static const varlen_gpu_backend backend = {
      "cuda",        load,          unload,
      find,          launch,        createStream,
      destroyStream, synchronize,   createEvent,
      destroyEvent,  record,        wait,
      allocate,      release,       copy,
      fill,          registerHost,  unregisterHost,
      setDevice,     getCapability, getMultiprocessors,
      encode};
  return &backend;
}
