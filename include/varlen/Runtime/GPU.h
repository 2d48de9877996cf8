/*===- GPU.h - What compiled host code of a GPU calls ------------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The host side of code for GPUs: the functions (mgpu*) that upstream's
|* gpu-to-llvm and the translation of gpu.launch_func call, over a backend that
|* is chosen when the program runs. That is the CUDA driver, which is opened
|* when it is first needed (no CUDA toolkit, no CUDA header), or what a program
|* brings, such as the executor.
|*
|* Nothing here aborts. What fails (no driver, no device, code for another chip,
|* a launch that is refused) sets varlen_last_error of the calling thread, and
|* the call does nothing or gives null.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_GPU_H
#define VARLEN_RUNTIME_GPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*\
|* Backends
\*===----------------------------------------------------------------------===*/

typedef struct varlen_gpu_launch {
  uint32_t grid[3], block[3];
  uint32_t cluster[3];   /* 1, 1, 1: none */
  uint32_t shared_bytes; /* dynamic shared memory */
} varlen_gpu_launch;

/* Element types, swizzles and fills are numbered as in the driver's API. */
typedef struct varlen_gpu_tensor_map {
  uint32_t type, rank;
  void *address;
  const uint64_t *extents;     /* rank of them, the fastest first */
  const uint64_t *strides;     /* bytes, rank - 1 of them */
  const uint32_t *box;         /* rank of them */
  const uint32_t *box_strides; /* rank of them */
  uint32_t interleave, swizzle, l2_promotion, out_of_bounds_fill;
} varlen_gpu_tensor_map;

/* A device or what stands in for one. Functions that give an integer give 0 for
   success; the others give null for failure. What fails has called
   varlen_gpu_fail. All may be called by any thread. */
typedef struct varlen_gpu_backend {
  const char *name;
  /* `size` 0: the module is a string that ends with a 0. */
  void *(*load)(const void *module, size_t size);
  void (*unload)(void *module);
  void *(*find)(void *module, const char *function);
  int32_t (*launch)(void *function, const varlen_gpu_launch *launch,
                    void *stream, void **parameters);
  void *(*create_stream)(void);
  void (*destroy_stream)(void *stream);
  int32_t (*synchronize)(void *stream);
  void *(*create_event)(void);
  void (*destroy_event)(void *event);
  int32_t (*record)(void *event, void *stream);
  int32_t (*wait)(void *stream, void *event); /* null stream: the host waits */
  void *(*allocate)(size_t bytes, void *stream, int32_t is_host_shared);
  void (*free)(void *memory, void *stream);
  int32_t (*copy)(void *to, const void *from, size_t bytes, void *stream);
  /* `width` is 1, 2 or 4 bytes. */
  int32_t (*fill)(void *memory, uint32_t value, int32_t width, size_t count,
                  void *stream);
  int32_t (*register_host)(void *memory, size_t bytes);
  void (*unregister_host)(void *memory);
  int32_t (*set_device)(int32_t device);
  /* 10 * major + minor of its compute capability, 0 on failure. */
  int32_t (*get_capability)(void);
  /* 0 on failure. */
  int32_t (*get_multiprocessors)(void);
  int32_t (*encode)(void *map, const varlen_gpu_tensor_map *what);
} varlen_gpu_backend;

/* Whoever sets no backend gets CUDA. Modules are loaded when one of their
   kernels is first launched, so this may follow the loading of compiled code;
   it must come before its first call. Null: CUDA again. */
void varlen_gpu_set_backend(const varlen_gpu_backend *backend);
const varlen_gpu_backend *varlen_gpu_get_backend(void);
const varlen_gpu_backend *varlen_gpu_cuda(void);

/* The compute capability of the backend's device, as 10 * major + minor: 90 is
   sm_90. 0 if there is none. */
int32_t varlen_gpu_capability(void);

/* Keeps the message (printf style) as the calling thread's error, unless it has
   one already. */
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void varlen_gpu_fail(const char *format, ...);

/*===----------------------------------------------------------------------===*\
|* Streams
\*===----------------------------------------------------------------------===*/

/* Compiled functions make streams of their own and wait for them, unless the
   calling thread has set one: then all their work goes to that stream (null:
   the default stream), and they do not wait. `varlen_gpu_unset_stream` ends
   that. */
void varlen_gpu_set_stream(void *stream);
void varlen_gpu_unset_stream(void);

/*===----------------------------------------------------------------------===*\
|* What code compiled from varlen.attn calls
\*===----------------------------------------------------------------------===*/

/* Device memory, in the order of the calling thread's stream; null on failure.
   A compiled function's results are such memory, to be freed by its caller. */
void *varlen_gpu_allocate(uint64_t bytes);
void varlen_gpu_free(void *memory);

/* Multiprocessors of the device: what the size of a persistent grid goes by.
   At least 1, also on failure. */
int64_t varlen_gpu_multiprocessors(void);

/*===----------------------------------------------------------------------===*\
|* What kernels report
\*===----------------------------------------------------------------------===*/

/* A kernel that finds an error in its inputs stores it here, without waiting
   and without the host: it changes `code` from 0 by an atomic compare and
   exchange, and whoever did so stores the rest. */
typedef struct varlen_gpu_status {
  int64_t code;  /* 0: none; else kind + 8 * list */
  int64_t index; /* of the entry at fault; 0 if it is an extent */
  int64_t value; /* the entry */
  int64_t bound; /* what it is compared with */
} varlen_gpu_status;

/* Kinds. */
enum {
  VARLEN_STATUS_START = 1,    /* the first entry is not 0 */
  VARLEN_STATUS_DECREASE = 2, /* bound is the entry before */
  VARLEN_STATUS_END = 3,      /* bound is the number of rows */
  VARLEN_STATUS_USED = 4,     /* bound is the length of the slot */
  VARLEN_STATUS_LENGTH = 5,   /* value and bound are numbers of entries */
  VARLEN_STATUS_EXTENT = 6,   /* the list is a VARLEN_EXTENT_RULE (Runtime.h) */
  VARLEN_STATUS_LONG = 7      /* value is a length, bound the longest one */
};
/* Lists. */
enum {
  VARLEN_STATUS_CU_Q = 0,
  VARLEN_STATUS_CU_K = 8,
  VARLEN_STATUS_USED_Q = 16,
  VARLEN_STATUS_USED_K = 24,
  VARLEN_STATUS_OFFSET = 32
};

/* Device memory of a varlen_gpu_status, the same for all kernels of a device,
   zeroed when it is made; null on failure. */
void *varlen_gpu_status_buffer(void);

/* Waits for the stream, reads and zeroes the status. An error that kernels have
   stored becomes varlen_last_error and gives non-zero. */
int32_t varlen_gpu_check(void *stream);

/*===----------------------------------------------------------------------===*\
|* What upstream's lowering calls
\*===----------------------------------------------------------------------===*/

void *mgpuModuleLoad(void *data, size_t size);
void *mgpuModuleLoadJIT(void *data, int32_t level);
void mgpuModuleUnload(void *module);
void *mgpuModuleGetFunction(void *module, const char *name);
void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t sharedBytes, void *stream,
                      void **parameters, void **extra, size_t numParameters);
void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t sharedBytes, void *stream,
                             void **parameters, void **extra);
void *mgpuStreamCreate(void);
void mgpuStreamDestroy(void *stream);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamWaitEvent(void *stream, void *event);
void *mgpuEventCreate(void);
void mgpuEventDestroy(void *event);
void mgpuEventSynchronize(void *event);
void mgpuEventRecord(void *event, void *stream);
void *mgpuMemAlloc(uint64_t bytes, void *stream, int8_t isHostShared);
void mgpuMemFree(void *memory, void *stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream);
void mgpuMemset32(void *memory, uint32_t value, size_t count, void *stream);
void mgpuMemset16(void *memory, uint16_t value, size_t count, void *stream);
void mgpuMemHostRegister(void *memory, uint64_t bytes);
void mgpuMemHostUnregister(void *memory);
/* `descriptor` is that of a memref of the given rank. */
void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t elementBytes);
void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t elementBytes);
void mgpuSetDefaultDevice(int32_t device);
/* The map is in device memory, which nobody frees: there are few. */
void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor,
                                     int32_t type, int32_t interleave,
                                     int32_t swizzle, int32_t l2Promotion,
                                     int32_t outOfBoundsFill, int64_t *box);
void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *extents,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *boxStrides, int32_t interleave,
                              int32_t swizzle, int32_t l2Promotion,
                              int32_t outOfBoundsFill);

#ifdef __cplusplus
} // extern "C"
#endif

#endif /* VARLEN_RUNTIME_GPU_H */
