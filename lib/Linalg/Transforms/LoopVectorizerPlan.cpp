//===- LoopVectorizerPlan.cpp - Which loop becomes one of vectors ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"
#include "varlen/Support/Body.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

/// Vectors of this many registers: arithmetic on one hides the latency of that
/// on the others.
static int64_t getNumRegisters(const CPUTarget &target) {
  return target.vectorRegisters >= 32 ? 4 : 2;
}

bool varlen::isVectorElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isIndex() || isa<Float8E4M3FNType>(type) || type.isF16() ||
         type.isBF16() || type.isF32() || type.isF64();
}

static int64_t getBytes(Type type) {
  return type.isIndex() ? 8 : type.getIntOrFloatBitWidth() / 8;
}

bool varlen::hasPolynomial(StringRef function) {
  return llvm::is_contained({"math.cos", "math.erf", "math.exp", "math.expm1",
                             "math.log", "math.log1p", "math.log2",
                             "math.rsqrt", "math.sin", "math.tanh"},
                            function);
}

bool varlen::isLibraryCall(Operation *op) {
  if (op->getName().getDialectNamespace() !=
      math::MathDialect::getDialectNamespace())
    return false;
  if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
          math::Exp2Op, math::FloorOp, math::FmaOp, math::RoundEvenOp,
          math::SqrtOp, math::TruncOp, math::IsNaNOp, math::IsInfOp,
          math::IsFiniteOp>(op))
    return false;
  if (hasPolynomial(op->getName().getStringRef()))
    return op->getResult(0).getType().isF64() &&
           !isa<math::RsqrtOp, math::TanhOp>(op);
  return true;
}

LogicalResult LoopVectorizer::checkBody(std::string &reason) {
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<linalg::IndexOp, cf::AssertOp>(inner) ||
        matchPattern(&inner, m_Constant()))
      continue;
    // Of memory that the body captures, for checks of what it reads there.
    if (isa<memref::DimOp>(inner))
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(inner)) {
      if (failed(checkRead(load, reason)))
        return failure();
      continue;
    }
    if (!OpTrait::hasElementwiseMappableTraits(&inner) ||
        inner.getNumResults() != 1 || isLibraryCall(&inner)) {
      reason =
          ("'" + inner.getName().getStringRef() + "' has no vector form").str();
      return failure();
    }
    if (!isSpeculatable(&inner)) {
      reason = ("'" + inner.getName().getStringRef() +
                "' is undefined for lanes that are not there")
                   .str();
      return failure();
    }
  }
  return success();
}

LoopVectorizer::Access LoopVectorizer::getAccess(OpOperand &operand,
                                                 unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isFunctionOfDim(dim))
    return Access::Invariant;
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (isPairMap(map))
    return dim == 1 ? Access::Contiguous : Access::Strided;
  bool isLast = map.getResults().back() == b.getAffineDimExpr(dim);
  return isLast && type.isLastDimUnitStride() ? Access::Contiguous
                                              : Access::Strided;
}

/// Whether vectors can run along the loop, and how many inputs would be read
/// one element at a time.
LogicalResult LoopVectorizer::checkAlong(unsigned dim, unsigned &numStrided,
                                         std::string &reason) {
  bool isReduction =
      op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
  numStrided = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    numStrided += getAccess(*input, dim) == Access::Strided;
  for (memref::LoadOp load : reads)
    numStrided += getAccess(load, dim) == Access::Strided;
  for (auto [position, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Access access = getAccess(init, dim);
    // Also the elements that are computed on the way to a reduction.
    if (!isReduction || !isReduced(op, init)) {
      if (access != Access::Contiguous) {
        reason = "no loop along which the memory of results is contiguous";
        return failure();
      }
      continue;
    }
    Type element = getElementTypeOrSelf(init.get().getType());
    if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32) {
      reason = "a sum in a narrow float";
      return failure();
    }
    SmallVector<Operation *> ops;
    if (access != Access::Invariant ||
        !matchReduction(op.getRegionOutputArgs(), position, ops) ||
        ops.size() != 1 || !linalg::getCombinerOpKind(ops.front()) ||
        !arith::getNeutralElement(ops.front())) {
      reason = "a reduction that is not one known operation";
      return failure();
    }
  }
  return success();
}

/// For an operand of pairs.
LogicalResult LoopVectorizer::checkPairs(OpOperand &operand,
                                         std::string &reason) {
  auto type = cast<MemRefType>(operand.get().getType());
  Type element = type.getElementType();
  if (!op.isDpsInit(&operand) || type.getDimSize(2) != 2 ||
      !(element.isBF16() || element.isF16()) ||
      !op.getMatchingBlockArgument(&operand).use_empty() ||
      !type.isLastDimUnitStride() ||
      !memref::CollapseShapeOp::isGuaranteedCollapsible(type, getPairDims(3))) {
    reason = "pairs that are no contiguous 16-bit floats, or that are read";
    return failure();
  }
  pairDim = 0;
  return success();
}

LogicalResult LoopVectorizer::plan(std::string &reason) {
  if (!op.hasPureBufferSemantics()) {
    reason = "its operands are no memrefs";
    return failure();
  }
  if (op.getNumLoops() == 0) {
    reason = "it has no loop";
    return failure();
  }
  int64_t bytes = 1;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    if (!isVectorElement(type.getElementType())) {
      reason = "elements that are no whole bytes";
      return failure();
    }
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (isPairMap(map)) {
      if (failed(checkPairs(operand, reason)))
        return failure();
    } else if (!map.isProjectedPermutation(/*allowZeroInResults=*/true)) {
      reason = "an index is neither one of the loops nor 0";
      return failure();
    }
    bytes = std::max(bytes, getBytes(type.getElementType()));
  }
  if (failed(checkBody(reason)))
    return failure();
  for (memref::LoadOp load : reads)
    bytes = std::max(bytes, getBytes(load.getType()));

  // Contiguous inputs first, then a loop that is not reduced, then the inner
  // one.
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  std::optional<std::tuple<bool, unsigned, bool>> best;
  for (int dim = op.getNumLoops() - 1; dim >= 0; --dim) {
    unsigned numStrided;
    if (failed(checkAlong(dim, numStrided, reason)))
      continue;
    bool isReduction =
        op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
    std::tuple<bool, unsigned, bool> cost(ranges[dim] == 1, numStrided,
                                          isReduction);
    if (best && *best <= cost)
      continue;
    best = cost;
    vectorDim = dim;
  }
  if (!best)
    return failure();
  if (pairDim &&
      op.getIteratorTypesArray()[vectorDim] == utils::IteratorType::reduction) {
    reason = "pairs of rows that are reduced";
    return failure();
  }
  minLanes = target.getLanes(bytes);
  numLanes = maxLanes = minLanes * getNumRegisters(target);
  if (ShapedType::isStatic(ranges[vectorDim]))
    numLanes = std::min(numLanes, std::max<int64_t>(ranges[vectorDim], 1));
  // LLVM 22 has no code for some other vectors of bf16, such as 33.
  if (hasNarrowFloats())
    numLanes = llvm::bit_floor<uint64_t>(numLanes);
  if (op.getIteratorTypesArray()[vectorDim] == utils::IteratorType::reduction) {
    for (auto [i, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      if (!isReduced(op, init))
        continue;
      SmallVector<Operation *> ops;
      matchReduction(op.getRegionOutputArgs(), i, ops);
      combiners.push_back(ops.front());
    }
  }
  return success();
}

bool LoopVectorizer::hasNarrowFloats() {
  auto isNarrow = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  };
  return llvm::any_of(op->getOperandTypes(), isNarrow) ||
         llvm::any_of(reads, [&](memref::LoadOp load) {
           return isNarrow(load.getType());
         });
}

/// Whether what is less than a vector is done in steps of one lane. LLVM takes
/// masked vectors of narrow floats apart, by library calls.
bool LoopVectorizer::isOneByOne() {
  return hasNarrowFloats() || hasReadsOfLanes();
}
