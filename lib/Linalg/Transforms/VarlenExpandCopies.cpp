//===- VarlenExpandCopies.cpp - Copies that are no memcpy -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's lowering calls a function of MLIR's runner library for a copy of
// memrefs that are not contiguous. Compiled functions do not link that library,
// and a loop is faster.
//
//===----------------------------------------------------------------------===//

#include "varlen/Linalg/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDCOPIES
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

/// The memory that a loop or a branch returns, if it is the one that came in: a
/// tensor that was changed in place.
static Value getOrigin(Value memory) {
  auto result = dyn_cast<OpResult>(memory);
  if (!result)
    return memory;
  unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner())) {
    Value last = getOrigin(loop.getYieldedValues()[number]);
    return last == loop.getRegionIterArg(number)
               ? getOrigin(loop.getInitArgs()[number])
               : memory;
  }
  if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
    Value then = getOrigin(branch.thenYield()->getOperand(number));
    return then == getOrigin(branch.elseYield()->getOperand(number)) ? then
                                                                     : memory;
  }
  return memory;
}

/// Whether two names are of the same memory.
static bool isSame(Value lhs, Value rhs) {
  lhs = getOrigin(lhs);
  rhs = getOrigin(rhs);
  if (lhs == rhs)
    return true;
  auto a = lhs.getDefiningOp<memref::SubViewOp>();
  auto b = rhs.getDefiningOp<memref::SubViewOp>();
  return a && b && a.getType() == b.getType() &&
         isSame(a.getSource(), b.getSource()) &&
         a.getMixedOffsets() == b.getMixedOffsets() &&
         a.getMixedSizes() == b.getMixedSizes() &&
         a.getMixedStrides() == b.getMixedStrides();
}

namespace {

struct VarlenExpandCopies
    : varlen::impl::VarlenExpandCopiesBase<VarlenExpandCopies> {
  void runOnOperation() override {
    getOperation()->walk([&](memref::CopyOp copy) {
      // A slice that was changed in place is inserted where it is.
      if (isSame(copy.getSource(), copy.getTarget())) {
        copy.erase();
        return;
      }
      auto source = dyn_cast<MemRefType>(copy.getSource().getType());
      auto target = dyn_cast<MemRefType>(copy.getTarget().getType());
      if (!source || !target || (isContiguous(source) && isContiguous(target)))
        return;
      OpBuilder b(copy);
      linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
      copy.erase();
      ++numExpanded;
    });
  }

  static bool isContiguous(MemRefType type) {
    return type.getLayout().isIdentity() ||
           (type.hasStaticShape() &&
            memref::isStaticShapeAndContiguousRowMajor(type));
  }
};

} // namespace
