/*===- attn-cpu.c - Compiled attention against a double loop
----------------===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Calls the functions of attn-cpu.mlir as any C program would, compares results
|* and gradients with loops in double, and prints one line for each type.
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
typedef struct {
  memref3 dq, dk, dv;
} gradients;

typedef void attention(results *, memref3 *q, memref3 *k, memref3 *v,
                       memref1 *cu);
typedef void attentionGrad(gradients *, memref3 *dout, memref3 *q, memref3 *k,
                           memref3 *v, memref3 *out, memref2 *lse, memref1 *cu);
attention _mlir_ciface_attn_f32, _mlir_ciface_attn_f64, _mlir_ciface_attn_f16,
    _mlir_ciface_attn_bf16;
attentionGrad _mlir_ciface_grad_f32, _mlir_ciface_grad_f64,
    _mlir_ciface_grad_f16, _mlir_ciface_grad_bf16;

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

/* The values of a tensor, which the definition reads many times. */
static double *widen(type t, const memref3 *m) {
  int64_t count = m->sizes[0] * m->sizes[1] * m->sizes[2];
  double *values = malloc(count * sizeof *values);
  for (int64_t i = 0; i < count; ++i)
    values[i] = load(t, m->aligned, i);
  return values;
}

/* What is right, by the definition. */
static double out[T * HQ * D], lse[HQ * T], dq[T * HQ * D], dk[T * HKV * D],
    dv[T * HKV * D];

static void attend(const double *q, const double *k, const double *v,
                   const double *dout, int64_t s, int64_t i, int64_t h,
                   int64_t left, int64_t right) {
  static double p[T], dp[T];
  int64_t qRow = (i * HQ + h) * D, head = h / (HQ / HKV);
  int64_t first = left < 0 || i - left < cu[s] ? cu[s] : i - left;
  int64_t last =
      right < 0 || i + right >= cu[s + 1] ? cu[s + 1] - 1 : i + right;
  double max = -INFINITY, sum = 0, delta = 0;
  for (int64_t j = first; j <= last; ++j) {
    p[j] = dp[j] = 0;
    for (int64_t d = 0; d < D; ++d) {
      int64_t at = (j * HKV + head) * D + d;
      p[j] += q[qRow + d] * k[at] / sqrt(D);
      dp[j] += dout[qRow + d] * v[at];
    }
    max = fmax(max, p[j]);
  }
  for (int64_t j = first; j <= last; ++j)
    sum += p[j] = exp(p[j] - max);
  for (int64_t j = first; j <= last; ++j)
    delta += (p[j] /= sum) * dp[j];
  lse[h * T + i] = max + log(sum);
  for (int64_t j = first; j <= last; ++j)
    for (int64_t d = 0; d < D; ++d) {
      int64_t at = (j * HKV + head) * D + d;
      double ds = p[j] * (dp[j] - delta) / sqrt(D);
      out[qRow + d] += p[j] * v[at];
      dq[qRow + d] += ds * k[at];
      dk[at] += ds * q[qRow + d];
      dv[at] += p[j] * dout[qRow + d];
    }
}

/* Whether values are as close as `tolerance` of the largest, at least of 1. */
static int close(const char *name, const char *what, type t, const void *values,
                 const double *wanted, int64_t count, double tolerance) {
  double largest = 1;
  for (int64_t i = 0; i < count; ++i)
    largest = fmax(largest, fabs(wanted[i]));
  for (int64_t i = 0; i < count; ++i) {
    double got = load(t, values, i);
    if (fabs(got - wanted[i]) <= tolerance * largest)
      continue;
    printf("%s: %s[%lld] is %g, wanted %g\n", name, what, (long long)i, got,
           wanted[i]);
    return 0;
  }
  return 1;
}

static void check(const char *name, attention *run, attentionGrad *runGrad,
                  type t, int64_t left, int64_t right, double tolerance) {
  memref3 q = make(t, HQ, 1), k = make(t, HKV, 2), v = make(t, HKV, 3);
  memref3 dout = make(t, HQ, 4);
  memref1 list = {(void *)cu, (void *)cu, 0, {SEQUENCES + 1}, {1}};
  results r;
  gradients g;
  run(&r, &q, &k, &v, &list);
  if (!varlen_last_error())
    runGrad(&g, &dout, &q, &k, &v, &r.out, &r.lse, &list);
  if (varlen_last_error()) {
    printf("%s: %s\n", name, varlen_last_error());
    return;
  }
  memset(out, 0, sizeof out), memset(dq, 0, sizeof dq);
  memset(dk, 0, sizeof dk), memset(dv, 0, sizeof dv);
  double *wide[] = {widen(t, &q), widen(t, &k), widen(t, &v), widen(t, &dout)};
  for (int s = 0; s < SEQUENCES; ++s)
    for (int64_t i = cu[s]; i < cu[s + 1]; ++i)
      for (int64_t h = 0; h < HQ; ++h)
        attend(wide[0], wide[1], wide[2], wide[3], s, i, h, left, right);
  for (int n = 0; n < 4; ++n)
    free(wide[n]);
  type lseType = t == F64 ? F64 : F32;
  double lseTolerance = t == F64 ? 1e-14 : 5e-5;
  int64_t rows = T * HQ, kvRows = T * HKV;
  int same =
      close(name, "out", t, r.out.aligned, out, rows * D, tolerance) &
      close(name, "lse", lseType, r.lse.aligned, lse, rows, lseTolerance) &
      close(name, "dq", t, g.dq.aligned, dq, rows * D, tolerance) &
      close(name, "dk", t, g.dk.aligned, dk, kvRows * D, tolerance) &
      close(name, "dv", t, g.dv.aligned, dv, kvRows * D, tolerance);
  if (same)
    printf("%s: right\n", name);
  free(q.allocated), free(k.allocated), free(v.allocated), free(dout.allocated);
  free(r.out.allocated), free(r.lse.allocated);
  free(g.dq.allocated), free(g.dk.allocated), free(g.dv.allocated);
}

int main(void) {
  varlen_set_num_threads(2);
  check("f32", _mlir_ciface_attn_f32, _mlir_ciface_grad_f32, F32, -1, 0, 1e-6);
  check("f64", _mlir_ciface_attn_f64, _mlir_ciface_grad_f64, F64, 20, 3, 1e-14);
  check("f16", _mlir_ciface_attn_f16, _mlir_ciface_grad_f16, F16, -1, -1, 1e-3);
  check("bf16", _mlir_ciface_attn_bf16, _mlir_ciface_grad_bf16, BF16, -1, 0,
        8e-3);
  return 0;
}
