//===- FakeCUDA.h - A strict CUDA driver without a GPU ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 for tests, with the entries that the runtime and its tests
// use. It does what the driver API's reference says of them, and refuses
// whatever that does not allow; where a real driver would crash, or work by
// luck, this one gives an error. Memory of devices is the host's.
//
// - Work in a stream is done when a thread waits for it, not before. Only order
//   in a stream and events order work.
// - Memory in the order of a stream ("Stream Ordered Memory Allocator") is
//   given again as soon as that is allowed, and filled with garbage when it is
//   made and when it is freed. Work that touches memory that is not there at
//   its place in the order fails with CUDA_ERROR_ILLEGAL_ADDRESS, and so does
//   all that follows in the context.
// - Captured work ("Stream Management", cuStreamBeginCapture) becomes a graph.
//   What is not allowed meanwhile fails and invalidates the capture.
// - Kernels are host functions that a test has set, by name.
//
// What follows is for tests, in C or C++; they link it, or find it by dlsym.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_RUNTIME_FAKECUDA_H
#define VARLEN_TEST_RUNTIME_FAKECUDA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a launch gives a kernel. `access` says whether memory may be touched;
/// if not, the launch has failed and the kernel returns.
typedef struct FakeCudaLaunch {
  const char *name;
  void **parameters;
  unsigned grid[3], block[3], sharedBytes;
  bool (*access)(const void *memory, size_t bytes);
  /* Whether it may start while those before it run. */
  bool mayOverlap;
} FakeCudaLaunch;
typedef void (*FakeCudaKernel)(const FakeCudaLaunch *launch);

/// What kernels of this name do, in all modules.
void fakeCudaSetKernel(const char *name, FakeCudaKernel kernel);

/// The `n`-th call of an entry from now on, counted from 1, fails with this
/// error.
void fakeCudaFail(const char *entry, int n, int error);

/// Calls of an entry so far.
int fakeCudaCalls(const char *entry);

typedef struct FakeCudaCounts {
  // Of what there is.
  int primaries; // retained primary contexts, as often as they are
  int modules, streams, events, pools, blocks, graphs, registrations;
  // Of what has been done.
  int allocations;   // calls that have made memory
  int defaultStream; // work in the default stream
  int refusals;      // errors that were not asked for
} FakeCudaCounts;
FakeCudaCounts fakeCudaCount(void);

/// The last error that was not asked for: "entry: reason".
const char *fakeCudaLastRefusal(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // VARLEN_TEST_RUNTIME_FAKECUDA_H
