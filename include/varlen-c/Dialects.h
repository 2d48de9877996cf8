/*===- Dialects.h - For hosts that have an MlirContext -----------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Registration with objects of mlir-c. The host and libvarlen-c must share one
|* libMLIR, as they do where both take Debian's shared library.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_C_DIALECTS_H
#define VARLEN_C_DIALECTS_H

#include "mlir-c/IR.h"
#include "varlen-c/Varlen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One dialect each, without what others implement for them. */
VARLEN_API MlirDialectHandle mlirGetDialectHandle__varlen__(void);
VARLEN_API MlirDialectHandle mlirGetDialectHandle__kernel__(void);

/* The dialects of this project, and implementations of interfaces: of
   bufferization, of checks at run time, of gradients. */
VARLEN_API void varlenRegisterAllDialects(MlirDialectRegistry registry);

/* What the passes and pipelines need of upstream: dialects, implementations of
   interfaces, translations. A host that has registered all of upstream MLIR
   needs no such call. */
VARLEN_API void varlenRegisterRequiredUpstream(MlirDialectRegistry registry);

/* The passes and pipelines of this project, for mlirPassManagerAddOwnedPass and
   mlirOpPassManagerAddPipeline by their names. May be called again. */
VARLEN_API void varlenRegisterAllPasses(void);

/* varlenCompile for a module of the host's context, which is not changed. */
VARLEN_API VarlenStatus varlenCompileModule(MlirModule module,
                                            const VarlenCompileOptions *options,
                                            VarlenProgram *program);

#ifdef __cplusplus
}
#endif

#endif /* VARLEN_C_DIALECTS_H */
