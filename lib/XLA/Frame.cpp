//===- Frame.cpp - Call frames of XLA's foreign functions -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Frame.h"

using namespace varlen_xla;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

XLA_FFI_Error *varlen_xla::createError(const XLA_FFI_CallFrame &frame,
                                       XLA_FFI_Error_Code code,
                                       const std::string &message) {
  XLA_FFI_Error_Create_Args arguments = {};
  arguments.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  arguments.message = message.c_str();
  arguments.errc = code;
  return frame.api->XLA_FFI_Error_Create(&arguments);
}

XLA_FFI_Error *varlen_xla::createError(const XLA_FFI_CallFrame &frame,
                                       VarlenStatus status) {
  XLA_FFI_Error_Code code = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  if (status == VARLEN_OUT_OF_MEMORY)
    code = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
  else if (status == VARLEN_UNSUPPORTED)
    code = XLA_FFI_Error_Code_UNIMPLEMENTED;
  else if (status == VARLEN_DEVICE_ERROR)
    code = XLA_FFI_Error_Code_INTERNAL;
  return createError(frame, code, varlenGetLastError());
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

XLA_FFI_Metadata *varlen_xla::getMetadata(const XLA_FFI_CallFrame &frame) {
  // Headers of different versions call the type of an extension differently.
  for (auto *extension = frame.extension_start; extension;
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

XLA_FFI_Error *varlen_xla::fillMetadata(const XLA_FFI_CallFrame &frame,
                                        XLA_FFI_Metadata &metadata,
                                        XLA_FFI_Handler_Traits traits,
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
  metadata.traits = traits;
  metadata.state_type_id = stateTypeId;
  return nullptr;
}

const XLA_FFI_ByteSpan *varlen_xla::findText(const XLA_FFI_Attrs &attributes,
                                             std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i)
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) ==
            name &&
        attributes.types[i] == XLA_FFI_AttrType_STRING)
      return static_cast<const XLA_FFI_ByteSpan *>(attributes.attrs[i]);
  return nullptr;
}

XLA_FFI_Error *varlen_xla::readSource(const XLA_FFI_CallFrame &frame,
                                      std::string &source) {
  const XLA_FFI_ByteSpan *text = findText(frame.attrs, "source");
  if (!text)
    return createError(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "expected an attribute `source` that is a string, the "
                       "MLIR text of a function, got none");
  source.assign(text->ptr, text->len);
  return nullptr;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

XLA_FFI_Error *varlen_xla::setState(const XLA_FFI_CallFrame &frame,
                                    XLA_FFI_TypeId &type, void *state) {
  XLA_FFI_State_Set_Args arguments = {};
  arguments.struct_size = XLA_FFI_State_Set_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  arguments.stage = XLA_FFI_ExecutionStage_INSTANTIATE;
  arguments.type_id = &type;
  arguments.state = state;
  return frame.api->XLA_FFI_State_Set(&arguments);
}

XLA_FFI_Error *varlen_xla::getState(const XLA_FFI_CallFrame &frame,
                                    XLA_FFI_TypeId &type, void *&state) {
  XLA_FFI_State_Get_Args arguments = {};
  arguments.struct_size = XLA_FFI_State_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  arguments.stage = XLA_FFI_ExecutionStage_INSTANTIATE;
  arguments.type_id = &type;
  XLA_FFI_Error *error = frame.api->XLA_FFI_State_Get(&arguments);
  state = arguments.state;
  return error;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {
/// What DLPack calls an element; 0 bits if XLA has it alone.
struct Element {
  uint8_t code;
  uint8_t bits;
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
  case XLA_FFI_DataType_F8E4M3FN:
    return {VARLEN_FLOAT8_E4M3FN, 8};
  default:
    return {0, 0};
  }
}

Tensors::Tensors(int64_t count) {
  tensors.reserve(count);
  addresses.reserve(count);
}

void Tensors::add(int64_t count, void *const *buffers, int32_t device) {
  for (int64_t i = 0; i < count; ++i) {
    const auto &buffer = *static_cast<const XLA_FFI_Buffer *>(buffers[i]);
    Element element = getElement(buffer.dtype);
    VarlenTensor tensor = {};
    tensor.data = buffer.data;
    tensor.device.device_type = device;
    tensor.ndim = static_cast<int32_t>(buffer.rank);
    tensor.dtype = {element.code, element.bits, 1};
    tensor.shape = buffer.dims;
    tensors.push_back(tensor);
    addresses.push_back(&tensors.back());
  }
}
