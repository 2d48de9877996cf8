/* The function of attention.mlir, for programs of IREE; docs/iree.md. */

#include "attention.h"
#include "plugin.h"

#include <stdio.h>

enum { HEADS = 4, KV_HEADS = 2, DIM = 64 };

/* As program.mlir declares it: base pointers and offsets, then extents. */
typedef struct Arguments {
  float *q;
  size_t qOffset;
  float *k;
  size_t kOffset;
  float *v;
  size_t vOffset;
  int32_t *cu;
  size_t cuOffset;
  float *out;
  size_t outOffset;
  float *lse;
  size_t lseOffset;
  int64_t rows, keys, entries;
} Arguments;

static int attentionImport(void *params, void *context, void *reserved) {
  const Arguments *a = params;
  (void)context, (void)reserved;
  varlen_f32_3 q =
      make_varlen_f32_3(a->q + a->qOffset, a->rows, HEADS, DIM);
  varlen_f32_3 k =
      make_varlen_f32_3(a->k + a->kOffset, a->keys, KV_HEADS, DIM);
  varlen_f32_3 v =
      make_varlen_f32_3(a->v + a->vOffset, a->keys, KV_HEADS, DIM);
  varlen_i32_1 cu = make_varlen_i32_1(a->cu + a->cuOffset, a->entries);
  varlen_f32_3 out =
      make_varlen_f32_3(a->out + a->outOffset, a->rows, HEADS, DIM);
  varlen_f32_2 lse =
      make_varlen_f32_2(a->lse + a->lseOffset, HEADS, a->rows);
  const char *error = attention(&q, &k, &v, &cu, &out, &lse);
  if (error)
    fprintf(stderr, "attention: %s\n", error);
  return error != NULL;
}

static const Import imports[] = {{"attention_import", attentionImport}};
PLUGIN("varlen attention", imports)
