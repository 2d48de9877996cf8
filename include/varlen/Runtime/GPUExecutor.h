/*===- GPUExecutor.h - The executor as a GPU ---------------------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The backend of GPU.h that runs kernels on the CPU (Executor/Executor.h): host
|* code compiled for a GPU runs against it unchanged. Kernels are host functions
|* that convert-nvvm-to-executor has made and that register themselves.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_GPUEXECUTOR_H
#define VARLEN_RUNTIME_GPUEXECUTOR_H

#include "varlen/Executor/Executor.h"
#include "varlen/Runtime/GPU.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of a compiled module that its kernels may access. */
typedef struct varlen_gpu_executor_block {
  const void *memory;
  uint64_t bytes;
} varlen_gpu_executor_block;

/* What a compiled module says of itself. */
typedef struct varlen_gpu_executor_image {
  const char *name;
  const char *sites; /* each ends with a 0 */
  uint64_t num_sites;
  const varlen_sim_kernel_info *kernels;
  uint64_t num_kernels;
  const varlen_gpu_executor_block *blocks;
  uint64_t num_blocks;
} varlen_gpu_executor_image;

/* Called by the constructors of compiled modules. The image must outlive its
   use; one of the same name takes the place of the last. */
void varlen_gpu_executor_register(const varlen_gpu_executor_image *image);

/* The backend. Launches run to their end before they return. */
const varlen_gpu_backend *varlen_gpu_executor(void);

/* How launches run from here on; null: as varlen_sim_config_init has it. */
void varlen_gpu_executor_configure(const varlen_sim_config *config);

/* Called after each launch with what it found, if not null. Without it, the
   first report becomes varlen_last_error. */
typedef void (*varlen_gpu_executor_observer)(const char *kernel,
                                             const varlen_sim_result *result,
                                             void *context);
void varlen_gpu_executor_observe(varlen_gpu_executor_observer observer,
                                 void *context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* VARLEN_RUNTIME_GPUEXECUTOR_H */
