//===- InitAll.h - Registration of everything varlen ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_INITALL_H
#define VARLEN_INITALL_H

namespace llvm {
class raw_ostream;
} // namespace llvm

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

/// The upstream dialects, the implementations of their interfaces, and the
/// translations to LLVM IR that the pipelines use. A host that has registered
/// all of upstream MLIR needs no such call. Pipelines begin with
/// varlen-check-registration, which names what is missing.
void registerRequiredUpstream(DialectRegistry &registry);

/// The same, and upstream's passes, for programs that parse pipelines.
void registerUpstream(DialectRegistry &registry);

/// Writes the versions of Varlen and of LLVM, a line each: the --version of
/// tools, as llvm::cl::SetVersionPrinter takes it.
void printVersion(llvm::raw_ostream &os);

} // namespace mlir::varlen

#endif // VARLEN_INITALL_H
