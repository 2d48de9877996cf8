/* A host with a context of its own.

   REQUIRES: package
   RUN: %cc -I %mlir-libs/../include %s -o %t %capi %mlir-libs/libMLIRCAPIIR.a \
   RUN:   %mlir-libs/libMLIRCAPIFunc.a \
   RUN:   -L %mlir-libs -Wl,-rpath,%mlir-libs -lMLIR -lLLVM -lstdc++ -lm
   RUN: %t
*/

#include "varlen-c/Dialects.h"

#include "Inputs/Test.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/Pass.h"

static MlirModule parse(MlirContext context, const char *text) {
  return mlirModuleCreateParse(context, mlirStringRefCreateFromCString(text));
}

static void print(MlirStringRef text, void *context) {
  char *buffer = context;
  strncat(buffer, text.data, text.length);
}

static MlirLogicalResult keep(MlirDiagnostic diagnostic, void *context) {
  mlirDiagnosticPrint(diagnostic, print, context);
  return mlirLogicalResultSuccess();
}

/* A host that has forgotten what is implemented outside of dialects. */
static void testMissing(void) {
  static char message[1 << 16];
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__varlen__(), registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  MlirModule module = parse(context, ATTENTION);
  mlirContextAttachDiagnosticHandler(context, keep, message, NULL);
  MlirPassManager manager = mlirPassManagerCreate(context);
  EXPECT(mlirLogicalResultIsSuccess(mlirOpPassManagerAddPipeline(
      mlirPassManagerGetAsOpPassManager(manager),
      mlirStringRefCreateFromCString("varlen-lower-attn-to-cpu"), print,
      message)));
  EXPECT(mlirLogicalResultIsFailure(
      mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module))));
  EXPECT(strstr(message, "expected an implementation of "
                         "BufferizableOpInterface for 'arith.constant', which "
                         "mlir::varlen::registerRequiredUpstream"));
  mlirPassManagerDestroy(manager);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
}

int main(void) {
  static char text[1 << 20];
  static Batch batch;
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  varlenRegisterRequiredUpstream(registry);
  varlenRegisterAllDialects(registry);
  varlenRegisterAllPasses();
  varlenRegisterAllPasses();
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);

  /* A pipeline by its name. */
  MlirModule module = parse(context, ATTENTION);
  EXPECT(!mlirModuleIsNull(module));
  MlirPassManager manager = mlirPassManagerCreate(context);
  EXPECT(mlirLogicalResultIsSuccess(mlirOpPassManagerAddPipeline(
      mlirPassManagerGetAsOpPassManager(manager),
      mlirStringRefCreateFromCString("varlen-bufferize"), print, text)));
  EXPECT(mlirLogicalResultIsSuccess(
      mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module))));
  mlirPassManagerDestroy(manager);
  mlirOperationPrint(mlirModuleGetOperation(module), print, text);
  EXPECT(strstr(text, "memref.alloc"));
  mlirModuleDestroy(module);

  /* A module of the host, which stays as it is. */
  module = parse(context, ATTENTION);
  VarlenProgram program;
  EXPECT(!varlenCompileModule(module, NULL, &program));
  initBatch(&batch);
  EXPECT(!callBatch(get(program, NULL), &batch, NULL));
  EXPECT(isRight(&batch));
  varlenProgramDestroy(program);
  text[0] = 0;
  mlirOperationPrint(mlirModuleGetOperation(module), print, text);
  EXPECT(strstr(text, "varlen.attn"));
  mlirModuleDestroy(module);
  EXPECT_ERROR(varlenCompileModule((MlirModule){NULL}, NULL, &program),
               VARLEN_INVALID_ARGUMENT, "got null");
  mlirContextDestroy(context);

  /* One dialect, by its handle. */
  context = mlirContextCreate();
  mlirDialectHandleRegisterDialect(mlirGetDialectHandle__varlen__(), context);
  MlirDialect dialect = mlirContextGetOrLoadDialect(
      context, mlirStringRefCreateFromCString("varlen"));
  EXPECT(!mlirDialectIsNull(dialect));
  EXPECT(!mlirDialectIsNull(
      mlirDialectHandleLoadDialect(mlirGetDialectHandle__kernel__(), context)));
  mlirContextDestroy(context);
  testMissing();
  return failures != 0;
}
