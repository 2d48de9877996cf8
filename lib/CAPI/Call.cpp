//===- Call.cpp - Calls of compiled functions -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Runtime/Internal.h"
#include "Binding.h"
#include "Status.h"

using namespace varlen_capi;

static const Function *unwrap(VarlenFunction function) {
  return static_cast<const Function *>(function.ptr);
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

const char *varlenFunctionGetName(VarlenFunction function) {
  return function.ptr ? unwrap(function)->name.c_str() : "";
}

size_t varlenFunctionGetNumArguments(VarlenFunction function) {
  return function.ptr ? unwrap(function)->arguments.size() : 0;
}

size_t varlenFunctionGetNumResults(VarlenFunction function) {
  return function.ptr ? unwrap(function)->results.size() : 0;
}

const VarlenParameter *varlenFunctionGetArgument(VarlenFunction function,
                                                 size_t index) {
  return index < varlenFunctionGetNumArguments(function)
             ? &unwrap(function)->arguments[index].view
             : nullptr;
}

const VarlenParameter *varlenFunctionGetResult(VarlenFunction function,
                                               size_t index) {
  return index < varlenFunctionGetNumResults(function)
             ? &unwrap(function)->results[index].view
             : nullptr;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void varlenSetNumThreads(int64_t threads) { varlen_set_num_threads(threads); }

int64_t varlenGetNumThreads() { return varlen_get_num_threads(); }

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static VarlenStatus checkFunction(VarlenFunction function) {
  if (!function.ptr)
    return fail(VARLEN_INVALID_ARGUMENT, "expected a function, got null");
  return VARLEN_OK;
}

/// How large a workspace the call of `binding` needs.
static VarlenStatus measure(const Function &function, Binding &binding,
                            const VarlenCallOptions &options, size_t &bytes) {
  Invocation invocation(options);
  invocation.startMeasuring();
  VarlenStatus status = invocation.run(function.entry, binding.getArguments());
  bytes = invocation.getMeasured();
  return status;
}

VarlenStatus varlenFunctionCall(VarlenFunction function,
                                const VarlenTensor *const *arguments,
                                size_t numArguments,
                                const VarlenTensor *const *results,
                                size_t numResults,
                                const VarlenCallOptions *options) {
  if (VarlenStatus status = checkFunction(function))
    return status;
  const Function &callee = *unwrap(function);
  VarlenCallOptions values = readOptions(options);
  Binding binding(callee);
  const int64_t *extents;
  if (VarlenStatus status =
          binding.addArguments(arguments, numArguments, /*needsData=*/true))
    return status;
  if (VarlenStatus status =
          values.separateWrites ? binding.checkOverlap() : VARLEN_OK)
    return status;
  if (VarlenStatus status = binding.findExtents(extents))
    return status;
  if (VarlenStatus status = binding.addResults(results, numResults, extents))
    return status;
  if (values.workspace && callee.workspaceDependsOn.empty()) {
    size_t bytes;
    if (VarlenStatus status = measure(callee, binding, values, bytes))
      return status;
    if (bytes > values.workspaceSize)
      return fail(VARLEN_WORKSPACE_TOO_SMALL,
                  "expected a workspace of %zu bytes, got %zu", bytes,
                  values.workspaceSize);
  }
  Invocation invocation(values);
  return invocation.run(callee.entry, binding.getArguments());
}

VarlenStatus varlenFunctionGetResultShapes(VarlenFunction function,
                                           const VarlenTensor *const *arguments,
                                           size_t numArguments,
                                           int64_t *extents,
                                           size_t numExtents) {
  if (VarlenStatus status = checkFunction(function))
    return status;
  const Function &callee = *unwrap(function);
  size_t wanted = static_cast<size_t>(callee.numExtents);
  if (numExtents != wanted || (wanted && !extents))
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected room for %zu extents, got %s%zu", wanted,
                numExtents == wanted ? "null for " : "", numExtents);
  Binding binding(callee);
  const int64_t *found;
  if (VarlenStatus status =
          binding.addArguments(arguments, numArguments, /*needsData=*/false))
    return status;
  if (VarlenStatus status = binding.findExtents(found))
    return status;
  std::copy_n(found, wanted, extents);
  return VARLEN_OK;
}

VarlenStatus varlenFunctionGetWorkspaceSize(
    VarlenFunction function, const VarlenTensor *const *arguments,
    size_t numArguments, const VarlenCallOptions *options, size_t *bytes) {
  if (VarlenStatus status = checkFunction(function))
    return status;
  if (!bytes)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected where to store a size, got null");
  const Function &callee = *unwrap(function);
  Binding binding(callee);
  const int64_t *extents;
  if (VarlenStatus status =
          binding.addArguments(arguments, numArguments, /*needsData=*/false))
    return status;
  if (!callee.workspaceDependsOn.empty())
    return fail(VARLEN_UNSUPPORTED,
                "expected a workspace that follows from extents, but '%s' in "
                "%s allocates or uses memory in ways of its own",
                callee.workspaceDependsOn.c_str(), callee.name.c_str());
  if (VarlenStatus status = binding.findExtents(extents))
    return status;
  binding.addAbsentResults(extents);
  size_t measured;
  if (VarlenStatus status =
          measure(callee, binding, readOptions(options), measured))
    return status;
  *bytes = measured;
  return VARLEN_OK;
}
