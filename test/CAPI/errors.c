/* Errors of every kind: a status, a message, and a process that goes on.

   RUN: %cc %s -o %t %capi -lm
   RUN: env ASAN_OPTIONS=allocator_may_return_null=1 %t
*/

#include "Inputs/Test.h"

typedef struct Seen {
  int count[4];
  char message[256];
  int64_t line, column;
} Seen;

static void see(void *context, const VarlenDiagnostic *diagnostic) {
  Seen *seen = context;
  if (seen->count[diagnostic->severity]++ == 0 &&
      diagnostic->severity != VARLEN_NOTE) {
    snprintf(seen->message, sizeof seen->message, "%s", diagnostic->message);
    seen->line = diagnostic->line;
    seen->column = diagnostic->column;
  }
}

static void testCompile(void) {
  VarlenProgram program = {NULL};
  VarlenCompileOptions options = VARLEN_COMPILE_OPTIONS_INIT;
  Seen seen = {{0}, "", 0, 0};
  options.onDiagnostic = see;
  options.diagnosticContext = &seen;
  EXPECT_ERROR(
      compile("func.func @f() {\n  return %x : f32\n}", &options, &program),
      VARLEN_PARSE_ERROR, "module:2:10: use of undeclared SSA value");
  EXPECT(seen.count[VARLEN_ERROR] == 1 && seen.line == 2 && seen.column == 10);
  EXPECT(strstr(seen.message, "use of undeclared"));
  EXPECT_ERROR(compile("\x01\x02\x00", NULL, &program), VARLEN_PARSE_ERROR,
               "module:1:1:");
  EXPECT_ERROR(varlenCompile("ML\xefR", 4, NULL, &program), VARLEN_PARSE_ERROR,
               "");
  EXPECT_ERROR(varlenCompile("", 0, NULL, &program), VARLEN_COMPILE_ERROR,
               "expected a public function with a body");

  /* The verifier's rules. */
  EXPECT_ERROR(
      compile("func.func @f(%q: tensor<8x6x16xf32>, %k: tensor<8x4x16xf32>,\n"
              "             %cu: tensor<2xi32>) {\n"
              "  %o:2 = varlen.attn %q, %k, %k, %cu, %cu\n"
              "      : (tensor<8x6x16xf32>, tensor<8x4x16xf32>,\n"
              "         tensor<8x4x16xf32>, tensor<2xi32>, tensor<2xi32>)\n"
              "      -> (tensor<8x6x16xf32>, tensor<6x8xf32>)\n"
              "  return\n"
              "}",
              NULL, &program),
      VARLEN_PARSE_ERROR,
      "module:3:10: 'varlen.attn' op expected query heads to be a multiple of "
      "kv heads, got 6 and 4");

  /* Types that cannot be passed, and functions that cannot be called. */
  EXPECT_ERROR(compile("func.func @f(%x: tensor<4xcomplex<f32>>) { return }",
                       NULL, &program),
               VARLEN_COMPILE_ERROR, "expected elements of f16, bf16,");
  EXPECT_ERROR(
      compile("func.func @f(%x: tensor<*xf32>) { return }", NULL, &program),
      VARLEN_COMPILE_ERROR, "expected scalars, ranked tensors and");
  EXPECT_ERROR(compile("func.func @f(%x: memref<4xf32>) -> memref<4xf32> {\n"
                       "  return %x : memref<4xf32>\n"
                       "}",
                       NULL, &program),
               VARLEN_COMPILE_ERROR,
               "expected results that are ranked tensors or");
  EXPECT_ERROR(compile("func.func @f(%x: tensor<index>) -> tensor<?xf32> {\n"
                       "  %n = tensor.extract %x[] : tensor<index>\n"
                       "  %e = tensor.empty(%n) : tensor<?xf32>\n"
                       "  return %e : tensor<?xf32>\n"
                       "}",
                       NULL, &program),
               VARLEN_COMPILE_ERROR,
               "expected results whose extents follow from");
  EXPECT_ERROR(
      compile("func.func @f(%x: memref<4x4xf32, affine_map<(i, j) -> (j, i)>>)"
              " {\n  return\n}\n"
              "func.func @g(%x: memref<4x4xf32, affine_map<(i, j) -> (i * 2,"
              " j mod 2)>>) {\n  return\n}",
              NULL, &program),
      VARLEN_COMPILE_ERROR, "expected memrefs with strides and an offset");
  EXPECT_ERROR(compile("func.func private @f()\n"
                       "func.func @g(%x: f32) -> f32 {\n"
                       "  %y = \"test.unknown\"(%x) : (f32) -> f32\n"
                       "  return %y : f32\n"
                       "}",
                       NULL, &program),
               VARLEN_PARSE_ERROR,
               "module:3:22: operation being parsed with an "
               "unregistered dialect");

  /* What the code generator finds. */
  EXPECT_ERROR(compile("func.func @f(%x: memref<4xf32>) {\n"
                       "  %c = arith.constant 3 : i64\n"
                       "  llvm.inline_asm has_side_effects \"nop\", "
                       "\"{nosuch}\" %c : (i64) -> ()\n"
                       "  return\n"
                       "}",
                       NULL, &program),
               VARLEN_COMPILE_ERROR, "constraint '{nosuch}'");
  EXPECT_ERROR(compile("func.func @f(%x: memref<4xf32>) {\n"
                       "  llvm.inline_asm has_side_effects \"nosuch\", \"\" : "
                       "() -> ()\n"
                       "  return\n"
                       "}",
                       NULL, &program),
               VARLEN_COMPILE_ERROR, "LLVM: <inline asm>:1:2: ");

  options.target = "pdp11";
  EXPECT_ERROR(compile(ATTENTION, &options, &program), VARLEN_INVALID_ARGUMENT,
               "expected target to be one of host, generic, avx2");
#ifdef __x86_64__
  options.target = "neon";
  EXPECT_ERROR(compile(ATTENTION, &options, &program), VARLEN_UNSUPPORTED,
               "this machine has no aarch64, which neon needs");
#endif
  EXPECT_ERROR(varlenCompile(NULL, 0, NULL, &program), VARLEN_INVALID_ARGUMENT,
               "got null");
  EXPECT_ERROR(varlenCompile("", 0, NULL, NULL), VARLEN_INVALID_ARGUMENT,
               "got null");
  EXPECT(!program.ptr);
}

static void testLookup(VarlenProgram program) {
  VarlenFunction function = {NULL};
  EXPECT_ERROR(varlenProgramGetFunction(program, "attentive", &function),
               VARLEN_NOT_FOUND,
               "no public function 'attentive': expected one of attention");
  EXPECT_ERROR(varlenProgramGetFunction(program, "attention_shapes", &function),
               VARLEN_NOT_FOUND, "no public function");
  EXPECT_ERROR(varlenProgramGetFunction(program, NULL, NULL),
               VARLEN_INVALID_ARGUMENT, "got null");
  EXPECT_ERROR(varlenProgramGetFunction((VarlenProgram){NULL}, NULL, &function),
               VARLEN_INVALID_ARGUMENT, "got null");
  EXPECT_ERROR(varlenFunctionCall(function, NULL, 0, NULL, 0, NULL),
               VARLEN_INVALID_ARGUMENT, "expected a function, got null");
  EXPECT(varlenFunctionGetNumArguments(function) == 0);
  EXPECT(!varlenFunctionGetArgument(function, 0));
}

/* Tensors that are not what the types say. */
static void testTensors(VarlenFunction function) {
  static Batch b;
  size_t bytes;
  int64_t extents[5];
#define REFUSED(text)                                                          \
  EXPECT_ERROR(callBatch(function, &b, NULL), VARLEN_INVALID_ARGUMENT, text);  \
  EXPECT(isnan(b.out[0]));                                                     \
  initBatch(&b)

  initBatch(&b);
  EXPECT_ERROR(varlenFunctionCall(function, b.arguments, 3, b.results, 2, NULL),
               VARLEN_INVALID_ARGUMENT, "expected 4 arguments, got 3");
  EXPECT_ERROR(varlenFunctionCall(function, b.arguments, 4, b.results, 0, NULL),
               VARLEN_INVALID_ARGUMENT, "expected 2 results, got 0");
  EXPECT_ERROR(varlenFunctionCall(function, NULL, 4, b.results, 2, NULL),
               VARLEN_INVALID_ARGUMENT, "expected 4 arguments, got null");
  EXPECT_ERROR(
      varlenFunctionGetResultShapes(function, b.arguments, 4, extents, 4),
      VARLEN_INVALID_ARGUMENT, "expected room for 5 extents, got 4");
  EXPECT_ERROR(
      varlenFunctionGetWorkspaceSize(function, b.arguments, 4, NULL, NULL),
      VARLEN_INVALID_ARGUMENT, "got null");
  b.arguments[2] = NULL;
  REFUSED("v: expected a tensor, got null");
  b.tensors[0].tensor.device.device_type = VARLEN_CUDA;
  REFUSED("q: expected a tensor in memory of the CPU, got device type 2");
  b.tensors[1].tensor.dtype.code = VARLEN_BFLOAT;
  b.tensors[1].tensor.dtype.bits = 16;
  REFUSED(
      "k: expected elements of f32, DLPack's (2, 32, 1), got bf16, DLPack's "
      "(4, 16, 1)");
  b.tensors[3].tensor.dtype.lanes = 2;
  REFUSED(
      "cu: expected elements of i32, DLPack's (0, 32, 1), got vectors of i32, "
      "DLPack's (0, 32, 2)");
  b.tensors[3].tensor.ndim = 2;
  REFUSED("cu: expected a tensor of rank 1, got 2");
  b.tensors[3].tensor.shape = NULL;
  REFUSED("cu: expected a tensor of rank 1, got no shape");
  b.tensors[0].shape[1] = 5;
  REFUSED("q: expected extent 1 to be 4, got 5");
  b.tensors[0].shape[0] = -4;
  REFUSED("q: expected extent 0 of at least 0, got -4");
  b.arguments[0] = useStrided(&b.tensors[0], HEADS * DIM * 2, DIM, 1);
  REFUSED("q: expected stride 0 to be 256, got 512");
  b.tensors[0].tensor.data = NULL;
  REFUSED("q: expected data, got null");
  b.tensors[0].tensor.byte_offset = 2;
  REFUSED("q: expected data aligned to its elements of 4 bytes, got address");
  b.tensors[0].shape[0] = INT64_MAX / 512;
  REFUSED("q: expected a tensor of less than 2^63 bytes");
  b.tensors[4].shape[0] = 3;
  REFUSED("out: expected extent 0 to be 4, which follows from the arguments, "
          "got 3");
  b.tensors[5].shape[1] = 5;
  REFUSED("result1: expected extent 1 to be 4, which follows from the "
          "arguments, got 5");
  b.tensors[4].tensor.data = b.q;
  REFUSED("out: expected memory that no other tensor of the call has, got some "
          "of q");
  b.tensors[5].tensor.data = b.out + DIM;
  REFUSED("result1: expected memory that no other tensor of the call has, got "
          "some of out");

  /* What compiled code finds: values, and extents of several tensors. */
  b.cu[1] = 5;
  EXPECT_ERROR(callBatch(function, &b, NULL), VARLEN_BAD_DATA,
               "cu_seqlens_q[1] = 5 is larger than the 4 rows of q");
  initBatch(&b);
  b.tensors[2].shape[0] = 3;
  EXPECT_ERROR(callBatch(function, &b, NULL), VARLEN_BAD_DATA,
               "v has 3 rows: expected 4, as many as k");
  EXPECT_ERROR(
      varlenFunctionGetWorkspaceSize(function, b.arguments, 4, NULL, &bytes),
      VARLEN_BAD_DATA, "v has 3 rows: expected 4, as many as k");
  initBatch(&b);
  EXPECT(!callBatch(function, &b, NULL));
  EXPECT(isRight(&b));
}

static void testWorkspace(VarlenFunction function) {
  static Batch b;
  size_t bytes;
  initBatch(&b);
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  options.numThreads = 1;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, b.arguments, 4, &options,
                                         &bytes));
  options.workspace = malloc(bytes);
  options.workspaceSize = bytes - 1;
  char text[64];
  snprintf(text, sizeof text, "expected a workspace of %zu bytes, got %zu",
           bytes, bytes - 1);
  EXPECT_ERROR(callBatch(function, &b, &options), VARLEN_WORKSPACE_TOO_SMALL,
               text);
  EXPECT(isnan(b.out[0]));
  options.workspaceSize = 3;
  EXPECT_ERROR(callBatch(function, &b, &options), VARLEN_WORKSPACE_TOO_SMALL,
               "got 3");
  free(options.workspace);
  /* Lists of work that no machine holds. */
  b.tensors[0].shape[0] = b.tensors[4].shape[0] = b.tensors[5].shape[1] =
      INT64_MAX / 2048;
  options.workspace = NULL;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, b.arguments, 4, &options,
                                         &bytes));
  EXPECT(bytes > (size_t)1 << 40);
}

/* Memory that is not there, in a function that has buffers of its own. */
static void testMemory(void) {
  VarlenProgram program;
  EXPECT(!compile("func.func @f(%n: index) -> f32 {\n"
                  "  %c0 = arith.constant 0 : index\n"
                  "  %one = arith.constant 1.0 : f32\n"
                  "  %s = tensor.splat %one[%n] : tensor<?xf32>\n"
                  "  %t = arith.addf %s, %s : tensor<?xf32>\n"
                  "  %r = tensor.extract %t[%c0] : tensor<?xf32>\n"
                  "  return %r : f32\n"
                  "}",
                  NULL, &program));
  VarlenFunction f = get(program, NULL);
  int64_t n = INT64_C(1) << 46;
  float r = 0;
  Tensor t[] = {makeTensor(&n, VARLEN_INT, 64, 0, 0, 0, 0),
                makeTensor(&r, VARLEN_FLOAT, 32, 0, 0, 0, 0)};
  const VarlenTensor *argument = use(&t[0]), *result = use(&t[1]);
  for (int i = 0; i < 3; ++i)
    EXPECT_ERROR(varlenFunctionCall(f, &argument, 1, &result, 1, NULL),
                 VARLEN_OUT_OF_MEMORY, "not enough memory for a buffer of");
  n = 3;
  EXPECT(!varlenFunctionCall(f, &argument, 1, &result, 1, NULL));
  EXPECT(r == 2);
  varlenProgramDestroy(program);
}

/* A check that fails is an error like others. */
static void testChecks(void) {
  static const char *const source =
      "func.func @f(%x: tensor<?xf32>, %i: index) -> f32 {\n"
      "  %r = tensor.extract %x[%i] : tensor<?xf32>\n"
      "  return %r : f32\n"
      "}";
  VarlenProgram program;
  VarlenCompileOptions options = VARLEN_COMPILE_OPTIONS_INIT;
  options.runtimeChecks = true;
  EXPECT(!compile(source, &options, &program));
  VarlenFunction f = get(program, NULL);
  int64_t i = 2;
  float x[] = {1, 2, 3}, r = 0;
  Tensor t[] = {makeTensor(x, VARLEN_FLOAT, 32, 1, 3, 0, 0),
                makeTensor(&i, VARLEN_INT, 64, 0, 0, 0, 0),
                makeTensor(&r, VARLEN_FLOAT, 32, 0, 0, 0, 0)};
  const VarlenTensor *arguments[] = {use(&t[0]), use(&t[1])};
  const VarlenTensor *result = use(&t[2]);
  EXPECT(!varlenFunctionCall(f, arguments, 2, &result, 1, NULL));
  EXPECT(r == 3);
  i = 3;
  EXPECT_ERROR(varlenFunctionCall(f, arguments, 2, &result, 1, NULL),
               VARLEN_CHECK_FAILED, "out-of-bounds");
  EXPECT(strstr(varlenGetLastError(), "module"));
  i = 0;
  EXPECT(!varlenFunctionCall(f, arguments, 2, &result, 1, NULL));
  EXPECT(r == 1);
  varlenProgramDestroy(program);
}

static void testKernels(void) {
  VarlenCode code = {NULL};
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  EXPECT_ERROR(
      varlenCompileKernels("func.func @f() { return }", 25, &options, &code),
      VARLEN_COMPILE_ERROR, "found no kernel");
  EXPECT_ERROR(varlenCompileKernels("?", 1, &options, &code),
               VARLEN_PARSE_ERROR, "module:1:1");
  options.chip = "sm_1";
  EXPECT_ERROR(
      varlenCompileKernels(ATTENTION, strlen(ATTENTION), &options, &code),
      VARLEN_COMPILE_ERROR, "sm_80");
  options.format = (VarlenCodeFormat)9;
  EXPECT_ERROR(
      varlenCompileKernels(ATTENTION, strlen(ATTENTION), &options, &code),
      VARLEN_INVALID_ARGUMENT, "unknown format 9");
  EXPECT_ERROR(varlenCompileKernels(NULL, 0, NULL, &code),
               VARLEN_INVALID_ARGUMENT, "got null");
  EXPECT_ERROR(
      varlenCompileKernels("func.func @f(%x: f32) { return }", 32, NULL, &code),
      VARLEN_COMPILE_ERROR,
      "expected arguments that are ranked tensors in a launcher");
  EXPECT(!code.ptr && !varlenCodeGetData(code) && !varlenCodeGetSize(code));
  EXPECT(!varlenCodeGetManifest(code));
}

int main(void) {
  VarlenProgram program;
  testCompile();
  EXPECT(!compile(ATTENTION, NULL, &program));
  testLookup(program);
  testTensors(get(program, NULL));
  testWorkspace(get(program, NULL));
  varlenProgramDestroy(program);
  testMemory();
  testChecks();
  testKernels();
  return failures != 0;
}
