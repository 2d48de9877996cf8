//===- MPIEffects.cpp - Effects of operations of MPI ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpi.isend and mpi.irecv are not here: their buffers are in use until
// mpi.wait, which effects do not say, so that they could be freed before.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/MPIEffects.h"

#include "mlir/Dialect/MPI/IR/MPI.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace {
template <typename OpTy>
struct Effects : MemoryEffectOpInterface::ExternalModel<Effects<OpTy>, OpTy> {
  void
  getEffects(Operation *op,
             SmallVectorImpl<MemoryEffects::EffectInstance> &effects) const {
    auto mpiOp = cast<OpTy>(op);
    if constexpr (std::is_same_v<OpTy, mpi::SendOp>) {
      effects.emplace_back(MemoryEffects::Read::get(), &mpiOp.getRefMutable());
    } else if constexpr (std::is_same_v<OpTy, mpi::RecvOp>) {
      effects.emplace_back(MemoryEffects::Write::get(), &mpiOp.getRefMutable());
    } else {
      effects.emplace_back(MemoryEffects::Read::get(),
                           &mpiOp.getSendbufMutable());
      effects.emplace_back(MemoryEffects::Write::get(),
                           &mpiOp.getRecvbufMutable());
    }
    // Messages of a process stay in their order.
    effects.emplace_back(MemoryEffects::Read::get());
    effects.emplace_back(MemoryEffects::Write::get());
  }
};
} // namespace

/// Nothing where upstream has them.
template <typename OpTy> static void attach(MLIRContext &context) {
  if constexpr (!OpTy::template hasTrait<MemoryEffectOpInterface::Trait>())
    OpTy::template attachInterface<Effects<OpTy>>(context);
}

void varlen::registerMPIEffectsExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, mpi::MPIDialect *) {
    attach<mpi::SendOp>(*context);
    attach<mpi::RecvOp>(*context);
    attach<mpi::AllReduceOp>(*context);
  });
}
