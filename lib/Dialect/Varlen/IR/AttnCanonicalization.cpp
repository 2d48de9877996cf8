//===- AttnCanonicalization.cpp - Simpler forms of an attention -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// None of these changes a bit of a result. docs/attn.md says what each is for,
// and why there is none for an unused lse. All but dropZero serve varlen.attn
// and its derivatives alike.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

/// The operand of a cast that only forgets what its source's type knows.
static Value getMoreStaticSource(Value value) {
  if (auto cast = value.getDefiningOp<tensor::CastOp>())
    return tensor::canFoldIntoConsumerOp(cast) ? cast.getSource() : Value();
  if (auto cast = value.getDefiningOp<memref::CastOp>())
    return memref::CastOp::canFoldIntoConsumerOp(cast) ? cast.getSource()
                                                       : Value();
  return {};
}

/// Reads through casts: a static extent picks the fast route.
template <typename OpTy>
static LogicalResult foldCasts(OpTy op, PatternRewriter &rewriter) {
  bool changed = false;
  for (OpOperand &operand : op->getOpOperands())
    if (Value source = getMoreStaticSource(operand.get())) {
      rewriter.modifyOpInPlace(op, [&] { operand.set(source); });
      changed = true;
    }
  return success(changed);
}

/// Returns whether the type has changed.
static bool refine(OpResult result, ArrayRef<int64_t> inferred,
                   PatternRewriter &rewriter) {
  auto old = cast<RankedTensorType>(result.getType());
  SmallVector<int64_t> shape(old.getShape());
  for (auto [extent, known] : llvm::zip_equal(shape, inferred))
    if (ShapedType::isDynamic(extent))
      extent = known;
  if (shape == old.getShape())
    return false;
  Operation *op = result.getOwner();
  rewriter.modifyOpInPlace(op, [&] { result.setType(old.clone(shape)); });
  rewriter.setInsertionPointAfter(op);
  Value cast = tensor::CastOp::create(rewriter, op->getLoc(), old, result);
  rewriter.replaceAllUsesExcept(result, cast, cast.getDefiningOp());
  return true;
}

/// Gives results the extents that the operands know.
template <typename OpTy>
static LogicalResult refineResultTypes(OpTy op, PatternRewriter &rewriter) {
  if (op.isBufferized())
    return failure();
  bool changed = false;
  for (const ShapedByInputs &result : op.getShapedResults())
    changed |=
        refine(cast<OpResult>(result.value), result.inferShape(), rewriter);
  return success(changed);
}

/// A constant of those entries of `list` that are kept.
static Value selectEntries(Value list, const llvm::SmallBitVector &keep,
                           PatternRewriter &rewriter) {
  DenseIntElementsAttr elements;
  matchPattern(list, m_Constant(&elements));
  SmallVector<APInt> kept;
  for (auto [i, element] : llvm::enumerate(elements.getValues<APInt>()))
    if (keep[i])
      kept.push_back(element);
  auto type = cast<RankedTensorType>(list.getType());
  type = type.clone(ArrayRef<int64_t>(kept.size()));
  return arith::ConstantOp::create(rewriter, list.getLoc(),
                                   DenseIntElementsAttr::get(type, kept));
}

/// Drops the sequences that have neither queries nor keys: padding of
/// cu_seqlens to a fixed number of entries, for instance. A sequence without
/// queries but with keys has to stay, because its keys take room in k and v.
template <typename OpTy>
static LogicalResult dropEmptySequences(OpTy op, PatternRewriter &rewriter) {
  std::optional<SmallVector<int64_t>> cuQ = getConstantIntegers(op.getCuQ());
  // None of keys in pages, whose table has a row for each sequence.
  std::optional<SmallVector<int64_t>> cuK = getConstantIntegers(op.getCuK());
  if (!cuQ || !cuK)
    return failure();
  llvm::SmallBitVector keep(cuQ->size() - 1);
  for (size_t s = 0; s < keep.size(); ++s)
    keep[s] = (*cuQ)[s] != (*cuQ)[s + 1] || (*cuK)[s] != (*cuK)[s + 1];
  if (keep.all())
    return failure();

  // Entries after the first go with the sequence that they end.
  llvm::SmallBitVector keepEntry(cuQ->size(), true);
  for (size_t s = 0; s < keep.size(); ++s)
    keepEntry[s + 1] = keep[s];
  SmallVector<std::pair<OpOperand *, const llvm::SmallBitVector *>> lists = {
      {&op.getCuQMutable(), &keepEntry}};
  for (OpOperand &operand : MutableOperandRange(op.getCuKMutable()))
    lists.push_back({&operand, &keepEntry});
  for (MutableOperandRange optional :
       {op.getSequsedQMutable(), op.getSequsedKMutable(),
        op.getQOffsetMutable()})
    for (OpOperand &operand : optional) {
      if (!getConstantIntegers(operand.get()))
        return rewriter.notifyMatchFailure(
            op, "a list with an entry per sequence is not a constant");
      lists.push_back({&operand, &keep});
    }

  rewriter.modifyOpInPlace(op, [&] {
    for (auto [operand, kept] : lists)
      operand->set(selectEntries(operand->get(), *kept, rewriter));
  });
  return success();
}

/// No sequence is longer than this.
static std::optional<int64_t> getMaxLength(Value cu, ValueRange packed) {
  if (std::optional<SmallVector<int64_t>> ends = getConstantIntegers(cu)) {
    int64_t longest = 0;
    for (size_t s = 1; s < ends->size(); ++s)
      longest = std::max(longest, (*ends)[s] - (*ends)[s - 1]);
    return longest;
  }
  for (Value tensor : packed)
    if (int64_t rows = shaped(tensor).getDimSize(0); ShapedType::isStatic(rows))
      return rows;
  return std::nullopt;
}

static std::optional<int64_t> getMaxKeys(AttentionOpInterface op) {
  if (!op.isPaged())
    return getMaxLength(op.getCuK(), {op.getK(), op.getV()});
  int64_t pages = shaped(op.getBlockTable()).getDimSize(1);
  for (Value rows : {op.getK(), op.getV()})
    if (int64_t page = shaped(rows).getDimSize(1);
        ShapedType::isStatic(pages) && ShapedType::isStatic(page))
      return pages * page;
  return std::nullopt;
}

/// Leaves out of a mask what hides no key, so that no tile is masked for it.
template <typename OpTy>
static LogicalResult simplifyMask(OpTy op, PatternRewriter &rewriter) {
  std::optional<int64_t> queries, keys;
  // An offset moves a mask off a sequence by any amount.
  if (!op.getQOffset()) {
    queries = getMaxLength(op.getCuQ(), {op.getQ()});
    keys = getMaxKeys(cast<AttentionOpInterface>(*op));
  }
  MaskAttrInterface mask = op.getMask().getWithin(queries, keys);
  // The alignment of a mask says where positions are.
  if (mask == op.getMask() ||
      (mask.getAlignment() != op.getMask().getAlignment() &&
       readsPositions(op.getScoreBody())))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.setMaskAttr(mask); });
  return success();
}

/// Drops a scale that is the default, so that equal ops are equal. Only one
/// that is exactly 1/sqrt(head_dim): 1/8 for 64, but none for 128, where the
/// default is not an f32.
template <typename OpTy>
static LogicalResult dropDefaultScale(OpTy op, PatternRewriter &rewriter) {
  auto attention = cast<AttentionOpInterface>(*op);
  int64_t dim = attention.getHeadDim();
  if (!op.getScaleAttr() || ShapedType::isDynamic(dim))
    return failure();
  if (*attention.getScaleValue() != 1.0 / std::sqrt(static_cast<double>(dim)))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.removeScaleAttr(); });
  return success();
}

/// Whether every element of a tensor is +0.
static bool isZero(Value value) {
  if (matchPattern(value, m_PosZeroFloat()))
    return true;
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.value(), m_PosZeroFloat());
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    return matchPattern(splat.getInput(), m_PosZeroFloat());
  return false;
}

/// Drops an optional operand of zeros, of which nothing but a sum or a
/// difference is made: x - 0 is x, also for x = -0.
template <typename OpTy, MutableOperandRange (OpTy::*getOperand)()>
static LogicalResult dropZero(OpTy op, PatternRewriter &rewriter) {
  MutableOperandRange operand = (op.*getOperand)();
  if (operand.empty() || !isZero(operand[0].get()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { operand.clear(); });
  return success();
}

/// Hides keys by the mask where a score region does.
template <typename OpTy>
static LogicalResult absorb(OpTy op, PatternRewriter &rewriter) {
  return success(absorbVisible(op, rewriter));
}

/// Drops a score region that changes nothing.
template <typename OpTy>
static LogicalResult dropIdentity(OpTy op, PatternRewriter &rewriter) {
  return success(dropIdentityScore(cast<AttentionOpInterface>(*op), rewriter) !=
                 op);
}

/// Asks an operand for an extent of a result. Else an attention that a tiling
/// has moved elsewhere stays for its extents alone, and is computed twice.
static LogicalResult takeExtentFromOperand(tensor::DimOp dim,
                                           PatternRewriter &rewriter) {
  auto op = dim.getSource().getDefiningOp<AttentionOpInterface>();
  std::optional<int64_t> number = dim.getConstantIndex();
  if (!op || !number)
    return failure();
  for (const ShapedByInputs &result : op.getShapedResults()) {
    if (result.value != dim.getSource() || *number < 0 ||
        *number >= static_cast<int64_t>(result.extents.size()))
      continue;
    const ExtentOf &from = result.extents[*number];
    rewriter.replaceOp(dim,
                       getValueOrCreateConstantIndexOp(
                           rewriter, dim.getLoc(),
                           tensor::getMixedSize(rewriter, dim.getLoc(),
                                                from.source.value, from.dim)));
    return success();
  }
  return failure();
}

template <typename OpTy> static void addPatterns(RewritePatternSet &patterns) {
  patterns.add(dropEmptySequences<OpTy>)
      .add(simplifyMask<OpTy>)
      .add(dropDefaultScale<OpTy>)
      .add(dropIdentity<OpTy>)
      .add(absorb<OpTy>);
}

/// Upstream does the same with what has destinations.
template <typename OpTy>
static void addTypePatterns(RewritePatternSet &patterns) {
  patterns.add(foldCasts<OpTy>).add(refineResultTypes<OpTy>);
}

void AttnOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                         MLIRContext *) {
  addTypePatterns<AttnOp>(results);
  addPatterns<AttnOp>(results);
  // Of gradients, too.
  results.add(takeExtentFromOperand);
}

void AttnGradOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                             MLIRContext *) {
  addTypePatterns<AttnGradOp>(results);
  addPatterns<AttnGradOp>(results);
  results.add(dropZero<AttnGradOp, &AttnGradOp::getDlseMutable>);
}

void AttnIntoOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                             MLIRContext *) {
  addPatterns<AttnIntoOp>(results);
}

void AttnGradIntoOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                                 MLIRContext *) {
  addPatterns<AttnGradIntoOp>(results);
  results.add(dropZero<AttnGradIntoOp, &AttnGradIntoOp::getDlseMutable>);
}

void AttnJVPOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                            MLIRContext *) {
  addTypePatterns<AttnJVPOp>(results);
  addPatterns<AttnJVPOp>(results);
  results.add(dropZero<AttnJVPOp, &AttnJVPOp::getTsinkMutable>);
}

void AttnJVPIntoOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                                MLIRContext *) {
  addPatterns<AttnJVPIntoOp>(results);
  results.add(dropZero<AttnJVPIntoOp, &AttnJVPIntoOp::getTsinkMutable>);
}

template <typename OpTy>
static void addZeroPatternsOfJVPGrad(RewritePatternSet &patterns) {
  patterns.add(dropZero<OpTy, &OpTy::getTsinkMutable>)
      .add(dropZero<OpTy, &OpTy::getDtlseMutable>)
      .add(dropZero<OpTy, &OpTy::getDlseMutable>);
}

void AttnJVPGradOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                                MLIRContext *) {
  addTypePatterns<AttnJVPGradOp>(results);
  addPatterns<AttnJVPGradOp>(results);
  addZeroPatternsOfJVPGrad<AttnJVPGradOp>(results);
}

void AttnJVPGradIntoOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                                    MLIRContext *) {
  addPatterns<AttnJVPGradIntoOp>(results);
  addZeroPatternsOfJVPGrad<AttnJVPGradIntoOp>(results);
}
