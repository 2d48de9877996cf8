//===- AppendOps.cpp - New rows of a cache --------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// AppendOp
//===----------------------------------------------------------------------===//

bool AppendOp::isBufferized() { return isa<MemRefType>(getK().getType()); }

bool AppendOp::isQuantised() {
  return isQuantisedElement(getElementTypeOrSelf(getKCache()));
}

namespace {
/// An extent of an operand that is that of another one.
struct SameExtent {
  NamedValue value;
  unsigned dim;
  NamedValue other;
  unsigned otherDim;
  int64_t more = 0; // how many `other` has more
};
} // namespace

/// All operands are tensors and there are results of their types, or all are
/// memrefs and there is none.
static LogicalResult verifyForm(AppendOp op) {
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()) != op.isBufferized())
      return op.emitOpError("expected operands that all are tensors, or all "
                            "memrefs, got ")
             << op.getK().getType() << " and " << operand.getType();
  unsigned wanted = op.isBufferized() ? 0 : op.getDpsInits().size();
  if (op->getNumResults() != wanted)
    return op.emitOpError("expected ")
           << wanted << " results on "
           << (op.isBufferized() ? "memrefs" : "tensors") << ", got "
           << op->getNumResults();
  for (auto [result, init] : llvm::zip(op->getResults(), op.getDpsInits()))
    if (result.getType() != init.getType())
      return op.emitOpError("expected a result of the type of the cache ")
             << init.getType() << ", got " << result.getType();
  return success();
}

/// Caches are of the type of k and v, or they are quantised and have scales.
static LogicalResult verifyElements(AppendOp op) {
  auto elementOf = [](Value value) { return getElementTypeOrSelf(value); };
  Type element = elementOf(op.getK()), cache = elementOf(op.getKCache());
  bool isQuantised = op.isQuantised();
  if (isQuantised && element.isF64())
    return op.emitOpError("expected k of f16, bf16 or f32 beside caches of ")
           << cache << ", got " << op.getK().getType();
  if (elementOf(op.getV()) != element)
    return op.emitOpError("expected v of ")
           << element << ", as k is, got " << op.getV().getType();
  if (!isQuantised && cache != element)
    return op.emitOpError("expected k_cache of ")
           << element << ", as k is, got " << op.getKCache().getType();
  if (elementOf(op.getVCache()) != cache)
    return op.emitOpError("expected v_cache of ")
           << cache << ", as k_cache is, got " << op.getVCache().getType();
  bool hasScales = op.getKScale() && op.getVScale();
  if (!hasScales && (op.getKScale() || op.getVScale()))
    return op.emitOpError("expected scales of k and of v, or neither");
  if (isQuantised && !hasScales)
    return op.emitOpError("expected scales of caches of ")
           << cache << ", got none";
  if (!isQuantised && hasScales)
    return op.emitOpError("expected caches of i8 or f8E4M3FN beside scales, "
                          "got ")
           << op.getKCache().getType();
  return success();
}

LogicalResult AppendOp::verify() {
  if (failed(varlen::detail::verifyKnownAttributes(*this)) ||
      failed(verifyElements(*this)) || failed(verifyForm(*this)))
    return failure();
  NamedValue k{"k", getK()}, v{"v", getV()}, cu{"cu", getCu()},
      used{"seqused_k", getSequsedK()}, table{"block_table", getBlockTable()},
      cos{"cos", getCos()}, sin{"sin", getSin()},
      kCache{"k_cache", getKCache()}, vCache{"v_cache", getVCache()};
  if (getElementTypeOrSelf(getCu()) != getElementTypeOrSelf(getSequsedK()))
    return emitOpError("expected seqused_k of ")
           << getElementTypeOrSelf(getCu()) << ", as cu is, got "
           << getSequsedK().getType();
  if (bool(getCos()) != bool(getSin()))
    return emitOpError("expected cos and sin, or neither");
  if (getInterleaved() && !getCos())
    return emitOpError("expected cos and sin of an interleaved rotary "
                       "embedding, got none");

  // Code is made for these.
  SmallVector<std::pair<NamedValue, unsigned>> fixed;
  for (const NamedValue &each : {k, v, kCache, vCache})
    for (unsigned fromLast : {2u, 1u})
      fixed.emplace_back(each, each.type().getRank() - fromLast);
  if (getCos())
    fixed.append({{cos, 1u}, {sin, 1u}});
  NamedValue scales[] = {{"k_scale", getKScale()}, {"v_scale", getVScale()}};
  if (isQuantised())
    fixed.append({{scales[0], 2u}, {scales[1], 2u}});
  for (const auto &[each, dim] : fixed)
    if (ShapedType::isDynamic(each.extent(dim)) || each.extent(dim) < 1)
      return emitOpError("expected a positive static extent ")
             << dim << " of " << each.name << ", got " << each.type();

  SmallVector<SameExtent> same = {
      {v, 0, k, 0},           {v, 1, k, 1},           {kCache, 2, k, 1},
      {kCache, 3, k, 2},      {vCache, 2, k, 1},      {vCache, 3, v, 2},
      {vCache, 0, kCache, 0}, {vCache, 1, kCache, 1}, {used, 0, cu, 0, 1}};
  if (isQuantised())
    for (NamedValue scale : scales)
      same.append(
          {{scale, 0, kCache, 0}, {scale, 1, kCache, 1}, {scale, 2, k, 1}});
  if (getBlockTable())
    same.push_back({table, 0, cu, 0, 1});
  if (getCos())
    same.push_back({sin, 1, cos, 1});
  for (const SameExtent &each : same) {
    int64_t wanted = each.other.extent(each.otherDim),
            got = each.value.extent(each.dim);
    if (ShapedType::isDynamic(wanted) || ShapedType::isDynamic(got) ||
        got + each.more == wanted)
      continue;
    return emitOpError("expected extent ")
           << each.dim << " of " << each.value.name << " to be "
           << wanted - each.more << ", " << (each.more ? "one less than" : "")
           << (each.more ? " " : "") << "extent " << each.otherDim << " of "
           << each.other.name << ", got " << got;
  }
  if (getCos() && 2 * cos.extent(1) > k.extent(2))
    return emitOpError("expected cos and sin for at most ")
           << k.extent(2) / 2 << " pairs, of the head_dim of k, got "
           << cos.extent(1);
  return success();
}

LogicalResult AppendOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  for (Value cache : getDpsInits())
    if (!isBufferized())
      shapes.push_back(tensor::getMixedSizes(builder, getLoc(), cache));
  return success();
}

void AppendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!isBufferized())
    return;
  for (OpOperand &operand : (*this)->getOpOperands())
    if (isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

void AppendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (isBufferized())
    return;
  StringRef names[] = {"k_cache", "v_cache", "k_scale", "v_scale"};
  for (auto [cache, name] : llvm::zip(getCaches(), names))
    setName(cache, name);
}

//===----------------------------------------------------------------------===//
// AppendRunsOp
//===----------------------------------------------------------------------===//

LogicalResult AppendRunsOp::verify() {
  if (getElementTypeOrSelf(getCu()) != getElementTypeOrSelf(getSequsedK()))
    return emitOpError("expected seqused_k of ")
           << getElementTypeOrSelf(getCu()) << ", as cu is, got "
           << getSequsedK().getType();
  if (bool(getCosRows()) != bool(getSinRows()))
    return emitOpError("expected both numbers of positions, or none");
  if (size_t extents = getScaleExtents().size(); extents != 0 && extents != 4)
    return emitOpError("expected 4 extents of scales, or none, got ")
           << extents;
  if (Value table = getBlockTable();
      table && !cast<MemRefType>(table.getType()).isLastDimUnitStride())
    return emitOpError("expected a block_table with a last stride of 1, got ")
           << table.getType();
  MemRefType type = getRuns().getType();
  if (succeeded(verifyCompatibleShape(type.getDimSize(1), NumColumns)))
    return success();
  return emitOpError("expected a list of ")
         << static_cast<int64_t>(NumColumns) << " columns, got " << type;
}

void AppendRunsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRuns(), "runs");
}
