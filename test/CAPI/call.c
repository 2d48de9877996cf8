/* Functions of many kinds are compiled and called.

   RUN: %cc %s -o %t %capi -lm
   RUN: varlen-opt %S/Inputs/attention.mlir --emit-bytecode -o %t.mlirbc
   RUN: %t %t.mlirbc
*/

#include "Inputs/Test.h"

static void testAttention(void) {
  static Batch batch;
  VarlenProgram program;
  EXPECT(!compile(ATTENTION, NULL, &program));
  VarlenFunction function = get(program, NULL);
  initBatch(&batch);
  EXPECT(!callBatch(function, &batch, NULL));
  EXPECT(isRight(&batch));

  /* Extents of results, without data. */
  int64_t extents[5] = {0};
  batch.tensors[0].tensor.data = NULL;
  EXPECT(
      !varlenFunctionGetResultShapes(function, batch.arguments, 4, extents, 5));
  EXPECT(extents[0] == ROWS && extents[1] == HEADS && extents[2] == DIM);
  EXPECT(extents[3] == HEADS && extents[4] == ROWS);

  /* A workspace of any alignment, of just the size that is asked for. */
  size_t bytes = 0, more = 0;
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  options.numThreads = 1;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, batch.arguments, 4, &options,
                                         &bytes));
  EXPECT(bytes > 0);
  batch.tensors[0].tensor.data = batch.q;
  char *memory = malloc(bytes + 8);
  memset(memory, 0x55, bytes + 8);
  options.workspace = memory + 1;
  options.workspaceSize = bytes;
  EXPECT(!callBatch(function, &batch, &options));
  EXPECT(isRight(&batch));
  for (int i = 1; i < 8; ++i)
    EXPECT(memory[bytes + i] == 0x55);
  EXPECT(memory[0] == 0x55);
  free(memory);

  /* More threads take more. */
  options.workspace = NULL;
  options.numThreads = 3;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, batch.arguments, 4, &options,
                                         &more));
  EXPECT(more > bytes);
  memory = malloc(more);
  options.workspace = memory;
  options.workspaceSize = more;
  for (int i = 0; i < 100; ++i) {
    EXPECT(!callBatch(function, &batch, &options));
    EXPECT(isRight(&batch));
  }
  free(memory);

  /* No row, no sequence, and nothing to write. */
  for (int i = 0; i < 5; ++i)
    batch.tensors[i].shape[0] = 0;
  batch.tensors[3].shape[0] = 1;
  batch.tensors[5].shape[1] = 0;
  EXPECT(!callBatch(function, &batch, NULL));
  EXPECT(isnan(batch.out[0]));
  varlenProgramDestroy(program);
}

static void testSignature(void) {
  VarlenProgram program;
  EXPECT(!compile(
      ATTENTION
      "func.func @other(%x: memref<?x8xbf16, strided<[?, 1], offset: ?>>,\n"
      "                 %n: index, %b: tensor<2xi1>, %y: memref<?xf32>)\n"
      "    -> i64 {\n"
      "  %zero = arith.constant 0 : index\n"
      "  %row = memref.subview %x[%n, 0] [1, 8] [1, 1]\n"
      "      : memref<?x8xbf16, strided<[?, 1], offset: ?>>\n"
      "        to memref<1x8xbf16, strided<[?, 1], offset: ?>>\n"
      "  %first = memref.load %row[%zero, %zero]\n"
      "      : memref<1x8xbf16, strided<[?, 1], offset: ?>>\n"
      "  %wide = arith.extf %first : bf16 to f32\n"
      "  %cut = memref.subview %y[%n] [1] [1]\n"
      "      : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>\n"
      "  memref.store %wide, %cut[%zero]\n"
      "      : memref<1xf32, strided<[1], offset: ?>>\n"
      "  %c = arith.constant 1 : i64\n"
      "  return %c : i64\n"
      "}\n"
      "func.func private @hidden() { return }\n",
      NULL, &program));
  VarlenFunction function = get(program, "attention");
  EXPECT(!strcmp(varlenFunctionGetName(function), "attention"));
  EXPECT(varlenFunctionGetNumArguments(function) == 4);
  EXPECT(varlenFunctionGetNumResults(function) == 2);
  const VarlenParameter *k = varlenFunctionGetArgument(function, 1);
  EXPECT(!strcmp(k->name, "k") && k->code == VARLEN_FLOAT && k->bits == 32);
  EXPECT(!k->isScalar && !k->isWritten && !k->strides);
  EXPECT(k->rank == 3 && k->shape[0] == VARLEN_DYNAMIC && k->shape[1] == 2);
  const VarlenParameter *out = varlenFunctionGetResult(function, 0);
  EXPECT(!strcmp(out->name, "out") && out->isWritten);
  EXPECT(!strcmp(varlenFunctionGetResult(function, 1)->name, "result1"));
  EXPECT(!varlenFunctionGetArgument(function, 4));
  EXPECT(!varlenFunctionGetResult(function, 2));

  function = get(program, "other");
  const VarlenParameter *x = varlenFunctionGetArgument(function, 0);
  EXPECT(!x->isWritten && x->code == VARLEN_BFLOAT && x->bits == 16);
  EXPECT(varlenFunctionGetArgument(function, 3)->isWritten);
  EXPECT(x->strides && x->strides[0] == VARLEN_DYNAMIC && x->strides[1] == 1);
  const VarlenParameter *n = varlenFunctionGetArgument(function, 1);
  EXPECT(n->isScalar && n->rank == 0 && n->code == VARLEN_INT && n->bits == 64);
  const VarlenParameter *b = varlenFunctionGetArgument(function, 2);
  EXPECT(b->code == VARLEN_BOOL && b->bits == 8);
  const VarlenParameter *r = varlenFunctionGetResult(function, 0);
  EXPECT(!r->isScalar && r->rank == 0);
  varlenProgramDestroy(program);
}

/* q, k and v are slices of one buffer, and so is out. */
static void testStrides(void) {
  enum { SLOTS = HEADS + 2 * KV_HEADS, ROW = SLOTS * DIM };
  static Batch batch;
  static float qkv[ROWS * ROW], out[ROWS * 2 * HEADS * DIM];
  VarlenProgram program;
  VarlenCompileOptions options = VARLEN_COMPILE_OPTIONS_INIT;
  options.stridedTensors = true;
  EXPECT(!compile(ATTENTION, &options, &program));
  VarlenFunction function = get(program, NULL);
  initBatch(&batch);
  /* Dense tensors are still welcome, with and without strides. */
  EXPECT(!callBatch(function, &batch, NULL));
  EXPECT(isRight(&batch));

  for (int i = 0; i < ROWS * ROW; ++i)
    qkv[i] = i % ROW < (HEADS + KV_HEADS) * DIM ? 1 : (float)(i / ROW);
  float *slices[] = {qkv, qkv + HEADS * DIM, qkv + (HEADS + KV_HEADS) * DIM};
  for (int i = 0; i < 3; ++i) {
    batch.tensors[i].tensor.data = slices[i];
    batch.arguments[i] = useStrided(&batch.tensors[i], ROW, DIM, 1);
  }
  batch.tensors[4].tensor.data = out;
  batch.tensors[4].tensor.byte_offset = HEADS * DIM * sizeof(float);
  batch.results[0] = useStrided(&batch.tensors[4], 2 * HEADS * DIM, DIM, 1);
  EXPECT(!callBatch(function, &batch, NULL));
  for (int row = 0; row < ROWS; ++row)
    for (int i = 0; i < HEADS * DIM; ++i) {
      batch.out[row * HEADS * DIM + i] = out[(2 * row + 1) * HEADS * DIM + i];
      EXPECT(out[2 * row * HEADS * DIM + i] == 0);
    }
  EXPECT(isRight(&batch));

  /* Slices side by side do not overlap; one that begins in another does. */
  batch.tensors[0].tensor.data = out;
  batch.arguments[0] = useStrided(&batch.tensors[0], 2 * HEADS * DIM, DIM, 1);
  EXPECT(!callBatch(function, &batch, NULL));
  batch.tensors[0].tensor.data = out + DIM;
  EXPECT_ERROR(callBatch(function, &batch, NULL), VARLEN_INVALID_ARGUMENT,
               "out: expected memory that no other tensor of the call has, "
               "got some of q");
  varlenProgramDestroy(program);
}

/* Other operations, scalars, memrefs that are written to. */
static void testOthers(void) {
  VarlenProgram program;
  EXPECT(!compile(
      "func.func @axpy(%a: f32, %x: tensor<?xf32>, %y: tensor<?xf32>)\n"
      "    -> (tensor<?xf32>, f32) {\n"
      "  %c0 = arith.constant 0 : index\n"
      "  %n = tensor.dim %x, %c0 : tensor<?xf32>\n"
      "  %s = tensor.splat %a[%n] : tensor<?xf32>\n"
      "  %p = arith.mulf %s, %x : tensor<?xf32>\n"
      "  %r = arith.addf %p, %y : tensor<?xf32>\n"
      "  %twice = arith.addf %a, %a : f32\n"
      "  return %r, %twice : tensor<?xf32>, f32\n"
      "}\n"
      "func.func @fill(%m: memref<?xi64>, %n: index) {\n"
      "  %c = arith.index_cast %n : index to i64\n"
      "  linalg.fill ins(%c : i64) outs(%m : memref<?xi64>)\n"
      "  return\n"
      "}\n",
      NULL, &program));
  VarlenFunction axpy = get(program, "axpy"), fill = get(program, "fill");
  float a = 2, x[] = {1, 2, 3}, y[] = {10, 20, 30}, r[3], twice = 0;
  Tensor t[] = {makeTensor(&a, VARLEN_FLOAT, 32, 0, 0, 0, 0),
                makeTensor(x, VARLEN_FLOAT, 32, 1, 3, 0, 0),
                makeTensor(y, VARLEN_FLOAT, 32, 1, 3, 0, 0),
                makeTensor(r, VARLEN_FLOAT, 32, 1, 3, 0, 0),
                makeTensor(&twice, VARLEN_FLOAT, 32, 0, 0, 0, 0)};
  const VarlenTensor *arguments[] = {use(&t[0]), use(&t[1]), use(&t[2])};
  const VarlenTensor *results[] = {use(&t[3]), use(&t[4])};
  EXPECT(!varlenFunctionCall(axpy, arguments, 3, results, 2, NULL));
  EXPECT(r[0] == 12 && r[1] == 24 && r[2] == 36 && twice == 4);

  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  EXPECT(!varlenFunctionGetWorkspaceSize(axpy, arguments, 3, &options,
                                         &options.workspaceSize));
  options.workspace = malloc(options.workspaceSize);
  r[0] = 0;
  EXPECT(!varlenFunctionCall(axpy, arguments, 3, results, 2, &options));
  EXPECT(r[0] == 12);
  free(options.workspace);

  int64_t n = 7, values[2] = {0, 0};
  Tensor m = makeTensor(values, VARLEN_INT, 64, 1, 2, 0, 0);
  Tensor s = makeTensor(&n, VARLEN_INT, 64, 0, 0, 0, 0);
  const VarlenTensor *both[] = {use(&m), use(&s)};
  EXPECT(!varlenFunctionCall(fill, both, 2, NULL, 0, NULL));
  EXPECT(values[0] == 7 && values[1] == 7);
  EXPECT(!varlenFunctionGetResultShapes(fill, both, 2, NULL, 0));
  varlenProgramDestroy(program);
}

/* Bytecode, from a buffer of any alignment. */
static void testBytecode(const char *path) {
  static char source[1 << 16];
  static Batch batch;
  FILE *file = fopen(path, "rb");
  EXPECT(file);
  size_t size = fread(source + 1, 1, sizeof source - 1, file);
  fclose(file);
  VarlenProgram program;
  EXPECT(!varlenCompile(source + 1, size, NULL, &program));
  initBatch(&batch);
  EXPECT(!callBatch(get(program, "attention"), &batch, NULL));
  EXPECT(isRight(&batch));
  varlenProgramDestroy(program);
}

/* A program that was compiled when the structs were shorter. */
static void testOlderOptions(void) {
  static Batch batch;
  struct {
    size_t structSize;
    const char *target;
  } old = {sizeof old, "nonsense"};
  VarlenProgram program;
  EXPECT_ERROR(
      compile(ATTENTION, (const VarlenCompileOptions *)(void *)&old, &program),
      VARLEN_INVALID_ARGUMENT, "expected target to be one of host, ");
  old.target = "host";
  EXPECT(!compile(ATTENTION, (const VarlenCompileOptions *)(void *)&old,
                  &program));
  size_t nothing = sizeof nothing;
  initBatch(&batch);
  EXPECT(!callBatch(get(program, NULL), &batch,
                    (const VarlenCallOptions *)(void *)&nothing));
  EXPECT(isRight(&batch));
  varlenProgramDestroy(program);
}

int main(int argc, char **argv) {
  EXPECT(varlenGetVersion()[0] == '0');
  EXPECT(!strcmp(varlenStatusName((VarlenStatus)99), "unknown status"));
  testAttention();
  testSignature();
  testStrides();
  testOthers();
  if (argc == 2)
    testBytecode(argv[1]);
  testOlderOptions();
  varlenProgramDestroy((VarlenProgram){NULL});
  return failures != 0;
}
