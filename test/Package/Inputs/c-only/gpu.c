/* The host side of GPU code: says what it finds of a driver, and goes on. */

#include "varlen/Runtime/GPU.h"

#include "varlen/Runtime/Runtime.h"

#include <stdio.h>

int main(void) {
  varlen_gpu_prepare();
  printf("%s\n", varlen_last_error() ? varlen_last_error() : "a driver");
  varlen_gpu_release();
  return 0;
}
