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

/// Give operations their VJPOpInterface and JVPOpInterface, each those of one
/// dialect. docs/gradients.md lists them.
void registerArithDerivativeExternalModels(DialectRegistry &registry);
void registerLinalgDerivativeExternalModels(DialectRegistry &registry);
void registerMathDerivativeExternalModels(DialectRegistry &registry);
void registerSCFDerivativeExternalModels(DialectRegistry &registry);
void registerTensorDerivativeExternalModels(DialectRegistry &registry);
void registerVarlenDerivativeExternalModels(DialectRegistry &registry);

/// All of the above.
void registerDerivativeExternalModels(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIFFERENTIATION_REGISTRATION_H
