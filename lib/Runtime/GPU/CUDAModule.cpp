//===- CUDAModule.cpp - Modules and kernels of the CUDA driver ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDAModule.h"

#include "../Error.h"
#include "CUDAContext.h"
#include "Lock.h"
#include "varlen/Runtime/GPU.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace varlen_runtime;
using namespace varlen_runtime::cuda;

namespace {

/// A kernel of a loaded module.
struct LoadedKernel {
  LoadedKernel *next;
  ContextRecord *context;
  Function function;
  bool mayOverlap;
  uint32_t staticShared;  // bytes that its code declares
  uint32_t allowedShared; // dynamic bytes that it may have; by `sharedMutex`
};

struct LoadedModule {
  ContextRecord *context;
  Module module;
  bool mayOverlap;       // its kernels with those before them
  pthread_mutex_t mutex; // of the list
  LoadedKernel *kernels;
};

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// "NVIDIA H200 (sm_90)".
static void describeDevice(const ContextRecord &context, char (&text)[128]) {
  snprintf(text, sizeof text, "%s (sm_%d)", context.name, context.capability);
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

/// Whether the code is for the executor instead of a GPU.
static bool isForExecutor(const void *data, size_t size) {
  static const char tag[] = "varlen-executor:";
  return size >= sizeof tag - 1 && memcmp(data, tag, sizeof tag - 1) == 0;
}

/// Says why the driver has not loaded the code.
static void explainLoad(const Scope &scope, Result result, const void *data,
                        size_t size, char *log) {
  char device[128];
  describeDevice(scope.context(), device);
  if (isForExecutor(data, size))
    return setError("the kernels were compiled for the executor (format=sim): "
                    "a GPU cannot run them");
  if (result == ErrorNoBinaryForGPU || result == ErrorInvalidImage) {
    char target[32];
    readTarget(static_cast<const char *>(data), size, target);
    return setError("the kernels were not made for this GPU, %s%s%s%s", device,
                    target[0] ? ", but for " : "", target,
                    ": expected code of its own chip");
  }
  if (result == ErrorUnsupportedPTXVersion) {
    int version = 0;
    scope.driver().cuDriverGetVersion(&version);
    return setError("the CUDA driver (%d.%d) does not know the PTX version of "
                    "the kernels: expected an older ptx= or a newer driver",
                    version / 1000, version % 1000 / 10);
  }
  log[strcspn(log, "\n")] = 0;
  char what[400];
  snprintf(what, sizeof what, "loading kernels on %s%s%s", device,
           log[0] ? ": " : "", log);
  scope.check(result, what);
}

/// Finds out whether kernels of the module may start while those before them
/// run: they wait for these, and graphs of the driver know such launches.
static bool readOverlap(const Scope &scope, Module module, bool &mayOverlap) {
  Address address = 0;
  size_t bytes = 0;
  int version = 0;
  Result result = scope.driver().cuModuleGetGlobal_v2(
      &address, &bytes, module, VARLEN_GPU_WAITS_FOR_GRIDS);
  if (result == ErrorNotFound)
    return true;
  if (!scope.check(result, "asking what kernels wait for") ||
      !scope.check(scope.driver().cuDriverGetVersion(&version),
                   "asking for the driver's version"))
    return false;
  mayOverlap = version >= 12030;
  return true;
}

void *cuda::loadModule(const void *data, size_t size, void *stream) {
  Scope scope(stream);
  if (!scope)
    return nullptr;
  if (size == 0)
    size = strlen(static_cast<const char *>(data));
  OutsideOfCapture outside(scope.driver());
  char log[256] = "";
  int options[] = {JITErrorLogBuffer, JITErrorLogBufferSizeBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Module module = nullptr;
  Result result =
      scope.driver().cuModuleLoadDataEx(&module, data, 2, options, values);
  if (result != Success) {
    explainLoad(scope, result, data, size, log);
    return nullptr;
  }
  bool mayOverlap = false;
  if (!readOverlap(scope, module, mayOverlap)) {
    scope.driver().cuModuleUnload(module);
    return nullptr;
  }
  auto *loaded = static_cast<LoadedModule *>(calloc(1, sizeof(LoadedModule)));
  if (!loaded) {
    setError("no memory for a GPU module");
    scope.driver().cuModuleUnload(module);
    return nullptr;
  }
  loaded->context = &scope.context();
  loaded->module = module;
  loaded->mayOverlap = mayOverlap;
  pthread_mutex_init(&loaded->mutex, nullptr);
  return loaded;
}

void cuda::unloadModule(void *opaque, int32_t isKnownAlive) {
  auto *loaded = static_cast<LoadedModule *>(opaque);
  const Driver *driver = getDriver();
  if (driver && (isKnownAlive || isAlive(*driver, *loaded->context))) {
    Scope scope(*loaded->context);
    Result result = scope ? driver->cuModuleUnload(loaded->module) : Success;
    // At the end of the process the driver may be the first to go.
    if (result != ErrorDeinitialized)
      check(*driver, result, "unloading kernels");
  }
  while (LoadedKernel *kernel = loaded->kernels) {
    loaded->kernels = kernel->next;
    free(kernel);
  }
  pthread_mutex_destroy(&loaded->mutex);
  free(loaded);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static LoadedKernel *makeKernel(const Scope &scope, LoadedModule &module,
                                Function function) {
  int declared = 0;
  int allowed = 0;
  if (!scope.check(scope.driver().cuFuncGetAttribute(
                       &declared, FunctionSharedSizeBytes, function),
                   "reading a kernel's shared memory") ||
      !scope.check(scope.driver().cuFuncGetAttribute(
                       &allowed, FunctionMaxDynamicSharedSizeBytes, function),
                   "reading a kernel's shared memory"))
    return nullptr;
  auto *kernel = static_cast<LoadedKernel *>(calloc(1, sizeof(LoadedKernel)));
  if (!kernel) {
    setError("no memory for a kernel");
    return nullptr;
  }
  kernel->context = module.context;
  kernel->function = function;
  kernel->mayOverlap = module.mayOverlap;
  kernel->staticShared = static_cast<uint32_t>(declared);
  kernel->allowedShared = static_cast<uint32_t>(allowed);
  Lock lock(module.mutex);
  kernel->next = module.kernels;
  module.kernels = kernel;
  return kernel;
}

void *cuda::findKernel(void *opaque, const char *name) {
  auto &module = *static_cast<LoadedModule *>(opaque);
  Scope scope(*module.context);
  if (!scope)
    return nullptr;
  // With lazy loading this is where the code goes to the device.
  OutsideOfCapture outside(scope.driver());
  Function function = nullptr;
  Result result =
      scope.driver().cuModuleGetFunction(&function, module.module, name);
  if (result == ErrorNotFound) {
    setError("the module has no kernel '%s'", name);
    return nullptr;
  }
  if (!scope.check(result, "looking for a kernel"))
    return nullptr;
  return makeKernel(scope, module, function);
}

int32_t cuda::findKernels(void *opaque, varlen_gpu_kernel_visitor visit,
                          void *context) {
  auto &module = *static_cast<LoadedModule *>(opaque);
  Scope scope(*module.context);
  if (!scope)
    return 1;
  const Driver &driver = scope.driver();
  if (!driver.cuModuleGetFunctionCount || !driver.cuModuleEnumerateFunctions ||
      !driver.cuFuncGetName || !driver.cuFuncLoad)
    return 0;
  OutsideOfCapture outside(driver);
  unsigned count = 0;
  if (!scope.check(driver.cuModuleGetFunctionCount(&count, module.module),
                   "counting kernels"))
    return 1;
  if (count == 0)
    return 0;
  auto *functions = static_cast<Function *>(calloc(count, sizeof(Function)));
  if (!functions) {
    setError("no memory for %u kernels", count);
    return 1;
  }
  bool isFound = scope.check(
      driver.cuModuleEnumerateFunctions(functions, count, module.module),
      "listing kernels");
  for (unsigned i = 0; isFound && i < count; ++i) {
    const char *name = nullptr;
    LoadedKernel *kernel = nullptr;
    isFound =
        scope.check(driver.cuFuncLoad(functions[i]), "loading a kernel") &&
        scope.check(driver.cuFuncGetName(&name, functions[i]),
                    "asking for a kernel's name") &&
        (kernel = makeKernel(scope, module, functions[i]));
    if (isFound)
      visit(name, kernel, context);
  }
  free(functions);
  return !isFound;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static std::atomic<bool> launchesOverlap{false};

void varlen_gpu_overlap_launches(int32_t overlap) {
  launchesOverlap.store(overlap != 0, std::memory_order_relaxed);
}

static pthread_mutex_t sharedMutex = PTHREAD_MUTEX_INITIALIZER;

/// Lets the kernel have this much dynamic shared memory.
static bool allowShared(const Scope &scope, LoadedKernel &kernel,
                        uint32_t bytes) {
  Lock lock(sharedMutex);
  if (bytes <= kernel.allowedShared)
    return true;
  const ContextRecord &context = scope.context();
  uint64_t wanted = uint64_t(bytes) + kernel.staticShared;
  if (wanted > static_cast<uint64_t>(context.sharedLimit)) {
    char name[128];
    describeDevice(context, name);
    setError("a kernel wants %llu bytes of shared memory: %s has %d per block",
             static_cast<unsigned long long>(wanted), name,
             context.sharedLimit);
    return false;
  }
  OutsideOfCapture outside(scope.driver());
  if (!scope.check(scope.driver().cuFuncSetAttribute(
                       kernel.function, FunctionMaxDynamicSharedSizeBytes,
                       static_cast<int>(bytes)),
                   "asking for shared memory"))
    return false;
  kernel.allowedShared = bytes;
  return true;
}

int32_t cuda::launchKernel(void *function, const varlen_gpu_launch *what,
                           void *stream, void **parameters) {
  Scope scope(stream);
  auto &kernel = *static_cast<LoadedKernel *>(function);
  if (!scope || !allowShared(scope, kernel, what->shared_bytes))
    return 1;
  LaunchAttribute attributes[2] = {};
  LaunchConfig config = {};
  config.attributes = attributes;
  for (int d = 0; d < 3; ++d) {
    config.grid[d] = what->grid[d];
    config.block[d] = what->block[d];
  }
  config.sharedBytes = what->shared_bytes;
  config.stream = static_cast<Stream>(stream);
  if (what->cluster[0] * what->cluster[1] * what->cluster[2] > 1) {
    LaunchAttribute &cluster = attributes[config.numAttributes++];
    cluster.id = LaunchClusterDimension;
    for (int d = 0; d < 3; ++d)
      cluster.value.cluster[d] = what->cluster[d];
  }
  if (kernel.mayOverlap && launchesOverlap.load(std::memory_order_relaxed)) {
    LaunchAttribute &serialization = attributes[config.numAttributes++];
    serialization.id = LaunchProgrammaticStreamSerialization;
    serialization.value.isAllowed = 1;
  }
  Result result = scope.driver().cuLaunchKernelEx(&config, kernel.function,
                                                  parameters, nullptr);
  if (result == Success)
    return 0;
  char text[160];
  snprintf(
      text, sizeof text,
      "launching a grid of %u x %u x %u with blocks of %u x %u x %u and %u "
      "bytes of shared memory",
      what->grid[0], what->grid[1], what->grid[2], what->block[0],
      what->block[1], what->block[2], what->shared_bytes);
  scope.check(result, text);
  return 1;
}
