/*===- call_cost.c - What a call costs beside its kernel ---------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Calls one attention by the header of an object and by libvarlen-c, on a
|* sequence without rows and on one of a single row, and prints the times of the
|* calls less that of the kernel. benchmarks/call_cost.py compiles and runs it.
|*
\*===----------------------------------------------------------------------===*/

#define _POSIX_C_SOURCE 200809L

#include "attention.h"
#include "varlen-c/Varlen.h"
#include "varlen/Runtime/Runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
  HEADS = 4,
  KV_HEADS = 2,
  DIM = 64,
  CALLS = 1000,
  MAX_REPETITIONS = 1001
};

/* Of CALLS calls. */
static int repetitions;

/*===----------------------------------------------------------------------===*\
|* Times
\*===----------------------------------------------------------------------===*/

/* Nanoseconds of one call. */
typedef struct Time {
  double median, least;
} Time;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static Time measure(void (*call)(void *), void *context) {
  double times[MAX_REPETITIONS];
  Time result;
  for (int i = 0; i < repetitions; ++i) {
    double start = now();
    for (int j = 0; j < CALLS; ++j)
      call(context);
    times[i] = (now() - start) / CALLS;
  }
  qsort(times, (size_t)repetitions, sizeof *times, compare);
  result.median = times[repetitions / 2];
  result.least = times[0];
  return result;
}

static void print(const char *what, int rows, Time call, Time kernel) {
  printf("| %s | %d | %.0f | %.0f | %.0f | %.0f |\n", what, rows, call.median,
         kernel.median, call.median - kernel.median, call.least - kernel.least);
}

static void stop(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

/*===----------------------------------------------------------------------===*\
|* Calls
\*===----------------------------------------------------------------------===*/

/* One sequence of at most one row. */
static float q[HEADS * DIM], k[KV_HEADS * DIM], v[KV_HEADS * DIM],
    out[HEADS * DIM], lse[HEADS];
static int32_t cu[2];

/* By the header. */
typedef struct HeaderCall {
  varlen_f32_3 q, k, v, out;
  varlen_i32_1 cu;
  varlen_f32_2 lse;
} HeaderCall;

static void callHeader(void *context) {
  HeaderCall *call = context;
  const char *error = attention(&call->q, &call->k, &call->v, &call->cu,
                                &call->out, &call->lse);
  if (error)
    stop(error);
}

/* By the library. */
typedef struct LibraryCall {
  VarlenFunction function;
  const VarlenTensor *arguments[4], *results[2];
  VarlenCallOptions options;
} LibraryCall;

static void callLibrary(void *context) {
  LibraryCall *call = context;
  if (varlenFunctionCall(call->function, call->arguments, 4, call->results, 2,
                         &call->options))
    stop(varlenGetLastError());
}

/*===----------------------------------------------------------------------===*\
|* The kernel
\*===----------------------------------------------------------------------===*/

/* The tiles of a call, which may be computed any number of times. */
typedef struct Kernel {
  int64_t tiles;
  varlen_range_fn run;
  void *context, *workspace;
} Kernel;

static Time kernelTime;

static void runKernel(void *opaque) {
  Kernel *kernel = opaque;
  kernel->run(kernel->context, 0, kernel->tiles, kernel->workspace);
}

/* Instead of the runtime's threads. */
static void timeKernel(int64_t tiles, int64_t bytes, varlen_range_fn run,
                       void *context) {
  Kernel kernel = {tiles, run, context, NULL};
  kernel.workspace = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64 + 64);
  if (!kernel.workspace)
    stop("no memory for a workspace");
  kernelTime = measure(runKernel, &kernel);
  free(kernel.workspace);
}

/*===----------------------------------------------------------------------===*\
|* The program
\*===----------------------------------------------------------------------===*/

static char *readFile(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text;
  if (!file || fseek(file, 0, SEEK_END))
    stop("cannot read the source");
  *size = (size_t)ftell(file);
  rewind(file);
  text = malloc(*size);
  if (!text || fread(text, 1, *size, file) != *size)
    stop("cannot read the source");
  fclose(file);
  return text;
}

static VarlenTensor makeTensor(void *data, uint8_t code, int32_t rank,
                               int64_t *shape) {
  VarlenTensor tensor = {
      data, {VARLEN_CPU, 0}, rank, {code, 32, 1}, shape, NULL, 0};
  return tensor;
}

static void run(VarlenFunction function, int rows, int threads) {
  int64_t ofQuery[] = {rows, HEADS, DIM}, ofKey[] = {rows, KV_HEADS, DIM},
          ofList[] = {2}, ofLse[] = {HEADS, rows};
  VarlenTensor tensors[] = {makeTensor(q, VARLEN_FLOAT, 3, ofQuery),
                            makeTensor(k, VARLEN_FLOAT, 3, ofKey),
                            makeTensor(v, VARLEN_FLOAT, 3, ofKey),
                            makeTensor(cu, VARLEN_INT, 1, ofList),
                            makeTensor(out, VARLEN_FLOAT, 3, ofQuery),
                            makeTensor(lse, VARLEN_FLOAT, 2, ofLse)};
  LibraryCall library = {function,
                         {&tensors[0], &tensors[1], &tensors[2], &tensors[3]},
                         {&tensors[4], &tensors[5]},
                         VARLEN_CALL_OPTIONS_INIT};
  HeaderCall header;
  cu[1] = rows;
  header.q = make_varlen_f32_3(q, rows, HEADS, DIM);
  header.k = make_varlen_f32_3(k, rows, KV_HEADS, DIM);
  header.v = make_varlen_f32_3(v, rows, KV_HEADS, DIM);
  header.cu = make_varlen_i32_1(cu, 2);
  header.out = make_varlen_f32_3(out, rows, HEADS, DIM);
  header.lse = make_varlen_f32_2(lse, HEADS, rows);

  /* Without rows there is none. */
  kernelTime.median = kernelTime.least = 0;
  varlen_set_parallel_for(timeKernel);
  callHeader(&header);
  varlen_set_parallel_for(NULL);
  varlen_set_num_threads(threads);
  print("header of `--emit=obj`", rows, measure(callHeader, &header),
        kernelTime);

  library.options.numThreads = threads;
  print("`varlenFunctionCall`", rows, measure(callLibrary, &library),
        kernelTime);
  if (varlenFunctionGetWorkspaceSize(function, library.arguments, 4,
                                     &library.options,
                                     &library.options.workspaceSize))
    stop(varlenGetLastError());
  library.options.workspace =
      aligned_alloc(64, (library.options.workspaceSize + 63) / 64 * 64 + 64);
  if (!library.options.workspace)
    stop("no memory for a workspace");
  print("`varlenFunctionCall`, caller's workspace", rows,
        measure(callLibrary, &library), kernelTime);
  free(library.options.workspace);
}

int main(int argc, char **argv) {
  size_t size;
  VarlenProgram program;
  VarlenFunction function;
  char *source;
  if (argc != 4)
    stop("expected a source, a number of threads and one of repetitions");
  repetitions = atoi(argv[3]);
  if (repetitions < 1 || repetitions > MAX_REPETITIONS)
    stop("expected 1 to 1001 repetitions");
  source = readFile(argv[1], &size);
  if (varlenCompile(source, size, NULL, &program) ||
      varlenProgramGetFunction(program, "attention", &function))
    stop(varlenGetLastError());
  free(source);
  for (int i = 0; i < HEADS * DIM; ++i)
    q[i] = (float)(i % 7);
  for (int i = 0; i < KV_HEADS * DIM; ++i)
    k[i] = v[i] = (float)(i % 5);
  printf("| call | rows | ns | kernel | over the kernel | least over it |\n"
         "|---|---|---|---|---|---|\n");
  for (int rows = 0; rows <= 1; ++rows)
    run(function, rows, atoi(argv[2]));
  varlenProgramDestroy(program);
  return 0;
}
