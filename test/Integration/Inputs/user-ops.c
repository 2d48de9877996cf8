/*===- user-ops.c - Calls of functions without attention
--------------------===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Calls the functions of user-ops.mlir and prints what they computed.
|*
\*===----------------------------------------------------------------------===*/

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[1], strides[1];
} memref1;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} memref2;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[3], strides[3];
} memref3;
typedef struct {
  memref2 collapsed;
  memref3 slice;
} shapes_results;

void _mlir_ciface_vec(memref2 *, memref2 *);
void _mlir_ciface_elementwise(memref2 *, memref2 *, memref2 *);
void _mlir_ciface_same(memref1 *, memref1 *);
void _mlir_ciface_constant(memref1 *);
void _mlir_ciface_in_place(memref1 *, memref1 *);
void _mlir_ciface_caller(memref1 *, memref1 *);
void _mlir_ciface_matmul(memref2 *, memref2 *, memref2 *);
void _mlir_ciface_shapes(shapes_results *, memref3 *, int64_t);
void _mlir_ciface_pad(memref1 *, memref1 *, int64_t);
void _mlir_ciface_loop(memref1 *, memref1 *, int64_t);
void _mlir_ciface_forall(memref1 *, memref1 *);
void _mlir_ciface_f16(memref1 *, memref1 *);
void _mlir_ciface_ints(memref1 *, memref1 *, memref1 *);

static memref1 list(void *data, int64_t size) {
  memref1 m = {data, data, 0, {size}, {1}};
  return m;
}

static memref2 matrix(void *data, int64_t rows, int64_t columns) {
  memref2 m = {data, data, 0, {rows, columns}, {columns, 1}};
  return m;
}

static void print(const char *name, const float *data, int64_t size) {
  printf("%s:", name);
  for (int64_t i = 0; i < size; ++i)
    printf(" %g", data[i]);
  printf("\n");
}

static void print16(const char *name, const uint16_t *data, int64_t size) {
  printf("%s:", name);
  for (int64_t i = 0; i < size; ++i)
    printf(" %04x", data[i]);
  printf("\n");
}

int main(void) {
  float x[32], y[32];
  for (int i = 0; i < 32; ++i)
    x[i] = i;
  memref1 in = list(x, 4), out;

  memref2 m = matrix(x, 4, 8), n = matrix(y, 4, 8), product;
  _mlir_ciface_vec(&m, &n);
  print("vec", y, 9);

  uint16_t ones[4] = {0x3f80, 0x3f80, 0xbf80, 0x7fc1},
           halves[4] = {0x3f00, 0xbf80, 0, 0};
  memref2 a = matrix(ones, 1, 4), b = matrix(halves, 1, 4);
  _mlir_ciface_elementwise(&product, &a, &b);
  print16("elementwise", product.aligned, 4);
  free(product.allocated);

  _mlir_ciface_same(&out, &in);
  print(out.aligned == x ? "same buffer" : "same", out.aligned, 4);
  free(out.allocated);

  _mlir_ciface_constant(&out);
  print("constant", out.aligned, 4);
  free(out.allocated);

  _mlir_ciface_in_place(&out, &in);
  print("in_place", out.aligned, 4);
  print("argument", x, 4);
  free(out.allocated);

  _mlir_ciface_caller(&out, &in);
  print("caller", out.aligned, 4);
  print("argument", x, 4);
  free(out.allocated);

  memref2 left = matrix(x, 2, 2), right = matrix(x + 4, 2, 2);
  _mlir_ciface_matmul(&product, &left, &right);
  print("matmul", product.aligned, 4);
  free(product.allocated);

  memref3 cube = {x, x, 0, {1, 4, 8}, {32, 8, 1}};
  shapes_results shapes;
  _mlir_ciface_shapes(&shapes, &cube, 1);
  print("collapsed", shapes.collapsed.aligned, 4);
  print("slice", shapes.slice.aligned, 8);
  free(shapes.collapsed.allocated), free(shapes.slice.allocated);

  uint16_t f16[4] = {0x3c00, 0x4000, 0xfc00, 0x0001};
  memref1 short_list = list(f16, 4);
  _mlir_ciface_pad(&out, &short_list, 2);
  print16("pad", out.aligned, 6);
  free(out.allocated);
  _mlir_ciface_f16(&out, &short_list);
  print16("f16", out.aligned, 4);
  free(out.allocated);

  in = list(x, 8);
  _mlir_ciface_loop(&out, &in, 0);
  print("loop", out.aligned, 8);
  free(out.allocated);
  float zeros[8] = {0};
  memref1 zero_list = list(zeros, 8);
  _mlir_ciface_loop(&out, &zero_list, 2);
  print("loop", out.aligned, 2);
  free(out.allocated);

  _mlir_ciface_forall(&out, &in);
  print("forall", out.aligned, 8);
  print("argument", x, 8);
  free(out.allocated);

  int32_t i[2] = {7, -7}, j[2] = {2, 2};
  memref1 is = list(i, 2), js = list(j, 2);
  _mlir_ciface_ints(&out, &is, &js);
  printf("ints: %d %d\n", ((int32_t *)out.aligned)[0],
         ((int32_t *)out.aligned)[1]);
  free(out.allocated);
  return 0;
}
