//===- Extents.cpp - Errors of extents that do not agree ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "varlen/Runtime/Runtime.h"

#include <cinttypes>

using varlen_runtime::setError;

void varlen_extent_error(int64_t rule, int64_t value, int64_t bound) {
  static const char *const tensors[] = {"q",
                                        "k",
                                        "v",
                                        "sink",
                                        "out",
                                        "lse",
                                        "dout",
                                        "dlse",
                                        "dq",
                                        "dk",
                                        "dv",
                                        "dsink",
                                        "a capture",
                                        "a dcapture",
                                        "a page of k",
                                        "a page of v",
                                        "tq",
                                        "tk",
                                        "tv",
                                        "tsink",
                                        "tout",
                                        "tlse",
                                        "a tcapture",
                                        "dtout",
                                        "dtlse",
                                        "k_scale",
                                        "v_scale",
                                        "k_cache",
                                        "v_cache",
                                        "a page of k_cache",
                                        "a page of v_cache",
                                        "a page of k_scale",
                                        "a page of v_scale"};
  constexpr int64_t count = sizeof tensors / sizeof *tensors;
  int64_t number = rule - 1;
  int64_t tensor = (number & 15) + 16 * (number >> 10 & 3);
  int64_t extent = number >> 4 & 3;
  int64_t source = (number >> 6 & 15) + 16 * (number >> 12);
  if (number < 0 || tensor >= count || source >= count)
    return setError("unknown rule %" PRId64 " about extents", rule);
  const char *name = tensors[tensor], *of = tensors[source];
  if (source == VARLEN_TENSOR_CAPTURE && tensor == source)
    return setError("%s has %" PRId64
                    " entries: expected a table with a positive number",
                    name, value);
  if (source == VARLEN_TENSOR_CAPTURE)
    return setError("%s has %" PRId64 " entries: expected %" PRId64
                    ", as many as %s",
                    name, value, bound, of);
  if (tensor == source && extent == VARLEN_EXTENT_ROWS)
    return setError("%s has %" PRId64 " rows: expected a positive number", name,
                    value);
  if (tensor == source)
    return setError("%s has a head_dim of %" PRId64
                    ": expected a positive number",
                    name, value);
  if (tensor == VARLEN_TENSOR_Q)
    return setError("q has %" PRId64 " heads and k %" PRId64
                    ": expected positive numbers, that of q a multiple of that "
                    "of k",
                    value, bound);
  if (tensor == VARLEN_TENSOR_SINK || tensor == VARLEN_TENSOR_DSINK ||
      tensor == VARLEN_TENSOR_TSINK)
    return setError("%s has %" PRId64 " entries: expected %" PRId64
                    ", one for each head of %s",
                    name, value, bound, of);
  switch (extent) {
  case VARLEN_EXTENT_ROWS:
    return setError("%s has %" PRId64 " rows: expected %" PRId64
                    ", as many as %s",
                    name, value, bound, of);
  case VARLEN_EXTENT_PAGES:
    return setError("%s has %" PRId64 " pages: expected %" PRId64
                    ", as many as %s",
                    name, value, bound, of);
  case VARLEN_EXTENT_HEADS:
    return setError("%s has %" PRId64 " heads: expected %" PRId64
                    ", as many as %s",
                    name, value, bound, of);
  default:
    return setError("%s has a head_dim of %" PRId64 ": expected %" PRId64
                    ", that of %s",
                    name, value, bound, of);
  }
}
