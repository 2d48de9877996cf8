/*===- MemRefCopy.h - What memref.copy becomes ---------------------*- C
-*-===*\
|*                                                                            *|
|* Part of the Varlen project, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Apart from Runtime.h: upstream's CRunnerUtils.h declares the same function *|
|* with types of its own.                                                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_MEMREFCOPY_H
#define VARLEN_RUNTIME_MEMREFCOPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies a buffer, both with any strides: what MLIR's lowering of memref.copy
   calls, hence its name. `descriptor` points to a memref descriptor. */
typedef struct varlen_unranked_memref {
  int64_t rank;
  void *descriptor;
} varlen_unranked_memref;
void memrefCopy(int64_t element_bytes, varlen_unranked_memref *from,
                varlen_unranked_memref *to);

#ifdef __cplusplus
}
#endif

#endif /* VARLEN_RUNTIME_MEMREFCOPY_H */
