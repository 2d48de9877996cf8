//===- Flops.cpp - The useful work of a run -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Flops.h"

#include "Extents.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace varlen_run;
using namespace mlir;

/// How many calls are followed. Functions that each call another one twice make
/// a number of calls that doubles with each of them.
static constexpr int maxCalls = 4096;

namespace {
class Counter {
public:
  explicit Counter(ArrayRef<Tensor> inputs) : extents(inputs) {}

  /// Counts what `region` does when it runs `times` times (none: not known).
  void count(Region &region, const Frame &frame, std::optional<double> times);

  Work work;

private:
  void count(Operation *op, const Frame &frame, std::optional<double> times);
  void add(StringRef name, std::optional<double> flops,
           std::optional<double> times);
  std::optional<double> getFlops(varlen::AttentionOpInterface op,
                                 const Frame &frame) const;
  std::optional<double> getFlops(linalg::LinalgOp op, const Frame &frame) const;
  std::optional<double> getTripCount(LoopLikeOpInterface loop,
                                     const Frame &frame) const;

  Extents extents;
  int numCalls = 0;
};
} // namespace

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

/// Whether `op`, without what is in its regions, computes with floats, instead
/// of moving or choosing them.
static bool isArithmetic(Operation *op) {
  if (isa_and_present<tensor::TensorDialect, memref::MemRefDialect,
                      bufferization::BufferizationDialect, scf::SCFDialect,
                      func::FuncDialect>(op->getDialect()) ||
      isa<CastOpInterface, arith::SelectOp, linalg::RelayoutOpInterface>(op))
    return false;
  return llvm::any_of(op->getOperands(), isFloat) &&
         (op->getNumResults() == 0 ? !op->hasTrait<OpTrait::IsTerminator>()
                                   : llvm::any_of(op->getResults(), isFloat));
}

void Counter::add(StringRef name, std::optional<double> flops,
                  std::optional<double> times) {
  if (flops && times)
    work.flops = work.flops.value_or(0) + *flops * *times;
  else
    ++work.notCounted[name.str()];
}

std::optional<double> Counter::getFlops(varlen::AttentionOpInterface op,
                                        const Frame &frame) const {
  Block *score = op.getScoreBody();
  bool hidesKeys = score && score->getTerminator()->getNumOperands() > 1;
  std::optional<int64_t> heads = extents.getExtent(op.getQ(), 1, frame),
                         headDim = extents.getExtent(op.getQ(), 2, frame),
                         valueHeadDim = extents.getExtent(
                             op.getV(), varlen::getColumnsDim(op.getV()),
                             frame);
  const Tensor *cuQ = extents.getInput(op.getCuQ(), frame);
  if (hidesKeys || !heads || !headDim || !valueHeadDim || !cuQ)
    return std::nullopt;
  // Of keys in pages there is usedK alone.
  const Tensor *cuK = nullptr, *usedQ = nullptr, *usedK = nullptr,
               *offset = nullptr;
  for (auto [list, tensor] :
       {std::pair(op.getCuK(), &cuK), std::pair(op.getSequsedQ(), &usedQ),
        std::pair(op.getSequsedK(), &usedK),
        std::pair(op.getQOffset(), &offset)})
    if (list && !(*tensor = extents.getInput(list, frame)))
      return std::nullopt;
  double pairs = 0;
  for (int64_t s = 0, n = cuQ->getNumElements() - 1; s < n; ++s) {
    auto length = [&](const Tensor *cu, const Tensor *used) {
      return used ? used->getInteger(s)
                  : cu->getInteger(s + 1) - cu->getInteger(s);
    };
    pairs += mlir::varlen::countVisiblePairs(
        op.getMask(), length(cuQ, usedQ), length(cuK, usedK),
        offset ? offset->getInteger(s) : 0);
  }
  // Scores are q k, out is p v. Gradients need the scores again, what comes
  // back through v, then dv, dk and dq; tangents tq k, q tk, ts v and p tv. The
  // gradients of tangents need the scores, their tangents, what comes back
  // through v and tv, two products for each of dq and dk, and one for dv; with
  // a cotangent of out one more comes back, and one goes to dv.
  double ofKeys = op.isGradient() ? 3 : 1, ofValues = op.isGradient() ? 2 : 1;
  if (op.isTangent()) {
    ofKeys = op.isGradient() ? 7 : 3;
    bool hasDout = llvm::any_of(
        op.getInputs(), [](const auto &input) { return input.name == "dout"; });
    ofValues = op.isGradient() && hasDout ? 5 : 3;
  }
  double products = ofKeys * *headDim + ofValues * *valueHeadDim;
  return 2.0 * products * static_cast<double>(*heads) * pairs;
}

std::optional<double> Counter::getFlops(linalg::LinalgOp op,
                                        const Frame &frame) const {
  if (!linalg::isaContractionOpInterface(op))
    return std::nullopt;
  // Any operand may be the one that is known.
  SmallVector<std::optional<int64_t>> loops(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr);
          loop && !loops[loop.getPosition()])
        loops[loop.getPosition()] =
            extents.getExtent(operand.get(), dim, frame);
  double terms = 1;
  for (std::optional<int64_t> loop : loops) {
    if (!loop)
      return std::nullopt;
    terms *= static_cast<double>(*loop);
  }
  return 2.0 * terms;
}

std::optional<double> Counter::getTripCount(LoopLikeOpInterface loop,
                                            const Frame &frame) const {
  std::optional<SmallVector<OpFoldResult>> lower = loop.getLoopLowerBounds(),
                                           upper = loop.getLoopUpperBounds(),
                                           steps = loop.getLoopSteps();
  if (!lower || !upper || !steps)
    return std::nullopt;
  double trips = 1;
  for (auto [begin, end, step] : llvm::zip_equal(*lower, *upper, *steps)) {
    std::optional<int64_t> from = extents.getNumber(begin, frame),
                           to = extents.getNumber(end, frame),
                           by = extents.getNumber(step, frame);
    if (!from || !to || !by || *by <= 0)
      return std::nullopt;
    trips *= std::max(
        0.0, std::ceil((static_cast<double>(*to) - static_cast<double>(*from)) /
                       static_cast<double>(*by)));
  }
  return trips;
}

void Counter::count(Operation *op, const Frame &frame,
                    std::optional<double> times) {
  StringRef name = op->getName().getStringRef();
  if (auto attention = dyn_cast<varlen::AttentionOpInterface>(op)) {
    add(name, getFlops(attention, frame), times);
    if (attention.getScoreBody())
      ++work.notCounted[(name + " score").str()];
    return;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    bool computes = linalgOp->getRegion(0)
                        .walk([](Operation *inner) {
                          return isArithmetic(inner) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
                        })
                        .wasInterrupted();
    if (computes)
      add(name, getFlops(linalgOp, frame), times);
    return;
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    std::optional<Frame> callee = enterCall(call, frame);
    if (callee && numCalls++ < maxCalls)
      count(callee->function.getBody(), *callee, times);
    else
      ++work.notCounted[(name + " @" + call.getCallee()).str()];
    return;
  }
  if (isArithmetic(op))
    ++work.notCounted[name.str()];
  if (op->getNumRegions() == 0)
    return;
  std::optional<double> inside;
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op); loop && times)
    if (std::optional<double> trips = getTripCount(loop, frame))
      inside = *times * *trips;
  for (Region &region : op->getRegions())
    count(region, frame, inside);
}

void Counter::count(Region &region, const Frame &frame,
                    std::optional<double> times) {
  // Which way control flows between blocks is not known.
  if (!llvm::hasSingleElement(region))
    times = std::nullopt;
  for (Operation &op : region.getOps())
    count(&op, frame, times);
}

Work varlen_run::countUsefulWork(ModuleOp module, StringRef entry,
                                 ArrayRef<Tensor> inputs) {
  Counter counter(inputs);
  Frame frame(module.lookupSymbol<func::FuncOp>(entry));
  counter.count(frame.function.getBody(), frame, /*times=*/1);
  return std::move(counter.work);
}
