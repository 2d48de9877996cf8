/* A call in a workspace of the size that was asked for allocates nothing,
   whatever is in cu_seqlens.

   RUN: %cc -D_GNU_SOURCE %s -o %t %capi -lm -ldl
   RUN: %t
   A sanitizer has an aligned_alloc of its own.
   REQUIRES: package
*/

#include "Inputs/Test.h"

#include <dlfcn.h>
#include <stdatomic.h>

static atomic_int allocations;

/* In place of libc's, for the library too. What a thread of its pool keeps to
   itself, of no size, is not counted. */
void *aligned_alloc(size_t alignment, size_t bytes) {
  static void *(*original)(size_t, size_t);
  if (!original)
    *(void **)&original = dlsym(RTLD_NEXT, "aligned_alloc");
  allocations += bytes > 64;
  return original(alignment, bytes);
}

/* Forward and gradients, with all that a list of work depends on. */
static const char train[] =
    "func.func @train(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>,\n"
    "    %v: tensor<?x2x32xf32>, %dout: tensor<?x4x32xf32>,\n"
    "    %sink: tensor<4xf32>, %cu_q: tensor<?xi64>, %cu_k: tensor<?xi64>,\n"
    "    %used: tensor<?xi64>)\n"
    "    -> (tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?x4x32xf32>,\n"
    "        tensor<?x2x32xf32>, tensor<?x2x32xf32>, tensor<4xf32>) {\n"
    "  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used)\n"
    "      sink(%sink) {mask = #varlen.mask<causal>}\n"
    "      : (tensor<?x4x32xf32>, tensor<?x2x32xf32>, tensor<?x2x32xf32>,\n"
    "         tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<4xf32>)\n"
    "      -> (tensor<?x4x32xf32>, tensor<4x?xf32>)\n"
    "  %dq, %dk, %dv, %dsink = varlen.attn_grad %dout, %q, %k, %v, %out, "
    "%lse,\n"
    "      %cu_q, %cu_k seqused_q(%used) sink(%sink)\n"
    "      {mask = #varlen.mask<causal>}\n"
    "      : (tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x2x32xf32>,\n"
    "         tensor<?x2x32xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>,\n"
    "         tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<4xf32>)\n"
    "      -> (tensor<?x4x32xf32>, tensor<?x2x32xf32>, tensor<?x2x32xf32>,\n"
    "          tensor<4xf32>)\n"
    "  return %out, %lse, %dq, %dk, %dv, %dsink : tensor<?x4x32xf32>,\n"
    "      tensor<4x?xf32>, tensor<?x4x32xf32>, tensor<?x2x32xf32>,\n"
    "      tensor<?x2x32xf32>, tensor<4xf32>\n"
    "}\n";

enum { SEQUENCES = 40, MAX_ROWS = 1000, ROW = 4 * 32 };

static int64_t random64(int64_t below) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)below);
}

/* A model of so many layers, with products in between, small and in tiles. */
static char *makeLayers(int layers) {
  static const char begin[] =
      "func.func @layers(%x0: tensor<?x64xf32>, %w: tensor<64x64xf32>,\n"
      "    %cu: tensor<?xi32>) -> tensor<?x64xf32> {\n"
      "  %c0 = arith.constant 0 : index\n"
      "  %zero = arith.constant 0.0 : f32\n"
      "  %t = tensor.dim %x0, %c0 : tensor<?x64xf32>\n"
      "  %e = tensor.empty(%t) : tensor<?x64xf32>\n";
  static const char layer[] =
      "  %%f%1$d = linalg.fill ins(%%zero : f32) outs(%%e : tensor<?x64xf32>)\n"
      "      -> tensor<?x64xf32>\n"
      "  %%p%1$d = linalg.matmul ins(%%x%1$d, %%w : tensor<?x64xf32>,\n"
      "      tensor<64x64xf32>) outs(%%f%1$d : tensor<?x64xf32>)\n"
      "      -> tensor<?x64xf32>\n"
      "  %%q%1$d = tensor.expand_shape %%p%1$d [[0], [1, 2]]\n"
      "      output_shape [%%t, 4, 16]\n"
      "      : tensor<?x64xf32> into tensor<?x4x16xf32>\n"
      "  %%a%1$d, %%l%1$d = varlen.attn %%q%1$d, %%q%1$d, %%q%1$d, %%cu, %%cu\n"
      "      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,\n"
      "         tensor<?xi32>, tensor<?xi32>)\n"
      "      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)\n"
      "  %%g%1$d = tensor.collapse_shape %%a%1$d [[0], [1, 2]]\n"
      "      : tensor<?x4x16xf32> into tensor<?x64xf32>\n"
      "  %%x%2$d = arith.addf %%x%1$d, %%g%1$d : tensor<?x64xf32>\n";
  char *text = malloc(sizeof begin + 100 + 2 * sizeof layer * (size_t)layers);
  char *end = text + sprintf(text, "%s", begin);
  for (int i = 0; i < layers; ++i)
    end += sprintf(end, layer, i, i + 1);
  sprintf(end, "  return %%x%d : tensor<?x64xf32>\n}\n", layers);
  return text;
}

/* Lengths of many kinds: one long sequence, many empty ones, used parts. */
static void makeBatch(int64_t rows, int64_t cu[], int64_t used[]) {
  int64_t at = 0;
  cu[0] = 0;
  for (int i = 0; i < SEQUENCES; ++i) {
    int64_t left = rows - at, length = 0;
    switch (random64(4)) {
    case 0:
      length = random64(left + 1);
      break;
    case 1:
      length = random64(left < 20 ? left + 1 : 20);
      break;
    case 2:
      length = left / 8;
      break;
    }
    used[i] = random64(3) ? length : random64(length + 1);
    cu[i + 1] = at += length;
  }
}

/* Calls with the first `arguments` of `all`, with and without a workspace. */
static size_t callBoth(VarlenFunction function, const VarlenTensor **all,
                       size_t arguments, size_t results, int64_t threads) {
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  options.numThreads = threads;
  size_t bytes = 0;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, all, arguments, &options,
                                         &bytes));
  options.workspaceSize = bytes;
  /* What is in it does not matter. */
  options.workspace = malloc(bytes + 1);
  memset(options.workspace, 0xff, bytes + 1);
  int before = allocations;
  EXPECT(!varlenFunctionCall(function, all, arguments, all + arguments, results,
                             &options));
  EXPECT(allocations == before);
  options.workspaceSize = bytes - 1;
  EXPECT_ERROR(varlenFunctionCall(function, all, arguments, all + arguments,
                                  results, &options),
               VARLEN_WORKSPACE_TOO_SMALL, "expected a workspace of ");
  free(options.workspace);
  /* Without a workspace there is something to count. */
  options.workspace = NULL;
  EXPECT(!varlenFunctionCall(function, all, arguments, all + arguments, results,
                             &options));
  EXPECT(allocations > before);
  return bytes;
}

static void testTrain(void) {
  static float in[4][MAX_ROWS * ROW], out[5][MAX_ROWS * ROW], sink[4], dsink[4];
  int64_t cu[SEQUENCES + 1], used[SEQUENCES];
  VarlenProgram program;
  EXPECT(!compile(train, NULL, &program));
  VarlenFunction function = get(program, NULL);
  for (int round = 0; round < 60; ++round) {
    int64_t rows = 1 + random64(MAX_ROWS);
    makeBatch(rows, cu, used);
    Tensor t[] = {makeTensor(in[0], VARLEN_FLOAT, 32, 3, rows, 4, 32),
                  makeTensor(in[1], VARLEN_FLOAT, 32, 3, rows, 2, 32),
                  makeTensor(in[2], VARLEN_FLOAT, 32, 3, rows, 2, 32),
                  makeTensor(in[3], VARLEN_FLOAT, 32, 3, rows, 4, 32),
                  makeTensor(sink, VARLEN_FLOAT, 32, 1, 4, 0, 0),
                  makeTensor(cu, VARLEN_INT, 64, 1, SEQUENCES + 1, 0, 0),
                  makeTensor(cu, VARLEN_INT, 64, 1, SEQUENCES + 1, 0, 0),
                  makeTensor(used, VARLEN_INT, 64, 1, SEQUENCES, 0, 0),
                  makeTensor(out[0], VARLEN_FLOAT, 32, 3, rows, 4, 32),
                  makeTensor(out[1], VARLEN_FLOAT, 32, 2, 4, rows, 0),
                  makeTensor(out[2], VARLEN_FLOAT, 32, 3, rows, 4, 32),
                  makeTensor(out[3], VARLEN_FLOAT, 32, 3, rows, 2, 32),
                  makeTensor(out[4], VARLEN_FLOAT, 32, 3, rows, 2, 32),
                  makeTensor(dsink, VARLEN_FLOAT, 32, 1, 4, 0, 0)};
    const VarlenTensor *all[14];
    for (int i = 0; i < 14; ++i)
      all[i] = use(&t[i]);
    callBoth(function, all, 8, 6, 1 + round % 3);
  }
  varlenProgramDestroy(program);
}

/* A function with products beside attention: the results with a workspace are
   those without, and layers use the memory of those before. */
static void testLayers(void) {
  static float x[MAX_ROWS * 64], w[64 * 64], y[2][MAX_ROWS * 64];
  for (int i = 0; i < MAX_ROWS * 64; ++i)
    x[i] = (float)random64(2000) / 1000 - 1;
  for (int i = 0; i < 64 * 64; ++i)
    w[i] = (float)random64(2000) / 8000 - 0.125f;
  int64_t wide[SEQUENCES + 1], used[SEQUENCES];
  size_t bytes[2];
  enum { FEW = 3, MANY = 7 };
  for (int which = 0; which < 2; ++which) {
    char *text = makeLayers(which ? MANY : FEW);
    VarlenProgram program;
    EXPECT(!compile(text, NULL, &program));
    free(text);
    VarlenFunction function = get(program, NULL);
    for (int round = 0; round < 20; ++round) {
      /* The last one is the same for both. */
      int64_t rows = round == 19 ? MAX_ROWS : random64(round % 2 ? 20 : 1000);
      int32_t cu[SEQUENCES + 1];
      makeBatch(rows, wide, used);
      for (int i = 0; i <= SEQUENCES; ++i)
        cu[i] = (int32_t)wide[i];
      Tensor t[] = {makeTensor(x, VARLEN_FLOAT, 32, 2, rows, 64, 0),
                    makeTensor(w, VARLEN_FLOAT, 32, 2, 64, 64, 0),
                    makeTensor(cu, VARLEN_INT, 32, 1, SEQUENCES + 1, 0, 0),
                    makeTensor(y[0], VARLEN_FLOAT, 32, 2, rows, 64, 0)};
      const VarlenTensor *all[4];
      for (int i = 0; i < 4; ++i)
        all[i] = use(&t[i]);
      VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
      options.numThreads = 1 + round % 3;
      EXPECT(!varlenFunctionGetWorkspaceSize(function, all, 3, &options,
                                             &options.workspaceSize));
      options.workspace = malloc(options.workspaceSize);
      EXPECT(!varlenFunctionCall(function, all, 3, all + 3, 1, &options));
      free(options.workspace);
      memcpy(y[1], y[0], sizeof y[0]);
      memset(y[0], 0xff, sizeof y[0]);
      bytes[which] = callBoth(function, all, 3, 1, 1 + round % 3);
      EXPECT(!memcmp(y[0], y[1], (size_t)rows * 64 * sizeof(float)));
    }
    varlenProgramDestroy(program);
  }
  EXPECT(bytes[0] > 0 && bytes[1] <= bytes[0]);
}

/* What is in memory decides whether there is an attention. */
static void testBranch(void) {
  static float x[64], y[64];
  int32_t cu[] = {0, 1};
  bool flag = true;
  VarlenProgram program;
  EXPECT(
      !compile("func.func @branch(%x: tensor<?x4x16xf32>, %cu: tensor<?xi32>,"
               "    %flag: tensor<i1>) -> tensor<?x4x16xf32> {\n"
               "  %f = tensor.extract %flag[] : tensor<i1>\n"
               "  %y = scf.if %f -> tensor<?x4x16xf32> {\n"
               "    %a, %lse = varlen.attn %x, %x, %x, %cu, %cu :\n"
               "        (tensor<?x4x16xf32>, tensor<?x4x16xf32>,\n"
               "         tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>)\n"
               "        -> (tensor<?x4x16xf32>, tensor<4x?xf32>)\n"
               "    scf.yield %a : tensor<?x4x16xf32>\n"
               "  } else {\n"
               "    scf.yield %x : tensor<?x4x16xf32>\n"
               "  }\n"
               "  %r = arith.addf %x, %y : tensor<?x4x16xf32>\n"
               "  return %r : tensor<?x4x16xf32>\n"
               "}\n",
               NULL, &program));
  VarlenFunction branch = get(program, NULL);
  Tensor t[] = {makeTensor(x, VARLEN_FLOAT, 32, 3, 1, 4, 16),
                makeTensor(cu, VARLEN_INT, 32, 1, 2, 0, 0),
                makeTensor(&flag, VARLEN_BOOL, 8, 0, 0, 0, 0),
                makeTensor(y, VARLEN_FLOAT, 32, 3, 1, 4, 16)};
  const VarlenTensor *all[] = {use(&t[0]), use(&t[1]), use(&t[2]), use(&t[3])};
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  EXPECT_ERROR(varlenFunctionGetWorkspaceSize(branch, all, 3, &options,
                                              &options.workspaceSize),
               VARLEN_UNSUPPORTED,
               "expected a workspace that follows from extents, but 'scf.if'");
  /* A workspace is used as far as it goes. */
  char small[65];
  options.workspace = small;
  options.workspaceSize = sizeof small;
  x[0] = 1;
  EXPECT(!varlenFunctionCall(branch, all, 3, all + 3, 1, &options));
  EXPECT(y[0] == 2);
  varlenProgramDestroy(program);
}

int main(void) {
  testTrain();
  testLayers();
  testBranch();
  return failures != 0;
}
