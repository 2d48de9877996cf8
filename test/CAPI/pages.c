/* Keys and values in pages go through the library as other operands do.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t
*/

#include "Inputs/Test.h"

#define PAGES                                                                  \
  "func.func @decode(%q: tensor<?x4x64xf32>, %k: tensor<?x?x2x64xf32>,\n"      \
  "                  %v: tensor<?x?x2x64xf32>, %cu: tensor<?xi32>,\n"          \
  "                  %used: tensor<?xi32>, %table: tensor<?x?xi32>)\n"         \
  "    -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {\n"                           \
  "  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used)\n"              \
  "      block_table(%table) : (tensor<?x4x64xf32>, tensor<?x?x2x64xf32>,\n"   \
  "       tensor<?x?x2x64xf32>, tensor<?xi32>, tensor<?xi32>,\n"               \
  "       tensor<?x?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)\n"         \
  "  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>\n"                \
  "}\n"

enum { POOL = 5, PAGE = 2, SEQUENCES = 3, WIDTH = 2, ROW = 2 * 64 };

/* Sequences of 3, 0 and 2 keys, which are all alike: a query takes the mean of
   its values. Rows and entries that no sequence has must not matter. */
static float q[SEQUENCES * 4 * 64], k[POOL * PAGE * ROW], v[POOL * PAGE * ROW];
static int cu[] = {0, 1, 2, 3}, used[] = {3, 0, 2};
static int table[] = {4, 1, -7, 99, 0, 1 << 30};
static float out[SEQUENCES * 4 * 64], lse[4 * SEQUENCES];

static void fill(void) {
  for (int i = 0; i < POOL * PAGE * ROW; ++i) {
    int row = i / ROW;
    bool isUsed = row == 8 || row == 9 || row == 2 || row < 2;
    k[i] = isUsed ? 1.0f : NAN;
    v[i] = isUsed ? (float)row : NAN;
  }
  for (int i = 0; i < SEQUENCES * 4 * 64; ++i) {
    q[i] = 1;
    out[i] = -1;
  }
}

static void testPages(void) {
  VarlenProgram program;
  EXPECT(!compile(PAGES, NULL, &program));
  VarlenFunction decode = get(program, "decode");
  fill();
  Tensor tensors[] = {makeTensor(q, VARLEN_FLOAT, 32, 3, SEQUENCES, 4, 64),
                      makeTensor(k, VARLEN_FLOAT, 32, 4, POOL, PAGE, 2),
                      makeTensor(v, VARLEN_FLOAT, 32, 4, POOL, PAGE, 2),
                      makeTensor(cu, VARLEN_INT, 32, 1, SEQUENCES + 1, 0, 0),
                      makeTensor(used, VARLEN_INT, 32, 1, SEQUENCES, 0, 0),
                      makeTensor(table, VARLEN_INT, 32, 2, SEQUENCES, WIDTH, 0),
                      makeTensor(out, VARLEN_FLOAT, 32, 3, SEQUENCES, 4, 64),
                      makeTensor(lse, VARLEN_FLOAT, 32, 2, 4, SEQUENCES, 0)};
  tensors[1].shape[3] = tensors[2].shape[3] = 64;
  const VarlenTensor *all[8];
  for (int i = 0; i < 8; ++i)
    all[i] = use(&tensors[i]);

  /* Extents of results and a workspace follow from extents alone. */
  int64_t extents[5] = {0};
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  EXPECT(!varlenFunctionGetResultShapes(decode, all, 6, extents, 5));
  EXPECT(extents[0] == SEQUENCES && extents[1] == 4 && extents[2] == 64);
  EXPECT(!varlenFunctionGetWorkspaceSize(decode, all, 6, &options,
                                         &options.workspaceSize));
  options.workspace = malloc(options.workspaceSize);
  EXPECT(!varlenFunctionCall(decode, all, 6, all + 6, 2, &options));
  float means[] = {(8 + 9 + 2) / 3.0f, 0, 0.5f};
  float counts[] = {3, 0, 2};
  for (int i = 0; i < SEQUENCES * 4 * 64; ++i)
    EXPECT(fabsf(out[i] - means[i / (4 * 64)]) < 1e-5f);
  for (int i = 0; i < 4 * SEQUENCES; ++i) {
    float wanted = 8 + logf(counts[i % SEQUENCES]);
    EXPECT(lse[i] == wanted || fabsf(lse[i] - wanted) < 1e-5f);
  }

  /* Nothing is written where an entry is no page. */
  table[1] = POOL;
  fill();
  EXPECT_ERROR(varlenFunctionCall(decode, all, 6, all + 6, 2, &options),
               VARLEN_BAD_DATA,
               "block_table[0, 1] = 5: expected 0 to 4, the pages of k, for "
               "the 3 keys of the sequence");
  EXPECT(out[0] == -1);

  /* Nor where a sequence has more keys than pages of it have rows, or pages
     have none. */
  table[1] = 1;
  used[2] = WIDTH * PAGE + 1;
  EXPECT_ERROR(varlenFunctionCall(decode, all, 6, all + 6, 2, &options),
               VARLEN_BAD_DATA,
               "seqused_k[2] = 5: expected 0 to 4, the rows of the pages that "
               "block_table has of a sequence");
  used[2] = 0;
  tensors[1].shape[1] = tensors[2].shape[1] = 0;
  EXPECT_ERROR(varlenFunctionCall(decode, all, 6, all + 6, 2, &options),
               VARLEN_BAD_DATA,
               "a page of k has 0 rows: expected a positive number");
  EXPECT(out[0] == -1);
  free(options.workspace);
  varlenProgramDestroy(program);
}

int main(void) {
  testPages();
  return failures != 0;
}
