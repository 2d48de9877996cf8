/*===- XLA.h - Compiled functions in programs of XLA ------------*- C++ -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The C interface of libvarlen-xla: handlers of XLA's foreign function
|* interface that call a function of libvarlen-c, on CPUs and on CUDA. The
|* headers of that interface come with XLA; the Python package jaxlib has them.
|*
|* A custom call with these handlers has an attribute `source`, the MLIR text of
|* a module with one function. Operands and results are its arguments and
|* results, row-major. Other attributes are not looked at. Only what the text
|* leaves open may differ from one execution to another; nothing else is
|* compiled in.
|*
|* On a CPU a call runs on threads of libvarlen-c, as many as
|* varlenSetNumThreads says. What it refuses is an XLA_FFI_Error with the
|* message of varlenGetLastError. Handlers may run on any number of threads at
|* once.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_C_XLA_H
#define VARLEN_C_XLA_H

#include "varlen-c/Varlen.h"
#include "xla/ffi/api/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stages: the first finds or compiles the function of `source`, once for
   each custom call of an executable, the other calls it. */
VARLEN_API XLA_FFI_Error *varlenXLAInstantiate(XLA_FFI_CallFrame *frame);
VARLEN_API XLA_FFI_Error *varlenXLAExecute(XLA_FFI_CallFrame *frame);

/* The type of the state that the first stage leaves to the other. It has to be
   registered before the handler; XLA stores its id. */
extern VARLEN_API XLA_FFI_TypeId varlenXLAStateTypeId;
extern VARLEN_API const XLA_FFI_TypeInfo varlenXLAStateTypeInfo;

/* The handlers for CUDA. A custom call has an attribute `chip`, too, the GPU to
   compile for (sm_80, ...), and behind its results the workspace, u8 of as many
   elements as varlenLauncherGetWorkspaceSize says and 255 more, as XLA aligns
   it to fewer bytes. That is all the memory that it uses. The second stage
   loads the kernels; the third launches them in XLA's stream, and may be
   captured in a command buffer. It waits for nothing: results are NaN where
   cu_seqlens are wrong, which varlenLauncherPoll tells, or a later call. */
VARLEN_API XLA_FFI_Error *varlenXLACUDAInstantiate(XLA_FFI_CallFrame *frame);
VARLEN_API XLA_FFI_Error *varlenXLACUDAInitialize(XLA_FFI_CallFrame *frame);
VARLEN_API XLA_FFI_Error *varlenXLACUDAExecute(XLA_FFI_CallFrame *frame);
extern VARLEN_API XLA_FFI_TypeId varlenXLACUDAStateTypeId;
extern VARLEN_API const XLA_FFI_TypeInfo varlenXLACUDAStateTypeInfo;

/* Has custom calls with this `source` use `function`, which must live as long
   as the process, for a host that has compiled it before. Without this, the
   first stage compiles, and keeps what it has compiled. */
VARLEN_API void varlenXLAAddFunction(const char *source, size_t size,
                                     VarlenFunction function);

/* The same for a launcher, compiled for `chip`. */
VARLEN_API void varlenXLAAddLauncher(const char *source, size_t size,
                                     const char *chip, VarlenLauncher launcher);

#ifdef __cplusplus
}
#endif

#endif /* VARLEN_C_XLA_H */
