// Attention in a compiler of one's own: builds it, lowers it, runs it on
// buffers of the caller.

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/ExecutionEngine/ExecutionEngine.h"
#include "varlen/InitAll.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace mlir;

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
  varlen::AttnOp::create(b, TypeRange(), argument(0), argument(1), argument(2),
                         argument(3), argument(3), /*seqused_q=*/Value(),
                         /*seqused_k=*/Value(), /*q_offset=*/Value(),
                         /*sink=*/Value(), argument(4), argument(5),
                         /*captures=*/ValueRange(), causal,
                         /*scale=*/FloatAttr(), /*scoreCount=*/0);
  func::ReturnOp::create(b);
  return module;
}

int main() {
  DialectRegistry registry;
  varlen::registerUpstream(registry);
  varlen::registerAllDialects(registry);
  varlen::registerAllExtensions(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = build(context);
  PassManager manager(&context);
  varlen::VarlenToCPUOptions options;
  varlen::buildVarlenToCPU(manager, options);
  if (failed(manager.run(*module)))
    return 1;
  auto engine = llvm::cantFail(
      varlen::createExecutionEngine(*module, varlen::getHostCPUTarget()));

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
      llvm::cantFail(engine->lookup("_mlir_ciface_attention")));
  call(&q3, &k3, &v3, &cu1, &out3, &lse2);
  for (int64_t row = 0; row < 4; ++row)
    printf("%g %g\n", out[row * heads * dim], lse[row]);

  cu = {0, 5, 4};
  varlen_clear_error();
  call(&q3, &k3, &v3, &cu1, &out3, &lse2);
  printf("error: %s\n", varlen_last_error());
  return 0;
}
