//===- Handler.cpp - The handler of XLA's foreign functions ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "varlen-c/XLA.h"

#include <string>
#include <string_view>
#include <vector>

using namespace varlen_xla;

XLA_FFI_TypeId varlenXLAStateTypeId = {0};

/// A state is the address of a function, which stays.
const XLA_FFI_TypeInfo varlenXLAStateTypeInfo = {XLA_FFI_TypeInfo_STRUCT_SIZE,
                                                 nullptr, [](void *) {}};

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static XLA_FFI_Error *createError(const XLA_FFI_CallFrame &frame,
                                  XLA_FFI_Error_Code code,
                                  const std::string &message) {
  XLA_FFI_Error_Create_Args arguments = {};
  arguments.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  arguments.message = message.c_str();
  arguments.errc = code;
  return frame.api->XLA_FFI_Error_Create(&arguments);
}

/// The error of this thread's last call of libvarlen-c.
static XLA_FFI_Error *createError(const XLA_FFI_CallFrame &frame,
                                  VarlenStatus status) {
  XLA_FFI_Error_Code code = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  if (status == VARLEN_OUT_OF_MEMORY)
    code = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
  else if (status == VARLEN_UNSUPPORTED)
    code = XLA_FFI_Error_Code_UNIMPLEMENTED;
  return createError(frame, code, varlenGetLastError());
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

/// XLA asks a handler what it was compiled for by a frame with this extension.
static XLA_FFI_Metadata *getMetadata(const XLA_FFI_CallFrame &frame) {
  for (XLA_FFI_Extension_Base *extension = frame.extension_start; extension;
       extension = extension->next)
    if (extension->type == XLA_FFI_Extension_Metadata)
      return reinterpret_cast<XLA_FFI_Metadata_Extension *>(extension)
          ->metadata;
  return nullptr;
}

static constexpr XLA_FFI_Api_Version compiledFor = {
    XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
    XLA_FFI_API_MINOR};

static std::string format(const XLA_FFI_Api_Version &version) {
  return std::to_string(version.major_version) + "." +
         std::to_string(version.minor_version);
}

static XLA_FFI_Error *fillMetadata(const XLA_FFI_CallFrame &frame,
                                   XLA_FFI_Metadata &metadata,
                                   XLA_FFI_TypeId stateTypeId) {
  // What an older XLA asks for may be shorter than what is filled in here.
  const XLA_FFI_Api_Version &version = frame.api->api_version;
  if (version.major_version != XLA_FFI_API_MAJOR ||
      version.minor_version < XLA_FFI_API_MINOR)
    return createError(frame, XLA_FFI_Error_Code_UNIMPLEMENTED,
                       "expected an XLA with version " + format(compiledFor) +
                           " or newer of its foreign function interface, got " +
                           format(version));
  metadata.api_version = compiledFor;
  metadata.traits = 0;
  metadata.state_type_id = stateTypeId;
  return nullptr;
}

/// The text of an attribute; null if there is none.
static const XLA_FFI_ByteSpan *findText(const XLA_FFI_Attrs &attributes,
                                        std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i)
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) ==
            name &&
        attributes.types[i] == XLA_FFI_AttrType_STRING)
      return static_cast<const XLA_FFI_ByteSpan *>(attributes.attrs[i]);
  return nullptr;
}

namespace {

/// What DLPack calls an element; 0 bits if XLA has it alone.
struct Element {
  uint8_t code;
  uint8_t bits;
};

/// Operands or results of a custom call.
struct Tensors {
  std::vector<VarlenTensor> tensors;
  std::vector<const VarlenTensor *> addresses;
};

} // namespace

static Element getElement(XLA_FFI_DataType type) {
  switch (type) {
  case XLA_FFI_DataType_PRED:
    return {VARLEN_BOOL, 8};
  case XLA_FFI_DataType_S8:
    return {VARLEN_INT, 8};
  case XLA_FFI_DataType_S16:
    return {VARLEN_INT, 16};
  case XLA_FFI_DataType_S32:
    return {VARLEN_INT, 32};
  case XLA_FFI_DataType_S64:
    return {VARLEN_INT, 64};
  case XLA_FFI_DataType_U8:
    return {VARLEN_UINT, 8};
  case XLA_FFI_DataType_U16:
    return {VARLEN_UINT, 16};
  case XLA_FFI_DataType_U32:
    return {VARLEN_UINT, 32};
  case XLA_FFI_DataType_U64:
    return {VARLEN_UINT, 64};
  case XLA_FFI_DataType_F16:
    return {VARLEN_FLOAT, 16};
  case XLA_FFI_DataType_F32:
    return {VARLEN_FLOAT, 32};
  case XLA_FFI_DataType_F64:
    return {VARLEN_FLOAT, 64};
  case XLA_FFI_DataType_BF16:
    return {VARLEN_BFLOAT, 16};
  default:
    return {0, 0};
  }
}

static Tensors read(int64_t count, void *const *buffers) {
  Tensors result;
  // Addresses stay.
  result.tensors.reserve(count);
  result.addresses.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto &buffer = *static_cast<const XLA_FFI_Buffer *>(buffers[i]);
    Element element = getElement(buffer.dtype);
    VarlenTensor tensor = {};
    tensor.data = buffer.data;
    tensor.device.type = VARLEN_CPU;
    tensor.ndim = static_cast<int32_t>(buffer.rank);
    tensor.dtype = {element.code, element.bits, 1};
    tensor.shape = buffer.dims;
    result.tensors.push_back(tensor);
    result.addresses.push_back(&result.tensors.back());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

XLA_FFI_Error *varlenXLAInstantiate(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, varlenXLAStateTypeId);
  const XLA_FFI_ByteSpan *source = findText(frame->attrs, "source");
  if (!source)
    return createError(*frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "expected an attribute `source` that is a string, the "
                       "MLIR text of a function, got none");
  VarlenFunction function;
  if (VarlenStatus status =
          findFunction(std::string(source->ptr, source->len), function))
    return createError(*frame, status);
  XLA_FFI_State_Set_Args arguments = {};
  arguments.struct_size = XLA_FFI_State_Set_Args_STRUCT_SIZE;
  arguments.ctx = frame->ctx;
  arguments.stage = XLA_FFI_ExecutionStage_INSTANTIATE;
  arguments.type_id = &varlenXLAStateTypeId;
  arguments.state = const_cast<void *>(function.ptr);
  return frame->api->XLA_FFI_State_Set(&arguments);
}

XLA_FFI_Error *varlenXLAExecute(XLA_FFI_CallFrame *frame) {
  if (XLA_FFI_Metadata *metadata = getMetadata(*frame))
    return fillMetadata(*frame, *metadata, /*stateTypeId=*/{0});
  XLA_FFI_State_Get_Args arguments = {};
  arguments.struct_size = XLA_FFI_State_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame->ctx;
  arguments.stage = XLA_FFI_ExecutionStage_INSTANTIATE;
  arguments.type_id = &varlenXLAStateTypeId;
  if (XLA_FFI_Error *error = frame->api->XLA_FFI_State_Get(&arguments))
    return error;
  Tensors operands = read(frame->args.size, frame->args.args);
  Tensors results = read(frame->rets.size, frame->rets.rets);
  if (VarlenStatus status = varlenFunctionCall(
          {arguments.state}, operands.addresses.data(),
          operands.addresses.size(), results.addresses.data(),
          results.addresses.size(), /*options=*/nullptr))
    return createError(*frame, status);
  return nullptr;
}
