//===- ContractionPairs.cpp - Contractions of pairs of bf16 ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionPairs.h"

#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/PairMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::varlen;

Value PairVectorizer::toWords(Value pairs) {
  int64_t count = cast<VectorType>(pairs.getType()).getNumElements() / 2;
  Value words = vector::BitCastOp::create(
      b, VectorType::get({count}, b.getI32Type()), pairs);
  return count == 1 ? vector::ExtractOp::create(b, words, 0).getResult()
                    : words;
}

Value PairVectorizer::toFactor(Value words) {
  return vector::BitCastOp::create(
      b, VectorType::get({2 * lanes}, b.getBF16Type()), words);
}

Value PairVectorizer::addProducts(Value lhs, Value rhs, Value sum) {
  return x86vector::DotBF16Op::create(b, sum.getType(), sum, lhs, rhs);
}

/// What `load` gives at a step's two elements of the contracted loop; zero for
/// the second one of a depth that is odd.
std::pair<Value, Value> PairVectorizer::loadBoth(function_ref<Value()> load) {
  Value first = load();
  if (isLastStep)
    return {first,
            arith::ConstantOp::create(b, b.getZeroAttr(first.getType()))};
  Value k = indices[form.depth];
  indices[form.depth] = IndexBuilder{b}.add(k, 1);
  Value second = load();
  indices[form.depth] = k;
  return {first, second};
}

Value PairVectorizer::loadRight(Value mask) {
  auto [first, second] = loadBoth([&] { return load(*form.rhs, mask); });
  return vector::InterleaveOp::create(b, first, second);
}

Value PairVectorizer::loadStep(OpOperand &operand) {
  auto type = VectorType::get({2}, b.getBF16Type());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  bool isNeighbour = isContiguous(&operand) &&
                     map.getDimPosition(map.getNumResults() - 1) == form.depth;
  if (isNeighbour && !isLastStep)
    return toWords(
        vector::LoadOp::create(b, type, operand.get(), getIndices(operand)));
  auto [first, second] = loadBoth([&]() -> Value {
    return memref::LoadOp::create(b, operand.get(), getIndices(operand));
  });
  return toWords(
      vector::FromElementsOp::create(b, type, ValueRange{first, second}));
}

Value PairVectorizer::loadSteps(OpOperand &operand) {
  return toWords(
      vector::LoadOp::create(b, VectorType::get({2 * lanes}, b.getBF16Type()),
                             operand.get(), getIndices(operand)));
}

//===----------------------------------------------------------------------===//
// Pairs in memory
//===----------------------------------------------------------------------===//

bool PackedPairVectorizer::canEmit() {
  if (!op.hasPureBufferSemantics())
    return false;
  auto rhs = cast<MemRefType>(form.rhs->get().getType());
  return rhs.getRank() == 3 && isContiguous(form.lhs) &&
         isContiguous(form.rhs) && isContiguous(form.result) &&
         memref::CollapseShapeOp::isGuaranteedCollapsible(rhs, getPairDims(3));
}

void PackedPairVectorizer::emitMatrix() {
  AffineMap map = op.getMatchingIndexingMap(form.lhs);
  indices[map.getDimPosition(map.getNumResults() - 1)] =
      IndexBuilder{b}.constant(0);
  right = memref::CollapseShapeOp::create(b, form.rhs->get(), getPairDims(3));
  ContractionVectorizer::emitMatrix();
}

Value PackedPairVectorizer::loadRight(Value mask) {
  auto type = VectorType::get({2 * lanes}, b.getBF16Type());
  SmallVector<Value> at = {indices[form.depth],
                           IndexBuilder{b}.mul(indices[form.columns], 2)};
  if (!mask)
    return vector::LoadOp::create(b, type, right, at);
  return vector::MaskedLoadOp::create(
      b, type, right, at, mask,
      arith::ConstantOp::create(b, b.getZeroAttr(type)));
}

Value PackedPairVectorizer::loadStep(OpOperand &operand) {
  return toWords(vector::LoadOp::create(b,
                                        VectorType::get({2}, b.getBF16Type()),
                                        operand.get(), getIndices(operand)));
}

Value PackedPairVectorizer::emitRightMask(Value columns) {
  return emitMask(IndexBuilder{b}.mul(columns, 2), 2 * lanes);
}

//===----------------------------------------------------------------------===//
// Which vectorizer
//===----------------------------------------------------------------------===//

/// Whether the columns of a contraction are contiguous in memory.
static bool hasContiguousColumns(linalg::LinalgOp op,
                                 const ContractionForm &form,
                                 const CPUTarget &target) {
  if (!op.hasPureBufferSemantics())
    return false;
  if (!form.hasColumnsLast || !isContiguous(form.rhs) ||
      !isContiguous(form.result))
    return false;
  unsigned bits = getElementWidth(form.result);
  if (bits < 32)
    return false;
  if (isBF16Product(form, target))
    return true;
  // A vector that is cut masks them, which LLVM can't of narrow floats without
  // instructions for these.
  int64_t columns = op.getStaticLoopRanges()[form.columns];
  return getElementWidth(form.rhs) >= 32 || getElement(form.rhs).isInteger() ||
         (ShapedType::isStatic(columns) &&
          columns % target.getLanes(bits / 8) == 0);
}

std::unique_ptr<ContractionVectorizer>
varlen::createContractionVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                                    const ContractionForm &form,
                                    const CPUTarget &target) {
  if (FailureOr<ContractionForm> packed = getPairForm(op, target);
      succeeded(packed)) {
    auto vectorizer =
        std::make_unique<PackedPairVectorizer>(builder, op, *packed, target);
    if (vectorizer->canEmit())
      return vectorizer;
  }
  if (!hasContiguousColumns(op, form, target))
    return nullptr;
  if (isBF16Product(form, target))
    return std::make_unique<PairVectorizer>(builder, op, form, target);
  return std::make_unique<ContractionVectorizer>(builder, op, form, target);
}
