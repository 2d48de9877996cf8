/* A C99 program that launches kernels as docs/kernel-abi.md says, with nothing
   but the CUDA driver. The fake driver does not run them. */

#include "attention.h"

#include <stddef.h>
#include <stdio.h>

/* What cuda.h declares. */
typedef void *CUcontext, *CUstream, *CUgraph;
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphDestroy(CUgraph graph);
#define cuMemAlloc cuMemAlloc_v2

/* The fake's. */
int fakeCudaCalls(const char *entry);

enum { ROWS = 100 };

static void *allocate(size_t bytes) {
  CUdeviceptr address = 0;
  return cuMemAlloc(&address, bytes) ? NULL : (void *)address;
}

int main(void) {
  CUcontext context;
  CUstream stream;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuStreamCreate(&stream, 1))
    return 1;
  varlen_bf16_3 q = make_varlen_bf16_3(allocate(ROWS * 8 * 128), ROWS, 8, 64);
  varlen_bf16_3 k = make_varlen_bf16_3(allocate(ROWS * 2 * 128), ROWS, 2, 64);
  varlen_bf16_3 v = make_varlen_bf16_3(allocate(ROWS * 2 * 128), ROWS, 2, 64);
  varlen_i32_1 cu = make_varlen_i32_1(allocate(4 * 4), 4);
  varlen_bf16_3 out = make_varlen_bf16_3(allocate(ROWS * 8 * 128), ROWS, 8, 64);
  varlen_f32_2 lse = make_varlen_f32_2(allocate(ROWS * 8 * 4), 8, ROWS);
  int before = fakeCudaCalls("cuMemAlloc_v2");
#include "example1.inc"
  printf("%d, status %d, %d allocation\n", error, (int)status.code,
         fakeCudaCalls("cuMemAlloc_v2") - before);

  /* A launch waits for nothing and allocates nothing: a graph can have it. */
  CUgraph graph = NULL;
  error = cuStreamBeginCapture_v2(stream, 0);
  if (!error)
    error = attention_launch(&kernels, &q, &k, &v, &cu, &out, &lse,
                             (void *)workspace, size, stream);
  if (!error)
    error = cuStreamEndCapture(stream, &graph);
  printf("captured: %d\n", error);
  cuGraphDestroy(graph);
  return attention_unload(&kernels);
}
