//===- Contexts.cpp - Devices and contexts of the fake driver -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>

using namespace fake_cuda;

State &fake_cuda::getState() {
  // Never destroyed: modules are unloaded at the end of the process.
  static auto *state = new State;
  return *state;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Those that may come before cuInit.
static bool needsNoInit(const char *entry) {
  return strcmp(entry, "cuInit") == 0 ||
         strncmp(entry, "cuGetError", 10) == 0 ||
         strcmp(entry, "cuDriverGetVersion") == 0;
}

/// NAME:CODE in the environment: every call of the entry fails.
static Result getFixedFailure(const char *entry) {
  const char *text = getenv("FAKE_CUDA_FAIL");
  size_t length = strlen(entry);
  return text && strncmp(text, entry, length) == 0 && text[length] == ':'
             ? atoi(text + length + 1)
             : Success;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_THREAD_SANITIZER
#endif
#endif

#ifdef HAS_THREAD_SANITIZER
// Part of the sanitizer's interface.
extern "C" {
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
Hidden::Hidden() {
  // Threads interleave at calls, rather than run one after the other.
  sched_yield();
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
Hidden::~Hidden() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}
#else
Hidden::Hidden() = default;
Hidden::~Hidden() = default;
#endif

Call::Call(const char *entry) : lock(getState().mutex), entry(entry) {
  State &state = getState();
  int number = ++state.calls[entry];
  error = getFixedFailure(entry);
  auto failure = state.failures.find(entry);
  if (failure != state.failures.end() && failure->second.at == number) {
    error = failure->second.error;
    state.failures.erase(failure);
  }
  if (error == Success && !state.isInitialized && !needsNoInit(entry))
    error = refuse(NotInitialized, "cuInit has not been called");
}

Result Call::refuse(Result result, const std::string &reason) {
  State &state = getState();
  ++state.counts.refusals;
  state.refusal = std::string(entry) + ": " + reason;
  return result;
}

void fake_cuda::report(const char *format, ...) {
  static FILE *file = [] {
    const char *path = getenv("FAKE_CUDA_LOG");
    return path ? fopen(path, "w") : nullptr;
  }();
  if (!file)
    return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fflush(file);
}

int fake_cuda::getSharedLimit() {
  const char *text = getenv("FAKE_CUDA_SHARED");
  return text ? atoi(text) : 163 << 10;
}

/// Contexts that the thread has pushed, the current one last.
static thread_local std::vector<Context *> stack;

Context *fake_cuda::getCurrent() {
  return stack.empty() ? nullptr : stack.back();
}

extern "C" {

void fakeCudaSetKernel(const char *name, FakeCudaKernel kernel) {
  std::lock_guard<std::mutex> lock(getState().mutex);
  getState().kernels[name] = kernel;
}

void fakeCudaFail(const char *entry, int n, int error) {
  std::lock_guard<std::mutex> lock(getState().mutex);
  State &state = getState();
  state.failures[entry] = {state.calls[entry] + n, error};
}

int fakeCudaCalls(const char *entry) {
  std::lock_guard<std::mutex> lock(getState().mutex);
  return getState().calls[entry];
}

const char *fakeCudaLastRefusal() {
  std::lock_guard<std::mutex> lock(getState().mutex);
  return getState().refusal.c_str();
}

FakeCudaCounts fakeCudaCount() {
  std::lock_guard<std::mutex> lock(getState().mutex);
  State &state = getState();
  FakeCudaCounts counts = state.counts;
  for (int retained : state.numRetained)
    counts.primaries += retained;
  auto count = [](const auto &all) {
    int alive = 0;
    for (const auto &object : all)
      alive += object->isAlive;
    return alive;
  };
  counts.modules = count(state.modules);
  counts.streams = count(state.streams);
  counts.events = count(state.events);
  counts.pools = count(state.pools);
  for (const auto &block : state.blocks)
    counts.blocks += !block->isFreed;
  for (const auto &capture : state.captures)
    counts.graphs += capture->uses > 0;
  counts.registrations = static_cast<int>(state.registered.size());
  return counts;
}

//===----------------------------------------------------------------------===//
// "Initialization", "Version Management", "Error Handling"
//===----------------------------------------------------------------------===//

Result cuInit(unsigned flags) {
  ENTRY(cuInit);
  if (flags != 0)
    return call.refuse(InvalidValue, "flags must be 0");
  getState().isInitialized = true;
  return Success;
}

Result cuDriverGetVersion(int *version) {
  ENTRY(cuDriverGetVersion);
  *version = 13000;
  return Success;
}

/// Named as in cuda.h where the tests look for it.
static const char *getName(Result error) {
  switch (error) {
  case InvalidValue:
    return "CUDA_ERROR_INVALID_VALUE";
  case OutOfMemory:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case InvalidContext:
    return "CUDA_ERROR_INVALID_CONTEXT";
  case InvalidHandle:
    return "CUDA_ERROR_INVALID_HANDLE";
  case IllegalAddress:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case CaptureUnsupported:
    return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
  default:
    return "FAKE";
  }
}

Result cuGetErrorName(Result error, const char **name) {
  ENTRY(cuGetErrorName);
  *name = getName(error);
  return Success;
}

Result cuGetErrorString(Result /*error*/, const char **text) {
  ENTRY(cuGetErrorString);
  *text = "a fake error";
  return Success;
}

//===----------------------------------------------------------------------===//
// "Device Management"
//===----------------------------------------------------------------------===//

Result cuDeviceGetCount(int *count) {
  ENTRY(cuDeviceGetCount);
  *count = numDevices;
  return Success;
}

Result cuDeviceGet(int *device, int ordinal) {
  ENTRY(cuDeviceGet);
  if (ordinal < 0 || ordinal >= numDevices)
    return call.refuse(InvalidDevice, "no such device");
  *device = ordinal;
  return Success;
}

static bool isDevice(int device) { return device >= 0 && device < numDevices; }

Result cuDeviceGetName(char *name, int size, int device) {
  ENTRY(cuDeviceGetName);
  if (!isDevice(device))
    return call.refuse(InvalidDevice, "no such device");
  snprintf(name, size, "Fake GPU");
  return Success;
}

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTRY(cuDeviceGetAttribute);
  if (!isDevice(device))
    return call.refuse(InvalidDevice, "no such device");
  switch (attribute) {
  case 16: // MULTIPROCESSOR_COUNT
    *value = 108 - device;
    return Success;
  case 75: // COMPUTE_CAPABILITY_MAJOR
    *value = 8;
    return Success;
  case 76: // COMPUTE_CAPABILITY_MINOR
    *value = 0;
    return Success;
  case 97: // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    *value = getSharedLimit();
    return Success;
  default:
    return call.refuse(InvalidValue, "an attribute that the fake has not");
  }
}

//===----------------------------------------------------------------------===//
// "Context Management", "Primary Context Management"
//===----------------------------------------------------------------------===//

static Context *makeContext(int device, bool isPrimary) {
  State &state = getState();
  state.contexts.push_back(std::make_unique<Context>());
  Context *context = state.contexts.back().get();
  context->id = state.contexts.size();
  context->device = device;
  context->isPrimary = isPrimary;
  return context;
}

/// A context takes all that is in it with it.
static void destroy(Context &context) {
  State &state = getState();
  context.isAlive = false;
  for (const auto &stream : state.streams)
    if (stream->context == &context)
      stream->isAlive = false;
  for (const auto &module : state.modules)
    if (module->context == &context)
      module->isAlive = false;
  for (const auto &event : state.events)
    if (event->context == &context)
      event->isAlive = false;
}

Result cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  ENTRY(cuDevicePrimaryCtxGetState);
  if (!isDevice(device))
    return call.refuse(InvalidDevice, "no such device");
  *flags = 0;
  *active = getState().primaries[device] != nullptr;
  return Success;
}

Result cuDevicePrimaryCtxRetain(Context **context, int device) {
  ENTRY(cuDevicePrimaryCtxRetain);
  if (!isDevice(device))
    return call.refuse(InvalidDevice, "no such device");
  State &state = getState();
  if (!state.primaries[device])
    state.primaries[device] = makeContext(device, true);
  ++state.numRetained[device];
  *context = state.primaries[device];
  return Success;
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
  ENTRY(cuDevicePrimaryCtxRelease_v2);
  State &state = getState();
  if (!isDevice(device) || state.numRetained[device] == 0)
    return call.refuse(InvalidContext, "the context is not retained");
  if (--state.numRetained[device] == 0 && state.primaries[device]) {
    destroy(*state.primaries[device]);
    state.primaries[device] = nullptr;
  }
  return Success;
}

/// "Resetting the primary context does not release it."
Result cuDevicePrimaryCtxReset_v2(int device) {
  ENTRY(cuDevicePrimaryCtxReset_v2);
  State &state = getState();
  if (isDevice(device) && state.primaries[device]) {
    destroy(*state.primaries[device]);
    state.primaries[device] = nullptr;
  }
  return Success;
}

Result cuCtxCreate_v2(Context **context, unsigned flags, int device) {
  ENTRY(cuCtxCreate_v2);
  if (!isDevice(device) || flags != 0)
    return call.refuse(InvalidValue, "no such device");
  *context = makeContext(device, false);
  stack.push_back(*context);
  return Success;
}

Result cuCtxDestroy_v2(Context *context) {
  ENTRY(cuCtxDestroy_v2);
  if (!find(getState().contexts, context) || context->isPrimary)
    return call.refuse(InvalidContext, "no context that was created");
  destroy(*context);
  if (getCurrent() == context)
    stack.pop_back();
  return Success;
}

Result cuCtxGetCurrent(Context **context) {
  ENTRY(cuCtxGetCurrent);
  *context = getCurrent();
  return Success;
}

Result cuCtxSetCurrent(Context *context) {
  ENTRY(cuCtxSetCurrent);
  if (context && !find(getState().contexts, context))
    return call.refuse(InvalidContext, "no such context");
  if (!stack.empty())
    stack.pop_back();
  if (context)
    stack.push_back(context);
  return Success;
}

Result cuCtxPushCurrent_v2(Context *context) {
  ENTRY(cuCtxPushCurrent_v2);
  if (!find(getState().contexts, context))
    return call.refuse(InvalidContext, "no such context");
  stack.push_back(context);
  return Success;
}

Result cuCtxPopCurrent_v2(Context **context) {
  ENTRY(cuCtxPopCurrent_v2);
  if (stack.empty())
    return call.refuse(InvalidContext, "no context was pushed");
  *context = stack.back();
  stack.pop_back();
  return Success;
}

Result cuCtxGetDevice(int *device) {
  ENTRY(cuCtxGetDevice);
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  *device = context->device;
  return Success;
}

Result cuCtxGetId(Context *context, unsigned long long *id) {
  ENTRY(cuCtxGetId);
  if (!context)
    context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  if (!find(getState().contexts, context))
    return call.refuse(ContextIsDestroyed, "no such context");
  *id = context->id;
  return Success;
}

} // extern "C"
