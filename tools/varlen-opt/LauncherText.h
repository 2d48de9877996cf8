//===- LauncherText.h - What all C launchers have in common -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_LAUNCHERTEXT_H
#define VARLEN_OPT_LAUNCHERTEXT_H

namespace mlir::varlen {

inline constexpr char launcherBanner[] =
    R"(/* Made by varlen-opt: kernels and what launches them, on the CUDA driver API.
   Link libcuda. Nothing is allocated but what loading a module allocates. */
)";

inline constexpr char launcherDeclarations[] = R"(
#ifndef VARLEN_LAUNCH_DECLARED
#define VARLEN_LAUNCH_DECLARED
/* What functions give: 0, one of these, or the driver's error, which is more
   than 0. */
enum {
  VARLEN_LAUNCH_NULL = -1,      /* an argument is null */
  VARLEN_LAUNCH_WORKSPACE = -2, /* it is too small, or no multiple of 256 */
  VARLEN_LAUNCH_GRID = -3,      /* more blocks than a launch can have */
  VARLEN_LAUNCH_INPUTS = -4,    /* kernels found an error: see the status */
  /* -16 - i: tensor i has extents, strides or an address that its type does not
     allow. */
  VARLEN_LAUNCH_TENSOR = -16
};

/* An error that kernels found in what tensors hold: an entry of cu_seqlens_q
   and so on, or extents that do not agree. */
typedef struct varlen_launch_status {
  int64_t code;  /* 0: none; else kind + 8 * list */
  int64_t index; /* of the entry at fault */
  int64_t value; /* the entry */
  int64_t bound; /* what it is compared with */
} varlen_launch_status;
#endif

)";

inline constexpr char launcherPrelude[] = R"(
/* Of cuda.h, which need not be there. */
int cuCtxGetDevice(int *device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuModuleLoadDataEx(void **module, const void *image, unsigned options,
                       const int *names, void **values);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, void *stream,
                   void **parameters, void **extra);
int cuMemsetD8Async(unsigned long long address, unsigned char value,
                    size_t bytes, void *stream);
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes,
                  void *stream);
int cuStreamSynchronize(void *stream);

/* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT and
   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
enum { VARLEN_MULTIPROCESSORS = 16, VARLEN_SHARED_BYTES = 8 };

/* Whether a tensor is what its type says, -1 being anything and no `steps` dense
   memory. From more rows than VARLEN_MOST numbers could overflow. */
#define VARLEN_MOST ((int64_t)1 << 40)
static int varlen_is_tensor(uintptr_t data, int64_t offset, int rank,
                            const int64_t *sizes, const int64_t *strides,
                            const int64_t *wanted, const int64_t *steps,
                            uintptr_t alignment) {
  int64_t dense = 1;
  int d, is_empty = 0;
  for (d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || sizes[d] > VARLEN_MOST ||
        (wanted[d] >= 0 && sizes[d] != wanted[d]))
      return 0;
    is_empty |= sizes[d] == 0;
  }
  if (is_empty)
    return 1;
  for (d = rank - 1; d >= 0; --d) {
    int64_t step = steps ? steps[d] : dense;
    if (sizes[d] != 1 && step >= 0 && strides[d] != step)
      return 0;
    dense *= sizes[d];
  }
  return data != 0 && offset >= 0 && data % alignment == 0;
}

static int varlen_launch(void *function, int64_t x, int64_t y, int64_t z,
                         const unsigned *block, unsigned shared_bytes,
                         void *stream, void **parameters) {
  if (x < 1 || x > INT32_MAX || y < 1 || y > 65535 || z < 1 || z > 65535)
    return VARLEN_LAUNCH_GRID;
  return cuLaunchKernel(function, (unsigned)x, (unsigned)y, (unsigned)z,
                        block[0], block[1], block[2], shared_bytes, stream,
                        parameters, NULL);
}

/* Scratch begins at multiples of 256. */
static uint64_t varlen_take(uint64_t *used, uint64_t bytes) {
  uint64_t at = *used;
  *used += (bytes + 255) / 256 * 256;
  return at;
}

)";

} // namespace mlir::varlen

#endif // VARLEN_OPT_LAUNCHERTEXT_H
