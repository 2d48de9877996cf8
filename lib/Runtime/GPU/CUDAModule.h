//===- CUDAModule.h - Modules and kernels of the CUDA driver ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the backend that has to do with code: what
// varlen_gpu_backend::load, unload, find, find_all and launch do.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_GPU_CUDAMODULE_H
#define VARLEN_LIB_RUNTIME_GPU_CUDAMODULE_H

#include "varlen/Runtime/GPU.h"

namespace varlen_runtime::cuda {

void *loadModule(const void *data, size_t size, void *stream);
void unloadModule(void *opaque, int32_t isKnownAlive);
void *findKernel(void *opaque, const char *name);
int32_t findKernels(void *opaque, varlen_gpu_kernel_visitor visit,
                    void *context);
int32_t launchKernel(void *function, const varlen_gpu_launch *what,
                     void *stream, void **parameters);

} // namespace varlen_runtime::cuda

#endif // VARLEN_LIB_RUNTIME_GPU_CUDAMODULE_H
