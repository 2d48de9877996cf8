//===- Status.cpp - What kernels report -----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "Host.h"
#include "Lock.h"
#include "varlen/Runtime/Runtime.h"

#include <cinttypes>
#include <cstddef>

using namespace varlen_runtime;
using namespace varlen_runtime::gpu;

static const char use[] = "the status of kernels";

void *varlen_gpu_status_buffer() {
  if (!mayContinue())
    return nullptr;
  static const varlen_gpu_status none = {};
  Place place = getPlace();
  return place.isValid ? getKept(place, use, &none, sizeof none) : nullptr;
}

static void describeLength(const varlen_gpu_status &status, uint64_t list,
                           const char *name) {
  if (list == 0 || list == 6)
    return setError(
        "%s is empty: expected at least 1 entry, the 0 it starts with", name);
  if (list == 5)
    return setError("%s has %" PRId64 " rows: expected %" PRId64
                    ", one for each sequence of seqused_k",
                    name, status.value, status.bound);
  if (list == 1)
    return setError("cu_seqlens_q has %" PRId64 " entries and %s %" PRId64
                    ": expected the same number",
                    status.bound, name, status.value);
  return setError("%s has %" PRId64 " entries: expected %" PRId64
                  ", one for each sequence of cu_seqlens_q",
                  name, status.value, status.bound);
}

/// What is wrong with pages: an entry, or how many keys a sequence has.
static void describePages(const varlen_gpu_status &status) {
  if ((status.code & 7) == VARLEN_STATUS_USED)
    return setError(
        "seqused_k[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
        ", the rows of the pages that block_table has of a sequence",
        status.index, status.value, status.bound);
  setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
           ": expected 0 to %" PRId64 ", the pages of k",
           status.index / VARLEN_STATUS_COLUMNS,
           status.index % VARLEN_STATUS_COLUMNS, status.value,
           status.bound - 1);
}

/// What is wrong with an append, but for its cu_seqlens and its extents.
static void describeAppend(const varlen_gpu_status &status, int64_t list) {
  int64_t sequence = status.index / VARLEN_STATUS_COLUMNS,
          column = status.index % VARLEN_STATUS_COLUMNS;
  const char *place = list == VARLEN_STATUS_NEW_SLOTS
                          ? "a slot of k_cache"
                          : "the pages that block_table has of a sequence";
  switch (status.code & 7) {
  case VARLEN_STATUS_LONG:
    return setError("sequence %" PRId64 " of cu_seqlens has %" PRId64
                    " rows: expected at most %" PRId64 ", those of %s",
                    status.index, status.value, status.bound, place);
  case VARLEN_STATUS_END:
    return setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
                    ": expected 0 to %" PRId64
                    ", the pages of k_cache, for new rows of the sequence",
                    sequence, column, status.value, status.bound - 1);
  case VARLEN_STATUS_USED:
    if (list == VARLEN_STATUS_SAME_PAGE)
      return setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
                      ": expected a page that nothing else writes to, and "
                      "block_table[%" PRId64 ", %" PRId64 "] is the same",
                      sequence, column, status.value,
                      status.bound / VARLEN_STATUS_COLUMNS,
                      status.bound % VARLEN_STATUS_COLUMNS);
    return setError("seqused_k[%" PRId64 "] = %" PRId64
                    ": expected 0 to %" PRId64 ", as %" PRId64
                    " new rows must fit into %s",
                    sequence, status.value, status.bound, column, place);
  default:
    break;
  }
  switch (list) {
  case VARLEN_STATUS_NEW_USED:
    return setError("seqused_k has %" PRId64 " entries: expected %" PRId64
                    ", one for each sequence of cu_seqlens",
                    status.value, status.bound);
  case VARLEN_STATUS_NEW_PAGES:
    return setError("block_table has %" PRId64 " rows: expected %" PRId64
                    ", one for each sequence of cu_seqlens",
                    status.value, status.bound);
  case VARLEN_STATUS_NEW_SLOTS:
    return setError("cu_seqlens has %" PRId64
                    " sequences: expected at most %" PRId64
                    ", the slots of k_cache",
                    status.value, status.bound);
  default:
    return setError("%s has %" PRId64 " rows: expected at least %" PRId64
                    ", the positions of the keys of sequence %" PRId64,
                    list == VARLEN_STATUS_COS ? "cos" : "sin", status.value,
                    status.bound, status.index);
  }
}

void varlen_gpu_report(const varlen_gpu_status *status) {
  static const char *const names[] = {
      "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k",
      "q_offset",     "block_table",  "cu_seqlens"};
  uint64_t list = static_cast<uint64_t>(status->code) >> 3;
  const char *name = list < sizeof names / sizeof *names ? names[list] : "?";
  int64_t ofAppend = status->code & ~INT64_C(7);
  if (ofAppend >= VARLEN_STATUS_NEW_USED && ofAppend <= VARLEN_STATUS_SIN &&
      (status->code & 7) != VARLEN_STATUS_EXTENT)
    return describeAppend(*status, ofAppend);
  if (status->code == VARLEN_STATUS_USED + VARLEN_STATUS_TABLE ||
      status->code == VARLEN_STATUS_END + VARLEN_STATUS_TABLE)
    return describePages(*status);
  switch (status->code & 7) {
  case VARLEN_STATUS_START:
    return setError("%s[0] = %" PRId64 ": cu_seqlens must start at 0", name,
                    status->value);
  case VARLEN_STATUS_DECREASE:
    return setError("%s[%" PRId64 "] = %" PRId64 " is smaller than %s[%" PRId64
                    "] = %" PRId64 ": cu_seqlens must not decrease",
                    name, status->index, status->value, name, status->index - 1,
                    status->bound);
  case VARLEN_STATUS_END:
    return setError("%s[%" PRId64 "] = %" PRId64 " is larger than the %" PRId64
                    " rows of %s: cu_seqlens must end within them",
                    name, status->index, status->value, status->bound,
                    list == 0 ? "q" : "k");
  case VARLEN_STATUS_USED:
    return setError("%s[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
                    ", the length of the sequence's slot in %s",
                    name, status->index, status->value, status->bound,
                    list == 2 ? names[0] : names[1]);
  case VARLEN_STATUS_LENGTH:
    return describeLength(*status, list, name);
  case VARLEN_STATUS_LONG:
    return setError("sequence %" PRId64 " of %s has %" PRId64
                    " rows: expected at most %" PRId64,
                    status->index, name, status->value, status->bound);
  case VARLEN_STATUS_EXTENT:
    return varlen_extent_error(static_cast<int64_t>(list), status->value,
                               status->bound);
  default:
    return setError("a kernel has reported the unknown error %" PRId64,
                    status->code);
  }
}

/// Reads the status and takes the error out of it; its code is 0 if there is
/// none. Non-zero on failure.
static int32_t takeStatus(varlen_gpu_status &status, void *buffer,
                          void *stream) {
  // No other thread reads it in between: each error is reported once.
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Lock lock(mutex);
  // Not on the stack: if waiting fails, the copy may come later.
  static varlen_gpu_status taken;
  if (backend().copy(&taken, buffer, sizeof taken, stream) ||
      backend().synchronize(stream))
    return 1;
  status = taken;
  // A kernel that still runs, in another stream, is storing its error: a call
  // that waits for that one finds it.
  if (status.code == VARLEN_STATUS_BUSY)
    status.code = 0;
  if (status.code == 0)
    return 0;
  // As long as there is a code no kernel changes anything. The half of it that
  // is not 0 is written at once, so none sees a part of it.
  static_assert(offsetof(varlen_gpu_status, code) == 0, "code is first");
  return backend().fill(buffer, 0, 4, 1, stream) ||
         backend().synchronize(stream);
}

int32_t varlen_gpu_check(void *stream) {
  Place place = getPlace(stream);
  if (!place.isValid)
    return 1;
  int32_t isCapturing = backend().is_capturing(place.stream);
  if (isCapturing > 0)
    setError("a stream cannot be checked while it is captured: expected a call "
             "after the graph has run");
  if (noteError(isCapturing) || noteError(backend().synchronize(place.stream)))
    return 1;
  uint64_t context = backend().get_context(place.stream);
  if (noteError(context == 0))
    return 1;
  // It was never requested, so no kernel reports.
  void *buffer = findKept(context, use);
  if (!buffer)
    return 0;
  varlen_gpu_status status = {};
  if (noteError(takeStatus(status, buffer, place.stream)))
    return 1;
  if (status.code == 0)
    return 0;
  varlen_gpu_report(&status);
  return 1;
}
