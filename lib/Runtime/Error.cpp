//===- Error.cpp - The runtime's error message ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include "varlen/Runtime/Runtime.h"

#include <cstdarg>
#include <cstdio>

// A plain buffer: setting an error must not allocate.
static thread_local char message[512];

void varlen_runtime::setError(const char *format, ...) {
  if (message[0])
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
}

const char *varlen_last_error() { return message[0] ? message : nullptr; }

void varlen_clear_error() { message[0] = 0; }
