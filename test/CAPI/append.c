/* New rows of keys and values go into a cache in place, and nowhere else.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t
*/

#include "Inputs/Test.h"

#define APPEND                                                                 \
  "func.func @append(%k: memref<?x2x8xf32>, %v: memref<?x2x8xf32>,\n"          \
  "                  %cu: memref<?xi32>, %used: memref<?xi32>,\n"              \
  "                  %table: memref<?x?xi32>, %kc: memref<?x?x2x8xf32>,\n"     \
  "                  %vc: memref<?x?x2x8xf32>) {\n"                            \
  "  varlen.append %k, %v, %cu seqused_k(%used) block_table(%table)\n"         \
  "      outs(%kc, %vc) : (memref<?x2x8xf32>, memref<?x2x8xf32>,\n"            \
  "       memref<?xi32>, memref<?xi32>, memref<?x?xi32>,\n"                    \
  "       memref<?x?x2x8xf32>, memref<?x?x2x8xf32>) -> ()\n"                   \
  "  return\n"                                                                 \
  "}\n"

enum { POOL = 3, PAGE = 2, ROW = 2 * 8, NEW = 3, SEQUENCES = 2 };

static float k[NEW * ROW], v[NEW * ROW], kCache[POOL * PAGE * ROW],
    vCache[POOL * PAGE * ROW];
/* Positions 1 and 2 of the first sequence, 1 of the second one. */
static int cu[] = {0, 2, 3}, used[] = {1, 1}, table[] = {2, 0, 1, -1};

static void fill(void) {
  for (int i = 0; i < NEW * ROW; ++i) {
    k[i] = (float)(i + 1);
    v[i] = (float)-i;
  }
  for (int i = 0; i < POOL * PAGE * ROW; ++i)
    kCache[i] = vCache[i] = 0.5f;
}

static void testAppend(void) {
  VarlenProgram program;
  EXPECT(!compile(APPEND, NULL, &program));
  VarlenFunction append = get(program, "append");
  Tensor tensors[] = {makeTensor(k, VARLEN_FLOAT, 32, 3, NEW, 2, 8),
                      makeTensor(v, VARLEN_FLOAT, 32, 3, NEW, 2, 8),
                      makeTensor(cu, VARLEN_INT, 32, 1, SEQUENCES + 1, 0, 0),
                      makeTensor(used, VARLEN_INT, 32, 1, SEQUENCES, 0, 0),
                      makeTensor(table, VARLEN_INT, 32, 2, SEQUENCES, 2, 0),
                      makeTensor(kCache, VARLEN_FLOAT, 32, 4, POOL, PAGE, 2),
                      makeTensor(vCache, VARLEN_FLOAT, 32, 4, POOL, PAGE, 2)};
  tensors[5].shape[3] = tensors[6].shape[3] = 8;
  const VarlenTensor *all[7];
  for (int i = 0; i < 7; ++i)
    all[i] = use(&tensors[i]);

  /* A workspace is measured without a write to the cache. */
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  fill();
  EXPECT(!varlenFunctionGetWorkspaceSize(append, all, 7, &options,
                                         &options.workspaceSize));
  for (int i = 0; i < POOL * PAGE * ROW; ++i)
    EXPECT(kCache[i] == 0.5f && vCache[i] == 0.5f);
  options.workspace = malloc(options.workspaceSize);
  EXPECT(!varlenFunctionCall(append, all, 7, NULL, 0, &options));
  const int newRows[POOL * PAGE] = {1, -1, -1, 2, -1, 0};
  for (int i = 0; i < POOL * PAGE * ROW; ++i) {
    int row = newRows[i / ROW], at = row * ROW + i % ROW;
    EXPECT(kCache[i] == (row < 0 ? 0.5f : k[at]));
    EXPECT(vCache[i] == (row < 0 ? 0.5f : v[at]));
  }

  /* Nothing is written where two sequences would write to one page. */
  table[2] = 0;
  fill();
  EXPECT_ERROR(varlenFunctionCall(append, all, 7, NULL, 0, &options),
               VARLEN_BAD_DATA,
               "block_table[1, 0] = 0: expected a page that nothing else "
               "writes to, and block_table[0, 1] is the same");
  for (int i = 0; i < POOL * PAGE * ROW; ++i)
    EXPECT(kCache[i] == 0.5f && vCache[i] == 0.5f);

  /* Nor where the caller asks for it, and caches overlap. */
  table[2] = 1;
  options.separateWrites = true;
  EXPECT(!varlenFunctionCall(append, all, 7, NULL, 0, &options));
  fill();
  tensors[6].tensor.data = kCache + (POOL - 1) * PAGE * ROW;
  tensors[6].shape[0] = 1;
  EXPECT_ERROR(varlenFunctionCall(append, all, 7, NULL, 0, &options),
               VARLEN_INVALID_ARGUMENT,
               "expected memory that no other tensor of the call has, got some "
               "of arg5");
  for (int i = 0; i < POOL * PAGE * ROW; ++i)
    EXPECT(kCache[i] == 0.5f);
  /* Where it only reads they may. */
  tensors[6].tensor.data = vCache;
  tensors[6].shape[0] = POOL;
  tensors[1].tensor.data = tensors[0].tensor.data;
  EXPECT(!varlenFunctionCall(append, all, 7, NULL, 0, &options));
  free(options.workspace);
  varlenProgramDestroy(program);
}

int main(void) {
  testAppend();
  return failures != 0;
}
