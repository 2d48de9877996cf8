//===- CUDAHandler.cpp - The handler of XLA's foreign functions on CUDA ---===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Frame.h"
#include "Functions.h"
#include "varlen-c/XLA.h"

#include <algorithm>
#include <utility>

using namespace varlen_xla;

XLA_FFI_TypeId varlenXLACUDAStateTypeId = {0};

/// A state is the address of a launcher, which stays.
const XLA_FFI_TypeInfo varlenXLACUDAStateTypeInfo = {
    XLA_FFI_TypeInfo_STRUCT_SIZE, nullptr, [](void *) {}};

/// An execution is launches and fills, the same ones each time.
static constexpr XLA_FFI_Handler_Traits traits =
    XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;

static XLA_FFI_Error *getStream(const XLA_FFI_CallFrame &frame, void *&stream) {
  XLA_FFI_Stream_Get_Args arguments = {};
  arguments.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  XLA_FFI_Error *error = frame.api->XLA_FFI_Stream_Get(&arguments);
  stream = arguments.stream;
  return error;
}

/// The part of a buffer that a launcher takes: XLA aligns buffers within its
/// temporary memory to 128 bytes.
static std::pair<void *, size_t> getWorkspace(const XLA_FFI_Buffer &buffer) {
  constexpr uintptr_t alignment = 256;
  auto begin = reinterpret_cast<uintptr_t>(buffer.data);
  uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
  auto bytes = static_cast<uint64_t>(buffer.dims[0]);
  uint64_t lost = std::min<uint64_t>(aligned - begin, bytes);
  return {reinterpret_cast<void *>(aligned), bytes - lost};
}

XLA_FFI_Error *varlenXLACUDAInstantiate(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, traits, varlenXLACUDAStateTypeId);
  std::string source;
  if (XLA_FFI_Error *error = readSource(*frame, source))
    return error;
  const XLA_FFI_ByteSpan *chip = findText(frame->attrs, "chip");
  if (!chip)
    return createError(*frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "expected an attribute `chip` that is a string, such as "
                       "sm_80, got none");
  VarlenLauncher launcher;
  if (VarlenStatus status =
          findLauncher(source, std::string(chip->ptr, chip->len), launcher))
    return createError(*frame, status);
  return setState(*frame, varlenXLACUDAStateTypeId, launcher.ptr);
}

XLA_FFI_Error *varlenXLACUDAInitialize(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, traits, /*stateTypeId=*/{0});
  void *state = nullptr, *stream = nullptr;
  if (XLA_FFI_Error *error = getState(*frame, varlenXLACUDAStateTypeId, state))
    return error;
  if (XLA_FFI_Error *error = getStream(*frame, stream))
    return error;
  if (VarlenStatus status = varlenLauncherLoad({state}, stream))
    return createError(*frame, status);
  return nullptr;
}

XLA_FFI_Error *varlenXLACUDAExecute(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, traits, /*stateTypeId=*/{0});
  void *state = nullptr, *stream = nullptr;
  if (XLA_FFI_Error *error = getState(*frame, varlenXLACUDAStateTypeId, state))
    return error;
  if (XLA_FFI_Error *error = getStream(*frame, stream))
    return error;
  int64_t numResults = frame->rets.size - 1;
  const auto *workspace =
      numResults < 0
          ? nullptr
          : static_cast<const XLA_FFI_Buffer *>(frame->rets.rets[numResults]);
  if (!workspace || workspace->dtype != XLA_FFI_DataType_U8 ||
      workspace->rank != 1)
    return createError(*frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "expected the workspace as the last result, of type u8 "
                       "and rank 1");
  if (workspace->dims[0] == 0)
    return createError(*frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "expected a workspace whose size followed from static "
                       "shapes when the program was lowered, got none");
  auto [memory, bytes] = getWorkspace(*workspace);
  Tensors tensors(frame->args.size + numResults);
  tensors.add(frame->args.size, frame->args.args, VARLEN_CUDA);
  tensors.add(numResults, frame->rets.rets, VARLEN_CUDA);
  if (VarlenStatus status = varlenLauncherEnqueue(
          {state}, tensors.addresses.data(), tensors.addresses.size(), memory,
          bytes, stream))
    return createError(*frame, status);
  return nullptr;
}
