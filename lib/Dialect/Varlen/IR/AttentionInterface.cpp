//===- AttentionInterface.cpp - What attention ops have in common ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Dialect/Varlen/IR/VarlenInterfaces.cpp.inc"

SmallVector<int64_t> ShapedByInputs::inferShape() const {
  return llvm::map_to_vector(extents, [](const ExtentOf &from) {
    return from.source.extent(from.dim);
  });
}

//===----------------------------------------------------------------------===//
// Methods of the interface
//===----------------------------------------------------------------------===//

bool AttentionOpInterface::isGradient() {
  return isa<AttnGradOp, AttnGradIntoOp, AttnJVPGradOp, AttnJVPGradIntoOp>(
      getOperation());
}

bool AttentionOpInterface::isTangent() {
  return isa<AttnJVPOp, AttnJVPIntoOp, AttnJVPGradOp, AttnJVPGradIntoOp>(
      getOperation());
}

SmallVector<NamedValue> AttentionOpInterface::getInputs() {
  SmallVector<NamedValue> inputs = {
      {"q", getQ()}, {"k", getK()}, {"v", getV()}, {"cu_q", getCuQ()}};
  for (NamedValue optional :
       {NamedValue{"cu_k", getCuK()}, NamedValue{"seqused_q", getSequsedQ()},
        NamedValue{"seqused_k", getSequsedK()},
        NamedValue{"q_offset", getQOffset()}, NamedValue{"sink", getSink()},
        NamedValue{"block_table", getBlockTable()}})
    if (optional.value)
      inputs.push_back(optional);
  llvm::append_range(inputs, getShapedInputs());
  return inputs;
}

SmallVector<ShapedByInputs> AttentionOpInterface::getShapedDestinations() {
  SmallVector<Value> destinations = getDestinations();
  if (destinations.empty())
    return {};
  SmallVector<ShapedByInputs> shaped = getShapedResults();
  for (auto [result, destination] : llvm::zip_equal(shaped, destinations))
    result.value = destination;
  return shaped;
}

int64_t AttentionOpInterface::getQueryHeads() {
  return shaped(getQ()).getDimSize(1);
}

int64_t AttentionOpInterface::getKvHeads() {
  auto headsOf = [](Value rows) {
    return shaped(rows).getDimSize(getHeadsDim(rows));
  };
  int64_t heads = headsOf(getK());
  return ShapedType::isDynamic(heads) ? headsOf(getV()) : heads;
}

int64_t AttentionOpInterface::getHeadDim() {
  int64_t dim = shaped(getQ()).getDimSize(2);
  return ShapedType::isDynamic(dim) ? shaped(getK()).getShape().back() : dim;
}

int64_t AttentionOpInterface::getValueHeadDim() {
  return shaped(getV()).getShape().back();
}

bool AttentionOpInterface::hasDynamicHeadDim() {
  SmallVector<Value> values = {getQ(), getK(), getV()};
  SmallVector<ShapedByInputs> shapedValues = getShapedInputs();
  llvm::append_range(shapedValues, getShapedDestinations());
  for (const ShapedByInputs &value : shapedValues)
    // The last extents of tables and scales are others.
    if (!llvm::is_contained(getCaptures(), value.extents.back().source.value) &&
        value.value != getKScale() && value.value != getVScale())
      values.push_back(value.value);
  return llvm::any_of(values, [](Value value) {
    ShapedType type = shaped(value);
    return type.getRank() >= 3 && ShapedType::isDynamic(type.getShape().back());
  });
}

bool AttentionOpInterface::isQuantised() {
  return isQuantisedElement(shaped(getK()).getElementType());
}

FloatType AttentionOpInterface::getElementType() {
  return cast<FloatType>(shaped(getQ()).getElementType());
}

FloatType AttentionOpInterface::getComputeType() {
  return varlen::getComputeType(getElementType());
}

std::optional<double> AttentionOpInterface::getScaleValue() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToDouble();
  int64_t dim = getHeadDim();
  if (ShapedType::isDynamic(dim) || dim == 0)
    return std::nullopt;
  return 1.0 / std::sqrt(static_cast<double>(dim));
}

GPUTileNeeds AttentionOpInterface::getGPUTileNeeds(GPUTileOwner owner) {
  MaskAttrInterface mask = getMask();
  const int64_t ofMask =
      mask.hasBound(MaskSide::Begin) + mask.hasBound(MaskSide::End);
  int64_t bounds = ofMask;
  Block *score = getScoreBody();
  // Where no bound takes registers, a score does: what it reads and computes.
  if (score)
    bounds = std::max<int64_t>(bounds, 1);
  int64_t headDim = std::max(getHeadDim(), getValueHeadDim());
  // A function and its derivative leave few for the numbers of queries, from
  // the head sizes on that take the rest.
  if (owner == GPUTileOwner::KeyValueGradients && headDim > 48 &&
      computesFunctions(score))
    bounds = std::max(bounds,
                      std::min<int64_t>(ofMask + countVisibleKinds(score), 2));
  // Two entries are looked up for each score, all of a fragment at once; with
  // grouped heads the rows of a tile have addresses of their own.
  bool isGrouped =
      getQueryHeads() != shaped(getK()).getDimSize(getHeadsDim(getK()));
  if (owner == GPUTileOwner::Queries && headDim > 32 && isGrouped &&
      looksUpOtherKeys(score) && !computesFunctions(score))
    bounds = 2;
  // Nor do tiles of three warpgroups leave enough for what is looked up.
  if (score && owner == GPUTileOwner::Queries && headDim > 64 &&
      !score->getOps<LookupOp>().empty())
    bounds = 2;
  // Beside tangents one bound, and what a score computes, leave enough; what is
  // looked up, and what says which keys are visible, does not.
  if (isTangent()) {
    bool reads = score && (!score->getOps<LookupOp>().empty() ||
                           countVisibleKinds(score) > 0);
    bounds = reads ? 2 : ofMask / 2;
  }
  return {owner,
          getHeadDim(),
          getValueHeadDim(),
          bounds,
          getElementType().isF32(),
          isTangent(),
          isQuantised()};
}

//===----------------------------------------------------------------------===//
// New attentions
//===----------------------------------------------------------------------===//

void varlen::detail::cloneScore(AttentionOpInterface like,
                                OperationState &state) {
  IRMapping mapping;
  for (Region &region : like->getRegions())
    region.cloneInto(state.addRegion(), mapping);
}

/// The name among those of an attention, its gradient, its tangents and their
/// gradient that says what `op` computes.
template <typename Attn, typename Grad, typename JVP, typename JVPGrad>
static StringRef choose(AttentionOpInterface op) {
  if (op.isTangent())
    return op.isGradient() ? JVPGrad::getOperationName()
                           : JVP::getOperationName();
  return op.isGradient() ? Grad::getOperationName() : Attn::getOperationName();
}

StringRef varlen::getNameOnTensors(AttentionOpInterface op) {
  return choose<AttnOp, AttnGradOp, AttnJVPOp, AttnJVPGradOp>(op);
}

OutAndLse varlen::getOutAndLse(AttentionOpInterface op) {
  auto ofGradient = [](auto gradient) -> OutAndLse {
    return {gradient.getOut(), gradient.getLse()};
  };
  return TypeSwitch<Operation *, OutAndLse>(op)
      .Case<AttnGradOp, AttnGradIntoOp, AttnJVPGradOp, AttnJVPGradIntoOp>(
          ofGradient)
      .Default([](Operation *attn) -> OutAndLse {
        return {attn->getResult(0), attn->getResult(1)};
      });
}

AttentionOpInterface
varlen::detail::createAttention(OpBuilder &b, AttentionOpInterface like,
                                TypeRange results, ArrayRef<Value> inputs,
                                ValueRange captures, ValueRange destinations,
                                bool hasScore) {
  // Memory has no results, and new tensors are written into nothing.
  bool isInto = !results.empty() && !destinations.empty();
  StringRef name = getNameOnTensors(like);
  if (isInto)
    name = choose<AttnIntoOp, AttnGradIntoOp, AttnJVPIntoOp, AttnJVPGradIntoOp>(
        like);
  OperationState state(like.getLoc(), name);
  state.addTypes(results);
  SmallVector<int32_t> segments;
  auto addOptional = [&](Value input) {
    segments.push_back(input ? 1 : 0);
    if (input)
      state.addOperands(input);
  };
  // A table of pages and scales come behind the captures.
  bool hasCache = !like.isGradient() && !like.isTangent();
  ArrayRef<Value> ofCache = inputs.take_back(hasCache ? 3 : 0);
  // One segment for the tangents of all captures.
  size_t ofCaptures = like.isTangent() ? like.getWrtCaptures().size() : 0;
  llvm::for_each(inputs.drop_back(ofCache.size() + ofCaptures), addOptional);
  if (like.isTangent()) {
    segments.push_back(ofCaptures);
    state.addOperands(inputs.take_back(ofCaptures));
  }
  // One segment for all gradients, one each for out, lse and their tangents.
  if (like.isGradient())
    segments.push_back(destinations.size());
  else
    segments.append(like.isTangent() ? 4 : 2, destinations.empty() ? 0 : 1);
  state.addOperands(destinations);
  segments.push_back(captures.size());
  state.addOperands(captures);
  llvm::for_each(ofCache, addOptional);
  if (hasScore)
    cloneScore(like, state);
  StringRef segmentSizes = AttnOp::getOperandSegmentSizeAttr();
  for (NamedAttribute attribute : like->getAttrs())
    if (attribute.getName() != segmentSizes)
      state.attributes.push_back(attribute);
  state.addAttribute(segmentSizes, b.getDenseI32ArrayAttr(segments));
  return cast<AttentionOpInterface>(b.create(state));
}

//===----------------------------------------------------------------------===//
// Methods of other interfaces
//===----------------------------------------------------------------------===//

/// `value` as the out of `op`, Tq x Hq x Dv, as its lse, Hq x Tq, or of the
/// shape of `other`, one of its inputs.
static ShapedByInputs shapeOfOut(StringRef name, Value value,
                                 AttentionOpInterface op) {
  NamedValue q{"q", op.getQ()}, v{"v", op.getV()};
  return {{name, value},
          op.getElementType(),
          {{q, 0}, {q, 1}, {v, getColumnsDim(v.value)}}};
}
static ShapedByInputs shapeOfLse(StringRef name, Value value,
                                 AttentionOpInterface op) {
  NamedValue q{"q", op.getQ()};
  return {{name, value}, op.getComputeType(), {{q, 1}, {q, 0}}};
}
/// A capture, Hq or Hq x Tq, with M numbers each if it is a table, or Hq x Tk
/// if that is one of keys; or what has its shape.
static ShapedByInputs shapeOfCapture(StringRef name, Value value,
                                     unsigned number, AttentionOpInterface op) {
  Value capture = op.getCaptures()[number];
  ShapedByInputs result = shapeOfLse(name, value, op);
  if (isKeyTable(op.getScoreBody(), number)) {
    result.extents[1] = {{"k", op.getK()}, 0};
    return result;
  }
  int64_t rank = shaped(capture).getRank();
  bool isOfTable = isTable(op.getScoreBody(), number);
  result.extents.resize(std::clamp<int64_t>(isOfTable ? rank - 1 : rank, 1, 2));
  if (isOfTable)
    result.extents.push_back(
        {{"capture", capture}, static_cast<unsigned>(rank - 1)});
  return result;
}
static ShapedByInputs shapeLike(StringRef name, Value value, NamedValue other) {
  ShapedByInputs result{{name, value}, other.type().getElementType(), {}};
  for (unsigned dim = 0; dim < other.type().getRank(); ++dim)
    result.extents.push_back({other, dim});
  return result;
}

/// The scale of `rows`, which are k or v: a number for each head, for each row,
/// or in pages for each page or row, and head.
static ShapedByInputs shapeOfScale(StringRef name, Value scale,
                                   NamedValue rows) {
  ShapedByInputs result{
      {name, scale}, Float32Type::get(scale.getContext()), {}};
  unsigned heads = getHeadsDim(rows.value);
  unsigned rank = std::clamp<int64_t>(shaped(scale).getRank(), 1, heads + 1);
  // What differs between them comes in front of the heads.
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    result.extents.push_back({rows, dim});
  result.extents.push_back({rows, heads});
  return result;
}

bool varlen::detail::isOfQueries(AttentionOpInterface op, unsigned capture) {
  int64_t rank = shaped(op.getCaptures()[capture]).getRank();
  return rank == (isTable(op.getScoreBody(), capture) ? 3 : 2);
}

/// A result, or the buffer in its place; null where there is none, which the
/// verifier refuses.
static Value getResult(AttentionOpInterface op, unsigned number) {
  if (!op.isBufferized())
    return number < op->getNumResults() ? Value(op->getResult(number))
                                        : Value();
  SmallVector<Value> buffers = op.getDestinations();
  return number < buffers.size() ? buffers[number] : Value();
}

SmallVector<ShapedByInputs>
varlen::detail::getAttnResults(AttentionOpInterface op) {
  return {shapeOfOut("out", getResult(op, 0), op),
          shapeOfLse("lse", getResult(op, 1), op)};
}

SmallVector<ShapedByInputs>
varlen::detail::getShapedCaptures(AttentionOpInterface op) {
  SmallVector<ShapedByInputs> captures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    captures.push_back(shapeOfCapture("capture", capture, number, op));
  return captures;
}

SmallVector<ShapedByInputs>
varlen::detail::getAttnInputs(AttentionOpInterface op) {
  SmallVector<ShapedByInputs> inputs = getShapedCaptures(op);
  if (Value scale = op.getKScale())
    inputs.push_back(shapeOfScale("k_scale", scale, {"k", op.getK()}));
  if (Value scale = op.getVScale())
    inputs.push_back(shapeOfScale("v_scale", scale, {"v", op.getV()}));
  return inputs;
}

SmallVector<ShapedByInputs>
varlen::detail::getGradInputs(AttentionOpInterface op, Value dout, Value out,
                              Value lse, Value dlse) {
  SmallVector<ShapedByInputs> inputs = {shapeOfOut("dout", dout, op),
                                        shapeOfOut("out", out, op),
                                        shapeOfLse("lse", lse, op)};
  if (dlse)
    inputs.push_back(shapeOfLse("dlse", dlse, op));
  llvm::append_range(inputs, getShapedCaptures(op));
  return inputs;
}

SmallVector<ShapedByInputs>
varlen::detail::getGradients(AttentionOpInterface op) {
  SmallVector<ShapedByInputs> gradients = {
      shapeLike("dq", getResult(op, 0), {"q", op.getQ()}),
      shapeLike("dk", getResult(op, 1), {"k", op.getK()}),
      shapeLike("dv", getResult(op, 2), {"v", op.getV()})};
  if (op.getSink())
    gradients.push_back({{"dsink", getResult(op, 3)},
                         op.getComputeType(),
                         {{{"q", op.getQ()}, 1}}});
  for (int64_t number : op.getWrtCaptures()) {
    // What the verifier says of numbers comes later.
    if (number < 0 || number >= static_cast<int64_t>(op.getCaptures().size()))
      continue;
    gradients.push_back(shapeOfCapture(
        "dcapture", getResult(op, gradients.size()), number, op));
  }
  return gradients;
}

SmallVector<ShapedByInputs>
varlen::detail::getJVPInputs(AttentionOpInterface op) {
  AttnTangents tangents = op.getTangents();
  SmallVector<ShapedByInputs> inputs = {
      shapeLike("tq", tangents.q, {"q", op.getQ()}),
      shapeLike("tk", tangents.k, {"k", op.getK()}),
      shapeLike("tv", tangents.v, {"v", op.getV()})};
  if (tangents.sink)
    inputs.push_back({{"tsink", tangents.sink},
                      op.getComputeType(),
                      {{{"q", op.getQ()}, 1}}});
  llvm::append_range(inputs, getShapedCaptures(op));
  // What the verifier says of numbers comes later.
  for (auto [number, tangent] :
       llvm::zip(op.getWrtCaptures(), tangents.captures))
    if (number >= 0 && number < static_cast<int64_t>(op.getCaptures().size()))
      inputs.push_back(shapeOfCapture("tcapture", tangent, number, op));
  return inputs;
}

SmallVector<ShapedByInputs>
varlen::detail::getJVPGradInputs(AttentionOpInterface op,
                                 const JVPResults &results,
                                 const JVPResults &cotangents) {
  SmallVector<ShapedByInputs> inputs = {
      shapeOfOut("dtout", cotangents.tout, op),
      shapeOfOut("out", results.out, op), shapeOfLse("lse", results.lse, op),
      shapeOfOut("tout", results.tout, op),
      shapeOfLse("tlse", results.tlse, op)};
  if (cotangents.tlse)
    inputs.push_back(shapeOfLse("dtlse", cotangents.tlse, op));
  if (cotangents.out)
    inputs.push_back(shapeOfOut("dout", cotangents.out, op));
  if (cotangents.lse)
    inputs.push_back(shapeOfLse("dlse", cotangents.lse, op));
  llvm::append_range(inputs, getJVPInputs(op));
  return inputs;
}

SmallVector<ShapedByInputs>
varlen::detail::getJVPResults(AttentionOpInterface op) {
  return {shapeOfOut("out", getResult(op, 0), op),
          shapeOfLse("lse", getResult(op, 1), op),
          shapeOfOut("tout", getResult(op, 2), op),
          shapeOfLse("tlse", getResult(op, 3), op)};
}

bool varlen::detail::areCompatibleTypes(TypeRange l, TypeRange r) {
  return l.size() == r.size() &&
         llvm::all_of(llvm::zip_equal(l, r), [](auto types) {
           auto [a, b] = types;
           return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
                  succeeded(verifyCompatibleShape(a, b));
         });
}

SmallVector<OpFoldResult>
varlen::detail::reifyShape(OpBuilder &builder, Value result,
                           ArrayRef<ExtentOf> sources) {
  Location loc = result.getLoc();
  SmallVector<OpFoldResult> shape;
  for (const auto &[extent, from] :
       llvm::zip_equal(shaped(result).getShape(), sources))
    if (ShapedType::isStatic(extent))
      shape.push_back(builder.getIndexAttr(extent));
    else
      shape.push_back(getValueOrCreateConstantIndexOp(
          builder, loc,
          tensor::getMixedSize(builder, loc, from.source.value, from.dim)));
  return shape;
}

LogicalResult varlen::detail::reifyShapes(AttentionOpInterface op,
                                          OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  if (op.isBufferized())
    return failure();
  for (const ShapedByInputs &result : op.getShapedResults())
    shapes.push_back(reifyShape(builder, result.value, result.extents));
  return success();
}

LogicalResult
varlen::detail::reifyDestinations(DestinationStyleOpInterface op,
                                  OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  for (auto [result, init] :
       llvm::zip_equal(op->getResults(), op.getDpsInits())) {
    NamedValue source{"", init};
    shapes.push_back(reifyShape(builder, result, {{source, 0}, {source, 1}}));
  }
  return success();
}

FailureOr<SmallVector<Value>>
varlen::getOrCreateDestinations(AttentionOpInterface op, OpBuilder &b) {
  SmallVector<Value> destinations = op.getDestinations();
  ReifiedRankedShapedTypeDims shapes;
  if (!destinations.empty())
    return destinations;
  if (failed(detail::reifyShapes(op, b, shapes)))
    return op->emitOpError("expected tensors, got memrefs");
  for (auto [shape, result] : llvm::zip_equal(shapes, op->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    destinations.push_back(tensor::EmptyOp::create(
        b, op.getLoc(), shape, type.getElementType(), type.getEncoding()));
  }
  return destinations;
}

void varlen::detail::setResultNames(AttentionOpInterface op,
                                    OpAsmSetValueNameFn setName) {
  if (op.isBufferized())
    return;
  // An op that does not verify may have fewer results.
  for (const ShapedByInputs &result : op.getShapedResults())
    if (result.value)
      setName(result.value, result.name);
}

void varlen::detail::getBufferEffects(
    AttentionOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> written = op.getDestinations();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (llvm::is_contained(written, operand.get()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

Speculation::Speculatability
varlen::detail::getSpeculatability(AttentionOpInterface op) {
  return op.isBufferized() ? Speculation::NotSpeculatable
                           : Speculation::Speculatable;
}
