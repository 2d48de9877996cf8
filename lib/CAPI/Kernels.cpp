//===- Kernels.cpp - Code for a GPU ---------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "Code.h"
#include "varlen/Launch/Manifest.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/Support/raw_ostream.h"

using namespace varlen_capi;
using namespace mlir;

static Code *unwrap(VarlenCode code) { return static_cast<Code *>(code.ptr); }

/// What the options of a caller ask for.
static VarlenStatus setOptions(const VarlenKernelOptions &options,
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
  pipeline.barePointers = true;
  return VARLEN_OK;
}

VarlenStatus varlen_capi::compileKernels(Source &source,
                                         const VarlenKernelOptions &options,
                                         CompiledKernels &kernels) {
  varlen::VarlenToNVVMOptions &pipeline = kernels.pipeline;
  if (VarlenStatus status = setOptions(options, pipeline))
    return status;
  FailureOr<std::vector<varlen::LaunchPlan>> plans = varlen::planLaunches(
      source.getModule(), pipeline, options.stridedTensors);
  if (failed(plans))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  kernels.plans = std::move(*plans);
  PassManager manager(source.getContext());
  manager.enableVerifier(false);
  varlen::buildVarlenLaunchesToLLVM(manager, pipeline);
  if (failed(manager.run(source.getModule())))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  FailureOr<StringRef> code = varlen::findKernelCode(source.getModule());
  if (failed(code))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  kernels.image = code->str();
  return VARLEN_OK;
}

VarlenStatus varlenCompileKernels(const void *source, size_t size,
                                  const VarlenKernelOptions *options,
                                  VarlenCode *code) {
  if (!source || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a source and where to store code, got null");
  VarlenKernelOptions values = readOptions(options);
  Source module(values.onDiagnostic, values.diagnosticContext);
  if (VarlenStatus status = module.parse(source, size))
    return status;
  CompiledKernels kernels;
  if (VarlenStatus status = compileKernels(module, values, kernels))
    return status;
  std::string manifest;
  llvm::raw_string_ostream os(manifest);
  varlen::emitManifest(kernels.plans, kernels.pipeline, os);
  code->ptr = new Code{std::move(kernels.image), std::move(manifest)};
  return VARLEN_OK;
}

const void *varlenCodeGetData(VarlenCode code) {
  return code.ptr ? unwrap(code)->bytes.data() : nullptr;
}

size_t varlenCodeGetSize(VarlenCode code) {
  return code.ptr ? unwrap(code)->bytes.size() : 0;
}

const char *varlenCodeGetManifest(VarlenCode code) {
  return code.ptr && !unwrap(code)->manifest.empty()
             ? unwrap(code)->manifest.c_str()
             : nullptr;
}

void varlenCodeDestroy(VarlenCode code) { delete unwrap(code); }
