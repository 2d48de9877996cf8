/* A C program that needs no LLVM: the runtime says what is wrong with
   cu_seqlens. */

#include "varlen/Runtime/Runtime.h"

#include <stdio.h>

int main(void) {
  int32_t cu[] = {0, 5, 3};
  varlen_work_tile *tiles;
  int64_t count = varlen_work_tiles(cu, 3, cu, 3, NULL, 0, NULL, 0, NULL, 0, 4,
                                    5, 5, 1, 1, 16, NULL, &tiles);
  printf("%lld tiles: %s\n", (long long)count, varlen_last_error());
  return 0;
}
