//===- BufferizableOpInterfaceImpl.h - Bufferization of varlen --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// Has one-shot bufferization turn varlen.attn on tensors into varlen.attn on
/// memrefs.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
