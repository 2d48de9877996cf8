//===- varlen-check-registration.cpp - What a host has forgotten ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contexts of hosts that register the parts of upstream one by one: all that
// the pipelines require, or all but one, which an error names then.
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-registration-test

#include "../Expect.h"
#include "varlen/InitAll.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace mlir::varlen;
using llvm::StringRef;

/// Attention beside operations of a user's own.
static constexpr StringRef layer = R"mlir(
func.func @layer(%q: tensor<?x2x16xbf16>, %cu: tensor<?xi32>, %x: tensor<8x32xf32>,
                 %w: tensor<32x32xf32>, %flag: i1)
    -> (tensor<?x2x16xbf16>, tensor<8x32xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x2x16xbf16>, tensor<?x2x16xbf16>, tensor<?x2x16xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x16xbf16>, tensor<2x?xf32>)
  %y = scf.if %flag -> tensor<8x32xf32> {
    %m = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x32xf32>)
                       outs(%x : tensor<8x32xf32>) -> tensor<8x32xf32>
    %e = math.exp %m : tensor<8x32xf32>
    scf.yield %e : tensor<8x32xf32>
  } else {
    scf.yield %x : tensor<8x32xf32>
  }
  return %out, %y : tensor<?x2x16xbf16>, tensor<8x32xf32>
}
)mlir";

/// Of dialects that a pipeline needs only if a user has operations of them.
static constexpr StringRef used = R"mlir(
func.func @used(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %i = index.constant 0
  %v = vector.broadcast %i : index to vector<4xindex>
  cf.br ^exit
^exit:
  return %x : tensor<8xf32>
}
)mlir";

/// A kernel that is not ours.
static constexpr StringRef kernel = R"mlir(
gpu.module @own {
  llvm.func @touch() attributes {gpu.kernel, nvvm.kernel} {
    %x = nvvm.read.ptx.sreg.tid.x : i32
    %p = ub.poison : i32
    llvm.return
  }
}
)mlir";

namespace {
/// A part of what a host registers, and what is missing without it.
struct Part {
  void (*add)(DialectRegistry &);
  StringRef stage;
  StringRef missing;
};
} // namespace

/// Attention itself, the rest of a module, and what becomes of them.
static constexpr Part parts[] = {
    {varlen::registerAllExtensions, "bufferize",
     "BufferizableOpInterface for 'varlen.attn', which "
     "mlir::varlen::registerAllExtensions"},
    {arith::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'arith.constant'"},
    {bufferization::func_ext::registerBufferizableOpInterfaceExternalModels,
     "bufferize", "BufferizableOpInterface for 'func.call'"},
    {scf::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'scf.if'"},
    {tensor::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'tensor.empty'"},
    {linalg::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'linalg.generic'"},
    {linalg::registerTilingInterfaceExternalModels, "bufferize",
     "TilingInterface for 'linalg.generic'"},
    {arith::registerConvertArithToLLVMInterface, "to-llvm",
     "ConvertToLLVMPatternInterface for 'arith'"},
    {cf::registerConvertControlFlowToLLVMInterface, "to-llvm",
     "ConvertToLLVMPatternInterface for 'cf'"},
    {registerConvertFuncToLLVMInterface, "to-llvm",
     "ConvertToLLVMPatternInterface for 'func'"},
    {registerConvertMathToLLVMInterface, "to-llvm",
     "ConvertToLLVMPatternInterface for 'math'"},
    {registerConvertMemRefToLLVMInterface, "kernels",
     "ConvertToLLVMPatternInterface for 'memref'"},
    {ub::registerConvertUBToLLVMInterface, "kernels",
     "ConvertToLLVMPatternInterface for 'ub'"},
    {NVVM::registerNVVMTargetInterfaceExternalModels, "kernels",
     "gpu::TargetAttrInterface for 'nvvm.target'"},
    {registerGPUDialectTranslation, "ptx",
     "LLVMTranslationDialectInterface for 'gpu'"},
    {registerLLVMDialectTranslation, "ptx",
     "LLVMTranslationDialectInterface for 'llvm'"},
    {registerNVVMDialectTranslation, "ptx",
     "LLVMTranslationDialectInterface for 'nvvm'"},
};

/// As many as a module with operations of these dialects needs.
static constexpr Part partsIfUsed[] = {
    {cf::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'cf.br'"},
    {vector::registerBufferizableOpInterfaceExternalModels, "bufferize",
     "BufferizableOpInterface for 'vector.transfer_read'"},
    {registerConvertComplexToLLVMInterface, "kernels",
     "ConvertToLLVMPatternInterface for 'complex'"},
    {index::registerConvertIndexToLLVMInterface, "to-llvm",
     "ConvertToLLVMPatternInterface for 'index'"},
};

/// The errors of a pipeline in a context that `add` has registered things for.
static std::string getErrors(StringRef program, StringRef pipeline,
                             llvm::function_ref<void(DialectRegistry &)> add) {
  DialectRegistry registry;
  varlen::registerAllDialects(registry);
  registry
      .insert<arith::ArithDialect, bufferization::BufferizationDialect,
              cf::ControlFlowDialect, complex::ComplexDialect,
              func::FuncDialect, gpu::GPUDialect, index::IndexDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
              memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
              tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  add(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // As hosts load them, or as passes do.
  if (pipeline.starts_with("varlen-check-registration"))
    context.loadAllAvailableDialects();
  std::string text;
  llvm::raw_string_ostream stream(text);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      stream << diagnostic << '\n';
    return success();
  });
  auto module = parseSourceString<ModuleOp>(program, &context);
  PassManager manager(&context);
  EXPECT(succeeded(parsePassPipeline(pipeline, manager, stream)));
  if (!module || failed(manager.run(*module)))
    stream << "failed\n";
  return text;
}

/// Where all parts but one are registered.
static std::string getErrors(StringRef program, StringRef pipeline,
                             const Part *omitted) {
  return getErrors(program, pipeline, [&](DialectRegistry &registry) {
    for (const Part &part : llvm::concat<const Part>(parts, partsIfUsed))
      if (&part != omitted)
        part.add(registry);
  });
}

static bool contains(const std::string &text, StringRef part) {
  return StringRef(text).contains(part);
}

/// One error for what is missing, and none if nothing is.
static void testParts(StringRef program, llvm::ArrayRef<Part> omitted) {
  for (const Part &part : omitted) {
    std::string check =
        ("varlen-check-registration{for=" + part.stage + "}").str();
    std::string errors = getErrors(program, check, &part);
    EXPECT(StringRef(errors).count("expected") == 1, "%s", errors.c_str());
    EXPECT(contains(errors, part.missing), "%s", errors.c_str());
    EXPECT(contains(errors, "mlir::varlen::register"), "%s", errors.c_str());
  }
  for (StringRef stage : {"bufferize", "to-llvm", "kernels", "ptx"}) {
    std::string check = ("varlen-check-registration{for=" + stage + "}").str();
    std::string errors = getErrors(program, check, nullptr);
    EXPECT(errors.empty(), "%s", errors.c_str());
  }
}

/// What a user has no operations of may be missing.
static void testUnused() {
  for (const Part &part : partsIfUsed) {
    std::string check =
        ("varlen-check-registration{for=" + part.stage + "}").str();
    std::string errors = getErrors(layer, check, &part);
    EXPECT(errors.empty(), "%s", errors.c_str());
  }
}

/// Pipelines and passes begin with it, and need no more than is checked.
static void testPipelines() {
  for (StringRef pipeline :
       {"varlen-to-cpu{target=avx2}", "varlen-to-nvvm{format=ptx}",
        "varlen-lower-attn-to-cpu", "varlen-lower-attn-to-gpu"}) {
    std::string errors = getErrors(layer, pipeline, [](DialectRegistry &) {});
    EXPECT(contains(errors, "BufferizableOpInterface for 'tensor.empty', which "
                            "mlir::varlen::registerRequiredUpstream registers"),
           "%s: %s", pipeline.data(), errors.c_str());
    errors = getErrors(layer, pipeline, [](DialectRegistry &registry) {
      for (const Part &part : parts)
        part.add(registry);
    });
    EXPECT(errors.empty(), "%s: %s", pipeline.data(), errors.c_str());
  }
}

/// The functions that errors name register all of it.
static void testRequired() {
  auto add = [](DialectRegistry &registry) {
    varlen::registerRequiredUpstream(registry);
    varlen::registerAllExtensions(registry);
  };
  for (StringRef program : {layer, used, kernel})
    for (StringRef stage : {"bufferize", "to-llvm", "kernels", "ptx"}) {
      std::string check =
          ("varlen-check-registration{for=" + stage + "}").str();
      std::string errors = getErrors(program, check, add);
      EXPECT(errors.empty(), "%s", errors.c_str());
    }
}

/// So do later stages.
static void testStages() {
  for (const Part &part : parts) {
    if (part.stage == "bufferize")
      continue;
    StringRef pipeline = part.stage == "to-llvm" ? "varlen-lower-to-llvm"
                         : part.stage == "kernels"
                             ? "varlen-kernels-to-nvvm"
                             : "varlen-launches-to-llvm{format=ptx}";
    std::string errors = getErrors(kernel, pipeline, &part);
    EXPECT(contains(errors, part.missing), "%s: expected %s, got %s",
           pipeline.data(), part.missing.data(), errors.c_str());
  }
}

int main() {
  varlen::registerAllPasses();
  testParts(layer, parts);
  testParts(used, partsIfUsed);
  testUnused();
  testPipelines();
  testRequired();
  testStages();
  return summary();
}
