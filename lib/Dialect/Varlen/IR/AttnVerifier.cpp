//===- AttnVerifier.cpp - What an attention must satisfy ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ids (attn_c1, ...) are those of docs/attn.md, docs/attn-grad.md,
// docs/attn-jvp.md and docs/attn-jvp-grad.md and of the invalid tests. attn_c1
// (ranks and element types of single operands) is checked by ODS, attn_c16
// (window bounds) by the mask attribute. A dynamic extent agrees with every
// extent.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "TileVerifier.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SmallString.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

namespace {
class AttnVerifier {
public:
  explicit AttnVerifier(AttentionOpInterface op)
      : op(op), q{"q", op.getQ()}, k{"k", op.getK()}, v{"v", op.getV()},
        cuQ{"cu_q", op.getCuQ()}, cuK{"cu_k", op.getCuK()},
        blockTable{"block_table", op.getBlockTable()} {
    for (NamedValue perSequence : {NamedValue{"seqused_q", op.getSequsedQ()},
                                   NamedValue{"seqused_k", op.getSequsedK()},
                                   NamedValue{"q_offset", op.getQOffset()}})
      if (perSequence.value)
        perSequences.push_back(perSequence);
  }

  LogicalResult verify() {
    return success(succeeded(verifyPages()) && succeeded(verifyWrtCaptures()) &&
                   succeeded(verifyForm()) && succeeded(verifyElements()) &&
                   succeeded(verifyTensors()) && succeeded(verifySequences()) &&
                   succeeded(verifySink()) && succeeded(verifyScale()) &&
                   succeeded(verifyScoreRegion()) &&
                   succeeded(verifyConstants()));
  }

private:
  LogicalResult verifyPages();
  LogicalResult verifyWrtCaptures();
  LogicalResult verifyForm();
  LogicalResult verifyElements();
  LogicalResult verifyTensors();
  LogicalResult verifySequences();
  LogicalResult verifySink();
  LogicalResult verifyScale();
  LogicalResult verifyScoreRegion();
  LogicalResult verifyConstants();
  LogicalResult verifyConstantCu(StringRef name, ArrayRef<int64_t> cu,
                                 int64_t rows, StringRef rowsName);
  LogicalResult verifyConstantSeqused(StringRef name, Value seqused,
                                      StringRef cuName, Value cu);
  LogicalResult verifyConstantLengths();

  AttentionOpInterface op;
  /// The last two may be null.
  NamedValue q, k, v, cuQ, cuK, blockTable;
  /// seqused_q, seqused_k and q_offset, as far as they are given.
  SmallVector<NamedValue, 3> perSequences;
};
} // namespace

LogicalResult AttnVerifier::verifyPages() {
  // attn_c23: first, as it says which dimensions k and v have.
  bool isPaged = op.isPaged();
  int64_t rank = isPaged ? 4 : 3;
  for (const NamedValue &rows : {k, v})
    if (rows.type().getRank() != rank)
      return op->emitOpError("expected ")
             << rows.name << " of rank " << rank << ' '
             << (isPaged ? "with" : "without") << " a block_table, got "
             << rows.type();
  if (isPaged == static_cast<bool>(cuK.value))
    return op->emitOpError("expected cu_k or a block_table, got ")
           << (isPaged ? "both" : "none");
  if (isPaged && !op.getSequsedK())
    return op->emitOpError("expected seqused_k with a block_table, got none");
  return success();
}

LogicalResult AttnVerifier::verifyWrtCaptures() {
  // attn_grad_c6
  return verifyCaptureNumbers(op, op.getWrtCaptures(), op.getCaptures().size());
}

LogicalResult AttnVerifier::verifyForm() {
  // attn_c2
  auto form = [](Value value) {
    return isa<TensorType>(value.getType()) ? "a tensor" : "a memref";
  };
  bool tensors = isa<TensorType>(q.value.getType());
  for (const NamedValue &input : op.getInputs())
    if (isa<TensorType>(input.value.getType()) != tensors)
      return op->emitOpError(
                 "expected operands that are all tensors or all memrefs, got ")
             << form(q.value) << " for q and " << form(input.value) << " for "
             << input.name;
  // Of one in destination-passing style the types of outs are tensors.
  bool into = isa<DestinationStyleOpInterface>(*op);
  if (into && !tensors)
    return op->emitOpError("expected operands that are all tensors, got ")
           << form(q.value) << " for q";
  size_t outs = op.getDestinations().size(), results = op->getNumResults();
  size_t wanted = op.getShapedResults().size();
  if (results != (tensors ? wanted : 0) ||
      outs != (tensors && !into ? 0 : wanted)) {
    constexpr StringLiteral words[] = {"no", "one", "two", "three", "four"};
    std::string number = wanted < std::size(words) ? words[wanted].str()
                                                   : std::to_string(wanted);
    auto error = op->emitOpError("expected ") << number;
    if (into)
      error << " outs and " << number << " results";
    else
      error << (tensors ? " results and no outs on tensors"
                        : " outs and no results on memrefs");
    return error << ", got " << results << " results and " << outs << " outs";
  }
  return success();
}

LogicalResult AttnVerifier::verifyElements() {
  Type element = q.type().getElementType(), ofK = k.type().getElementType(),
       ofV = v.type().getElementType();
  bool isQuantised = isQuantisedElement(ofK) || isQuantisedElement(ofV);
  // attn_c3
  if (!isQuantised && (ofK != element || ofV != element))
    return op->emitOpError("expected q, k and v of one element type, got ")
           << element << ", " << ofK << " and " << ofV;
  // attn_c27
  if (ofK != ofV)
    return op->emitOpError(
               "expected quantised k and v of one element type, got ")
           << ofK << " and " << ofV;
  if (isQuantised && element.isF64())
    return op->emitOpError("expected q of f16, bf16 or f32 beside k and v of ")
           << ofK << ", got " << element;
  // attn_c28
  for (auto [name, scale] : {NamedValue{"k_scale", op.getKScale()},
                             NamedValue{"v_scale", op.getVScale()}}) {
    if (!scale)
      continue;
    if (!isQuantised)
      return op->emitOpError("expected k and v of i8 or f8E4M3FN beside ")
             << name << ", got " << ofK;
    DenseFPElementsAttr numbers;
    if (!matchPattern(scale, m_Constant(&numbers)))
      continue;
    for (const APFloat &number : numbers.getValues<APFloat>())
      if (!number.isFinite()) {
        SmallString<16> text;
        number.toString(text);
        return op->emitOpError("expected finite numbers in ")
               << name << ", got " << text;
      }
  }
  return success();
}

LogicalResult AttnVerifier::verifyTensors() {
  auto same = [&](const NamedValue &a, const NamedValue &b, unsigned dim,
                  StringRef what) -> LogicalResult {
    if (succeeded(verifyCompatibleShape(a.extent(dim), b.extent(dim))))
      return success();
    return op->emitOpError("expected ")
           << a.name << " and " << b.name << " to have the same " << what
           << ", got " << a.extent(dim) << " and " << b.extent(dim);
  };
  // attn_c4, attn_c5, attn_c6
  if (op.isPaged() && (failed(same(k, v, 0, "number of pages")) ||
                       failed(same(k, v, 1, "rows in a page"))))
    return failure();
  if (!op.isPaged() && failed(same(k, v, 0, "number of rows")))
    return failure();
  if (failed(same(k, v, getHeadsDim(k.value), "number of heads")))
    return failure();
  if (failed(
          verifyCompatibleShape(q.extent(2), k.extent(getColumnsDim(k.value)))))
    return op->emitOpError("expected q and k to have the same head_dim, got ")
           << q.extent(2) << " and " << k.extent(getColumnsDim(k.value));

  // attn_c7
  for (const NamedValue &tensor : {q, k, v}) {
    std::pair<unsigned, StringRef> extents[] = {
        {getHeadsDim(tensor.value), "heads"},
        {getColumnsDim(tensor.value), "head_dim"},
        {1, "rows in a page"}};
    // Of q, and without pages, dimension 1 is heads.
    for (auto [dim, what] :
         ArrayRef(extents).take_front(tensor.type().getRank() == 4 ? 3 : 2))
      if (tensor.extent(dim) == 0)
        return op->emitOpError("expected positive ")
               << what << " of " << tensor.name << ", got 0";
  }

  // attn_c8
  int64_t kvHeads = op.getKvHeads();
  if (ShapedType::isStatic(q.extent(1)) && ShapedType::isStatic(kvHeads) &&
      q.extent(1) % kvHeads != 0)
    return op->emitOpError(
               "expected query heads to be a multiple of kv heads, got ")
           << q.extent(1) << " and " << kvHeads;
  return success();
}

LogicalResult AttnVerifier::verifySequences() {
  // attn_c9
  SmallVector<NamedValue> cus = {cuQ}, integers;
  if (cuK.value)
    cus.push_back(cuK);
  llvm::append_range(integers, ArrayRef(cus).drop_front());
  llvm::append_range(integers, perSequences);
  Type integer = cuQ.type().getElementType();
  for (const NamedValue &other : integers)
    if (other.type().getElementType() != integer)
      return op->emitOpError(
                 "expected cu_q, cu_k, seqused and q_offset of one integer "
                 "type, got ")
             << integer << " for cu_q and " << other.type().getElementType()
             << " for " << other.name;

  // attn_c10
  for (const NamedValue &cu : cus)
    if (cu.extent(0) == 0)
      return op->emitOpError("expected at least one entry in ")
             << cu.name << ", got 0";
  if (cuK.value && failed(verifyCompatibleShape(cuQ.extent(0), cuK.extent(0))))
    return op->emitOpError("expected cu_q and cu_k to have the same number of "
                           "entries, got ")
           << cuQ.extent(0) << " and " << cuK.extent(0);

  // attn_c11
  std::optional<int64_t> sequences;
  for (const NamedValue &cu : cus)
    if (ShapedType::isStatic(cu.extent(0)))
      sequences = cu.extent(0) - 1;
  // attn_c24
  SmallVector<NamedValue> lists(perSequences.begin(), perSequences.end());
  if (op.isPaged())
    lists.push_back(blockTable);
  for (const NamedValue &perSequence : lists) {
    int64_t entries = perSequence.extent(0);
    if (ShapedType::isDynamic(entries))
      continue;
    if (sequences && entries != *sequences)
      return op->emitOpError("expected ")
             << perSequence.name << " to have one "
             << (perSequence.type().getRank() == 1 ? "entry" : "row")
             << " for each of the " << *sequences << " sequences, got "
             << entries;
    sequences = entries;
  }
  return success();
}

LogicalResult AttnVerifier::verifySink() {
  // attn_c12
  if (!op.getSink())
    return success();
  NamedValue sink{"sink", op.getSink()};
  if (sink.type().getElementType() != op.getComputeType())
    return op->emitOpError("expected sink to have the compute type ")
           << op.getComputeType() << ", got " << sink.type().getElementType();
  if (failed(verifyCompatibleShape(sink.extent(0), q.extent(1))))
    return op->emitOpError("expected sink to have one entry for each of the ")
           << q.extent(1) << " query heads, got " << sink.extent(0);
  return success();
}

LogicalResult AttnVerifier::verifyScale() {
  // attn_c13
  std::optional<APFloat> scale = op.getScale();
  if (!scale)
    return success();
  if (failed(varlen::detail::verifyScale(op, *scale)))
    return failure();
  // A normal number, and so is scale * log2(e), which scores are multiplied by.
  double value = scale->convertToDouble();
  if (value < std::ldexp(1.0, -126) || value > std::ldexp(1.0, 126)) {
    SmallString<16> text;
    scale->toString(text);
    return op->emitOpError("expected scale from 2^-126 to 2^126, got ") << text;
  }
  if (&scale->getSemantics() == &APFloat::IEEEdouble() &&
      !op.getElementType().isF64())
    return op->emitOpError(
               "expected scale of type 'f32' with elements of type ")
           << op.getElementType() << ", got 'f64'";
  return success();
}

LogicalResult AttnVerifier::verifyScoreRegion() {
  // attn_c20
  if (failed(verifyScore(op, op.getScoreBody(), op.getComputeType(),
                         op.getCaptures().size())))
    return failure();
  // attn_grad_c8
  if (failed(verifyFactorCaptures(op, op.getScoreBody(), op.getWrtCaptures())))
    return failure();
  // attn_c25
  for (unsigned number = 0; number < op.getCaptures().size(); ++number)
    if (op.isPaged() && isKeyTable(op.getScoreBody(), number))
      return op->emitOpError("expected no table of keys with a block_table, "
                             "got capture ")
             << number;
  // attn_c21
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (isTable(op.getScoreBody(), number) &&
        !isKeyTable(op.getScoreBody(), number) &&
        shaped(capture).getShape().back() == 0)
      return op->emitOpError("expected a table with an entry at least, got ")
             << capture.getType();
  return success();
}

LogicalResult AttnVerifier::verifyConstants() {
  // The runtime library checks the same, in the same words.
  std::optional<SmallVector<int64_t>> cu;
  // attn_c17
  if ((cu = getConstantIntegers(cuQ.value)) &&
      failed(verifyConstantCu("cu_seqlens_q", *cu, q.extent(0), "q")))
    return failure();
  // attn_c18
  if (failed(verifyConstantSeqused("seqused_q", op.getSequsedQ(),
                                   "cu_seqlens_q", cuQ.value)))
    return failure();
  if (op.isPaged())
    return verifyConstantLengths();
  int64_t keys = ShapedType::isStatic(k.extent(0)) ? k.extent(0) : v.extent(0);
  if ((cu = getConstantIntegers(cuK.value)) &&
      failed(verifyConstantCu("cu_seqlens_k", *cu, keys, "k")))
    return failure();
  return verifyConstantSeqused("seqused_k", op.getSequsedK(), "cu_seqlens_k",
                               cuK.value);
}

LogicalResult AttnVerifier::verifyConstantCu(StringRef name,
                                             ArrayRef<int64_t> cu, int64_t rows,
                                             StringRef rowsName) {
  if (cu.front() != 0)
    return op->emitOpError()
           << name << "[0] = " << cu.front() << ": cu_seqlens must start at 0";
  for (size_t i = 1; i < cu.size(); ++i)
    if (cu[i] < cu[i - 1])
      return op->emitOpError()
             << name << '[' << i << "] = " << cu[i] << " is smaller than "
             << name << '[' << i - 1 << "] = " << cu[i - 1]
             << ": cu_seqlens must not decrease";
  for (auto [i, end] : llvm::enumerate(cu))
    if (ShapedType::isStatic(rows) && end > rows)
      return op->emitOpError()
             << name << '[' << i << "] = " << end << " is larger than the "
             << rows << " rows of " << rowsName
             << ": cu_seqlens must end within them";
  return success();
}

LogicalResult AttnVerifier::verifyConstantSeqused(StringRef name, Value seqused,
                                                  StringRef cuName, Value cu) {
  std::optional<SmallVector<int64_t>> used = getConstantIntegers(seqused);
  if (!used)
    return success();
  std::optional<SmallVector<int64_t>> ends = getConstantIntegers(cu);
  for (auto [i, rows] : llvm::enumerate(*used)) {
    if (!ends && rows < 0)
      return op->emitOpError()
             << name << '[' << i << "] = " << rows << ": expected 0 or more";
    if (!ends)
      continue;
    int64_t slot = (*ends)[i + 1] - (*ends)[i];
    if (rows < 0 || rows > slot)
      return op->emitOpError()
             << name << '[' << i << "] = " << rows << ": expected 0 to " << slot
             << ", the length of the sequence's slot in " << cuName;
  }
  return success();
}

LogicalResult AttnVerifier::verifyConstantLengths() {
  std::optional<SmallVector<int64_t>> used =
      getConstantIntegers(op.getSequsedK());
  int64_t pages = blockTable.extent(1);
  int64_t rows = ShapedType::isStatic(k.extent(1)) ? k.extent(1) : v.extent(1);
  if (!used || ShapedType::isDynamic(pages) || ShapedType::isDynamic(rows))
    return success();
  // attn_c26
  for (auto [i, length] : llvm::enumerate(*used))
    if (length < 0 || length > pages * rows)
      return op->emitOpError("seqused_k[")
             << i << "] = " << length << ": expected 0 to " << pages * rows
             << ", the rows of " << pages << " pages of " << rows;
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes that follow from others
//===----------------------------------------------------------------------===//

/// attn_c14, attn_c15: out and lse. attn_c19: captures. attn_c29: the scales of
/// quantised keys and values. attn_grad_c2,
/// attn_grad_c3: dout and out, lse and dlse. attn_grad_c4, attn_grad_c5,
/// attn_grad_c7: dq, dk and dv; dsink; the gradients of captures. attn_jvp_c2,
/// attn_jvp_c3: the tangents of inputs, of captures and of results.
/// attn_jvp_grad_c2, attn_jvp_grad_c3: the cotangents, and what they are of.
static LogicalResult verifyShapes(AttentionOpInterface op) {
  // What is known of extents of inputs: what their own types leave open, those
  // of values that follow from them may say.
  // Several captures have one name.
  using Key = std::pair<std::pair<StringRef, Value>, unsigned>;
  auto keyOf = [](const ExtentOf &from) -> Key {
    return {{from.source.name, from.source.value}, from.dim};
  };
  llvm::SmallDenseMap<Key, int64_t> known;
  SmallVector<ShapedByInputs> values = op.getShapedInputs();
  llvm::append_range(values, op.getShapedResults());
  for (const ShapedByInputs &value : values) {
    SmallVector<int64_t> shape = value.inferShape();
    for (auto [extent, from] : llvm::zip_equal(shape, value.extents))
      if (ShapedType::isDynamic(extent))
        if (auto found = known.find(keyOf(from)); found != known.end())
          extent = found->second;
    ShapedType type = value.type();
    if (type.getElementType() != value.element ||
        static_cast<size_t>(type.getRank()) != shape.size() ||
        failed(verifyCompatibleShape(type.getShape(), shape)))
      return op->emitOpError("expected ")
             << value.name << " compatible with "
             << RankedTensorType::get(shape, value.element) << ", got " << type;
    for (auto [extent, from] : llvm::zip_equal(type.getShape(), value.extents))
      if (ShapedType::isStatic(extent))
        known[keyOf(from)] = extent;
  }
  return success();
}

/// The tile sizes that a target's code is to use, if they are chosen already.
static LogicalResult verifySchedule(AttentionOpInterface op) {
  auto schedule = op->getAttrOfType<ScheduleAttrInterface>(kScheduleAttrName);
  return schedule ? schedule.verifyFits(op) : success();
}

LogicalResult varlen::detail::verifyAttention(AttentionOpInterface op) {
  // attn_c22: attributes that nothing reads.
  // attn_grad_c1: three gradients, and a fourth with a sink (as attn_c2).
  // attn_jvp_c1: out, lse and their tangents.
  // attn_jvp_grad_c1: gradients as attn_grad_c1.
  return success(succeeded(verifyKnownAttributes(op)) &&
                 succeeded(AttnVerifier(op).verify()) &&
                 succeeded(verifyShapes(op)) && succeeded(verifySchedule(op)));
}

LogicalResult varlen::detail::verifyTangents(AttentionOpInterface op) {
  AttnTangents tangents = op.getTangents();
  // attn_jvp_c4
  if (tangents.sink && !op.getSink())
    return op->emitOpError("expected a sink beside tsink");
  // attn_jvp_c5
  if (tangents.captures.size() != op.getWrtCaptures().size())
    return op->emitOpError("expected a tangent of each of the ")
           << op.getWrtCaptures().size() << " captures of wrt_captures, got "
           << tangents.captures.size();
  return verifyAttention(op);
}
