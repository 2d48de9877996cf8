//===- Host.cpp - The calling thread and its stream -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host.h"

#include "../Error.h"
#include "varlen/Runtime/Runtime.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

using namespace varlen_runtime;
using namespace varlen_runtime::gpu;

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

static std::atomic<const varlen_gpu_backend *> chosen{nullptr};

void varlen_gpu_set_backend(const varlen_gpu_backend *backend) {
  chosen = backend;
}

const varlen_gpu_backend *varlen_gpu_get_backend() {
  const varlen_gpu_backend *backend = chosen;
  return backend ? backend : varlen_gpu_cuda();
}

const varlen_gpu_backend &gpu::backend() { return *varlen_gpu_get_backend(); }

//===----------------------------------------------------------------------===//
// Failure
//===----------------------------------------------------------------------===//

static thread_local bool hasFailed = false;

bool gpu::mayContinue() {
  if (hasFailed && !varlen_last_error())
    hasFailed = false;
  return !hasFailed;
}

void gpu::noteFailure() { hasFailed = true; }

void varlen_gpu_fail(const char *format, ...) {
  char text[480];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  setError("%s", text);
}

//===----------------------------------------------------------------------===//
// Streams and devices
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

bool gpu::hasCallersStream() { return hasStream; }

Place gpu::getPlace() {
  if (hasStream)
    return {callersStream, true};
  void *own = noteNull(backend().get_stream());
  return {own, own != nullptr};
}

Place gpu::getPlace(void *stream) {
  return stream ? Place{stream, true} : getPlace();
}

bool gpu::mayMake(const Place &place, const char *what) {
  int32_t isCapturing = backend().is_capturing(place.stream);
  if (isCapturing > 0)
    setError("%s cannot be made while the stream is captured: expected a call "
             "of varlen_gpu_prepare before",
             what);
  return noteError(isCapturing) == 0;
}

int32_t varlen_gpu_set_device(int32_t device) {
  return noteError(backend().set_device(device));
}

int32_t varlen_gpu_capability() {
  Place place = getPlace();
  int32_t capability =
      place.isValid ? backend().get_capability(place.stream) : 0;
  return noteError(capability == 0) ? 0 : capability;
}

int64_t varlen_gpu_multiprocessors() {
  Place place = getPlace();
  int32_t count =
      place.isValid ? backend().get_multiprocessors(place.stream) : 0;
  return noteError(count < 1) ? 1 : count;
}

int32_t varlen_gpu_synchronize() {
  Place place = getPlace();
  return !place.isValid || noteError(backend().synchronize(place.stream));
}

int32_t varlen_gpu_copy(void *to, const void *from, uint64_t bytes) {
  if (!mayContinue())
    return 1;
  if (bytes == 0)
    return 0;
  Place place = getPlace();
  return !place.isValid ||
         noteError(backend().copy(to, from, bytes, place.stream));
}

int32_t varlen_gpu_encode_tensor_map(void *map,
                                     const varlen_gpu_tensor_map *what) {
  if (!mayContinue())
    return 1;
  Place place = getPlace();
  return !place.isValid || noteError(backend().encode(map, what, place.stream));
}

//===----------------------------------------------------------------------===//
// What a context has
//===----------------------------------------------------------------------===//

int32_t varlen_gpu_prepare() {
  if (!mayContinue())
    return 1;
  Place place = getPlace();
  return !place.isValid || !mayMake(place, "what a first call needs") ||
         !loadModules(place) || !varlen_gpu_status_buffer();
}

void varlen_gpu_release() {
  Place place = getPlace();
  uint64_t context = place.isValid ? backend().get_context(place.stream) : 0;
  if (noteError(context == 0))
    return;
  freeKept(place, context);
  noteError(backend().synchronize(place.stream));
  unloadModules(context);
  backend().release(context);
}
