//===- ExecutorBackend.cpp - The executor as a GPU ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "varlen/Runtime/GPUExecutor.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

using varlen_runtime::setError;

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

namespace {

struct Image {
  const varlen_gpu_executor_image *description = nullptr;
  std::vector<varlen_gpu_executor_block> blocks;
  varlen_sim_module *module = nullptr;
};

/// What is registered, and how launches run. Never destroyed: compiled modules
/// may be unloaded after it would be.
struct State {
  std::mutex mutex;
  std::map<std::string, Image> images;
  std::map<const varlen_sim_kernel *, std::string> names;
  varlen_sim_config config;
  varlen_gpu_executor_observer observer = nullptr;
  void *context = nullptr;

  State() { varlen_sim_config_init(&config); }
};

} // namespace

static State &getState() {
  static auto *state = new State;
  return *state;
}

void varlen_gpu_executor_register(const varlen_gpu_executor_image *image) {
  State &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  Image &entry = state.images[image->name];
  if (entry.module)
    varlen_sim_module_destroy(entry.module);
  for (const varlen_gpu_executor_block &block : entry.blocks)
    varlen_sim_unregister(block.memory);
  entry = {image, {image->blocks, image->blocks + image->num_blocks}, nullptr};
  for (const varlen_gpu_executor_block &block : entry.blocks)
    varlen_sim_register(block.memory, block.bytes);
}

void varlen_gpu_executor_configure(const varlen_sim_config *config) {
  State &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (config)
    state.config = *config;
  else
    varlen_sim_config_init(&state.config);
}

void varlen_gpu_executor_observe(varlen_gpu_executor_observer observer,
                                 void *context) {
  State &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.observer = observer;
  state.context = context;
}

/// The executor's module of an image.
static varlen_sim_module *makeModule(const varlen_gpu_executor_image &image) {
  std::vector<const char *> sites;
  sites.reserve(image.num_sites);
  const char *text = image.sites;
  for (uint64_t i = 0; i < image.num_sites; ++i) {
    sites.push_back(text);
    text += strlen(text) + 1;
  }
  varlen_sim_module *module = varlen_sim_module_create(
      sites.data(), static_cast<uint32_t>(sites.size()));
  for (uint64_t i = 0; i < image.num_kernels; ++i)
    varlen_sim_module_add_kernel(module, &image.kernels[i]);
  return module;
}

/// The blob of a module is "varlen-executor:" and the name of its image.
static void *load(const void *data, size_t size, void * /*stream*/) {
  static const char tag[] = "varlen-executor:";
  std::string blob = size ? std::string(static_cast<const char *>(data), size)
                          : std::string(static_cast<const char *>(data));
  if (blob.compare(0, sizeof tag - 1, tag) != 0) {
    setError("the kernels were compiled for a GPU: the executor runs those "
             "compiled with format=sim");
    return nullptr;
  }
  std::string name = blob.substr(sizeof tag - 1).c_str();
  State &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  auto it = state.images.find(name);
  if (it == state.images.end()) {
    setError("no compiled module has registered the kernels '%s'",
             name.c_str());
    return nullptr;
  }
  if (!it->second.module)
    it->second.module = makeModule(*it->second.description);
  return it->second.module;
}

/// Images stay: another module may have the same content.
static void unload(void * /*module*/, int32_t /*isAlive*/) {}

static void *find(void *module, const char *name) {
  auto *kernel = varlen_sim_module_get_kernel(
      static_cast<varlen_sim_module *>(module), name);
  if (!kernel) {
    setError("the module has no kernel '%s'", name);
    return nullptr;
  }
  State &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.names[kernel] = name;
  return kernel;
}

/// They need no loading: the first launch finds them.
static int32_t findAll(void * /*module*/, varlen_gpu_kernel_visitor /*visit*/,
                       void * /*context*/) {
  return 0;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static int32_t launch(void *function, const varlen_gpu_launch *what,
                      void * /*stream*/, void **parameters) {
  varlen_sim_config config;
  varlen_gpu_executor_observer observer = nullptr;
  void *context = nullptr;
  std::string name;
  auto *kernel = static_cast<varlen_sim_kernel *>(function);
  {
    State &state = getState();
    std::lock_guard<std::mutex> lock(state.mutex);
    config = state.config;
    observer = state.observer;
    context = state.context;
    name = state.names[kernel];
  }
  varlen_sim_launch_params launch = {};
  for (int d = 0; d < 3; ++d) {
    launch.grid[d] = what->grid[d];
    launch.block[d] = what->block[d];
    launch.cluster[d] = what->cluster[d];
  }
  launch.dynamic_shared_bytes = what->shared_bytes;
  launch.arguments = parameters;
  varlen_sim_result *result = varlen_sim_launch(kernel, &launch, &config);
  bool isClean = varlen_sim_result_num_reports(result) == 0;
  if (observer)
    observer(name.c_str(), result, context);
  else if (!isClean)
    setError("%s", varlen_sim_result_report(result, 0).text);
  varlen_sim_result_destroy(result);
  return !isClean;
}

//===----------------------------------------------------------------------===//
// Everything is done when it is asked for: streams are only names
//===----------------------------------------------------------------------===//

/// One device with one context.
static uint64_t getContext(void * /*stream*/) { return 1; }
static void release(uint64_t /*context*/) {}

static void *getStream() {
  static char stream;
  return &stream;
}
static int32_t isCapturing(void * /*stream*/) { return 0; }
static int32_t synchronize(void * /*stream*/) { return 0; }
static void *createEvent(void * /*stream*/) {
  static char event;
  return &event;
}
static void destroyEvent(void * /*event*/, void * /*stream*/) {}
static int32_t record(void * /*event*/, void * /*stream*/) { return 0; }
static int32_t waitForEvent(void * /*stream*/, void * /*event*/) { return 0; }
static int32_t synchronizeEvent(void * /*event*/, void * /*stream*/) {
  return 0;
}

static void *allocate(size_t bytes, void * /*stream*/) {
  void *memory = varlen_sim_malloc(bytes);
  if (!memory)
    setError("no memory for %zu bytes of the executor", bytes);
  return memory;
}
static void freeMemory(void *memory, void * /*stream*/) {
  varlen_sim_free(memory);
}

static int32_t copy(void *to, const void *from, size_t bytes,
                    void * /*stream*/) {
  memmove(to, from, bytes);
  return 0;
}

static int32_t fill(void *memory, uint32_t value, int32_t width, size_t count,
                    void * /*stream*/) {
  for (size_t i = 0; i < count; ++i)
    memcpy(static_cast<char *>(memory) + i * width, &value, width);
  return 0;
}

static void *getReport(void * /*stream*/) {
  static void *report = [] {
    void *memory = varlen_sim_malloc(sizeof(varlen_gpu_status));
    if (memory)
      memset(memory, 0, sizeof(varlen_gpu_status));
    return memory;
  }();
  if (!report)
    setError("no memory for errors of kernels");
  return report;
}

static int32_t registerHost(void *memory, size_t bytes, void * /*stream*/) {
  varlen_sim_register(memory, bytes);
  return 0;
}
static void unregisterHost(void *memory, void * /*stream*/) {
  varlen_sim_unregister(memory);
}

static int32_t setDevice(int32_t device) {
  if (device == 0)
    return 0;
  setError("no GPU %d: the executor is one device", device);
  return 1;
}

static int32_t enter(void * /*stream*/, int32_t device) {
  return device < 0 ? 0 : setDevice(device);
}
static void leave() {}

/// It has the instructions of all chips; code says which it is for.
static int32_t getCapability(void * /*stream*/) { return 90; }

/// Few, so that a persistent kernel's blocks have more than one piece of work
/// each in small tests, too.
static int32_t getMultiprocessors(void * /*stream*/) { return 2; }

static int32_t encode(void *map, const varlen_gpu_tensor_map *what,
                      void * /*stream*/) {
  varlen_sim_tensor_map encoded;
  if (varlen_sim_tensor_map_encode_tiled(
          &encoded, static_cast<int32_t>(what->type), what->rank, what->address,
          what->extents, what->strides, what->box, what->box_strides,
          static_cast<int32_t>(what->interleave),
          static_cast<int32_t>(what->swizzle),
          static_cast<int32_t>(what->l2_promotion),
          static_cast<int32_t>(what->out_of_bounds_fill))) {
    setError("encoding a tensor map: %s", varlen_sim_tensor_map_error());
    return 1;
  }
  memcpy(map, &encoded, sizeof encoded);
  return 0;
}

const varlen_gpu_backend *varlen_gpu_executor() {
  static const varlen_gpu_backend backend = {"executor",
                                             getContext,
                                             release,
                                             setDevice,
                                             enter,
                                             leave,
                                             getCapability,
                                             getMultiprocessors,
                                             load,
                                             unload,
                                             find,
                                             findAll,
                                             launch,
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
                                             allocate,
                                             freeMemory,
                                             copy,
                                             fill,
                                             getReport,
                                             registerHost,
                                             unregisterHost,
                                             encode};
  return &backend;
}
