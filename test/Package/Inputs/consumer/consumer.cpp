// Attention in a compiler of one's own: lowers an operation of its dialect to
// varlen.attn, that to LLVM, and runs it on buffers of the caller.

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/ExecutionEngine/ExecutionEngine.h"
#include "varlen/InitAll.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace mlir;

// What mlir-tblgen has made of Host.td.
#include "HostDialect.h.inc"
#define GET_OP_CLASSES
#include "Host.h.inc"

void host::HostDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Host.cpp.inc"
      >();
}

#include "HostDialect.cpp.inc"
#define GET_OP_CLASSES
#include "Host.cpp.inc"

static constexpr int64_t heads = 2, dim = 16;

/// func @attention(q, k, v, cu, out, lse): causal, on buffers.
static OwningOpRef<ModuleOp> build(MLIRContext &context) {
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  OwningOpRef<ModuleOp> module(ModuleOp::create(b.getLoc()));
  b.setInsertionPointToEnd(module->getBody());
  int64_t any = ShapedType::kDynamic;
  auto rows = MemRefType::get({any, heads, dim}, b.getF32Type());
  auto cu = MemRefType::get({any}, b.getI32Type());
  auto lse = MemRefType::get({heads, any}, b.getF32Type());
  auto func = func::FuncOp::create(
      b, "attention", b.getFunctionType({rows, rows, rows, cu, rows, lse}, {}));
  func->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(), b.getUnitAttr());
  Block *body = func.addEntryBlock();
  b.setInsertionPointToEnd(body);
  auto argument = [&](unsigned i) -> Value { return body->getArgument(i); };
  auto causal =
      varlen::MaskAttr::get(&context, -1, 0, varlen::Alignment::BottomRight);
  host::AttentionOp::create(b, argument(0), argument(1), argument(2),
                            argument(3), argument(4), argument(5), causal);
  func::ReturnOp::create(b);
  return module;
}

static void lower(host::AttentionOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  varlen::AttnOptions options;
  options.mask = op.getMask();
  varlen::AttnOp::create(b, op.getQ(), op.getK(), op.getV(), op.getCu(),
                         op.getCu(), op.getOut(), op.getLse(), options);
  op.erase();
}

/// What createExecutionEngine does, for a compiler that has options of its own.
static llvm::Expected<std::unique_ptr<ExecutionEngine>>
createOwnEngine(ModuleOp module, const varlen::CPUTarget &target) {
  varlen::initializeNativeTarget();
  auto machine = varlen::makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  ExecutionEngineOptions options;
  auto transformer = varlen::makeOptimizingTransformer(target, **machine);
  options.transformer = transformer;
  options.jitCodeGenOptLevel = varlen::kCodeGenLevel;
  options.enableObjectDump = true;
  // The engine keeps the machine.
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (engine)
    varlen::registerRuntimeSymbols(**engine);
  return engine;
}

static void run(ExecutionEngine &engine) {
  // Two sequences, of 3 rows and of 1. All keys are alike, so the query at
  // position i of its sequence takes the mean of the first i + 1 values.
  std::vector<int32_t> cu = {0, 3, 4};
  std::vector<float> q(4 * heads * dim, 1.0f), k = q, v = q;
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t i = 0; i < heads * dim; ++i)
      v[row * heads * dim + i] = static_cast<float>(row);
  std::vector<float> out(q.size(), NAN), lse(4 * heads, NAN);
  using Rows = StridedMemRefType<float, 3>;
  auto rows = [](std::vector<float> &data) {
    return Rows{
        data.data(), data.data(), 0, {4, heads, dim}, {heads * dim, dim, 1}};
  };
  Rows q3 = rows(q), k3 = rows(k), v3 = rows(v), out3 = rows(out);
  StridedMemRefType<int32_t, 1> cu1{cu.data(), cu.data(), 0, {3}, {1}};
  StridedMemRefType<float, 2> lse2{
      lse.data(), lse.data(), 0, {heads, 4}, {4, 1}};
  auto call = reinterpret_cast<void (*)(Rows *, Rows *, Rows *, decltype(&cu1),
                                        Rows *, decltype(&lse2))>(
      llvm::cantFail(engine.lookup("_mlir_ciface_attention")));
  call(&q3, &k3, &v3, &cu1, &out3, &lse2);
  for (int64_t row = 0; row < 4; ++row)
    printf("%g %g\n", out[row * heads * dim], lse[row]);

  cu = {0, 5, 4};
  varlen_clear_error();
  call(&q3, &k3, &v3, &cu1, &out3, &lse2);
  printf("error: %s\n", varlen_last_error());
}

int main() {
  DialectRegistry registry;
  registry.insert<host::HostDialect>();
  varlen::registerUpstream(registry);
  varlen::registerAllDialects(registry);
  varlen::registerAllExtensions(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = build(context);
  module->walk(lower);
  PassManager manager(&context);
  varlen::VarlenToCPUOptions options;
  varlen::buildVarlenToCPU(manager, options);
  if (failed(manager.run(*module)))
    return 1;
  const varlen::CPUTarget &target = varlen::getHostCPUTarget();
  run(*llvm::cantFail(varlen::createExecutionEngine(*module, target)));
  printf("an engine of its own\n");
  run(*llvm::cantFail(createOwnEngine(*module, target)));
  return 0;
}
