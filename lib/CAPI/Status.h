//===- Status.h - Errors of the C interface ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_STATUS_H
#define VARLEN_LIB_CAPI_STATUS_H

#include "varlen-c/Varlen.h"

#include <algorithm>
#include <cstring>

namespace varlen_capi {

/// Keeps the message (printf style) for varlenGetLastError and returns
/// `status`.
[[gnu::format(printf, 2, 3)]] VarlenStatus fail(VarlenStatus status,
                                                const char *format, ...);

/// A struct of options of the caller: what his version of it has not is 0.
/// Null gives all of them their defaults.
template <typename Options> Options readOptions(const Options *options) {
  Options result = {};
  if (options)
    memcpy(&result, options, std::min(options->structSize, sizeof(Options)));
  return result;
}

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_STATUS_H
