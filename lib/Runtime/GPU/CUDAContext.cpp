//===- CUDAContext.cpp - CUDA contexts that the runtime works in ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDAContext.h"

#include "../Error.h"
#include "Lock.h"
#include "varlen/Runtime/GPU.h"

#include <cstdlib>
#include <cstring>

using namespace varlen_runtime;
using namespace varlen_runtime::cuda;

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

/// The id of a record whose context has been released; no context has it.
static constexpr unsigned long long releasedId = UINT64_MAX;

/// Guards all that is reachable from `records` and `primaries`.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static ContextRecord *records = nullptr;

namespace {
/// The primary context of a device, kept alive by us.
struct Primary {
  Primary *next;
  Device device;
  Context context; // null: not retained
};
} // namespace
static Primary *primaries = nullptr;

/// A new T of zeros; null with the error set.
template <typename T> static T *make(const char *what) {
  auto *made = static_cast<T *>(calloc(1, sizeof(T)));
  if (!made)
    setError("no memory for %s", what);
  return made;
}

/// The entry of a device; null with the error set. The mutex is held.
static Primary *getPrimary(Device device) {
  Primary *found = primaries;
  while (found && found->device != device)
    found = found->next;
  if (!found && (found = make<Primary>("a GPU's context"))) {
    found->next = primaries;
    found->device = device;
    primaries = found;
  }
  return found;
}

/// Whether the device has a primary context now; negative with the error set.
static int getPrimaryState(const Driver &driver, Device device) {
  unsigned flags = 0;
  int isActive = 0;
  return check(driver,
               driver.cuDevicePrimaryCtxGetState(device, &flags, &isActive),
               "asking for the GPU's context")
             ? isActive
             : -1;
}

/// Retains the device's primary context, once; null with the error set.
static Context retainPrimary(const Driver &driver, Device device) {
  Lock lock(mutex);
  Primary *primary = getPrimary(device);
  if (!primary)
    return nullptr;
  if (primary->context) {
    // A reset by the host ends it in spite of us.
    int isActive = getPrimaryState(driver, device);
    if (isActive != 0)
      return isActive > 0 ? primary->context : nullptr;
    driver.cuDevicePrimaryCtxRelease_v2(device);
    primary->context = nullptr;
  }
  Context context = nullptr;
  if (check(driver, driver.cuDevicePrimaryCtxRetain(&context, device),
            "opening the GPU's context"))
    primary->context = context;
  return primary->context;
}

/// Finds out whether the context is the primary one of its device, which is
/// then kept alive: what we have in it can be released at any time. False with
/// the error set. The mutex is held.
static bool findRetained(const Driver &driver, ContextRecord &record) {
  int isActive = getPrimaryState(driver, record.device);
  Primary *primary = isActive > 0 ? getPrimary(record.device) : nullptr;
  if (!primary)
    return isActive == 0;
  if (!primary->context) {
    Context found = nullptr;
    if (!check(driver, driver.cuDevicePrimaryCtxRetain(&found, record.device),
               "opening the GPU's context"))
      return false;
    if (found == record.handle)
      primary->context = found;
    else if (!check(driver, driver.cuDevicePrimaryCtxRelease_v2(record.device),
                    "closing the GPU's context"))
      return false;
  }
  record.isRetained = primary->context == record.handle;
  return true;
}

/// The record of the current context; null with the error set. The mutex is
/// held.
static ContextRecord *makeRecord(const Driver &driver, Context handle,
                                 unsigned long long id) {
  auto *record = make<ContextRecord>("a GPU's context");
  if (!record)
    return nullptr;
  record->handle = handle;
  record->id = id;
  int major = 0;
  int minor = 0;
  auto read = [&](int &value, int attribute) {
    return check(driver,
                 driver.cuDeviceGetAttribute(&value, attribute, record->device),
                 "reading an attribute of the GPU");
  };
  if (!check(driver, driver.cuCtxGetDevice(&record->device),
             "asking for the GPU of the context") ||
      !check(driver,
             driver.cuDeviceGetName(record->name, sizeof record->name,
                                    record->device),
             "reading the GPU's name") ||
      !read(major, DeviceComputeCapabilityMajor) ||
      !read(minor, DeviceComputeCapabilityMinor) ||
      !read(record->multiprocessors, DeviceMultiprocessorCount) ||
      !read(record->sharedLimit, DeviceMaxSharedMemoryPerBlockOptin) ||
      !findRetained(driver, *record)) {
    free(record);
    return nullptr;
  }
  record->capability = 10 * major + minor;
  record->next = records;
  records = record;
  return record;
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

static constexpr int noDevice = -1;
static thread_local int chosenDevice = noDevice;

/// The driver's handle of a device that the process has; false with the error
/// set.
static bool findDevice(const Driver &driver, int index, Device &device) {
  int count = 0;
  if (!check(driver, driver.cuDeviceGetCount(&count), "counting GPUs"))
    return false;
  if (index < 0 || index >= count) {
    setError("no GPU %d: the CUDA driver has found %d", index, count);
    return false;
  }
  return check(driver, driver.cuDeviceGet(&device, index), "opening the GPU");
}

bool cuda::chooseDevice(int index) {
  const Driver *driver = getDriver();
  Device device = 0;
  if (!driver || !findDevice(*driver, index, device))
    return false;
  chosenDevice = index;
  return true;
}

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are 1 and 2.
static bool isDefault(const void *stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2;
}

namespace {
/// The context that a thread has entered, and what it returns to.
struct Entered {
  void *stream;
  ContextRecord *record; // null: none
  int chosenDevice;
  bool isPushed;
};
} // namespace
static thread_local Entered entered = {nullptr, nullptr, noDevice, false};

/// The context of default streams; null with the error set.
static Context findDefault(const Driver &driver, Context current, int index) {
  Device device = 0;
  Device currentDevice = 0;
  if (!findDevice(driver, index, device) ||
      (current && !check(driver, driver.cuCtxGetDevice(&currentDevice),
                         "asking for the GPU of the context")))
    return nullptr;
  return current && currentDevice == device ? current
                                            : retainPrimary(driver, device);
}

bool cuda::enterContext(void *stream, int device) {
  const Driver *driver = getDriver();
  Context current = nullptr;
  Context wanted = nullptr;
  if (!driver || !check(*driver, driver->cuCtxGetCurrent(&current),
                        "asking for the context"))
    return false;
  if (!isDefault(stream)) {
    if (!check(*driver,
               driver->cuStreamGetCtx(static_cast<Stream>(stream), &wanted),
               "asking for the stream's context"))
      return false;
  } else if (device >= 0) {
    wanted = findDefault(*driver, current, device);
    if (!wanted)
      return false;
  }
  Entered made = {stream, nullptr, chosenDevice, false};
  if (wanted && wanted != current) {
    if (!check(*driver, driver->cuCtxPushCurrent_v2(wanted),
               "entering the GPU's context"))
      return false;
    made.isPushed = true;
  }
  // The device that default streams are of has been given.
  if (wanted)
    chosenDevice = noDevice;
  Scope scope(stream);
  made.record = scope ? &scope.context() : nullptr;
  entered = made;
  if (!made.record)
    leaveContext();
  return made.record != nullptr;
}

void cuda::leaveContext() {
  chosenDevice = entered.chosenDevice;
  entered.record = nullptr;
  Context popped = nullptr;
  if (const Driver *driver = entered.isPushed ? getDriver() : nullptr)
    check(*driver, driver->cuCtxPopCurrent_v2(&popped),
          "leaving the GPU's context");
}

void Scope::enter(Context handle) {
  Context current = nullptr;
  if (!check(opened->cuCtxGetCurrent(&current), "asking for the context"))
    return;
  if (current != handle) {
    if (!check(opened->cuCtxPushCurrent_v2(handle),
               "entering the GPU's context"))
      return;
    isPushed = true;
  }
  unsigned long long id = 0;
  if (!check(opened->cuCtxGetId(handle, &id), "asking for the context"))
    return;
  Lock lock(mutex);
  for (ContextRecord *known = records; known; known = known->next)
    if (known->id == id) {
      record = known;
      return;
    }
  record = makeRecord(*opened, handle, id);
}

void Scope::enterDefault() {
  Context handle = nullptr;
  if (chosenDevice == noDevice &&
      !check(opened->cuCtxGetCurrent(&handle), "asking for the context"))
    return;
  if (!handle) {
    Device device = 0;
    if (!findDevice(*opened, chosenDevice == noDevice ? 0 : chosenDevice,
                    device))
      return;
    handle = retainPrimary(*opened, device);
  }
  if (handle)
    enter(handle);
}

Scope::Scope() : opened(getDriver()) {
  if (opened)
    enterDefault();
}

Scope::Scope(void *stream) : opened(getDriver()) {
  if (!opened)
    return;
  if (entered.record && entered.stream == stream) {
    record = entered.record;
    return;
  }
  if (isDefault(stream)) {
    enterDefault();
    return;
  }
  Context handle = nullptr;
  if (check(opened->cuStreamGetCtx(static_cast<Stream>(stream), &handle),
            "asking for the stream's context"))
    enter(handle);
}

Scope::Scope(ContextRecord &context) : opened(getDriver()) {
  if (opened)
    enter(context.handle);
  // The host has reset the device, and another context has the address.
  if (record != &context)
    record = nullptr;
}

Scope::~Scope() {
  Context popped = nullptr;
  if (isPushed)
    check(opened->cuCtxPopCurrent_v2(&popped), "leaving the GPU's context");
}

//===----------------------------------------------------------------------===//
// Streams of ours
//===----------------------------------------------------------------------===//

static pthread_once_t keyOnce = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool hasKey = false;

/// A thread has ended: others may have its streams.
static void returnStreams(void *first) {
  Lock lock(mutex);
  for (auto *own = static_cast<OwnStream *>(first); own;) {
    OwnStream *next = own->nextOfThread;
    own->nextOfThread = nullptr;
    own->isFree = true;
    own = next;
  }
}

static void makeKey() { hasKey = pthread_key_create(&key, returnStreams) == 0; }

/// An entry of the context for the calling thread; null with the error set.
static OwnStream *takeOwn(ContextRecord &context) {
  Lock lock(mutex);
  OwnStream *own = context.streams;
  while (own && !own->isFree)
    own = own->nextOfContext;
  if (!own) {
    own = make<OwnStream>("a stream");
    if (!own)
      return nullptr;
    own->context = &context;
    own->nextOfContext = context.streams;
    context.streams = own;
  }
  own->isFree = false;
  own->nextOfThread = static_cast<OwnStream *>(pthread_getspecific(key));
  pthread_setspecific(key, own);
  return own;
}

Stream cuda::getOwnStream(const Scope &scope) {
  pthread_once(&keyOnce, makeKey);
  if (!hasKey) {
    setError("no thread-specific data is left for a stream");
    return nullptr;
  }
  auto *own = static_cast<OwnStream *>(pthread_getspecific(key));
  while (own && own->context != &scope.context())
    own = own->nextOfThread;
  if (!own)
    own = takeOwn(scope.context());
  if (!own || own->stream)
    return own ? own->stream : nullptr;
  OutsideOfCapture outside(scope.driver());
  Stream stream = nullptr;
  // Work of others in the default stream is not waited for.
  if (scope.check(scope.driver().cuStreamCreate(&stream, StreamNonBlocking),
                  "creating a stream"))
    own->stream = stream;
  return own->stream;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

Pool cuda::getPool(const Scope &scope) {
  ContextRecord &context = scope.context();
  Lock lock(mutex);
  if (context.pool)
    return context.pool;
  OutsideOfCapture outside(scope.driver());
  PoolProperties properties = {};
  properties.allocationType = MemAllocationTypePinned;
  properties.locationType = MemLocationTypeDevice;
  properties.location = context.device;
  Pool pool = nullptr;
  Result result = scope.driver().cuMemPoolCreate(&pool, &properties);
  if (result == ErrorNotSupported) {
    setError("%s has no memory pools: expected a GPU and a driver that have "
             "them",
             context.name);
    return nullptr;
  }
  if (!scope.check(result, "making a memory pool"))
    return nullptr;
  // Freed memory stays for the next allocation: results come and go. The
  // device's default pool is the host's, and left as it is.
  uint64_t everything = UINT64_MAX;
  if (!scope.check(scope.driver().cuMemPoolSetAttribute(
                       pool, PoolReleaseThreshold, &everything),
                   "setting up a memory pool")) {
    scope.driver().cuMemPoolDestroy(pool);
    return nullptr;
  }
  return context.pool = pool;
}

//===----------------------------------------------------------------------===//
// Reports of kernels
//===----------------------------------------------------------------------===//

void *cuda::getReport(const Scope &scope) {
  ContextRecord &context = scope.context();
  Lock lock(mutex);
  if (context.report)
    return context.report;
  OutsideOfCapture outside(scope.driver());
  void *memory = nullptr;
  // With unified addressing, kernels have it at the same address.
  if (!scope.check(scope.driver().cuMemHostAlloc(&memory,
                                                 sizeof(varlen_gpu_status),
                                                 MemHostAllocDeviceMap),
                   "allocating memory of the host for errors"))
    return nullptr;
  memset(memory, 0, sizeof(varlen_gpu_status));
  return context.report = memory;
}

//===----------------------------------------------------------------------===//
// The end of contexts
//===----------------------------------------------------------------------===//

bool cuda::isAlive(const Driver &driver, const ContextRecord &context) {
  Context current = nullptr;
  unsigned long long id = 0;
  if (context.isRetained)
    return true;
  return driver.cuCtxGetCurrent(&current) == Success && current &&
         driver.cuCtxGetId(current, &id) == Success && id == context.id;
}

void cuda::releaseContext(unsigned long long id) {
  const Driver *driver = getDriver();
  if (!driver)
    return;
  ContextRecord *record = nullptr;
  {
    Lock lock(mutex);
    record = records;
    while (record && record->id != id)
      record = record->next;
  }
  if (!record)
    return;
  Context handle = record->handle;
  {
    Scope scope(*record);
    Lock lock(mutex);
    for (OwnStream *own = record->streams; own; own = own->nextOfContext) {
      if (own->stream && scope)
        scope.check(driver->cuStreamDestroy_v2(own->stream),
                    "destroying a stream");
      own->stream = nullptr;
    }
    if (record->pool && scope)
      scope.check(driver->cuMemPoolDestroy(record->pool),
                  "destroying a memory pool");
    record->pool = nullptr;
    if (record->report && scope)
      scope.check(driver->cuMemFreeHost(record->report),
                  "freeing memory of the host");
    record->report = nullptr;
  }
  Lock lock(mutex);
  for (Primary *primary = primaries; primary; primary = primary->next)
    if (record->isRetained && primary->context == handle) {
      primary->context = nullptr;
      check(*driver, driver->cuDevicePrimaryCtxRelease_v2(primary->device),
            "closing the GPU's context");
    }
  // Threads may still have entries of it. If it is used again, it is a new one.
  record->id = releasedId;
  record->isRetained = false;
}
