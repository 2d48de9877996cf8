//===- AttnIsolator.h - Attentions in a module of their own -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What leaves everything else alone: passes never see it. Each attention of a
// module becomes a call, and the function that is called is made in a nested
// module, as one on tensors that a caller gives buffers for; passes run there,
// and what they have made is moved out.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_PIPELINES_ATTNISOLATOR_H
#define VARLEN_LIB_PIPELINES_ATTNISOLATOR_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::varlen {

/// Runs `runPasses` on the module of the functions, if `module` has any
/// attention; how many it has. An error is emitted on an attention that cannot
/// be called. With `denseTensors` operands that are tensors become buffers with
/// the identity layout; otherwise with any strides but the last.
FailureOr<int64_t>
lowerIsolated(ModuleOp module, bool denseTensors,
              function_ref<LogicalResult(ModuleOp)> runPasses);

} // namespace mlir::varlen

#endif // VARLEN_LIB_PIPELINES_ATTNISOLATOR_H
