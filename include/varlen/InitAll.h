//===- InitAll.h - Registration of everything varlen ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INITALL_H
#define VARLEN_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// The dialects of this project.
void registerAllDialects(DialectRegistry &registry);

/// Interface implementations that live outside the dialect library.
void registerAllExtensions(DialectRegistry &registry);

/// The passes and pipelines of this project.
void registerAllPasses();

/// The upstream dialects, extensions, translations and passes that the
/// pipelines use. A host that has registered upstream MLIR needs no such call.
void registerUpstream(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_INITALL_H
