//===- RuntimeVerification.h - Checks at run time ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_RUNTIMEVERIFICATION_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_RUNTIMEVERIFICATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// Has generate-runtime-verification check what the verifier of varlen.attn
/// cannot know: extents, cu_seqlens and seqused.
void registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_RUNTIMEVERIFICATION_H
