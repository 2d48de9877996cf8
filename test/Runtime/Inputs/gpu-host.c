/* A host that has a stream and calls a compiled function as docs/gpu-runtime.md
   says. The fake driver does not run its kernels. */

#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/MGPU.h"
#include "varlen/Runtime/Runtime.h"

#include <stdio.h>

/* What cuda.h declares. */
typedef void *CUcontext, *CUstream, *CUgraph;
typedef unsigned long long CUdeviceptr;
enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0 };
int cuInit(unsigned flags);
int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemFree_v2(CUdeviceptr address);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphDestroy(CUgraph graph);
#define cuMemAlloc cuMemAlloc_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2

/* The fake's. */
void fakeCudaFail(const char *entry, int n, int error);
int fakeCudaCalls(const char *entry);

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[3], strides[3];
} Tensor;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} Matrix;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[1], strides[1];
} List;

void _mlir_ciface_attention(Tensor *q, Tensor *k, Tensor *v, List *cu,
                            Tensor *out, Matrix *lse);
#define attention _mlir_ciface_attention

#define EXPECT(condition)                                                      \
  if (!(condition))                                                            \
  return fprintf(stderr, "line %d: expected %s\n", __LINE__, #condition), 1

static Tensor q, k, v, out;
static Matrix lse;
static List cu;

static Tensor makeTensor(int64_t rows, int64_t heads) {
  void *memory = varlen_gpu_allocate((uint64_t)(rows * heads * 64 * 2));
  Tensor tensor = {memory, memory, 0, {rows, heads, 64}, {heads * 64, 64, 1}};
  return tensor;
}

static void call(CUstream stream) {
#include "example1.inc"
}

static CUgraph capture(CUstream stream) {
  CUgraph graph = NULL;
#include "example2.inc"
  cuMemFree_v2(workspace);
  return graph;
}

int main(void) {
  CUcontext context;
  CUstream stream;
  EXPECT(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 1));
  EXPECT(!cuStreamCreate(&stream, 1));
  varlen_gpu_set_stream(stream);
  q = makeTensor(100, 8), k = makeTensor(100, 2), v = makeTensor(100, 2);
  out = makeTensor(100, 8);
  void *memory = varlen_gpu_allocate(8 * 100 * 4);
  lse = (Matrix){memory, memory, 0, {8, 100}, {100, 1}};
  memory = varlen_gpu_allocate(3 * 4);
  cu = (List){memory, memory, 0, {3}, {1}};
  EXPECT(!varlen_last_error());

  call(stream);
  int launches = fakeCudaCalls("cuLaunchKernelEx");
  EXPECT(launches == 2 && !varlen_last_error());
  /* A function that could not allocate launches nothing. */
  fakeCudaFail("cuMemAllocFromPoolAsync", 1, 2);
  call(stream);
  EXPECT(fakeCudaCalls("cuLaunchKernelEx") == launches);

  CUgraph graph = capture(stream);
  EXPECT(graph && !varlen_last_error());
  EXPECT(fakeCudaCalls("cuLaunchKernelEx") == launches + 22);
  cuGraphDestroy(graph);
  return 0;
}
