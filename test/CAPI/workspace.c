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
static const char source[] =
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

int main(void) {
  static float in[4][MAX_ROWS * ROW], out[5][MAX_ROWS * ROW], sink[4], dsink[4];
  int64_t cu[SEQUENCES + 1], used[SEQUENCES];
  VarlenProgram program;
  EXPECT(!compile(source, NULL, &program));
  VarlenFunction train = get(program, NULL);
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
    VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
    options.numThreads = 1 + round % 3;
    EXPECT(!varlenFunctionGetWorkspaceSize(train, all, 8, &options,
                                           &options.workspaceSize));
    options.workspace = malloc(options.workspaceSize);
    int before = allocations;
    EXPECT(!varlenFunctionCall(train, all, 8, all + 8, 6, &options));
    EXPECT(allocations == before);
    free(options.workspace);
    /* Without a workspace there is something to count. */
    options.workspace = NULL;
    EXPECT(!varlenFunctionCall(train, all, 8, all + 8, 6, &options));
    EXPECT(allocations > before);
  }
  varlenProgramDestroy(program);
  return failures != 0;
}
