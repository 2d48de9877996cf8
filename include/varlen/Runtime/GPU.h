/*===- GPU.h - What compiled host code of a GPU calls ------------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The host side of code for GPUs, over a backend that is chosen when the
|* program runs. That is the CUDA driver, which is opened when it is first
|* needed (no CUDA toolkit, no CUDA header), or what a program brings, such as
|* the executor.
|* Compiled code also calls the functions of MGPU.h, a library of its own.
|*
|* Nothing here aborts. What fails (no driver, no device, code for another chip,
|* a launch that is refused, memory that is not there) sets varlen_last_error of
|* the calling thread, and the call does nothing or gives null. The thread's
|* launches, copies, fills and allocations then do nothing, until
|* varlen_clear_error: no kernel runs on what a failed call has not made.
|*
|* Everything may be called by any thread, but varlen_gpu_set_backend and
|* varlen_gpu_release. docs/gpu-runtime.md has the rest: contexts, streams,
|* graphs.
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

typedef void (*varlen_gpu_kernel_visitor)(const char *name, void *function,
                                          void *context);

/* A device or what stands in for one. Functions that give an int32_t give 0 for
   success where nothing else is said; those that give a pointer give null for
   failure. What fails has called varlen_gpu_fail. All may be called by any
   thread. A stream is never left out: null is the driver's default stream. */
typedef struct varlen_gpu_backend {
  const char *name;
  /* The number of the context that work in `stream` runs in, unlike that of any
     other of the process; 0 on failure. */
  uint64_t (*get_context)(void *stream);
  /* Gives back what the backend keeps in a context for itself. */
  void (*release)(uint64_t context);
  /* The context of the calling thread, where no stream gives one. */
  int32_t (*set_device)(int32_t device);
  /* Until `leave`, the calling thread is in the context of the stream, so that
     calls for this stream need not ask for it. Default streams are those of the
     device: of the current context if that is on it, or the device is negative,
     else of the primary one. Pairs do not nest. */
  int32_t (*enter)(void *stream, int32_t device);
  void (*leave)(void);
  /* 10 * major + minor of the compute capability, 0 on failure. */
  int32_t (*get_capability)(void *stream);
  /* 0 on failure. */
  int32_t (*get_multiprocessors)(void *stream);
  /* Code for the context of the stream. `size` 0: it is a string. */
  void *(*load)(const void *module, size_t size, void *stream);
  /* `is_alive` 0: its context may be gone, and the module with it. */
  void (*unload)(void *module, int32_t is_alive);
  void *(*find)(void *module, const char *function);
  /* Loads all functions of the module and visits them, if it knows them. */
  int32_t (*find_all)(void *module, varlen_gpu_kernel_visitor visit,
                      void *context);
  int32_t (*launch)(void *function, const varlen_gpu_launch *launch,
                    void *stream, void **parameters);
  /* A stream of the calling thread's own, which the backend keeps. */
  void *(*get_stream)(void);
  /* 1: work in the stream is captured instead of done; negative on failure. */
  int32_t (*is_capturing)(void *stream);
  int32_t (*synchronize)(void *stream);
  void *(*create_event)(void *stream);
  void (*destroy_event)(void *event, void *stream);
  int32_t (*record)(void *event, void *stream);
  int32_t (*wait)(void *stream, void *event);
  int32_t (*synchronize_event)(void *event, void *stream);
  /* Memory in the order of the stream. */
  void *(*allocate)(size_t bytes, void *stream);
  void (*free)(void *memory, void *stream);
  /* Memory that the host may access, too. */
  void *(*allocate_shared)(size_t bytes, void *stream);
  void (*free_shared)(void *memory, void *stream);
  int32_t (*copy)(void *to, const void *from, size_t bytes, void *stream);
  /* `width` is 1, 2 or 4 bytes. */
  int32_t (*fill)(void *memory, uint32_t value, int32_t width, size_t count,
                  void *stream);
  /* A varlen_gpu_status in memory of the host that kernels in the stream's
     context can store to, the same at each call, zeroed when it is made, which
     may be while the stream is captured. It stays until the context is
     released; null on failure. */
  void *(*get_report)(void *stream);
  int32_t (*register_host)(void *memory, size_t bytes, void *stream);
  void (*unregister_host)(void *memory, void *stream);
  /* `map` is 128 bytes, aligned to 64. */
  int32_t (*encode)(void *map, const varlen_gpu_tensor_map *what, void *stream);
} varlen_gpu_backend;

/* CUDA is the default backend. Modules are loaded when one of their
   kernels is first launched, so this may follow the loading of compiled code;
   it must come before its first call. Null: CUDA again. */
void varlen_gpu_set_backend(const varlen_gpu_backend *backend);
const varlen_gpu_backend *varlen_gpu_get_backend(void);
const varlen_gpu_backend *varlen_gpu_cuda(void);

/* The compute capability of the calling thread's device, as 10 * major + minor:
   90 is sm_90. 0 if there is none. */
int32_t varlen_gpu_capability(void);

/* Keeps the message (printf style) as the calling thread's error, unless it has
   one already. */
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void varlen_gpu_fail(const char *format, ...);

/*===----------------------------------------------------------------------===*\
|* Streams and devices
\*===----------------------------------------------------------------------===*/

/* The work of compiled functions that the calling thread calls goes to this
   stream (null: the default stream), in its context and on its device, and they
   do not wait for it. `varlen_gpu_unset_stream` ends that: work goes to a
   stream of the thread's own, and is done when a function returns. */
void varlen_gpu_set_stream(void *stream);
void varlen_gpu_unset_stream(void);

/* The device of the calling thread where it has set no stream; its primary
   context is used. A thread that has set neither works in its current context,
   or on device 0 if it has none. Non-zero if there is no such device. */
int32_t varlen_gpu_set_device(int32_t device);

/* Waits for the calling thread's stream, be it its own or one it has set. */
int32_t varlen_gpu_synchronize(void);

/* Loads all compiled code of the process and what else a first call makes into
   the context of the calling thread's stream, so that a function's first call
   can be captured in a graph. Non-zero on failure. A driver older than that of
   CUDA 12.4 cannot list kernels: call each function once then. */
int32_t varlen_gpu_prepare(void);

/* Gives back what the runtime keeps in the context of the calling thread's
   stream: loaded code, the status, streams, the memory pool. Before a host
   destroys or resets a context. No other thread may be working in it; what was
   captured there must not run again. */
void varlen_gpu_release(void);

/* Whether kernels of the process may start while those before them in their
   stream still run, which hides what a launch costs (CUDA's programmatic
   dependent launches): 1 or 0, which it is at first. They are kernels of
   modules that have a constant of this name, which says that each kernel waits
   for those before it (griddepcontrol.wait) before it accesses memory; and the
   driver is one of CUDA 12.3 or later, whose graphs know such launches. */
#define VARLEN_GPU_WAITS_FOR_GRIDS "varlen_waits_for_grids"
void varlen_gpu_overlap_launches(int32_t overlap);

/*===----------------------------------------------------------------------===*\
|* Memory
\*===----------------------------------------------------------------------===*/

/* Device memory, in the order of the calling thread's stream; null on failure.
   A compiled function's results are such memory, to be freed by its caller. */
void *varlen_gpu_allocate(uint64_t bytes);
void varlen_gpu_free(void *memory);

/* Lets varlen_gpu_allocate of the calling thread take from `memory`, device
   memory aligned to 256 bytes, in the place of the driver: a call then
   allocates nothing. What does not fit is an error. What lies there is used in
   the order of one stream. Null ends that; so does another call. */
void varlen_gpu_set_workspace(void *memory, uint64_t bytes);

/* From here on the calling thread's allocations are measured, until it sets a
   workspace. */
void varlen_gpu_measure_workspace(void);

/* Bytes of workspace that suffice for the allocations since the calling thread
   set one or began to measure. A function's are the same for the same extents,
   whatever its inputs hold. */
uint64_t varlen_gpu_workspace_size(void);

/* Copies between host and device, in either direction, in the calling thread's
   stream: the host's memory must stay until that is done. Non-zero on
   failure. */
int32_t varlen_gpu_copy(void *to, const void *from, uint64_t bytes);

/* Stores a tensor map in `map`, 128 bytes aligned to 64, which may be a
   parameter of a kernel. Non-zero on failure. */
int32_t varlen_gpu_encode_tensor_map(void *map,
                                     const varlen_gpu_tensor_map *what);

/*===----------------------------------------------------------------------===*\
|* What code compiled from varlen.attn calls
\*===----------------------------------------------------------------------===*/

/* Multiprocessors of the device: what the size of a persistent grid goes by.
   At least 1, also on failure. */
int64_t varlen_gpu_multiprocessors(void);

/*===----------------------------------------------------------------------===*\
|* What kernels report
\*===----------------------------------------------------------------------===*/

/* A kernel that finds an error in its inputs stores it here, without waiting
   and without the host: it changes `code` from 0 to VARLEN_STATUS_BUSY by an
   atomic compare and exchange; the thread that did so stores the rest, then the
   code (a store with release). Others find it taken: the first error is kept.
 */
typedef struct varlen_gpu_status {
  int64_t code;  /* 0: none; else kind + 8 * list, less than 2^31 */
  int64_t index; /* of the entry at fault; 0 if it is an extent; in the block
                    table the row * VARLEN_STATUS_COLUMNS + the column */
  int64_t value; /* the entry */
  int64_t bound; /* what it is compared with */
} varlen_gpu_status;

/* Kinds. */
enum {
  VARLEN_STATUS_BUSY = -1,    /* a kernel is storing its error */
  VARLEN_STATUS_START = 1,    /* the first entry is not 0 */
  VARLEN_STATUS_DECREASE = 2, /* bound is the entry before */
  VARLEN_STATUS_END = 3,      /* bound is the number of rows, or of pages */
  VARLEN_STATUS_USED = 4,     /* bound is the length of the slot; of the block
                                 table, what a row of it has room for */
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
  VARLEN_STATUS_OFFSET = 32,
  VARLEN_STATUS_TABLE = 40,
  /* What an append reads. */
  VARLEN_STATUS_NEW_CU = 48,   /* cu_seqlens */
  VARLEN_STATUS_NEW_USED = 56, /* seqused_k */
  VARLEN_STATUS_NEW_PAGES =
      64,                       /* what a sequence has room for in its pages: of
                                   USED the index is the sequence *
                                   VARLEN_STATUS_COLUMNS + its new rows, of
                                   LENGTH value and bound are rows of the table */
  VARLEN_STATUS_NEW_SLOTS = 72, /* the same in its slot; of LENGTH value and
                                   bound are sequences and slots */
  VARLEN_STATUS_SAME_PAGE = 80, /* USED: the bound is the index of the other
                                   entry of the block table */
  VARLEN_STATUS_COS = 88, /* LENGTH: value and bound are rows, the index is
                             the sequence that asks for them */
  VARLEN_STATUS_SIN = 96
};
#define VARLEN_STATUS_COLUMNS (INT64_C(1) << 31)

/* Device memory of a varlen_gpu_status, the same for all kernels of a context,
   zeroed when it is made; null on failure. */
void *varlen_gpu_status_buffer(void);

/* Waits for a stream (null: the calling thread's), reads and zeroes the status
   of its context. An error that kernels have stored becomes varlen_last_error
   and gives non-zero, once. It may be that of another stream of the context. */
int32_t varlen_gpu_check(void *stream);

/* Makes an error that kernels have stored, here or in memory of the caller's,
   the calling thread's. `code` is not 0. */
void varlen_gpu_report(const varlen_gpu_status *status);

#ifdef __cplusplus
} // extern "C"
#endif

#endif /* VARLEN_RUNTIME_GPU_H */
