/* Quantised keys and values, in pages, with a scale of each row and head:
   tensors of i8 and of f8E4M3FN go through the library as others do.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t
*/

#include "Inputs/Test.h"

#define DECODE(ELEMENT)                                                        \
  "func.func @decode(%q: tensor<?x4x64xf32>,\n"                                \
  "    %k: tensor<?x?x2x64x" ELEMENT ">, %v: tensor<?x?x2x64x" ELEMENT ">,\n"  \
  "    %cu: tensor<?xi32>, %used: tensor<?xi32>, %table: tensor<?x?xi32>,\n"   \
  "    %k_scale: tensor<?x?x2xf32> {varlen.name = \"k_scale\"},\n"             \
  "    %v_scale: tensor<?x?x2xf32> {varlen.name = \"v_scale\"})\n"             \
  "    -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {\n"                           \
  "  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used)\n"              \
  "      block_table(%table) k_scale(%k_scale) v_scale(%v_scale)\n"            \
  "      : (tensor<?x4x64xf32>, tensor<?x?x2x64x" ELEMENT ">,\n"               \
  "       tensor<?x?x2x64x" ELEMENT ">, tensor<?xi32>, tensor<?xi32>,\n"       \
  "       tensor<?x?xi32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>)\n"            \
  "      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)\n"                           \
  "  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>\n"                \
  "}\n"

enum { POOL = 5, PAGE = 2, SEQUENCES = 3, WIDTH = 2, POOL_ROWS = POOL * PAGE };
enum { ROW = KV_HEADS * DIM, OUT = SEQUENCES * HEADS * DIM };

/* Sequences of 3, 0 and 2 keys, which are all alike: a query takes the mean of
   its values. What rows and entries hold that no sequence has must not matter.
 */
static float q[OUT], kScale[POOL_ROWS * KV_HEADS], vScale[POOL_ROWS * KV_HEADS];
static uint8_t k[POOL_ROWS * ROW], v[POOL_ROWS * ROW];
static int cu[] = {0, 1, 2, 3}, used[] = {3, 0, 2};
static int table[] = {4, 1, -7, 99, 0, 1 << 30};
static float out[OUT], lse[HEADS * SEQUENCES];

/* The bytes of 1 and of 2, and one that is no small number. */
static void fill(uint8_t one, uint8_t two, uint8_t wild) {
  for (int row = 0; row < POOL_ROWS; ++row) {
    bool isUsed = row == 8 || row == 9 || row == 2 || row < 2;
    memset(k + row * ROW, isUsed ? one : wild, ROW);
    memset(v + row * ROW, isUsed ? two : wild, ROW);
    for (int head = 0; head < KV_HEADS; ++head) {
      kScale[row * KV_HEADS + head] = isUsed ? 1.0f + (float)head : NAN;
      vScale[row * KV_HEADS + head] = isUsed ? (float)(row + 10 * head) : NAN;
    }
  }
  for (int i = 0; i < OUT; ++i) {
    q[i] = 1;
    out[i] = -1;
  }
}

static Tensor makePages(void *data, int code, int bits, int64_t pages,
                        int rank) {
  Tensor tensor = makeTensor(data, code, bits, rank, pages, PAGE, KV_HEADS);
  if (rank == 4)
    tensor.shape[3] = DIM;
  return tensor;
}

static void testDecode(const char *text, int code, uint8_t one, uint8_t two,
                       uint8_t wild) {
  VarlenProgram program;
  EXPECT(!compile(text, NULL, &program));
  VarlenFunction decode = get(program, "decode");
  fill(one, two, wild);
  Tensor tensors[] = {
      makeTensor(q, VARLEN_FLOAT, 32, 3, SEQUENCES, HEADS, DIM),
      makePages(k, code, 8, POOL, 4),
      makePages(v, code, 8, POOL, 4),
      makeTensor(cu, VARLEN_INT, 32, 1, SEQUENCES + 1, 0, 0),
      makeTensor(used, VARLEN_INT, 32, 1, SEQUENCES, 0, 0),
      makeTensor(table, VARLEN_INT, 32, 2, SEQUENCES, WIDTH, 0),
      makePages(kScale, VARLEN_FLOAT, 32, POOL, 3),
      makePages(vScale, VARLEN_FLOAT, 32, POOL, 3),
      makeTensor(out, VARLEN_FLOAT, 32, 3, SEQUENCES, HEADS, DIM),
      makeTensor(lse, VARLEN_FLOAT, 32, 2, HEADS, SEQUENCES, 0)};
  const VarlenTensor *all[10];
  for (int i = 0; i < 10; ++i)
    all[i] = use(&tensors[i]);
  EXPECT(!varlenFunctionCall(decode, all, 8, all + 8, 2, NULL));
  const float means[] = {(8 + 9 + 2) / 3.0f, 0, 0.5f}, counts[] = {3, 0, 2};
  for (int i = 0; i < OUT; ++i) {
    int sequence = i / (HEADS * DIM), head = i / DIM % HEADS / 2;
    float mean = sequence == 1 ? 0 : 2 * (means[sequence] + 10 * (float)head);
    EXPECT(fabsf(out[i] - mean) < 1e-4f);
  }
  for (int i = 0; i < HEADS * SEQUENCES; ++i) {
    float score = 8.0f * (float)(1 + i / SEQUENCES / 2);
    float wanted = score + logf(counts[i % SEQUENCES]);
    EXPECT(lse[i] == wanted || fabsf(lse[i] - wanted) < 1e-4f);
  }

  /* Nothing is written where there are scales of fewer pages. */
  fill(one, two, wild);
  Tensor few = makePages(vScale, VARLEN_FLOAT, 32, POOL - 1, 3);
  all[7] = use(&few);
  EXPECT_ERROR(varlenFunctionCall(decode, all, 8, all + 8, 2, NULL),
               VARLEN_BAD_DATA,
               "v_scale has 4 pages: expected 5, as many as v");
  EXPECT(out[0] == -1);
  Tensor wide = makePages(vScale, VARLEN_FLOAT, 64, POOL, 3);
  all[7] = use(&wide);
  EXPECT_ERROR(varlenFunctionCall(decode, all, 8, all + 8, 2, NULL),
               VARLEN_INVALID_ARGUMENT,
               "v_scale: expected elements of f32, DLPack's (2, 32, 1), got "
               "f64, DLPack's (2, 64, 1)");
  varlenProgramDestroy(program);
}

int main(void) {
  testDecode(DECODE("i8"), VARLEN_INT, 1, 2, 0x80);
  testDecode(DECODE("f8E4M3FN"), VARLEN_FLOAT8_E4M3FN, 0x38, 0x40, 0x7F);
  return failures != 0;
}
