//===- Registration.h - Rules of differentiation ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIFFERENTIATION_REGISTRATION_H
#define VARLEN_DIFFERENTIATION_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// Give operations their VJPOpInterface, each those of one dialect.
/// docs/gradients.md lists them.
void registerArithVJPExternalModels(DialectRegistry &registry);
void registerLinalgVJPExternalModels(DialectRegistry &registry);
void registerMathVJPExternalModels(DialectRegistry &registry);
void registerSCFVJPExternalModels(DialectRegistry &registry);
void registerTensorVJPExternalModels(DialectRegistry &registry);
void registerVarlenVJPExternalModels(DialectRegistry &registry);

/// All of the above.
void registerVJPExternalModels(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIFFERENTIATION_REGISTRATION_H
