//===- VarlenVectorizeLinalg.cpp - linalg on memrefs to vector loops ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionPairs.h"
#include "ContractionTransposer.h"
#include "CopyInterleaver.h"
#include "CopyTransposer.h"
#include "DotVectorizer.h"
#include "LoopVectorizer.h"
#include "RegisterTile.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Support/ExpandTanh.h"
#include "varlen/Support/ReduceAngle.h"
#include "varlen/Target/TargetOption.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENVECTORIZELINALG
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Writes a contraction in one of the forms that keep its sums in registers,
/// if it has such a form.
static bool emitContraction(OpBuilder &builder, linalg::LinalgOp op,
                            const ContractionForm &form,
                            const CPUTarget &target) {
  if (auto vectorizer =
          createContractionVectorizer(builder, op, form, target)) {
    vectorizer->emit();
    return true;
  }
  if (canTransposeFactor(op, form)) {
    emitTransposingContraction(builder, op, form, target);
    return true;
  }
  DotVectorizer dot(builder, op, form, target);
  if (!dot.canEmit())
    return false;
  dot.emit();
  return true;
}

/// Writes the operations that share a tile of registers. Returns their number.
static int64_t emitRegisterTiles(func::FuncOp function, OpBuilder &builder,
                                 const CPUTarget &target) {
  SmallVector<RegisterTile> tiles;
  llvm::SmallPtrSet<Operation *, 8> done;
  function.walk([&](linalg::LinalgOp op) {
    RegisterTile tile(builder, target);
    if (done.contains(op) || !tile.find(op))
      return;
    done.insert_range(tile.getOps());
    tiles.push_back(std::move(tile));
  });
  for (RegisterTile &tile : tiles) {
    tile.emit();
    for (linalg::LinalgOp op : llvm::reverse(tile.getOps()))
      op.erase();
  }
  return done.size();
}

/// The functions of vectors.
static SmallVector<Operation *> getVectorFunctions(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() ==
            math::MathDialect::getDialectNamespace() &&
        isa<VectorType>(op->getResult(0).getType()))
      ops.push_back(op);
  });
  return ops;
}

/// Polynomials in place of calls, for vectors only: what a user wrote for
/// scalars stays libm's.
static LogicalResult expandFunctions(func::FuncOp function) {
  auto apply = [&](RewritePatternSet patterns) {
    return applyOpPatternsGreedily(
        getVectorFunctions(function), std::move(patterns),
        GreedyRewriteConfig().setStrictness(
            GreedyRewriteStrictness::ExistingAndNewOps));
  };
  RewritePatternSet widen(function.getContext());
  populateMathF32ExpansionPatterns(widen, hasPolynomial);
  if (failed(apply(std::move(widen))))
    return failure();
  llvm::for_each(getVectorFunctions(function), reduceAngle);
  for (Operation *op : getVectorFunctions(function))
    expandTanh(op);
  RewritePatternSet polynomials(function.getContext());
  populateMathPolynomialApproximationPatterns(polynomials, hasPolynomial);
  return apply(std::move(polynomials));
}

/// Loops and branches give on the memory that they were given, which
/// bufferization makes results of them.
static LogicalResult foldGivenMemory(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<scf::ForOp, scf::IfOp>(op) &&
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>))
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  RewritePatternSet patterns(function.getContext());
  scf::ForOp::getCanonicalizationPatterns(patterns, function.getContext());
  scf::IfOp::getCanonicalizationPatterns(patterns, function.getContext());
  return applyOpPatternsGreedily(
      ops, std::move(patterns),
      GreedyRewriteConfig().setStrictness(
          GreedyRewriteStrictness::ExistingAndNewOps));
}

/// Takes the body of a loop that runs once, as those of tiles of the size of
/// registers do, out of it.
static void foldShortLoops(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](scf::ForOp loop) {
    std::optional<int64_t> from = getConstantIntValue(loop.getLowerBound()),
                           to = getConstantIntValue(loop.getUpperBound());
    if (from && to && *from >= *to)
      rewriter.replaceOp(loop, loop.getInitArgs());
    else
      (void)loop.promoteIfSingleIteration(rewriter);
  });
}

namespace {

struct VarlenVectorizeLinalg
    : varlen::impl::VarlenVectorizeLinalgBase<VarlenVectorizeLinalg> {
  using VarlenVectorizeLinalgBase::VarlenVectorizeLinalgBase;

  void runOnOperation() override {
    const CPUTarget *cpu = getCPUTargetOrError(getOperation(), target);
    if (!cpu)
      return signalPassFailure();
    if (failed(foldGivenMemory(getOperation())))
      return signalPassFailure();
    OpBuilder builder(&getContext());
    numVectorized += emitRegisterTiles(getOperation(), builder, *cpu);
    SmallVector<linalg::LinalgOp> ops, rest;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::FillOp>(op))
        ops.push_back(op);
    });
    linalg::LinalgOp firstScalar;
    std::string firstReason;
    int64_t scalars = 0;
    auto vectorize = [&](linalg::LinalgOp op) {
      if (FailureOr<ContractionForm> form = getContractionForm(op);
          succeeded(form) && emitContraction(builder, op, *form, *cpu)) {
        op.erase();
        ++numContractions;
        return;
      }
      if (CopyInterleaver interleaver(builder, op, *cpu);
          interleaver.canEmit()) {
        interleaver.emit();
        op.erase();
        ++numVectorized;
        return;
      }
      if (CopyTransposer transposer(builder, op, *cpu); transposer.canEmit()) {
        transposer.emit();
        op.erase();
        ++numVectorized;
        return;
      }
      std::string reason;
      LoopVectorizer vectorizer(builder, op, *cpu);
      if (succeeded(vectorizer.plan(reason))) {
        vectorizer.emit();
        op.erase();
        ++numVectorized;
        return;
      }
      rest.push_back(op);
      if (op.getNumLoops() == 0)
        return;
      ++scalars;
      if (!firstScalar) {
        firstScalar = op;
        firstReason = reason;
      }
    };
    llvm::for_each(ops, vectorize);
    // Those that no sum began with.
    ops.clear();
    getOperation().walk([&](linalg::FillOp fill) { ops.push_back(fill); });
    llvm::for_each(ops, vectorize);
    numScalar += scalars;
    if (firstScalar)
      firstScalar.emitRemark()
          << "scalar loops for " << scalars
          << (scalars == 1 ? " operation" : " operations")
          << " of this function; the first is '" << firstScalar->getName()
          << "': " << firstReason;
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : rest) {
      rewriter.setInsertionPoint(op);
      if (op.hasPureBufferSemantics() &&
          succeeded(linalg::linalgOpToLoops(rewriter, op)))
        rewriter.eraseOp(op);
    }
    // What products fetch is written.
    getOperation().walk([](FollowedByOp rows) {
      rows.replaceAllUsesWith(rows.getRows());
      rows.erase();
    });
    foldShortLoops(getOperation());
    if (failed(expandFunctions(getOperation())))
      signalPassFailure();
  }
};

} // namespace
