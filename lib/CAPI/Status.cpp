//===- Status.cpp - Errors of the C interface -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include <cstdarg>
#include <cstdio>

// A plain buffer: an error about memory must not need any.
static thread_local char lastError[1024];

VarlenStatus varlen_capi::fail(VarlenStatus status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(lastError, sizeof lastError, format, arguments);
  va_end(arguments);
  return status;
}

const char *varlenGetLastError() { return lastError; }

const char *varlenGetVersion() { return VARLEN_VERSION; }

const char *varlenStatusName(VarlenStatus status) {
  switch (status) {
  case VARLEN_OK:
    return "VARLEN_OK";
  case VARLEN_INVALID_ARGUMENT:
    return "VARLEN_INVALID_ARGUMENT";
  case VARLEN_PARSE_ERROR:
    return "VARLEN_PARSE_ERROR";
  case VARLEN_COMPILE_ERROR:
    return "VARLEN_COMPILE_ERROR";
  case VARLEN_NOT_FOUND:
    return "VARLEN_NOT_FOUND";
  case VARLEN_BAD_DATA:
    return "VARLEN_BAD_DATA";
  case VARLEN_CHECK_FAILED:
    return "VARLEN_CHECK_FAILED";
  case VARLEN_OUT_OF_MEMORY:
    return "VARLEN_OUT_OF_MEMORY";
  case VARLEN_WORKSPACE_TOO_SMALL:
    return "VARLEN_WORKSPACE_TOO_SMALL";
  case VARLEN_UNSUPPORTED:
    return "VARLEN_UNSUPPORTED";
  case VARLEN_DEVICE_ERROR:
    return "VARLEN_DEVICE_ERROR";
  }
  return "unknown status";
}
