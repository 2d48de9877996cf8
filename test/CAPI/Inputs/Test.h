/* Expectations and tensors of the tests in C. */

#ifndef VARLEN_TEST_CAPI_TEST_H
#define VARLEN_TEST_CAPI_TEST_H

#include "varlen-c/Varlen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s; last error: %s\n", __FILE__,        \
              __LINE__, #condition, varlenGetLastError());                     \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* A status, and what its message has in it. */
#define EXPECT_ERROR(call, status, text)                                       \
  do {                                                                         \
    VarlenStatus got = (call);                                                 \
    if (got != (status) || !strstr(varlenGetLastError(), text)) {              \
      fprintf(stderr, "%s:%d: expected %s with '%s', got %s with '%s'\n",      \
              __FILE__, __LINE__, varlenStatusName(status), text,              \
              varlenStatusName(got), varlenGetLastError());                    \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* A tensor with its extents. */
typedef struct Tensor {
  VarlenTensor tensor;
  int64_t shape[4];
  int64_t strides[4];
} Tensor;

/* A dense one; `tensor.shape` is set by the address it has in the end. */
static inline Tensor makeTensor(void *data, int code, int bits, int rank,
                                int64_t d0, int64_t d1, int64_t d2) {
  Tensor result = {{0}, {d0, d1, d2, 0}, {0}};
  result.tensor.data = data;
  result.tensor.device.device_type = VARLEN_CPU;
  result.tensor.ndim = rank;
  result.tensor.dtype.code = (uint8_t)code;
  result.tensor.dtype.bits = (uint8_t)bits;
  result.tensor.dtype.lanes = 1;
  return result;
}

static inline const VarlenTensor *use(Tensor *tensor) {
  tensor->tensor.shape = tensor->shape;
  return &tensor->tensor;
}

static inline const VarlenTensor *useStrided(Tensor *tensor, int64_t s0,
                                             int64_t s1, int64_t s2) {
  tensor->strides[0] = s0;
  tensor->strides[1] = s1;
  tensor->strides[2] = s2;
  tensor->tensor.strides = tensor->strides;
  return use(tensor);
}

/* Causal attention of two sequences, of 3 rows and of 1, with 4 query heads on
   2. All keys are alike, so the query at position i of its sequence takes the
   mean of its first i + 1 values, and its lse is 8 + log(i + 1). */
#define ATTENTION                                                              \
  "func.func @attention(%q: tensor<?x4x64xf32> {varlen.name = \"q\"},\n"       \
  "                     %k: tensor<?x2x64xf32> {varlen.name = \"k\"},\n"       \
  "                     %v: tensor<?x2x64xf32> {varlen.name = \"v\"},\n"       \
  "                     %cu: tensor<?xi32> {varlen.name = \"cu\"})\n"          \
  "    -> (tensor<?x4x64xf32> {varlen.name = \"out\"}, tensor<4x?xf32>) {\n"   \
  "  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu\n"                          \
  "      {mask = #varlen.mask<causal>} : (tensor<?x4x64xf32>,\n"               \
  "      tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>,\n"             \
  "      tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)\n"            \
  "  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>\n"                \
  "}\n"

enum { ROWS = 4, HEADS = 4, KV_HEADS = 2, DIM = 64 };

typedef struct Batch {
  float q[ROWS * HEADS * DIM], k[ROWS * KV_HEADS * DIM],
      v[ROWS * KV_HEADS * DIM], out[ROWS * HEADS * DIM], lse[HEADS * ROWS];
  int32_t cu[3];
  Tensor tensors[6];
  const VarlenTensor *arguments[4], *results[2];
} Batch;

static inline void initBatch(Batch *batch) {
  for (int i = 0; i < ROWS * HEADS * DIM; ++i) {
    batch->q[i] = 1;
    batch->out[i] = NAN;
  }
  for (int i = 0; i < ROWS * KV_HEADS * DIM; ++i) {
    batch->k[i] = 1;
    batch->v[i] = (float)(i / (KV_HEADS * DIM));
  }
  for (int i = 0; i < HEADS * ROWS; ++i)
    batch->lse[i] = NAN;
  batch->cu[0] = 0;
  batch->cu[1] = 3;
  batch->cu[2] = 4;
  Tensor *t = batch->tensors;
  t[0] = makeTensor(batch->q, VARLEN_FLOAT, 32, 3, ROWS, HEADS, DIM);
  t[1] = makeTensor(batch->k, VARLEN_FLOAT, 32, 3, ROWS, KV_HEADS, DIM);
  t[2] = makeTensor(batch->v, VARLEN_FLOAT, 32, 3, ROWS, KV_HEADS, DIM);
  t[3] = makeTensor(batch->cu, VARLEN_INT, 32, 1, 3, 0, 0);
  t[4] = makeTensor(batch->out, VARLEN_FLOAT, 32, 3, ROWS, HEADS, DIM);
  t[5] = makeTensor(batch->lse, VARLEN_FLOAT, 32, 2, HEADS, ROWS, 0);
  for (int i = 0; i < 4; ++i)
    batch->arguments[i] = use(&t[i]);
  for (int i = 0; i < 2; ++i)
    batch->results[i] = use(&t[4 + i]);
}

/* Whether the results are right; they are made wrong for the next call. */
static inline int isRight(Batch *batch) {
  static const float mean[ROWS] = {0, 0.5f, 1, 3}, seen[ROWS] = {1, 2, 3, 1};
  int right = 1;
  for (int row = 0; row < ROWS; ++row)
    for (int head = 0; head < HEADS; ++head) {
      float *lse = &batch->lse[head * ROWS + row];
      right &= fabsf(*lse - (8 + logf(seen[row]))) < 1e-5f;
      *lse = NAN;
      for (int d = 0; d < DIM; ++d) {
        float *out = &batch->out[(row * HEADS + head) * DIM + d];
        right &= fabsf(*out - mean[row]) < 1e-5f;
        *out = NAN;
      }
    }
  return right;
}

static inline VarlenStatus callBatch(VarlenFunction function, Batch *batch,
                                     const VarlenCallOptions *options) {
  return varlenFunctionCall(function, batch->arguments, 4, batch->results, 2,
                            options);
}

static inline VarlenStatus compile(const char *source,
                                   const VarlenCompileOptions *options,
                                   VarlenProgram *program) {
  return varlenCompile(source, strlen(source), options, program);
}

/* For functions that have to be there. */
static inline VarlenFunction get(VarlenProgram program, const char *name) {
  VarlenFunction function = {0};
  EXPECT(!varlenProgramGetFunction(program, name, &function));
  return function;
}

#endif /* VARLEN_TEST_CAPI_TEST_H */
