/*===- attn-cpu.c - Compiled attention against a double loop
----------------===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Calls the functions of attn-cpu.mlir as any C program would, and prints one
|* line for each that is right.
|*
\*===----------------------------------------------------------------------===*/

#include "varlen/Runtime/Runtime.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HQ = 4, HKV = 2, D = 64, SEQUENCES = 6 };

/* Empty, shorter than a vector, not a multiple of anything, several kv blocks.
 */
static const int32_t cu[SEQUENCES + 1] = {0, 0, 3, 40, 41, 60, 200};
#define T 200

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
  memref3 out;
  memref2 lse;
} results;

typedef void attention(results *, memref3 *, memref3 *, memref3 *, memref1 *);
attention _mlir_ciface_attn_f32, _mlir_ciface_attn_f64, _mlir_ciface_attn_f16,
    _mlir_ciface_attn_bf16;

typedef enum { F16, BF16, F32, F64 } type;
static const size_t bytes[] = {2, 2, 4, 8};

static double load(type t, const void *data, int64_t i) {
  if (t == F64)
    return ((const double *)data)[i];
  if (t == F32)
    return ((const float *)data)[i];
  uint16_t h = ((const uint16_t *)data)[i];
  if (t == BF16) {
    uint32_t bits = (uint32_t)h << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  int exponent = h >> 10 & 31, mantissa = h & 1023;
  double value =
      exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
  return h & 0x8000 ? -value : value;
}

/* Multiples of 1/64 below 2 in magnitude: exact in every type. */
static void store(type t, void *data, int64_t i, double value) {
  if (t == F64) {
    ((double *)data)[i] = value;
  } else if (t == F32) {
    ((float *)data)[i] = (float)value;
  } else if (t == BF16) {
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    ((uint16_t *)data)[i] = bits >> 16;
  } else {
    int exponent;
    double mantissa = frexp(fabs(value), &exponent);
    uint16_t h = value == 0
                     ? 0
                     : (exponent + 14) << 10 | ((int)(mantissa * 2048) & 1023);
    ((uint16_t *)data)[i] = h | (value < 0 ? 0x8000 : 0);
  }
}

static memref3 make(type t, int64_t heads, uint32_t seed) {
  memref3 m = {0, 0, 0, {T, heads, D}, {heads * D, D, 1}};
  m.allocated = m.aligned = malloc(T * heads * D * bytes[t]);
  for (int64_t i = 0; i < T * heads * D; ++i) {
    seed = seed * 1664525u + 1013904223u;
    store(t, m.aligned, i, ((int)(seed >> 25) - 64) / 64.0);
  }
  return m;
}

static void check(const char *name, attention *run, type t, int64_t left,
                  int64_t right, double tolerance) {
  memref3 q = make(t, HQ, 1), k = make(t, HKV, 2), v = make(t, HKV, 3);
  memref1 list = {(void *)cu, (void *)cu, 0, {SEQUENCES + 1}, {1}};
  results r;
  run(&r, &q, &k, &v, &list);
  if (varlen_last_error()) {
    printf("%s: %s\n", name, varlen_last_error());
    return;
  }
  double worst = 0, worstLse = 0;
  type lseType = t == F64 ? F64 : F32;
  static double p[T], want[D];
  for (int s = 0; s < SEQUENCES; ++s)
    for (int64_t i = cu[s]; i < cu[s + 1]; ++i)
      for (int64_t h = 0; h < HQ; ++h) {
        double sum = 0, max = -INFINITY;
        memset(want, 0, sizeof want);
        for (int pass = 0; pass < 2; ++pass)
          for (int64_t j = cu[s]; j < cu[s + 1]; ++j) {
            if ((left >= 0 && j < i - left) || (right >= 0 && j > i + right))
              continue;
            int64_t kRow = (j * HKV + h / (HQ / HKV)) * D;
            if (!pass) {
              double dot = 0;
              for (int64_t d = 0; d < D; ++d)
                dot += load(t, q.aligned, (i * HQ + h) * D + d) *
                       load(t, k.aligned, kRow + d);
              p[j] = dot / sqrt(D);
              max = fmax(max, p[j]);
              continue;
            }
            double e = exp(p[j] - max);
            sum += e;
            for (int64_t d = 0; d < D; ++d)
              want[d] += e * load(t, v.aligned, kRow + d);
          }
        for (int64_t d = 0; d < D; ++d) {
          double got = load(t, r.out.aligned, (i * HQ + h) * D + d);
          double error = fabs(got - want[d] / sum);
          worst = error <= worst ? worst : error; /* a NaN is the worst */
        }
        double lse = load(lseType, r.lse.aligned, h * T + i);
        double error = fabs(lse - (max + log(sum)));
        worstLse = error <= worstLse ? worstLse : error;
      }
  if (worst <= tolerance && worstLse <= (t == F64 ? 1e-14 : 2e-4))
    printf("%s: right\n", name);
  else
    printf("%s: out is off by %g, lse by %g\n", name, worst, worstLse);
  free(q.allocated), free(k.allocated), free(v.allocated);
  free(r.out.allocated), free(r.lse.allocated);
}

int main(void) {
  varlen_set_num_threads(2);
  check("f32", _mlir_ciface_attn_f32, F32, -1, 0, 1e-6);
  check("f64", _mlir_ciface_attn_f64, F64, 20, 3, 1e-14);
  check("f16", _mlir_ciface_attn_f16, F16, -1, -1, 1e-3);
  check("bf16", _mlir_ciface_attn_bf16, BF16, -1, 0, 8e-3);
  return 0;
}
