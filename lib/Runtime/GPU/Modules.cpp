//===- Modules.cpp - Code that is loaded late, and its launches -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "Host.h"
#include "Lock.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace varlen_runtime;
using namespace varlen_runtime::gpu;

namespace {

/// A module or a kernel in a context of a backend: their handle of it.
struct Loaded {
  Loaded *next;
  const varlen_gpu_backend *owner;
  uint64_t context;
  void *handle;
};

struct Kernel {
  Kernel *next;
  struct Module *module;
  Loaded *loaded;
  char name[1]; // as long as it is
};

struct Module {
  Module *next, *previous;
  const void *data;
  size_t size;
  pthread_mutex_t mutex; // of what follows
  Loaded *loaded;
  Kernel *kernels;
};

} // namespace

/// Guards the list of modules; taken before a module's mutex.
static pthread_mutex_t modulesMutex = PTHREAD_MUTEX_INITIALIZER;
static Module *modules = nullptr;

//===----------------------------------------------------------------------===//
// Lists of what is loaded
//===----------------------------------------------------------------------===//

static void *find(const Loaded *list, uint64_t context) {
  while (list && (list->owner != &backend() || list->context != context))
    list = list->next;
  return list ? list->handle : nullptr;
}

/// False, with the error set, if there is no memory.
static bool add(Loaded *&list, uint64_t context, void *handle) {
  auto *entry = static_cast<Loaded *>(malloc(sizeof(Loaded)));
  if (!entry) {
    setError("no memory for a GPU module");
    return false;
  }
  *entry = {list, &backend(), context, handle};
  list = entry;
  return true;
}

/// Takes an entry out of a list and frees it: any context's if `context` is 0.
/// Null if there is none.
static Loaded take(Loaded *&list, uint64_t context) {
  for (Loaded **link = &list; *link; link = &(*link)->next) {
    Loaded *entry = *link;
    if (context != 0 &&
        (entry->owner != &backend() || entry->context != context))
      continue;
    Loaded result = *entry;
    *link = entry->next;
    free(entry);
    return result;
  }
  return {};
}

/// Unloads the module from a context, which is alive, or from all if that is 0.
static void unload(Module &module, uint64_t context) {
  Lock lock(module.mutex);
  for (Kernel *kernel = module.kernels; kernel; kernel = kernel->next)
    while (take(kernel->loaded, context).handle)
      ;
  for (;;) {
    Loaded entry = take(module.loaded, context);
    if (!entry.handle)
      break;
    entry.owner->unload(entry.handle, /*is_alive=*/context != 0);
  }
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

void *gpu::addModule(const void *data, size_t size) {
  auto *module = static_cast<Module *>(calloc(1, sizeof(Module)));
  if (!module) {
    setError("no memory for a GPU module");
    return noteNull<void>(nullptr);
  }
  module->data = data;
  module->size = size;
  pthread_mutex_init(&module->mutex, nullptr);
  Lock lock(modulesMutex);
  module->next = modules;
  if (modules)
    modules->previous = module;
  modules = module;
  return module;
}

void gpu::removeModule(void *opaque) {
  auto *module = static_cast<Module *>(opaque);
  if (!module)
    return;
  {
    Lock lock(modulesMutex);
    (module->previous ? module->previous->next : modules) = module->next;
    if (module->next)
      module->next->previous = module->previous;
  }
  unload(*module, 0);
  while (Kernel *kernel = module->kernels) {
    module->kernels = kernel->next;
    free(kernel);
  }
  pthread_mutex_destroy(&module->mutex);
  free(module);
}

void gpu::unloadModules(uint64_t context) {
  Lock lock(modulesMutex);
  for (Module *module = modules; module; module = module->next)
    unload(*module, context);
}

/// The module's mutex is held.
static Kernel *findKernel(Module &module, const char *name) {
  for (Kernel *kernel = module.kernels; kernel; kernel = kernel->next)
    if (strcmp(kernel->name, name) == 0)
      return kernel;
  auto *kernel = static_cast<Kernel *>(malloc(sizeof(Kernel) + strlen(name)));
  if (!kernel) {
    setError("no memory for kernel '%s'", name);
    return nullptr;
  }
  kernel->next = module.kernels;
  kernel->module = &module;
  kernel->loaded = nullptr;
  memcpy(kernel->name, name, strlen(name) + 1);
  module.kernels = kernel;
  return kernel;
}

void *gpu::getKernel(void *opaque, const char *name) {
  auto *module = static_cast<Module *>(opaque);
  if (!module)
    return nullptr;
  Lock lock(module->mutex);
  return noteNull(findKernel(*module, name));
}

/// The backend's module in a context; null with the error set. Its mutex is
/// held.
static void *load(Module &module, const Place &place, uint64_t context) {
  void *handle = find(module.loaded, context);
  if (handle || !mayMake(place, "kernels"))
    return handle;
  handle = backend().load(module.data, module.size, place.stream);
  if (!handle || add(module.loaded, context, handle))
    return handle;
  backend().unload(handle, /*is_alive=*/1);
  return nullptr;
}

/// Whether a kernel may be looked for that varlen_gpu_prepare has not loaded.
static bool mayFind(const Kernel &kernel, const Place &place) {
  int32_t isCapturing = backend().is_capturing(place.stream);
  if (isCapturing > 0)
    setError("kernel '%s' cannot be loaded while the stream is captured: "
             "expected a call of its function before, as drivers before CUDA "
             "12.4 cannot list kernels",
             kernel.name);
  return noteError(isCapturing) == 0;
}

/// The backend's function in the context of the stream; null with the error
/// set.
static void *resolve(Kernel &kernel, const Place &place) {
  uint64_t context = backend().get_context(place.stream);
  if (context == 0)
    return nullptr;
  Module &module = *kernel.module;
  Lock lock(module.mutex);
  if (void *function = find(kernel.loaded, context))
    return function;
  void *handle = load(module, place, context);
  if (!handle || !mayFind(kernel, place))
    return nullptr;
  void *function = backend().find(handle, kernel.name);
  return function && add(kernel.loaded, context, function) ? function : nullptr;
}

namespace {
/// What visiting the kernels of a module needs.
struct Visit {
  Module &module;
  uint64_t context;
  bool isDone;
};
} // namespace

static void keepKernel(const char *name, void *function, void *opaque) {
  auto &visit = *static_cast<Visit *>(opaque);
  Kernel *kernel = findKernel(visit.module, name);
  if (!kernel || (!find(kernel->loaded, visit.context) &&
                  !add(kernel->loaded, visit.context, function)))
    visit.isDone = false;
}

bool gpu::loadModules(const Place &place) {
  uint64_t context = backend().get_context(place.stream);
  bool isDone = context != 0;
  Lock lock(modulesMutex);
  for (Module *module = modules; module && context; module = module->next) {
    Lock moduleLock(module->mutex);
    bool wasLoaded = find(module->loaded, context);
    void *handle = load(*module, place, context);
    Visit visit{*module, context, true};
    if (!handle ||
        (!wasLoaded && backend().find_all(handle, keepKernel, &visit)) ||
        !visit.isDone)
      isDone = false;
  }
  return noteError(!isDone) == 0;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void gpu::launch(void *opaque, const Dimensions &cluster,
                 const Dimensions &grid, const Dimensions &block,
                 int32_t sharedBytes, void *stream, void **parameters) {
  if (!mayContinue())
    return;
  auto *kernel = static_cast<Kernel *>(opaque);
  if (!kernel) {
    setError(
        "a kernel of a module that could not be loaded cannot be launched");
    return noteFailure();
  }
  const intptr_t grids[] = {grid.x, grid.y, grid.z};
  const intptr_t blocks[] = {block.x, block.y, block.z};
  const intptr_t clusters[] = {cluster.x, cluster.y, cluster.z};
  varlen_gpu_launch what;
  for (int d = 0; d < 3; ++d) {
    // No work: upstream's lowering launches all the same, drivers refuse it.
    if (grids[d] == 0)
      return;
    if (grids[d] < 0 || grids[d] > INT32_MAX || blocks[d] < 1 ||
        blocks[d] > 1024) {
      setError("kernel '%s': a grid of %" PRIdPTR " x %" PRIdPTR " x %" PRIdPTR
               " and blocks of %" PRIdPTR " x %" PRIdPTR " x %" PRIdPTR
               " cannot be launched",
               kernel->name, grid.x, grid.y, grid.z, block.x, block.y, block.z);
      return noteFailure();
    }
    what.grid[d] = static_cast<uint32_t>(grids[d]);
    what.block[d] = static_cast<uint32_t>(blocks[d]);
    what.cluster[d] = static_cast<uint32_t>(clusters[d]);
  }
  what.shared_bytes = static_cast<uint32_t>(sharedBytes);
  Place place = getPlace(stream);
  void *function = place.isValid ? resolve(*kernel, place) : nullptr;
  if (!function || backend().launch(function, &what, place.stream, parameters))
    noteFailure();
}
