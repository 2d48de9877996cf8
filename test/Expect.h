//===- Expect.h - Expectations of the tests in C++ --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_EXPECT_H
#define VARLEN_TEST_EXPECT_H

#include <cstdarg>
#include <cstdio>

inline int failures = 0;

__attribute__((format(printf, 4, 5))) inline void
fail(const char *file, int line, const char *condition, const char *format,
     ...) {
  ++failures;
  fprintf(stderr, "%s:%d: expected %s:", file, line, condition);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

/// EXPECT(condition[, format, ...]); the format is a literal.
#define EXPECT(condition, ...)                                                 \
  do {                                                                         \
    if (!(condition))                                                          \
      fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                   \
  } while (false)

/// For the end of main.
inline int summary() {
  if (failures)
    fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}

#endif // VARLEN_TEST_EXPECT_H
