/* What both programs have: the CUDA driver, the inputs of a causal attention in
   memory of the device, and the comparison with a reference in f64. */

#ifndef VARLEN_BENCHMARKS_PROGRAMS_DEVICE_H
#define VARLEN_BENCHMARKS_PROGRAMS_DEVICE_H

#include "Reference.h"

/* What cuda.h declares. */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuCtxSetCurrent(CUcontext context);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                  CUstream stream);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                unsigned long long flags);
int cuGraphLaunch(CUgraphExec executable, CUstream stream);

enum { TOKENS = 301, SEQUENCES = 4 };
enum { Q_SIZE = TOKENS * HEADS * DIM, K_SIZE = TOKENS * KV_HEADS * DIM };
static const int32_t cuSeqlens[SEQUENCES + 1] = {0, 70, 70, 71, TOKENS};

/* On the host and on the device. */
static float q[Q_SIZE], k[K_SIZE], v[K_SIZE], out[Q_SIZE], lse[HEADS * TOKENS];
static float *deviceQ, *deviceK, *deviceV, *deviceOut, *deviceLse;
static int32_t *deviceCu;
static CUstream stream;

static void expect(int isTrue, const char *what) {
  if (isTrue)
    return;
  fprintf(stderr, "expected %s\n", what);
  exit(1);
}

static void *allocate(size_t bytes) {
  CUdeviceptr address = 0;
  expect(!cuMemAlloc_v2(&address, bytes), "memory of the device");
  return (void *)(uintptr_t)address;
}

/* Between the host and the device, in either direction. */
static void copy(void *to, const void *from, size_t bytes) {
  expect(!cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, stream) &&
             !cuStreamSynchronize(stream),
         "a copy");
}

static void *store(const void *data, size_t bytes) {
  void *memory = allocate(bytes);
  copy(memory, data, bytes);
  return memory;
}

static void fill(float *values, int size) {
  static uint32_t state = 1;
  for (int i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    values[i] = (float)(state >> 8) / (1 << 23) - 1;
  }
}

static void setUp(void) {
  CUcontext context;
  expect(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) &&
             !cuCtxSetCurrent(context) && !cuStreamCreate(&stream, 1),
         "a CUDA device");
  fill(q, Q_SIZE);
  fill(k, K_SIZE);
  fill(v, K_SIZE);
  attend(q, k, v, cuSeqlens, SEQUENCES, out, lse);
  deviceQ = store(q, sizeof q);
  deviceK = store(k, sizeof k);
  deviceV = store(v, sizeof v);
  deviceCu = store(cuSeqlens, sizeof cuSeqlens);
  deviceOut = allocate(sizeof out);
  deviceLse = allocate(sizeof lse);
}

static double farthest(const float *device, const float *wanted, int size) {
  static float got[Q_SIZE];
  copy(got, device, (size_t)size * sizeof *got);
  double most = 0;
  for (int i = 0; i < size; ++i) {
    double error = fabs((double)got[i] - (double)wanted[i]);
    most = error <= most ? most : error; /* NaN stays */
  }
  return most;
}

/* Says how far results are off; poisons them for the next launch. */
static void judge(const char *what) {
  double ofOut = farthest(deviceOut, out, Q_SIZE);
  double ofLse = farthest(deviceLse, lse, HEADS * TOKENS);
  printf("%s: out off by %.1e, lse by %.1e\n", what, ofOut, ofLse);
  expect(ofOut < 2e-5 && ofLse < 2e-5, "numbers of the reference");
  static float poison[Q_SIZE];
  for (int i = 0; i < Q_SIZE; ++i)
    poison[i] = NAN;
  copy(deviceOut, poison, sizeof out);
  copy(deviceLse, poison, sizeof lse);
}

/* Captures a launch in a graph and runs it twice. */
static void runInGraph(int (*launch)(void)) {
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  expect(!cuStreamBeginCapture_v2(stream, 0) && !launch() &&
             !cuStreamEndCapture(stream, &graph) &&
             !cuGraphInstantiateWithFlags(&executable, graph, 0),
         "a launch that can be captured");
  for (int i = 0; i < 2; ++i) {
    expect(!cuGraphLaunch(executable, stream) && !cuStreamSynchronize(stream),
           "a graph that runs");
    judge("graph");
  }
}

/* Code of the kernels that is to be taken in place of a program's own; null
   without an argument. */
static char *readImage(int argc, char **argv, size_t *size) {
  static char image[1 << 12];
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  *size = file ? fread(image, 1, sizeof image - 1, file) : 0;
  return *size ? image : NULL;
}

#endif /* VARLEN_BENCHMARKS_PROGRAMS_DEVICE_H */
