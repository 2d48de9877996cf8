//===- MPIEffects.h - Effects of operations of MPI --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_MPIEFFECTS_H
#define VARLEN_DIALECT_VARLEN_IR_MPIEFFECTS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// Says which buffers mpi.send, mpi.recv and mpi.allreduce read and write, as
/// upstream does not. Passes such as ownership-based-buffer-deallocation take
/// no operation without it.
void registerMPIEffectsExternalModels(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_MPIEFFECTS_H
