//===- VarlenVectorizeTiles.cpp - Tiles to register-blocked loops ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CPU's counterpart of distributing a tile over the threads of a GPU; see
// BlockVectorizer.h.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/ResolveExtents.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENVECTORIZETILES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenVectorizeTiles
    : varlen::impl::VarlenVectorizeTilesBase<VarlenVectorizeTiles> {
  using VarlenVectorizeTilesBase::VarlenVectorizeTilesBase;
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](Operation *op) {
      auto schedule = op->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
      auto work = dyn_cast<scf::ForallOp>(op);
      if (!work)
        work = op->getParentOfType<scf::ForallOp>();
      if (!schedule)
        return WalkResult::advance();
      if (!work) {
        // An attention is not this pass's, nor is a loop over its tiles.
        if (!isa<scf::IfOp>(op))
          return WalkResult::advance();
        op->emitOpError("expected an scf.forall around what has a ")
            << kScheduleAttrName;
        return WalkResult::interrupt();
      }
      resolveExtents(op);
      SetVector<Block *> blocks;
      op->walk([&](bufferization::MaterializeInDestinationOp op) {
        blocks.insert(op->getBlock());
      });
      ScratchPool scratch(work.getBody(), schedule);
      for (Block *block : blocks) {
        if (failed(BlockVectorizer(*block, schedule, scratch).run()))
          return WalkResult::interrupt();
        ++numBlocks;
      }
      op->removeAttr(kScheduleAttrName);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
