/*===- MGPU.h - What upstream's lowering of GPU code calls -------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The functions that upstream's gpu-to-llvm and the translation of
|* gpu.launch_func call, on the runtime of GPU.h. A library of its own,
|* VarlenMGPU: a process that has upstream's CUDA wrappers leaves it out, and
|* compiled code then calls those.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_MGPU_H
#define VARLEN_RUNTIME_MGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void *mgpuModuleLoad(void *data, size_t size);
void *mgpuModuleLoadJIT(void *data, int32_t level);
void mgpuModuleUnload(void *module);
void *mgpuModuleGetFunction(void *module, const char *name);
void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t sharedBytes, void *stream,
                      void **parameters, void **extra, size_t numParameters);
void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t sharedBytes, void *stream,
                             void **parameters, void **extra);
/* A null stream in what follows is the calling thread's: the one it has set
   (varlen_gpu_set_stream), or its own, which is also what mgpuStreamCreate
   gives; neither is destroyed, and one that was set is not waited for. */
void *mgpuStreamCreate(void);
void mgpuStreamDestroy(void *stream);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamWaitEvent(void *stream, void *event);
void *mgpuEventCreate(void);
void mgpuEventDestroy(void *event);
void mgpuEventSynchronize(void *event);
void mgpuEventRecord(void *event, void *stream);
void *mgpuMemAlloc(uint64_t bytes, void *stream, int8_t isHostShared);
void mgpuMemFree(void *memory, void *stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream);
void mgpuMemset32(void *memory, uint32_t value, size_t count, void *stream);
void mgpuMemset16(void *memory, uint16_t value, size_t count, void *stream);
void mgpuMemHostRegister(void *memory, uint64_t bytes);
void mgpuMemHostUnregister(void *memory);
/* `descriptor` is that of a memref of the given rank. */
void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t elementBytes);
void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t elementBytes);
void mgpuSetDefaultDevice(int32_t device);
/* The map is in device memory, which stays: one for each different map. Kernels
   that take a map as a parameter need none of it: varlen_gpu_encode_tensor_map.
   Null on failure. */
void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor,
                                     int32_t type, int32_t interleave,
                                     int32_t swizzle, int32_t l2Promotion,
                                     int32_t outOfBoundsFill, int64_t *box);
void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *extents,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *boxStrides, int32_t interleave,
                              int32_t swizzle, int32_t l2Promotion,
                              int32_t outOfBoundsFill);

#ifdef __cplusplus
} // extern "C"
#endif

#endif /* VARLEN_RUNTIME_MGPU_H */
