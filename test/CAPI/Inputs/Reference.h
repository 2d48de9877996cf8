/* Causal attention of packed sequences, and its gradients, in f64: tensors of
   f32 with HEADS query heads on KV_HEADS, of DIM (Test.h). */

#ifndef VARLEN_TEST_CAPI_REFERENCE_H
#define VARLEN_TEST_CAPI_REFERENCE_H

#include "Test.h"

/* Where a row of a tensor begins. */
static inline size_t qAt(int row, int head) {
  return ((size_t)row * HEADS + (size_t)head) * DIM;
}
static inline size_t kAt(int row, int head) {
  return ((size_t)row * KV_HEADS + (size_t)(head / (HEADS / KV_HEADS))) * DIM;
}

static inline double dot(const float *a, const float *b) {
  double sum = 0;
  for (int d = 0; d < DIM; ++d)
    sum += (double)a[d] * (double)b[d];
  return sum;
}

static const double scale = 0.125; /* 1 / sqrt(DIM) */

/* `lse` has a row of cu[sequences] for each head. */
static inline void attend(const float *q, const float *k, const float *v,
                          const int32_t *cu, int sequences, float *out,
                          float *lse) {
  for (int s = 0; s < sequences; ++s)
    for (int i = cu[s]; i < cu[s + 1]; ++i)
      for (int h = 0; h < HEADS; ++h) {
        double top = -INFINITY, sum = 0, values[DIM] = {0};
        for (int j = cu[s]; j <= i; ++j)
          top = fmax(top, scale * dot(&q[qAt(i, h)], &k[kAt(j, h)]));
        for (int j = cu[s]; j <= i; ++j) {
          double p = exp(scale * dot(&q[qAt(i, h)], &k[kAt(j, h)]) - top);
          sum += p;
          for (int d = 0; d < DIM; ++d)
            values[d] += p * (double)v[kAt(j, h) + (size_t)d];
        }
        for (int d = 0; d < DIM; ++d)
          out[qAt(i, h) + (size_t)d] = (float)(values[d] / sum);
        lse[h * cu[sequences] + i] = (float)(top + log(sum));
      }
}

/* Adds to dq, dk and dv. */
static inline void differentiate(const float *dout, const float *q,
                                 const float *k, const float *v,
                                 const float *out, const float *lse,
                                 const int32_t *cu, int sequences, float *dq,
                                 float *dk, float *dv) {
  for (int s = 0; s < sequences; ++s)
    for (int i = cu[s]; i < cu[s + 1]; ++i)
      for (int h = 0; h < HEADS; ++h) {
        size_t qi = qAt(i, h);
        double mean = dot(&dout[qi], &out[qi]);
        for (int j = cu[s]; j <= i; ++j) {
          size_t kj = kAt(j, h);
          double p = exp(scale * dot(&q[qi], &k[kj]) -
                         (double)lse[h * cu[sequences] + i]);
          double ds = p * (dot(&dout[qi], &v[kj]) - mean) * scale;
          for (size_t d = 0; d < DIM; ++d) {
            dv[kj + d] += (float)(p * (double)dout[qi + d]);
            dq[qi + d] += (float)(ds * (double)k[kj + d]);
            dk[kj + d] += (float)(ds * (double)q[qi + d]);
          }
        }
      }
}

#endif /* VARLEN_TEST_CAPI_REFERENCE_H */
