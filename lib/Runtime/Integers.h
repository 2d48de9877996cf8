//===- Integers.h - Lists that describe a batch -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_INTEGERS_H
#define VARLEN_LIB_RUNTIME_INTEGERS_H

#include <cstdint>
#include <cstring>

namespace varlen_runtime {

/// A list of i32 or i64; absent if the pointer is null.
class Integers {
public:
  Integers(const char *name, const void *data, int64_t size, int32_t bytes)
      : name(name), data(static_cast<const char *>(data)), size(size),
        bytes(bytes) {}

  int64_t operator[](int64_t i) const {
    // Copied, not dereferenced: a host's buffer need not be aligned.
    if (bytes == 4) {
      int32_t value;
      memcpy(&value, data + 4 * i, 4);
      return value;
    }
    int64_t value;
    memcpy(&value, data + 8 * i, 8);
    return value;
  }
  explicit operator bool() const { return data; }

  const char *const name;

private:
  const char *data;

public:
  const int64_t size;

private:
  int32_t bytes;
};

/// That integers of cu_seqlens have a size that they can have; if not, sets the
/// error.
bool checkIndexBytes(int32_t bytes);

/// That the list is one of cu_seqlens, for `rows` rows of a tensor; if not,
/// sets the error.
bool checkCuSeqlens(const Integers &cu, int64_t rows, const char *rowsName);

} // namespace varlen_runtime

#endif // VARLEN_LIB_RUNTIME_INTEGERS_H
