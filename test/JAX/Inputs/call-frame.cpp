//===- call-frame.cpp - XLA's side of a foreign function ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls the stages of a handler with frames as XLA makes them, by the public C
// header alone. test/JAX/cuda-handler.py loads it for our handlers, and
// benchmarks/gpu/peer_flash3.py for a peer's, whose kernels then run in a
// stream of the caller's.
//
//===----------------------------------------------------------------------===//

#include "xla/ffi/api/c_api.h"

#include <cstring>
#include <string>
#include <vector>

struct XLA_FFI_Error {
  std::string message;
  XLA_FFI_Error_Code code;
};

/// Of one custom call of an executable.
struct XLA_FFI_ExecutionContext {
  void *stream;
  void *state;
  int64_t stateType;
  /// Scratch memory of the device, which lives as long as the caller wants.
  void *(*allocate)(size_t bytes);
};

static XLA_FFI_Error *createError(XLA_FFI_Error_Create_Args *arguments) {
  return new XLA_FFI_Error{arguments->message, arguments->errc};
}

static XLA_FFI_Error *setState(XLA_FFI_State_Set_Args *arguments) {
  arguments->ctx->state = arguments->state;
  arguments->ctx->stateType = arguments->type_id->type_id;
  return nullptr;
}

static XLA_FFI_Error *getState(XLA_FFI_State_Get_Args *arguments) {
  if (arguments->ctx->stateType != arguments->type_id->type_id)
    return new XLA_FFI_Error{"no state of this type",
                             XLA_FFI_Error_Code_NOT_FOUND};
  arguments->state = arguments->ctx->state;
  return nullptr;
}

static XLA_FFI_Error *getStream(XLA_FFI_Stream_Get_Args *arguments) {
  arguments->stream = arguments->ctx->stream;
  return nullptr;
}

static XLA_FFI_Error *allocate(XLA_FFI_DeviceMemory_Allocate_Args *arguments) {
  auto *take = arguments->ctx->allocate;
  arguments->data = take ? take(arguments->size) : nullptr;
  if (arguments->data || arguments->size == 0)
    return nullptr;
  return new XLA_FFI_Error{"no scratch memory",
                           XLA_FFI_Error_Code_RESOURCE_EXHAUSTED};
}

static XLA_FFI_Error *release(XLA_FFI_DeviceMemory_Free_Args *) {
  return nullptr;
}

static XLA_FFI_Error *getOrdinal(XLA_FFI_DeviceOrdinal_Get_Args *arguments) {
  arguments->device_ordinal = 0;
  return nullptr;
}

/// What the handler does not call is null.
static const XLA_FFI_Api *getApi() {
  static XLA_FFI_Api api = {};
  api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
  api.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr,
                     XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
  api.XLA_FFI_Error_Create = createError;
  api.XLA_FFI_State_Set = setState;
  api.XLA_FFI_State_Get = getState;
  api.XLA_FFI_Stream_Get = getStream;
  api.XLA_FFI_DeviceMemory_Allocate = allocate;
  api.XLA_FFI_DeviceMemory_Free = release;
  api.XLA_FFI_DeviceOrdinal_Get = getOrdinal;
  return &api;
}

static char lastMessage[1024];

extern "C" {

XLA_FFI_ExecutionContext *makeContext(void *stream) {
  return new XLA_FFI_ExecutionContext{stream, nullptr, -1, nullptr};
}

void setStream(XLA_FFI_ExecutionContext *context, void *stream) {
  context->stream = stream;
}

void setAllocator(XLA_FFI_ExecutionContext *context,
                  void *(*allocate)(size_t bytes)) {
  context->allocate = allocate;
}

/// The traits of a handler, by a frame that asks for its metadata.
uint32_t getTraits(XLA_FFI_Handler *handler) {
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = XLA_FFI_Metadata_STRUCT_SIZE;
  XLA_FFI_Metadata_Extension extension = {};
  extension.extension_base = {XLA_FFI_Metadata_Extension_STRUCT_SIZE,
                              XLA_FFI_Extension_Metadata, nullptr};
  extension.metadata = &metadata;
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.extension_start = &extension.extension_base;
  frame.api = getApi();
  return handler(&frame) ? 0 : metadata.traits;
}

/// Calls a stage. Attributes, in the order of their names, are scalars of a
/// data type, or strings where that is 0. Buffers are operands, then results.
/// Null, or the error.
const char *callStage(XLA_FFI_Handler *handler, int stage,
                      XLA_FFI_ExecutionContext *context, int numAttributes,
                      const char *const *names, const int *scalarTypes,
                      void *const *values, int numOperands, int numBuffers,
                      void *const *data, const int *types, const int *ranks,
                      int64_t *const *dims) {
  std::vector<XLA_FFI_ByteSpan> nameSpans(numAttributes), texts(numAttributes);
  std::vector<XLA_FFI_Scalar> scalars(numAttributes);
  std::vector<XLA_FFI_ByteSpan *> nameAddresses;
  std::vector<XLA_FFI_AttrType> attributeTypes;
  std::vector<void *> valueAddresses;
  for (int i = 0; i < numAttributes; ++i) {
    nameSpans[i] = {names[i], strlen(names[i])};
    nameAddresses.push_back(&nameSpans[i]);
    if (scalarTypes[i] == 0) {
      const char *text = static_cast<const char *>(values[i]);
      texts[i] = {text, strlen(text)};
      attributeTypes.push_back(XLA_FFI_AttrType_STRING);
      valueAddresses.push_back(&texts[i]);
      continue;
    }
    scalars[i] = {static_cast<XLA_FFI_DataType>(scalarTypes[i]), values[i]};
    attributeTypes.push_back(XLA_FFI_AttrType_SCALAR);
    valueAddresses.push_back(&scalars[i]);
  }
  std::vector<XLA_FFI_Buffer> buffers;
  std::vector<void *> addresses;
  for (int i = 0; i < numBuffers; ++i)
    buffers.push_back({XLA_FFI_Buffer_STRUCT_SIZE, nullptr,
                       static_cast<XLA_FFI_DataType>(types[i]), data[i],
                       ranks[i], dims[i]});
  for (XLA_FFI_Buffer &buffer : buffers)
    addresses.push_back(&buffer);
  std::vector<XLA_FFI_ArgType> argumentTypes(numOperands,
                                             XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> resultTypes(numBuffers - numOperands,
                                           XLA_FFI_RetType_BUFFER);
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = getApi();
  frame.ctx = context;
  frame.stage = static_cast<XLA_FFI_ExecutionStage>(stage);
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, numOperands,
                argumentTypes.data(), addresses.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, numBuffers - numOperands,
                resultTypes.data(), addresses.data() + numOperands};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE,
                 nullptr,
                 numAttributes,
                 attributeTypes.data(),
                 nameAddresses.data(),
                 valueAddresses.data()};
  XLA_FFI_Error *error = handler(&frame);
  if (!error)
    return nullptr;
  strncpy(lastMessage, error->message.c_str(), sizeof lastMessage - 1);
  delete error;
  return lastMessage;
}
}
