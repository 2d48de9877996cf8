//===- VarlenLowerAttn.cpp - Attention in another project's pipeline ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttnIsolator.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/CPU/Passes.h"
#include "varlen/Target/CPUTarget.h"
#include "varlen/Target/GPUTarget.h"
#include "varlen/Target/TargetOption.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENLOWERATTNTOCPU
#define GEN_PASS_DEF_VARLENLOWERATTNTOGPU
#include "varlen/Pipelines/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static func::FuncOp declare(ModuleOp module, StringRef name, Type input,
                            TypeRange results) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return function;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto function = func::FuncOp::create(b, module.getLoc(), name,
                                       b.getFunctionType(input, results));
  function.setPrivate();
  return function;
}

/// Has host code allocate and free buffers by calls: a device's, and such as
/// the host's passes that own buffers do not take for theirs.
static void allocateByCalls(ModuleOp module, StringRef allocate,
                            StringRef free) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  Type pointerType = LLVM::LLVMPointerType::get(context);
  Type bytesType = IntegerType::get(context, 64);
  SmallVector<memref::AllocOp> allocs;
  SmallVector<memref::DeallocOp> deallocs;
  for (auto function : module.getOps<func::FuncOp>()) {
    function.walk([&](memref::AllocOp op) { allocs.push_back(op); });
    function.walk([&](memref::DeallocOp op) { deallocs.push_back(op); });
  }
  for (memref::AllocOp op : allocs) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    MemRefType type = op.getType();
    auto elementBytes = static_cast<int64_t>(
        DataLayout::closest(op).getTypeSize(type.getElementType()));
    for (int64_t extent : type.getShape())
      if (!ShapedType::isDynamic(extent))
        elementBytes *= extent;
    Value bytes = arith::ConstantIndexOp::create(b, elementBytes);
    for (Value extent : op.getDynamicSizes())
      bytes = arith::MulIOp::create(b, bytes, extent);
    Value size = arith::IndexCastOp::create(b, bytesType, bytes);
    auto call = func::CallOp::create(
        b, declare(module, allocate, bytesType, pointerType), size);
    auto flat = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
    Value zero = LLVM::ConstantOp::create(b, bytesType, b.getIndexAttr(0));
    Value one = LLVM::ConstantOp::create(b, bytesType, b.getIndexAttr(1));
    Value pointer = call.getResult(0);
    Value descriptor = MemRefDescriptor::pack(
        b, b.getLoc(), converter, flat, {pointer, pointer, zero, size, one});
    Value memory =
        UnrealizedConversionCastOp::create(b, flat, descriptor).getResult(0);
    op.replaceAllUsesWith(
        memref::ViewOp::create(b, type, memory,
                               arith::ConstantIndexOp::create(b, 0),
                               op.getDynamicSizes())
            .getResult());
    op.erase();
  }
  for (memref::DeallocOp op : deallocs) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    MemRefDescriptor descriptor(
        UnrealizedConversionCastOp::create(
            b, converter.convertType(op.getMemref().getType()), op.getMemref())
            .getResult(0));
    func::CallOp::create(b, declare(module, free, pointerType, TypeRange()),
                         descriptor.allocatedPtr(b, b.getLoc()));
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

static void buildAttnToCPU(OpPassManager &manager, StringRef target) {
  VarlenToCPUOptions options;
  options.target = target.str();
  buildVarlenBufferize(manager, {options.target, /*chip=*/""});
  buildVarlenAttnToLoops(manager, options);
  manager.addPass(createVarlenLegalizeForCPU({options.target}));
}

/// The host's code generator need not be told of the target: each function says
/// it, and is not inlined where it does not hold.
static void setTarget(ModuleOp module, const CPUTarget &target) {
  CodegenNames names = getCodegenNames(target);
  Builder b(module.getContext());
  auto pair = [&](StringRef name, StringRef value) {
    return b.getArrayAttr({b.getStringAttr(name), b.getStringAttr(value)});
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    SmallVector<Attribute> values = {pair("target-cpu", names.cpu),
                                     pair("tune-cpu", names.tuneCPU),
                                     pair("target-features", names.features)};
    if (auto old = function->getAttrOfType<ArrayAttr>("passthrough"))
      llvm::append_range(values, old);
    function->setAttr("passthrough", b.getArrayAttr(values));
  }
}

namespace {

struct VarlenLowerAttnToCPU
    : varlen::impl::VarlenLowerAttnToCPUBase<VarlenLowerAttnToCPU> {
  using VarlenLowerAttnToCPUBase::VarlenLowerAttnToCPUBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    VarlenLowerAttnToCPUBase::getDependentDialects(registry);
    OpPassManager passes(ModuleOp::getOperationName());
    buildAttnToCPU(passes, target);
    passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    const CPUTarget *cpu = getCPUTargetOrError(getOperation(), target);
    if (!cpu)
      return signalPassFailure();
    auto runPasses = [&](ModuleOp inner) -> LogicalResult {
      OpPassManager passes(ModuleOp::getOperationName());
      buildAttnToCPU(passes, target);
      if (failed(runPipeline(passes, inner)))
        return failure();
      allocateByCalls(inner, "varlen_allocate", "varlen_free");
      setTarget(inner, *cpu);
      return success();
    };
    FailureOr<int64_t> count =
        lowerIsolated(getOperation(), /*denseTensors=*/false, runPasses);
    if (failed(count))
      return signalPassFailure();
    numLowered += *count;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

static void buildAttnToGPU(OpPassManager &manager, StringRef chip) {
  VarlenToNVVMOptions options;
  options.chip = chip.str();
  options.format = GPUFormat::MLIR;
  buildVarlenBufferize(manager, {/*target=*/"host", options.chip});
  buildVarlenAttnToTiles(manager, options);
  buildVarlenTilesToInstructions(manager, options);
  buildVarlenKernelsToNVVM(manager, options);
}

namespace {

struct VarlenLowerAttnToGPU
    : varlen::impl::VarlenLowerAttnToGPUBase<VarlenLowerAttnToGPU> {
  using VarlenLowerAttnToGPUBase::VarlenLowerAttnToGPUBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    VarlenLowerAttnToGPUBase::getDependentDialects(registry);
    OpPassManager passes(ModuleOp::getOperationName());
    buildAttnToGPU(passes, chip);
    passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    auto runPasses = [&](ModuleOp inner) -> LogicalResult {
      OpPassManager passes(ModuleOp::getOperationName());
      buildAttnToGPU(passes, chip);
      if (failed(runPipeline(passes, inner)))
        return failure();
      allocateByCalls(inner, "varlen_gpu_allocate", "varlen_gpu_free");
      // The host attaches its own.
      for (auto kernels : inner.getOps<gpu::GPUModuleOp>())
        kernels.removeTargetsAttr();
      return success();
    };
    FailureOr<int64_t> count =
        lowerIsolated(getOperation(), denseTensors, runPasses);
    if (failed(count))
      return signalPassFailure();
    if (*count > 0)
      getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                              UnitAttr::get(&getContext()));
    numLowered += *count;
  }
};

} // namespace
