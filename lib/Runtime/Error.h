//===- Error.h - The runtime's error message --------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_ERROR_H
#define VARLEN_LIB_RUNTIME_ERROR_H

namespace varlen_runtime {

/// Keeps the message (printf style) as the calling thread's error, unless it
/// already has one.
[[gnu::format(printf, 1, 2)]] void setError(const char *format, ...);

} // namespace varlen_runtime

#endif // VARLEN_LIB_RUNTIME_ERROR_H
