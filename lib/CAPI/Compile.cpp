//===- Compile.cpp - From a module to functions ---------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Source.h"
#include "varlen/ABI/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/ExecutionEngine/ObjectCode.h"
#include "varlen/Pipelines/Pipelines.h"
#include "varlen/Target/CPUTarget.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace varlen_capi;
using namespace mlir;

static Program *unwrap(VarlenProgram program) {
  return static_cast<Program *>(program.ptr);
}

/// The passes up to buffers.
static void buildInterface(PassManager &manager,
                           const VarlenCompileOptions &options,
                           llvm::StringRef target) {
  // Extents of what a private function returns are then known, too.
  manager.addPass(createInlinerPass());
  varlen::VarlenAddResultArgumentsOptions results;
  results.shapes = true;
  results.strided = options.stridedTensors;
  manager.addPass(varlen::createVarlenAddResultArguments(results));
  if (options.runtimeChecks) {
    std::unique_ptr<Pass> checks = createGenerateRuntimeVerificationPass();
    // Operations are not printed into messages. No constructor takes options.
    (void)checks->initializeOptions("verbose-level=0",
                                    [](const Twine &) { return failure(); });
    manager.addPass(std::move(checks));
  }
  varlen::buildVarlenBufferize(manager, {target.str(), /*chip=*/""});
}

/// Takes the module to the llvm dialect.
static VarlenStatus lower(Source &source, const VarlenCompileOptions &options,
                          llvm::StringRef target, Program &program) {
  PassManager toLoops(source.getContext()), toLLVM(source.getContext());
  // What was read has been verified.
  toLoops.enableVerifier(false);
  toLLVM.enableVerifier(false);
  buildInterface(toLoops, options, target);
  toLoops.addPass(varlen::createVarlenAllowMeasuring());
  varlen::VarlenToCPUOptions cpu;
  cpu.target = target.str();
  varlen::buildVarlenAttnToLoops(toLoops, cpu);
  varlen::buildVarlenLowerToLLVM(toLLVM, cpu);
  if (failed(toLoops.run(source.getModule())))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  findWorkspaces(source.getModule(), program.functions);
  if (failed(toLLVM.run(source.getModule())))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "lowering");
  return VARLEN_OK;
}

/// Makes machine code, and finds the entries in it.
static VarlenStatus generate(Source &source, const varlen::CPUTarget &target,
                             Program &program) {
  std::vector<std::string> entries;
  for (const std::unique_ptr<Function> &function : program.functions) {
    entries.push_back(function->getEntryName());
    if (function->numExtents > 0)
      entries.push_back(function->getShapesName());
  }
  auto objects = varlen::compileToObjects(source.getModule(), target, entries);
  if (!objects)
    return fail(VARLEN_COMPILE_ERROR, "%s",
                llvm::toString(objects.takeError()).c_str());
  program.target = target.name.str();
  program.objects = std::move(*objects);
  return load(program);
}

VarlenStatus varlenCompile(const void *source, size_t size,
                           const VarlenCompileOptions *options,
                           VarlenProgram *program) {
  if (!source || !program)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a source and where to store a program, got null");
  VarlenCompileOptions values = readOptions(options);
  const char *name = values.target ? values.target : "host";
  const varlen::CPUTarget *target = varlen::lookupCPUTarget(name);
  if (!target)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected target to be one of %s, got %s",
                varlen::getCPUTargetNames().c_str(), name);
  if (std::string missing; !varlen::hostSupports(*target, &missing))
    return fail(VARLEN_UNSUPPORTED, "this machine has no %s, which %s needs",
                missing.c_str(), name);
  Source module(values.onDiagnostic, values.diagnosticContext);
  if (VarlenStatus status = module.parse(source, size))
    return status;
  auto result = std::make_unique<Program>();
  if (failed(readFunctions(module.getModule(), values.stridedTensors,
                           result->functions)))
    return module.failWithDiagnostic(VARLEN_COMPILE_ERROR, "reading");
  if (VarlenStatus status = lower(module, values, target->name, *result))
    return status;
  if (VarlenStatus status = generate(module, *target, *result))
    return status;
  program->ptr = result.release();
  return VARLEN_OK;
}

void varlenProgramDestroy(VarlenProgram program) { delete unwrap(program); }

VarlenStatus varlenProgramGetFunction(VarlenProgram program, const char *name,
                                      VarlenFunction *function) {
  if (!program.ptr || !function)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a program and where to store a function, got null");
  std::string names;
  auto &functions = unwrap(program)->functions;
  for (std::unique_ptr<Function> &candidate : functions) {
    if (name ? candidate->name == name : functions.size() == 1) {
      function->ptr = candidate.get();
      return VARLEN_OK;
    }
    names += (names.empty() ? "" : ", ") + candidate->name;
  }
  if (!name)
    return fail(VARLEN_NOT_FOUND,
                "expected the name of one of several functions: %s",
                names.c_str());
  return fail(VARLEN_NOT_FOUND, "no public function '%s': expected one of %s",
              name, names.c_str());
}
