/* A program of compiled functions: no LLVM. C11 and C++. */

#include "attention.h"
#include "double.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 4, HEADS = 4, KV_HEADS = 2, DIM = 64 };

static float q[ROWS * HEADS * DIM], k[ROWS * KV_HEADS * DIM],
    v[ROWS * KV_HEADS * DIM], out[ROWS * HEADS * DIM], lse[HEADS * ROWS];

int main(void) {
  int32_t cu[] = {0, 3, 4};
  int64_t extents[5];
  for (int i = 0; i < ROWS * HEADS * DIM; ++i)
    q[i] = 1;
  for (int i = 0; i < ROWS * KV_HEADS * DIM; ++i) {
    k[i] = 1;
    v[i] = (float)(i / (KV_HEADS * DIM));
  }
  varlen_f32_3 tq = make_varlen_f32_3(q, ROWS, HEADS, DIM);
  varlen_f32_3 tk = make_varlen_f32_3(k, ROWS, KV_HEADS, DIM);
  varlen_f32_3 tv = make_varlen_f32_3(v, ROWS, KV_HEADS, DIM);
  varlen_i32_1 tcu = make_varlen_i32_1(cu, 3);
  varlen_i64_1 te = make_varlen_i64_1(extents, 5);
  const char *error = attention_shapes(&tq, &tk, &tv, &tcu, &te);
  if (error)
    return 1;
  varlen_f32_3 to = make_varlen_f32_3(out, extents[0], extents[1], extents[2]);
  varlen_f32_2 tl = make_varlen_f32_2(lse, extents[3], extents[4]);
  error = attention(&tq, &tk, &tv, &tcu, &to, &tl);
  if (error)
    return 1;
  for (int row = 0; row < ROWS; ++row)
    printf("%g %g\n", out[row * HEADS * DIM], lse[row]);
  cu[1] = 5;
  printf("%s\n", attention(&tq, &tk, &tv, &tcu, &to, &tl));

  float twice;
  varlen_f32_0 t0 = make_varlen_f32_0(&twice);
  twofold(2.5f, &t0);
  printf("%g\n", twice);
  return 0;
}
