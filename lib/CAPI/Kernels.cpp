//===- Kernels.cpp - Code for a GPU ---------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "varlen/Launch/LaunchPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

using namespace varlen_capi;
using namespace mlir;

static std::string *unwrap(VarlenCode code) {
  return static_cast<std::string *>(code.ptr);
}

VarlenStatus varlen_capi::readOptions(const VarlenKernelOptions &options,
                                      varlen::VarlenToNVVMOptions &pipeline) {
  switch (options.format) {
  case VARLEN_CUBIN:
    pipeline.format = varlen::GPUFormat::Cubin;
    break;
  case VARLEN_PTX:
    pipeline.format = varlen::GPUFormat::PTX;
    break;
  case VARLEN_FATBIN:
    pipeline.format = varlen::GPUFormat::Fatbin;
    break;
  default:
    return fail(VARLEN_INVALID_ARGUMENT, "unknown format %d of code",
                static_cast<int>(options.format));
  }
  if (options.chip)
    pipeline.chip = std::string(options.chip);
  if (options.ptxVersion)
    pipeline.ptx = options.ptxVersion;
  pipeline.allowSpills = options.allowSpills;
  return VARLEN_OK;
}

VarlenStatus varlen_capi::takeCode(Source &source, varlen::GPUFormat format,
                                   std::string &code) {
  StringAttr found = varlen::findKernelCode(source.getModule());
  if (!found)
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  // PTX comes with the 0 that ends a C string.
  StringRef text = found.getValue();
  if (format == varlen::GPUFormat::PTX)
    text = text.rtrim('\0');
  code = text.str();
  return VARLEN_OK;
}

VarlenStatus varlenCompileKernels(const void *source, size_t size,
                                  const VarlenKernelOptions *options,
                                  VarlenCode *code) {
  if (!source || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a source and where to store code, got null");
  VarlenKernelOptions values = readOptions(options);
  varlen::VarlenToNVVMOptions pipeline;
  if (VarlenStatus status = readOptions(values, pipeline))
    return status;
  Source module(values.onDiagnostic, values.diagnosticContext);
  if (VarlenStatus status = module.parse(source, size))
    return status;
  for (auto function : module.getModule().getOps<func::FuncOp>())
    if (failed(varlen::checkCName(function, function.getName())))
      return module.failWithDiagnostic(VARLEN_COMPILE_ERROR, "naming kernels");
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  varlen::buildVarlenToNVVM(manager, pipeline);
  if (failed(manager.run(module.getModule())))
    return module.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  std::string text;
  if (VarlenStatus status = takeCode(module, pipeline.format, text))
    return status;
  code->ptr = new std::string(std::move(text));
  return VARLEN_OK;
}

const void *varlenCodeGetData(VarlenCode code) {
  return code.ptr ? unwrap(code)->data() : nullptr;
}

size_t varlenCodeGetSize(VarlenCode code) {
  return code.ptr ? unwrap(code)->size() : 0;
}

void varlenCodeDestroy(VarlenCode code) { delete unwrap(code); }
