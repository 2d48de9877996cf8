//===- Handler.cpp - The handler of XLA's foreign functions on CPUs -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Frame.h"
#include "Functions.h"
#include "varlen-c/XLA.h"

using namespace varlen_xla;

XLA_FFI_TypeId varlenXLAStateTypeId = {0};

/// A state is the address of a function, which stays.
const XLA_FFI_TypeInfo varlenXLAStateTypeInfo = {XLA_FFI_TypeInfo_STRUCT_SIZE,
                                                 nullptr, [](void *) {}};

XLA_FFI_Error *varlenXLAInstantiate(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, /*traits=*/0, varlenXLAStateTypeId);
  std::string source;
  if (XLA_FFI_Error *error = readSource(*frame, source))
    return error;
  VarlenFunction function;
  if (VarlenStatus status = findFunction(source, function))
    return createError(*frame, status);
  return setState(*frame, varlenXLAStateTypeId,
                  const_cast<void *>(function.ptr));
}

XLA_FFI_Error *varlenXLAExecute(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, /*traits=*/0, /*stateTypeId=*/{0});
  void *state = nullptr;
  if (XLA_FFI_Error *error = getState(*frame, varlenXLAStateTypeId, state))
    return error;
  Tensors operands(frame->args.size), results(frame->rets.size);
  operands.add(frame->args.size, frame->args.args, VARLEN_CPU);
  results.add(frame->rets.size, frame->rets.rets, VARLEN_CPU);
  if (VarlenStatus status = varlenFunctionCall(
          {state}, operands.addresses.data(), operands.addresses.size(),
          results.addresses.data(), results.addresses.size(),
          /*options=*/nullptr))
    return createError(*frame, status);
  return nullptr;
}
