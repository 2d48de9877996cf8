//===- Kernels.cpp - Code for a GPU ---------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"
#include "varlen/Pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

using namespace varlen_capi;
using namespace mlir;

static std::string *unwrap(VarlenCode code) {
  return static_cast<std::string *>(code.ptr);
}

VarlenStatus varlenCompileKernels(const void *source, size_t size,
                                  const VarlenKernelOptions *options,
                                  VarlenCode *code) {
  if (!source || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a source and where to store code, got null");
  VarlenKernelOptions values = readOptions(options);
  varlen::VarlenToNVVMOptions pipeline;
  switch (values.format) {
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
                static_cast<int>(values.format));
  }
  if (values.chip)
    pipeline.chip = std::string(values.chip);
  if (values.ptxVersion)
    pipeline.ptx = values.ptxVersion;
  pipeline.allowSpills = values.allowSpills;
  Source module(values.onDiagnostic, values.diagnosticContext);
  if (VarlenStatus status = module.parse(source, size))
    return status;
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  varlen::buildVarlenToNVVM(manager, pipeline);
  if (failed(manager.run(module.getModule())))
    return module.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  StringAttr found = varlen::findKernelCode(module.getModule());
  if (!found)
    return module.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  // PTX comes with the 0 that ends a C string.
  StringRef text = found.getValue();
  if (values.format == VARLEN_PTX)
    text = text.rtrim('\0');
  code->ptr = new std::string(text);
  return VARLEN_OK;
}

const void *varlenCodeGetData(VarlenCode code) {
  return code.ptr ? unwrap(code)->data() : nullptr;
}

size_t varlenCodeGetSize(VarlenCode code) {
  return code.ptr ? unwrap(code)->size() : 0;
}

void varlenCodeDestroy(VarlenCode code) { delete unwrap(code); }
