/* A host of kernels: what it takes from cuda.h, and the executor behind the
   fake driver, so that kernels of PTX run. */

#ifndef VARLEN_TEST_CAPI_GPU_H
#define VARLEN_TEST_CAPI_GPU_H

#include "FakeCUDA.h"
#include "Test.h"
#include "varlen/Runtime/GPUExecutor.h"
#include "varlen/Runtime/Runtime.h"

#include <pthread.h>

/* What cuda.h declares. */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxSetCurrent(CUcontext context);
int cuCtxGetCurrent(CUcontext *context);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemFree_v2(CUdeviceptr address);
int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                  CUstream stream);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                unsigned long long flags);
int cuGraphLaunch(CUgraphExec executable, CUstream stream);
int cuGraphExecDestroy(CUgraphExec executable);
int cuGraphDestroy(CUgraph graph);

enum { CU_STREAM_NON_BLOCKING = 1, CUDA_ERROR_OUT_OF_MEMORY = 2 };

/*===----------------------------------------------------------------------===*\
|* Kernels: those of the executor by the names that PTX has for them
\*===----------------------------------------------------------------------===*/

static void *executed; /* a module */

static inline void runKernel(const FakeCudaLaunch *launch) {
  const varlen_gpu_backend *executor = varlen_gpu_executor();
  varlen_gpu_launch what = {.cluster = {1, 1, 1},
                            .shared_bytes = launch->sharedBytes};
  memcpy(what.grid, launch->grid, sizeof what.grid);
  memcpy(what.block, launch->block, sizeof what.block);
  /* The first parameter is an address, which the launch's device has to have.
   */
  if (!launch->access(*(void **)launch->parameters[0], 1))
    return;
  if (executor->launch(executor->find(executed, launch->name), &what, NULL,
                       launch->parameters)) {
    fprintf(stderr, "%s: %s\n", launch->name, varlen_last_error());
    varlen_clear_error();
    ++failures;
  }
}

/* Has the executor's kernels of `image` run for those of the PTX, which have
   the same names and parameters. Returns how many there are. */
static inline int setKernels(const char *ptx, const char *image) {
  const varlen_gpu_backend *executor = varlen_gpu_executor();
  int count = 0;
  executed = executor->load(image, 0, NULL);
  for (const char *at = strstr(ptx, ".entry "); at;
       at = strstr(at + 1, ".entry ")) {
    char name[64];
    if (sscanf(at, ".entry %63[A-Za-z0-9_]", name) != 1 ||
        !executor->find(executed, name))
      return 0;
    fakeCudaSetKernel(name, runKernel);
    ++count;
  }
  return count;
}

/*===----------------------------------------------------------------------===*\
|* Memory, in the current context
\*===----------------------------------------------------------------------===*/

static inline void *allocate(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT(!cuMemAlloc_v2(&address, bytes));
  return (void *)(uintptr_t)address;
}

static inline void release(void *memory) {
  EXPECT(!cuMemFree_v2((uintptr_t)memory));
}

/* Between the host and the device, in either direction. */
static inline void copy(void *to, const void *from, size_t bytes,
                        CUstream stream) {
  EXPECT(!cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, stream));
  EXPECT(!cuStreamSynchronize(stream));
}

#endif /* VARLEN_TEST_CAPI_GPU_H */
