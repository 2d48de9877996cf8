/*===- GPUStatus.h - What kernels report about cu_seqlens ---------*- C -*-===*\
|*                                                                            *|
|* Part of the Varlen project, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* A kernel cannot return an error. It stores an int64 in the status record   *|
|* of its device (varlen_gpu_status), and writes no result; a record that is  *|
|* not 0 stays. The low VARLEN_GPU_STATUS_BITS are one of the codes below,    *|
|* the others the index of the element that is wrong.                         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_GPUSTATUS_H
#define VARLEN_RUNTIME_GPUSTATUS_H

#define VARLEN_GPU_STATUS_BITS 8

enum GPUStatus {
  VARLEN_GPU_OK = 0,
  /* Of the whole operand; the index is 0. */
  VARLEN_GPU_CU_Q_LENGTH,
  VARLEN_GPU_CU_K_LENGTH,
  VARLEN_GPU_SEQUSED_Q_LENGTH,
  VARLEN_GPU_SEQUSED_K_LENGTH,
  VARLEN_GPU_OFFSET_LENGTH,
  /* Of one element. */
  VARLEN_GPU_CU_Q_START,
  VARLEN_GPU_CU_K_START,
  VARLEN_GPU_CU_Q_DECREASES,
  VARLEN_GPU_CU_K_DECREASES,
  VARLEN_GPU_CU_Q_END,
  VARLEN_GPU_CU_K_END,
  VARLEN_GPU_SEQUSED_Q,
  VARLEN_GPU_SEQUSED_K
};

#endif /* VARLEN_RUNTIME_GPUSTATUS_H */
