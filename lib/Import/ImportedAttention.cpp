//===- ImportedAttention.cpp - Attention of other dialects ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportedAttention.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::varlen;

static constexpr StringLiteral attnOperands[] = {
    "q",         "k",         "v",        "cu_q", "cu_k",
    "seqused_q", "seqused_k", "q_offset", "sink"};

static constexpr StringLiteral gradOperands[] = {
    "dout", "q",    "k",         "v",         "out",      "lse", "cu_q",
    "cu_k", "dlse", "seqused_q", "seqused_k", "q_offset", "sink"};

static constexpr StringLiteral jvpOperands[] = {
    "q",    "k",         "v",         "tq",       "tk",   "tv",   "cu_q",
    "cu_k", "seqused_q", "seqused_k", "q_offset", "sink", "tsink"};

static constexpr StringLiteral jvpGradOperands[] = {
    "dtout", "q",    "k",         "v",         "tq",       "tk",   "tv",
    "out",   "lse",  "tout",      "tlse",      "cu_q",     "cu_k", "dtlse",
    "dout",  "dlse", "seqused_q", "seqused_k", "q_offset", "sink", "tsink"};

namespace {

/// What one of the operations takes.
struct Signature {
  ImportedKind kind;
  StringLiteral name;
  /// The required ones first.
  ArrayRef<StringLiteral> operands;
  unsigned numRequired;
  /// Captures have tangents.
  bool hasTangents;
  /// Segments of destinations: one for all gradients, else one for each result.
  unsigned numDestinations;
};

} // namespace

static const Signature signatures[] = {
    {ImportedKind::Attn, AttnOp::getOperationName(), attnOperands, 5, false, 2},
    {ImportedKind::Grad, AttnGradOp::getOperationName(), gradOperands, 8, false,
     1},
    {ImportedKind::JVP, AttnJVPOp::getOperationName(), jvpOperands, 8, true, 4},
    {ImportedKind::JVPGrad, AttnJVPGradOp::getOperationName(), jvpGradOperands,
     13, true, 1}};

static const Signature &getSignature(ImportedKind kind) {
  return *llvm::find_if(signatures, [&](const Signature &signature) {
    return signature.kind == kind;
  });
}

std::optional<ImportedKind> ImportedAttention::findKind(StringRef name) {
  const auto *found =
      llvm::find_if(signatures, [&](const Signature &signature) {
        return signature.name == name;
      });
  if (found == std::end(signatures))
    return std::nullopt;
  return found->kind;
}

ArrayRef<StringLiteral> ImportedAttention::getNames() const {
  return getSignature(kind).operands;
}

unsigned ImportedAttention::getNumRequired() const {
  return getSignature(kind).numRequired;
}

bool ImportedAttention::hasTangents() const {
  return getSignature(kind).hasTangents;
}

Value &ImportedAttention::operator[](StringRef name) {
  return operands[llvm::find(getNames(), name) - getNames().begin()];
}

FailureOr<Attribute> ImportedAttention::getMask(Operation *source) const {
  if (chunk) {
    if (isCausal || left != -1 || right != -1)
      return source->emitError(
          "expected one of causal, a window and chunk, got "
          "several");
    auto mask =
        ChunkMaskAttr::getChecked([&] { return source->emitError(); },
                                  source->getContext(), chunk, alignment);
    if (!mask)
      return failure();
    return Attribute(mask);
  }
  if (isCausal && right != -1 && right != 0)
    return source->emitError(
               "expected no window_right of a causal mask but 0, got ")
           << right;
  if (left < -1 || right < -1)
    return source->emitError("expected window bounds >= -1 (-1 is open), got (")
           << left << ", " << right << ")";
  return Attribute(MaskAttr::get(source->getContext(), left,
                                 isCausal ? 0 : right, alignment));
}

FloatType ImportedAttention::getComputeType() const {
  Value q = operands[llvm::find(getNames(), "q") - getNames().begin()];
  MLIRContext *context = q.getContext();
  if (cast<RankedTensorType>(q.getType()).getElementType().isF64())
    return Float64Type::get(context);
  return Float32Type::get(context);
}

/// What a capture has something of follows from its rank, too.
LogicalResult ImportedAttention::checkCaptures(Operation *source) {
  SmallVector<Value> wanted;
  if (score)
    llvm::append_range(wanted, score.getCaptures());
  if (wanted.size() != captures.size())
    return source->emitError("expected ")
           << wanted.size() << " captures of the score, got "
           << captures.size();
  for (auto [like, capture] : llvm::zip_equal(wanted, captures))
    if (failed(verifyCompatibleShape(like.getType(), capture.getType())))
      return source->emitError("expected a capture of type ")
             << like.getType() << ", got " << capture.getType();
  return success();
}

FailureOr<Operation *>
ImportedAttention::create(OpBuilder &b, Operation *source, TypeRange results) {
  FailureOr<Attribute> mask = getMask(source);
  if (failed(mask) || failed(checkCaptures(source)))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(source);
  const Signature &signature = getSignature(kind);
  OperationState state(source->getLoc(), signature.name);
  SmallVector<int32_t> segments;
  for (Value operand : operands) {
    segments.push_back(operand ? 1 : 0);
    if (operand)
      state.addOperands(operand);
  }
  if (signature.hasTangents) {
    segments.push_back(tcaptures.size());
    state.addOperands(tcaptures);
  }
  segments.append(signature.numDestinations, 0);
  segments.push_back(captures.size());
  state.addOperands(captures);
  if (kind == ImportedKind::Attn)
    segments.append({blockTable ? 1 : 0, /*k_scale=*/0, /*v_scale=*/0});
  if (blockTable)
    state.addOperands(blockTable);
  if (score) {
    IRMapping mapping;
    score.getScoreBody()->getParent()->cloneInto(state.addRegion(), mapping);
  }
  state.addTypes(results);
  state.addAttribute(AttnOp::getOperandSegmentSizeAttr(),
                     b.getDenseI32ArrayAttr(segments));
  state.addAttribute("mask", *mask);
  // Frontends write f64.
  if (scale)
    state.addAttribute("scale", b.getFloatAttr(getComputeType(), *scale));
  SmallVector<int64_t> wrtCaptures = varied;
  // dq, dk, dv and dsink come first.
  bool hasSink = operands.back() != nullptr;
  if (kind == ImportedKind::Grad && results.size() > 3 + hasSink)
    wrtCaptures = llvm::to_vector(llvm::seq<int64_t>(0, captures.size()));
  if (!wrtCaptures.empty())
    state.addAttribute("wrt_captures", b.getDenseI64ArrayAttr(wrtCaptures));
  Operation *attention = b.create(state);
  if (succeeded(verify(attention)))
    return attention;
  attention->erase();
  return failure();
}
