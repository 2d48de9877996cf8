//===- Frame.h - Call frames of XLA's foreign functions ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_XLA_FRAME_H
#define VARLEN_LIB_XLA_FRAME_H

#include "varlen-c/Varlen.h"
#include "xla/ffi/api/c_api.h"

#include <string>
#include <string_view>
#include <vector>

namespace varlen_xla {

XLA_FFI_Error *createError(const XLA_FFI_CallFrame &frame,
                           XLA_FFI_Error_Code code, const std::string &message);

/// The error of this thread's last call of libvarlen-c.
XLA_FFI_Error *createError(const XLA_FFI_CallFrame &frame, VarlenStatus status);

/// XLA asks a handler what it was compiled for by a frame with this extension.
XLA_FFI_Metadata *getMetadata(const XLA_FFI_CallFrame &frame);
XLA_FFI_Error *fillMetadata(const XLA_FFI_CallFrame &frame,
                            XLA_FFI_Metadata &metadata,
                            XLA_FFI_Handler_Traits traits,
                            XLA_FFI_TypeId stateTypeId);

/// The text of an attribute; null if there is none.
const XLA_FFI_ByteSpan *findText(const XLA_FFI_Attrs &attributes,
                                 std::string_view name);
/// The value of the attribute `source`. An error if there is none.
XLA_FFI_Error *readSource(const XLA_FFI_CallFrame &frame, std::string &source);

/// What the first stage leaves to the others.
XLA_FFI_Error *setState(const XLA_FFI_CallFrame &frame, XLA_FFI_TypeId &type,
                        void *state);
XLA_FFI_Error *getState(const XLA_FFI_CallFrame &frame, XLA_FFI_TypeId &type,
                        void *&state);

/// Buffers of a custom call, row-major.
struct Tensors {
  std::vector<VarlenTensor> tensors;
  std::vector<const VarlenTensor *> addresses;

  /// Room for so many: addresses stay.
  explicit Tensors(int64_t count);
  /// Appends buffers in memory of a device of this kind, such as VARLEN_CPU.
  void add(int64_t count, void *const *buffers, int32_t device);
};

} // namespace varlen_xla

#endif // VARLEN_LIB_XLA_FRAME_H
