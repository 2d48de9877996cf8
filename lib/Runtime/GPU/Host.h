//===- Host.h - The runtime of GPU code, for its own parts ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is above the backend, whichever it is: the calling thread's stream, code
// that is loaded late, what belongs to a context.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_GPU_HOST_H
#define VARLEN_LIB_RUNTIME_GPU_HOST_H

#include "varlen/Runtime/GPU.h"

#include <cstddef>
#include <cstdint>

namespace varlen_runtime::gpu {

const varlen_gpu_backend &backend();

//===----------------------------------------------------------------------===//
// Failure
//===----------------------------------------------------------------------===//

/// Whether the calling thread may go on: nothing has failed since its error was
/// last cleared.
bool mayContinue();

/// Notes that something has failed.
void noteFailure();

/// The argument, a pointer of which null is a failure.
template <typename T> T *noteNull(T *made) {
  if (!made)
    noteFailure();
  return made;
}

/// The argument, of which all but 0 is a failure.
inline int32_t noteError(int32_t error) {
  if (error)
    noteFailure();
  return error;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// A stream that work goes to; null may be one.
struct Place {
  void *stream;
  bool isValid;
};

/// The calling thread's stream. Not valid, with the error set, if there is
/// none.
Place getPlace();

/// The stream of an argument, null meaning the calling thread's.
Place getPlace(void *stream);

/// Whether the calling thread has set the stream that it works in: then it does
/// not wait for it.
bool hasCallersStream();

/// Whether something new can be made now. An error that names `what` if the
/// stream is being captured: that must have been made before.
bool mayMake(const Place &place, const char *what);

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// A module of compiled code that stays where it is; `size` 0: it is a string.
/// Nothing is loaded yet: a constructor may call this, when there is no device
/// and no caller to tell.
void *addModule(const void *data, size_t size);
void removeModule(void *opaque);
/// A kernel of the module, by its name, which is looked up when it is launched.
void *getKernel(void *opaque, const char *name);

struct Dimensions {
  intptr_t x, y, z;
};
void launch(void *opaque, const Dimensions &cluster, const Dimensions &grid,
            const Dimensions &block, int32_t sharedBytes, void *stream,
            void **parameters);

/// Loads all modules and their kernels into the context of the stream.
bool loadModules(const Place &place);

/// Unloads what is loaded into the context.
void unloadModules(uint64_t context);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Memory of the device, outside of any workspace. Ready for every stream if
/// the calling thread has set none.
void *allocate(const Place &place, uint64_t bytes);

/// Memory that the context keeps until it is released, which starts with these
/// contents: the one that was made for the same use and equal contents before,
/// or a new one, which cannot be made in a capture.
void *getKept(const Place &place, const char *use, const void *contents,
              size_t bytes);

/// Such memory of any contents; null if there is none.
void *findKept(uint64_t context, const char *use);

void freeKept(const Place &place, uint64_t context);

} // namespace varlen_runtime::gpu

#endif // VARLEN_LIB_RUNTIME_GPU_HOST_H
