//===- Serialize.cpp - Programs as bytes ----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The signatures and the object files.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Status.h"
#include "varlen/Target/CPUTarget.h"

using namespace varlen_capi;
using namespace mlir;

static constexpr llvm::StringLiteral programMark = "VARLEN-PROGRAM 2";

namespace varlen_capi {
template <typename Bytes>
static bool transfer(Bytes &bytes, std::unique_ptr<Function> &function) {
  if (!function)
    function = std::make_unique<Function>();
  return bytes(function->name) && bytes.list(function->arguments) &&
         bytes.list(function->results) && bytes(function->numExtents) &&
         bytes(function->workspaceDependsOn);
}

template <typename Bytes> static bool transfer(Bytes &bytes, Program &program) {
  return bytes(program.target) && bytes.list(program.functions) &&
         bytes.list(program.objects);
}
} // namespace varlen_capi

VarlenStatus varlenProgramSerialize(VarlenProgram program, VarlenCode *code) {
  if (!program.ptr || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a program and where to store its bytes, got null");
  return seal(programMark, code, [&](Writer &writer) {
    writer(*static_cast<Program *>(program.ptr));
  });
}

VarlenStatus varlenProgramDeserialize(const void *data, size_t size,
                                      VarlenProgram *program) {
  if (!data || !program)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a program's bytes and where to store it, got null");
  Reader reader;
  if (VarlenStatus status = unseal(programMark, "program", data, size, reader))
    return status;
  auto result = std::make_unique<Program>();
  if (!reader(*result) || !reader.isAtEnd())
    return fail(VARLEN_INVALID_ARGUMENT, "the program ends too early or late");
  const varlen::CPUTarget *target = varlen::lookupCPUTarget(result->target);
  std::string missing = result->target;
  if (!target || !varlen::hostSupports(*target, &missing))
    return fail(VARLEN_UNSUPPORTED, "this machine has no %s, which %s needs",
                missing.c_str(), result->target.c_str());
  for (std::unique_ptr<Function> &function : result->functions) {
    for (Parameter &parameter : function->arguments)
      parameter.finish();
    for (Parameter &parameter : function->results)
      parameter.finish();
  }
  if (VarlenStatus status = load(*result))
    return status;
  program->ptr = result.release();
  return VARLEN_OK;
}
