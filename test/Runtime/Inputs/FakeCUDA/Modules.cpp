//===- Modules.cpp - Code and launches of the fake driver -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fake_cuda;

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// The bytes of `.param .u64 name` and `.param .align 64 .b8 name[128]`.
static size_t getParameterBytes(const std::string &text) {
  static const std::map<std::string, size_t> bytes = {
      {".u8", 1},  {".s8", 1},  {".b8", 1},  {".u16", 2}, {".s16", 2},
      {".b16", 2}, {".f16", 2}, {".u32", 4}, {".s32", 4}, {".b32", 4},
      {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8}};
  size_t element = 0;
  for (size_t at = text.find('.'); at != std::string::npos;
       at = text.find('.', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && isalnum(static_cast<unsigned char>(text[end])))
      ++end;
    auto it = bytes.find(text.substr(at, end - at));
    if (it != bytes.end())
      element = it->second;
  }
  size_t bracket = text.find('[');
  return bracket == std::string::npos
             ? element
             : element * strtoull(text.c_str() + bracket + 1, nullptr, 10);
}

/// Enters the variables of PTX that have a number as their value.
static void parseGlobals(Module &module, const std::string &text) {
  static const std::string word = ".visible .global ";
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    std::string before = text.substr(at, text.find(" = ", at) - at);
    module.globals.insert(before.substr(before.rfind(' ') + 1));
  }
}

/// Enters the kernels of PTX.
static void parse(Module &module, const std::string &text) {
  parseGlobals(module, text);
  static const std::string word = ".entry ";
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    size_t begin = at + word.size();
    size_t open = text.find_first_of("({", begin);
    std::string name = text.substr(begin, open - begin);
    name.erase(name.find_last_not_of(" \n\t") + 1);
    auto function = std::make_unique<Function>();
    function->module = &module;
    function->name = name;
    function->knowsParameters = true;
    function->allowedShared = plainShared;
    size_t close = text[open] == '(' ? text.find(')', open) : open;
    for (size_t from = open; from < close;) {
      size_t end = std::min(text.find(',', from + 1), close);
      std::string parameter = text.substr(from + 1, end - from - 1);
      if (parameter.find(".param") != std::string::npos)
        function->parameters.push_back(getParameterBytes(parameter));
      from = end;
    }
    module.functions[name] = std::move(function);
  }
}

/// The number behind ".target sm_"; 0 if there is none.
static int getTarget(const std::string &text) {
  size_t at = text.find(".target sm_");
  return at == std::string::npos ? 0 : atoi(text.c_str() + at + 11);
}

extern "C" {

//===----------------------------------------------------------------------===//
// "Module Management"
//===----------------------------------------------------------------------===//

Result cuModuleLoadDataEx(Module **module, const void *data, unsigned,
                          const int *, void **) {
  ENTRY(cuModuleLoadDataEx);
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  if (Result error = checkUnsafe(call))
    return error;
  bool isBinary = memcmp(data, "\x50\xed\x55\xba", 4) == 0 ||
                  memcmp(data, "\177ELF", 4) == 0;
  bool isExecuted = isForExecutor(static_cast<const char *>(data));
  std::string text =
      isBinary || isExecuted ? "" : static_cast<const char *>(data);
  if (!isBinary && !isExecuted && text.find(".version") == std::string::npos)
    return call.refuse(InvalidImage, "neither machine code nor PTX");
  if (getTarget(text) > 80)
    return call.refuse(NoBinaryForGPU, "PTX for another chip");
  report("load %s\n", isBinary ? "fatbin" : "text");
  getState().modules.push_back(std::make_unique<Module>());
  *module = getState().modules.back().get();
  (*module)->context = context;
  (*module)->isText = !isBinary && !isExecuted;
  if (isExecuted)
    (*module)->executed = loadForExecutor(static_cast<const char *>(data));
  parse(**module, text);
  return Success;
}

/// The module of a handle, in the current context; null with `error` set.
static Module *findModule(Call &call, const Module *handle, Result &error) {
  Module *module = find(getState().modules, handle);
  if (module && module->context == getCurrent())
    return module;
  error = call.refuse(module ? InvalidContext : InvalidHandle,
                      "no module of the current context");
  return nullptr;
}

Result cuModuleUnload(Module *handle) {
  ENTRY(cuModuleUnload);
  Result error = Success;
  Module *module = findModule(call, handle, error);
  if (!module)
    return error;
  if (Result error = checkUnsafe(call))
    return error;
  module->isAlive = false;
  return Success;
}

Result cuModuleGetFunction(Function **result, Module *handle,
                           const char *name) {
  ENTRY(cuModuleGetFunction);
  Result error = Success;
  Module *module = findModule(call, handle, error);
  if (!module)
    return error;
  std::unique_ptr<Function> &function = module->functions[name];
  if (!function) {
    if (module->isText) {
      module->functions.erase(name);
      return NotFound;
    }
    function = std::make_unique<Function>();
    function->module = module;
    function->name = name;
    function->knowsParameters = false;
    function->allowedShared = plainShared;
    if (module->executed)
      function->executed = findForExecutor(module->executed, name);
  }
  // "Lazy Loading": this is where code goes to the device.
  if (!function->isLoaded)
    if (Result error = checkUnsafe(call))
      return error;
  function->isLoaded = true;
  *result = function.get();
  return Success;
}

/// Of PTX, a variable that it declares; its address means nothing.
Result cuModuleGetGlobal_v2(uintptr_t *address, size_t *bytes, Module *handle,
                            const char *name) {
  ENTRY(cuModuleGetGlobal_v2);
  Result error = Success;
  Module *module = findModule(call, handle, error);
  if (!module)
    return error;
  if (!module->globals.count(name))
    return NotFound;
  *address = 0;
  *bytes = 1;
  return Success;
}

Result cuModuleGetFunctionCount(unsigned *count, Module *handle) {
  ENTRY(cuModuleGetFunctionCount);
  Result error = Success;
  Module *module = findModule(call, handle, error);
  if (!module)
    return error;
  *count = static_cast<unsigned>(module->functions.size());
  return Success;
}

Result cuModuleEnumerateFunctions(Function **functions, unsigned count,
                                  Module *handle) {
  ENTRY(cuModuleEnumerateFunctions);
  Result error = Success;
  Module *module = findModule(call, handle, error);
  if (!module)
    return error;
  for (const auto &entry : module->functions)
    if (count-- > 0)
      *functions++ = entry.second.get();
  return Success;
}

//===----------------------------------------------------------------------===//
// "Execution Control"
//===----------------------------------------------------------------------===//

/// The function of a handle; null if there is none.
static Function *findFunction(const Function *handle) {
  for (const auto &module : getState().modules)
    for (const auto &entry : module->functions)
      if (entry.second.get() == handle && module->isAlive)
        return entry.second.get();
  return nullptr;
}

Result cuFuncGetName(const char **name, Function *handle) {
  ENTRY(cuFuncGetName);
  Function *function = findFunction(handle);
  if (!function)
    return call.refuse(InvalidValue, "no such function");
  *name = function->name.c_str();
  return Success;
}

Result cuFuncLoad(Function *handle) {
  ENTRY(cuFuncLoad);
  Function *function = findFunction(handle);
  if (!function)
    return call.refuse(InvalidHandle, "no such function");
  if (Result error = checkUnsafe(call))
    return error;
  function->isLoaded = true;
  return Success;
}

Result cuFuncGetAttribute(int *value, int attribute, Function *handle) {
  ENTRY(cuFuncGetAttribute);
  Function *function = findFunction(handle);
  if (!function || (attribute != 1 && attribute != 8))
    return call.refuse(InvalidHandle, "no such function or attribute");
  *value = attribute == 8 ? function->allowedShared : function->staticShared;
  return Success;
}

Result cuFuncSetAttribute(Function *handle, int attribute, int value) {
  ENTRY(cuFuncSetAttribute);
  Function *function = findFunction(handle);
  if (!function || attribute != 8)
    return call.refuse(InvalidHandle, "no such function or attribute");
  if (value < 0 || value + function->staticShared > getSharedLimit())
    return call.refuse(InvalidValue, "more than MAX_SHARED_MEMORY_PER_BLOCK");
  function->allowedShared = value;
  report("attribute %d of %s = %d\n", attribute, function->name.c_str(), value);
  return Success;
}

struct LaunchAttribute {
  int id, pad;
  union {
    char bytes[64];
    int value;
  };
};

struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  void *stream;
  const LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// Whether the launch has
/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
static bool mayOverlap(const LaunchConfig &config) {
  for (unsigned i = 0; i < config.numAttributes; ++i)
    if (config.attributes[i].id == 6)
      return config.attributes[i].value != 0;
  return false;
}

/// Why the device cannot launch this; null if it can.
static const char *findFault(const LaunchConfig &config,
                             const Function &function) {
  const unsigned *grid = config.grid, *block = config.block;
  for (int d = 0; d < 3; ++d)
    if (grid[d] == 0 || block[d] == 0 || grid[d] > (d ? 65535u : 0x7fffffffu) ||
        block[d] > (d == 2 ? 64u : 1024u))
      return "a grid or block that no device has";
  if (block[0] * block[1] * block[2] > 1024)
    return "more than 1024 threads in a block";
  if (config.sharedBytes > static_cast<unsigned>(function.allowedShared))
    return "more shared memory than MAX_DYNAMIC_SHARED_SIZE_BYTES";
  return nullptr;
}

/// What a kernel that runs is checked against.
static Context *running;

static bool access(const void *memory, size_t bytes) {
  bool isAllowed =
      mayAccess(*running, reinterpret_cast<uintptr_t>(memory), bytes);
  // On a GPU memory of the host is none.
  if (isAllowed && isDeviceAddress(reinterpret_cast<uintptr_t>(memory)))
    return true;
  running->error = IllegalAddress;
  return false;
}

/// The launch as work: parameters are copied now.
static Work makeLaunch(const LaunchConfig &config, const Function &function,
                       void **parameters) {
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    auto *bytes = static_cast<const char *>(parameters[i]);
    values->emplace_back(bytes, bytes + function.parameters[i]);
  }
  std::string name = function.name;
  const Function *handle = &function;
  // The launch's attributes are gone when it runs.
  bool overlaps = mayOverlap(config);
  auto run = [config, name, values, handle, overlaps](Context &context) {
    // Its module may have been unloaded since.
    if (!findFunction(handle)) {
      context.error = IllegalAddress;
      return;
    }
    report("run %s\n", name.c_str());
    auto kernel = getState().kernels.find(name);
    if (kernel == getState().kernels.end())
      return;
    std::vector<void *> pointers;
    for (std::vector<char> &value : *values)
      pointers.push_back(value.data());
    FakeCudaLaunch launch = {name.c_str(),       pointers.data(), {},      {},
                             config.sharedBytes, access,          overlaps};
    memcpy(launch.grid, config.grid, sizeof launch.grid);
    memcpy(launch.block, config.block, sizeof launch.block);
    running = &context;
    kernel->second(&launch);
  };
  return {run, "launch " + name};
}

static Result launch(Call &call, const LaunchConfig *config, Function *handle,
                     void **parameters) {
  Result error = Success;
  Stream *stream = getStream(call, config->stream, error);
  if (!stream)
    return error;
  Function *function = findFunction(handle);
  if (!function || function->module->context != stream->context)
    return call.refuse(InvalidHandle, "no function of the stream's context");
  if (const char *fault = findFault(*config, *function))
    return call.refuse(InvalidValue, fault);
  if (stream->capture && !function->isLoaded) {
    stream->capture->isValid = false;
    return call.refuse(CaptureUnsupported, "the function is not loaded");
  }
  function->isLoaded = true;
  report("launch %s, grid %u, block %u, shared %u, stream %p, first %p\n",
         function->name.c_str(), config->grid[0], config->block[0],
         config->sharedBytes, config->stream,
         *static_cast<void **>(parameters[0]));
  if (!function->executed)
    return enqueue(call, *stream, makeLaunch(*config, *function, parameters));
  if (stream->capture)
    return call.refuse(NotSupported, "the executor's kernels are not captured");
  drain(*stream);
  if (!stream->context->error &&
      !runInExecutor(function->executed, config->grid, config->block,
                     config->sharedBytes, parameters))
    stream->context->error = IllegalAddress;
  return stream->context->error;
}

Result cuLaunchKernelEx(const LaunchConfig *config, Function *handle,
                        void **parameters, void ** /*extra*/) {
  ENTRY(cuLaunchKernelEx);
  return launch(call, config, handle, parameters);
}

Result cuLaunchKernel(Function *handle, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, void *stream,
                      void **parameters, void ** /*extra*/) {
  ENTRY(cuLaunchKernel);
  LaunchConfig config = {{gridX, gridY, gridZ},
                         {blockX, blockY, blockZ},
                         sharedBytes,
                         stream,
                         nullptr,
                         0};
  return launch(call, &config, handle, parameters);
}

//===----------------------------------------------------------------------===//
// "Tensor Map Object Management"
//===----------------------------------------------------------------------===//

/// Bytes of each CUtensorMapDataType.
static constexpr int typeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

/// What the reference requires of the arguments; null if all holds.
static const char *findFault(const void *map, int type, uint32_t rank,
                             const void *address, const uint64_t *extents,
                             const uint64_t *strides, const uint32_t *box,
                             const uint32_t *boxStrides) {
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0)
    return "tensorMap must be aligned to 64 bytes";
  if (type < 0 || type >= int(sizeof typeBytes / sizeof *typeBytes))
    return "no such tensorDataType";
  if (rank < 1 || rank > 5)
    return "tensorRank must be 1 to 5";
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
    return "globalAddress must be aligned to 16 bytes";
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > uint64_t(1) << 32)
      return "globalDim must be 1 to 2^32";
    if (d + 1 < rank &&
        (strides[d] % 16 != 0 || strides[d] >= uint64_t(1) << 40))
      return "globalStrides must be a multiple of 16 and less than 2^40";
    if (box[d] == 0 || box[d] > 256)
      return "boxDim must be 1 to 256";
    if (boxStrides[d] == 0 || boxStrides[d] > 8)
      return "elementStrides must be 1 to 8";
  }
  return box[0] * typeBytes[type] % 16 == 0
             ? nullptr
             : "boxDim[0] must be a multiple of 16 bytes";
}

Result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                              const uint64_t *extents, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *boxStrides,
                              int, int, int, int) {
  ENTRY(cuTensorMapEncodeTiled);
  if (const char *fault = findFault(map, type, rank, address, extents, strides,
                                    box, boxStrides))
    return call.refuse(InvalidValue, fault);
  // Different tensors have different maps.
  memset(map, 0, 128);
  memcpy(map, &address, sizeof address);
  memcpy(static_cast<char *>(map) + 8, extents, rank * sizeof *extents);
  memcpy(static_cast<char *>(map) + 64, box, rank * sizeof *box);
  return Success;
}

} // extern "C"
