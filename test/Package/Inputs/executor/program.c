/* Calls a function that was compiled for a GPU: host code and kernels, with the
   executor as the GPU. */

#include "varlen/Runtime/GPUExecutor.h"
#include "varlen/Runtime/Runtime.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 4, HEADS = 8, KV_HEADS = 2, DIM = 64, ENTRIES = 3 };

/* What the compiler makes of a memref of rank 1, 2 and 3. */
typedef struct List {
  void *allocated, *data;
  int64_t offset, sizes[1], strides[1];
} List;
typedef struct Matrix {
  void *allocated, *data;
  int64_t offset, sizes[2], strides[2];
} Matrix;
typedef struct Rows {
  void *allocated, *data;
  int64_t offset, sizes[3], strides[3];
} Rows;

void _mlir_ciface_attention(Rows *q, Rows *k, Rows *v, List *cu, Rows *out,
                            Matrix *lse);

/* bf16 is the high half of f32. */
static uint16_t toBF16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static float fromBF16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* In memory of the device: row i has the value i, or 1. */
static Rows makeRows(int64_t heads, int isCounted) {
  uint16_t host[ROWS * HEADS * DIM];
  uint64_t bytes = (uint64_t)(ROWS * heads * DIM * 2);
  void *data = varlen_gpu_allocate(bytes);
  Rows rows = {data, data, 0, {ROWS, heads, DIM}, {heads * DIM, DIM, 1}};
  for (int64_t i = 0; i < ROWS * heads * DIM; ++i)
    host[i] = toBF16(isCounted ? (float)(i / (heads * DIM)) : 1);
  varlen_gpu_copy(data, host, bytes);
  return rows;
}

int main(void) {
  int32_t list[ENTRIES] = {0, 3, 4};
  uint16_t results[ROWS * HEADS * DIM];
  float statistics[HEADS * ROWS];
  varlen_gpu_set_backend(varlen_gpu_executor());
  Rows q = makeRows(HEADS, 0), k = makeRows(KV_HEADS, 0),
       v = makeRows(KV_HEADS, 1), out = makeRows(HEADS, 0);
  void *data = varlen_gpu_allocate(sizeof list);
  List cu = {data, data, 0, {ENTRIES}, {1}};
  data = varlen_gpu_allocate(sizeof statistics);
  Matrix lse = {data, data, 0, {HEADS, ROWS}, {ROWS, 1}};

  varlen_gpu_copy(cu.data, list, sizeof list);
  _mlir_ciface_attention(&q, &k, &v, &cu, &out, &lse);
  varlen_gpu_copy(results, out.data, sizeof results);
  varlen_gpu_copy(statistics, lse.data, sizeof statistics);
  varlen_gpu_synchronize();
  if (varlen_gpu_check(NULL) || varlen_last_error()) {
    fprintf(stderr, "%s\n", varlen_last_error());
    return 1;
  }
  for (int row = 0; row < ROWS; ++row)
    printf("%g %g\n", fromBF16(results[row * HEADS * DIM]), statistics[row]);

  list[1] = 5;
  varlen_gpu_copy(cu.data, list, sizeof list);
  _mlir_ciface_attention(&q, &k, &v, &cu, &out, &lse);
  varlen_gpu_check(NULL);
  printf("%s\n", varlen_last_error());
  varlen_gpu_release();
  return 0;
}
