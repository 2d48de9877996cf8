/* Programs become bytes and programs again; what is not a program's bytes is
   refused.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t write %t.program
   RUN: %t read %t.program
*/

#include "Inputs/Test.h"

static const char source[] = ATTENTION "func.func @next(%x: index) -> index {\n"
                                       "  %one = arith.constant 1 : index\n"
                                       "  %y = arith.addi %x, %one : index\n"
                                       "  return %y : index\n"
                                       "}\n";

/* Both functions of the program do what they say. */
static void testProgram(VarlenProgram program) {
  static Batch batch;
  VarlenFunction function = get(program, "attention");
  const VarlenParameter *q = varlenFunctionGetArgument(function, 0);
  EXPECT(!strcmp(q->name, "q") && q->code == VARLEN_FLOAT && q->bits == 32);
  EXPECT(q->rank == 3 && q->shape[0] == VARLEN_DYNAMIC && q->shape[2] == DIM);
  EXPECT(!q->strides && !q->isScalar && !q->isWritten);
  EXPECT(varlenFunctionGetResult(function, 0)->isWritten);
  initBatch(&batch);
  EXPECT(!callBatch(function, &batch, NULL));
  EXPECT(isRight(&batch));
  size_t bytes = 0;
  EXPECT(!varlenFunctionGetWorkspaceSize(function, batch.arguments, 4, NULL,
                                         &bytes));
  EXPECT(bytes > 0);
  int64_t extents[5] = {0};
  EXPECT(
      !varlenFunctionGetResultShapes(function, batch.arguments, 4, extents, 5));
  EXPECT(extents[0] == ROWS && extents[4] == ROWS);
  batch.cu[2] = 9;
  EXPECT_ERROR(callBatch(function, &batch, NULL), VARLEN_BAD_DATA,
               "cu_seqlens_q[2] = 9");

  int64_t x = 41, y = 0;
  Tensor in = makeTensor(&x, VARLEN_INT, 64, 0, 0, 0, 0);
  Tensor out = makeTensor(&y, VARLEN_INT, 64, 0, 0, 0, 0);
  const VarlenTensor *argument = use(&in), *result = use(&out);
  EXPECT(!varlenFunctionCall(get(program, "next"), &argument, 1, &result, 1,
                             NULL));
  EXPECT(y == 42);
}

static void expectRefused(const void *data, size_t size, VarlenStatus status,
                          const char *text) {
  VarlenProgram program = {NULL};
  EXPECT_ERROR(varlenProgramDeserialize(data, size, &program), status, text);
  EXPECT(!program.ptr);
}

/* Every byte that is changed, and every end that is missing, is found. */
static void testDamage(const char *data, size_t size) {
  char *copy = malloc(size + 1);
  memcpy(copy, data, size);
  copy[size] = 0;
  expectRefused(NULL, size, VARLEN_INVALID_ARGUMENT, "got null");
  expectRefused("", 0, VARLEN_INVALID_ARGUMENT, "the bytes of a program");
  expectRefused(source, sizeof source, VARLEN_INVALID_ARGUMENT,
                "the bytes of a program");
  expectRefused(copy, size + 1, VARLEN_INVALID_ARGUMENT, "checksum");
  for (size_t i = 0; i < size; i += i < 512 ? 1 : 997) {
    copy[i] ^= 0x10;
    expectRefused(copy, size, VARLEN_INVALID_ARGUMENT,
                  i < 16 ? "the bytes of a program" : "checksum");
    copy[i] ^= 0x10;
    expectRefused(copy, i, VARLEN_INVALID_ARGUMENT,
                  i < 16 ? "the bytes of a program" : "checksum");
  }
  free(copy);
}

/* As many threads as compile a program, it has the same bytes. */
static void testThreads(const char *data, size_t size) {
  VarlenProgram program;
  VarlenCode code;
  varlenSetNumThreads(1);
  EXPECT(!compile(source, NULL, &program));
  varlenSetNumThreads(0);
  EXPECT(!varlenProgramSerialize(program, &code));
  EXPECT(varlenCodeGetSize(code) == size &&
         !memcmp(varlenCodeGetData(code), data, size));
  varlenCodeDestroy(code);
  varlenProgramDestroy(program);
}

static void write(const char *path) {
  VarlenProgram program, again;
  VarlenCode code, codeAgain;
  EXPECT(!compile(source, NULL, &program));
  EXPECT_ERROR(varlenProgramSerialize((VarlenProgram){NULL}, &code),
               VARLEN_INVALID_ARGUMENT, "got null");
  EXPECT_ERROR(varlenProgramSerialize(program, NULL), VARLEN_INVALID_ARGUMENT,
               "got null");
  EXPECT(!varlenProgramSerialize(program, &code));
  varlenProgramDestroy(program);
  EXPECT(!varlenCodeGetManifest(code));
  size_t size = varlenCodeGetSize(code);
  const char *data = varlenCodeGetData(code);
  EXPECT(!varlenProgramDeserialize(data, size, &again));
  testProgram(again);
  testDamage(data, size);
  testThreads(data, size);

  /* Nothing is lost on the way. */
  EXPECT(!varlenProgramSerialize(again, &codeAgain));
  EXPECT(varlenCodeGetSize(codeAgain) == size &&
         !memcmp(varlenCodeGetData(codeAgain), data, size));
  varlenCodeDestroy(codeAgain);
  varlenProgramDestroy(again);
  FILE *file = fopen(path, "wb");
  EXPECT(fwrite(data, 1, size, file) == size);
  EXPECT(!fclose(file));
  varlenCodeDestroy(code);
}

static void read(const char *path) {
  static char data[1 << 20];
  FILE *file = fopen(path, "rb");
  size_t size = fread(data, 1, sizeof data, file);
  EXPECT(size > 0 && size < sizeof data && !fclose(file));
  VarlenProgram program;
  EXPECT(!varlenProgramDeserialize(data, size, &program));
  testProgram(program);
  varlenProgramDestroy(program);
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  const char *identity = varlenGetIdentity();
  EXPECT(identity && strstr(identity, varlenGetVersion()));
  (strcmp(argv[1], "write") ? read : write)(argv[2]);
  return failures != 0;
}
