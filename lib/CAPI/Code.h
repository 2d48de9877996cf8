//===- Code.h - Bytes of the library ----------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_CODE_H
#define VARLEN_LIB_CAPI_CODE_H

#include <string>

namespace varlen_capi {

/// What a VarlenCode is.
struct Code {
  std::string bytes;
  /// Of kernels: how they are launched, as JSON.
  std::string manifest;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_CODE_H
