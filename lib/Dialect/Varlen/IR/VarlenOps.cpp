//===- VarlenOps.cpp - Operations of the varlen dialect -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "Batch.h"
#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Directives of assembly formats
//===----------------------------------------------------------------------===//

/// "(inf, 0.0)": what an array attribute prints of an infinity it cannot parse.
static ParseResult parseNumbers(OpAsmParser &parser,
                                DenseF64ArrayAttr &numbers) {
  SmallVector<double> values;
  auto parseNumber = [&]() -> ParseResult {
    bool isNegative = succeeded(parser.parseOptionalMinus());
    double value = std::numeric_limits<double>::infinity();
    if (failed(parser.parseOptionalKeyword("inf")) && parser.parseFloat(value))
      return failure();
    values.push_back(isNegative ? -value : value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseNumber))
    return failure();
  numbers = DenseF64ArrayAttr::get(parser.getContext(), values);
  return success();
}

static void printNumbers(OpAsmPrinter &p, Operation *,
                         DenseF64ArrayAttr numbers) {
  p << '(';
  llvm::interleaveComma(numbers.asArrayRef(), p, [&](double value) {
    if (std::isinf(value))
      p << (value < 0 ? "-inf" : "inf");
    else
      p.printFloat(APFloat(value));
  });
  p << ')';
}

/// "<causal>", which is short for "#varlen.mask<causal>", or another mask in
/// parentheses: a colon behind an attribute would be taken for its type's.
static ParseResult parseMask(OpAsmParser &parser, MaskAttrInterface &mask) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalLParen())) {
    MaskAttr window;
    if (parser.parseCustomAttributeWithFallback(window))
      return failure();
    mask = window;
    return success();
  }
  Attribute attr;
  if (parser.parseAttribute(attr) || parser.parseRParen())
    return failure();
  mask = dyn_cast<MaskAttrInterface>(attr);
  if (!mask)
    return parser.emitError(loc, "expected a mask, got ") << attr;
  return success();
}

static void printMask(OpAsmPrinter &p, Operation *, MaskAttrInterface mask) {
  if (auto window = dyn_cast<MaskAttr>(mask))
    p.printStrippedAttrOrType(window);
  else
    p << '(' << mask << ')';
}

/// "score (%s: f32, %query: i32, %key: i32, ...) { ... }", or nothing.
static ParseResult
parseScore(OpAsmParser &parser,
           SmallVectorImpl<std::unique_ptr<Region>> &regions) {
  if (failed(parser.parseOptionalKeyword("score")))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  auto region = std::make_unique<Region>();
  if (parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(*region, arguments, /*enableNameShadowing=*/true))
    return failure();
  regions.push_back(std::move(region));
  return success();
}

static void printScore(OpAsmPrinter &p, Operation *, RegionRange regions) {
  for (Region *region : regions) {
    p << " score (";
    llvm::interleaveComma(region->getArguments(), p, [&](BlockArgument arg) {
      p.printRegionArgument(arg);
    });
    p << ") ";
    p.printRegion(*region, /*printEntryBlockArgs=*/false);
  }
}

/// "%rows as rows, %columns as columns".
static ParseResult
parseTileCopies(OpAsmParser &parser,
                SmallVectorImpl<OpAsmParser::UnresolvedOperand> &copies,
                ArrayAttr &orders) {
  SmallVector<Attribute> parsed;
  auto parseCopy = [&]() -> ParseResult {
    FailureOr<TileOrder> order = failure();
    if (parser.parseOperand(copies.emplace_back()) ||
        parser.parseKeyword("as") ||
        failed(order = FieldParser<TileOrder>::parse(parser)))
      return failure();
    parsed.push_back(TileOrderAttr::get(parser.getContext(), *order));
    return success();
  };
  if (parser.parseCommaSeparatedList(parseCopy))
    return failure();
  orders = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printTileCopies(OpAsmPrinter &p, Operation *, OperandRange copies,
                            ArrayAttr orders) {
  llvm::interleaveComma(
      llvm::zip_equal(copies, orders.getAsRange<TileOrderAttr>()), p,
      [&](auto copy) {
        auto [memref, order] = copy;
        p << memref << " as " << stringifyTileOrder(order.getValue());
      });
}

/// "%out as rows, %lse as numbers".
static ParseResult
parseQueryValues(OpAsmParser &parser,
                 SmallVectorImpl<OpAsmParser::UnresolvedOperand> &memory,
                 ArrayAttr &places) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<QueryMemory> place = failure();
    if (parser.parseOperand(memory.emplace_back()) ||
        parser.parseKeyword("as") ||
        failed(place = FieldParser<QueryMemory>::parse(parser)))
      return failure();
    parsed.push_back(QueryMemoryAttr::get(parser.getContext(), *place));
    return success();
  };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  places = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printQueryValues(OpAsmPrinter &p, Operation *, OperandRange memory,
                             ArrayAttr places) {
  llvm::interleaveComma(
      llvm::zip_equal(memory, places.getAsRange<QueryMemoryAttr>()), p,
      [&](auto values) {
        auto [memref, place] = values;
        p << memref << " as " << stringifyQueryMemory(place.getValue());
      });
}

#define GET_OP_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenOps.cpp.inc"

//===----------------------------------------------------------------------===//
// AttnOp
//===----------------------------------------------------------------------===//

void AttnOp::build(OpBuilder &builder, OperationState &state, Value q, Value k,
                   Value v, Value cuQ, Value cuK, const AttnOptions &options) {
  build(builder, state, q, k, v, cuQ, cuK, /*out=*/Value(), /*lse=*/Value(),
        options);
}

void AttnOp::build(OpBuilder &builder, OperationState &state, Value q, Value k,
                   Value v, Value cuQ, Value cuK, Value out, Value lse,
                   const AttnOptions &options) {
  MaskAttrInterface mask = options.mask;
  if (!mask)
    mask = MaskAttr::get(builder.getContext(), -1, -1, Alignment::BottomRight);
  build(builder, state, q, k, v, cuQ, cuK, options.sequsedQ, options.sequsedK,
        options.qOffset, options.sink, out, lse, /*captures=*/ValueRange(),
        options.blockTable, options.kScale, options.vScale, mask, options.scale,
        /*scoreCount=*/0);
}

LogicalResult AttnOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       AttnOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  // Into buffers: no results.
  if (isa<BaseMemRefType>(adaptor.getQ().getType()))
    return success();
  ShapedType q = shaped(adaptor.getQ());
  types.push_back(inferOutType(q, shaped(adaptor.getV())));
  types.push_back(inferLseType(q));
  return success();
}

bool AttnOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<Value> AttnOp::getDestinations() {
  SmallVector<Value> buffers;
  for (Value buffer : {Value(getOutBuffer()), Value(getLseBuffer())})
    if (buffer)
      buffers.push_back(buffer);
  return buffers;
}

//===----------------------------------------------------------------------===//
// AttnIntoOp
//===----------------------------------------------------------------------===//

MutableOperandRange AttnIntoOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getOutInitMutable().getOperandNumber(), 2);
}

SmallVector<Value> AttnIntoOp::getDestinations() {
  return SmallVector<Value>(getDpsInits());
}

//===----------------------------------------------------------------------===//
// AttnGradOp
//===----------------------------------------------------------------------===//

void AttnGradOp::build(OpBuilder &builder, OperationState &state,
                       AttentionOpInterface attn, Value dout, Value dlse,
                       ArrayRef<int64_t> wrtCaptures) {
  assert(!attn.isBufferized() && "buffers have no gradients");
  SmallVector<Type> types = inferGradientTypes(
      shaped(attn.getQ()), shaped(attn.getK()), shaped(attn.getV()),
      attn.getSink() != Value(), attn.getCaptures(), wrtCaptures);
  build(builder, state, types, dout, attn.getQ(), attn.getK(), attn.getV(),
        attn->getResult(0), attn->getResult(1), attn.getCuQ(), attn.getCuK(),
        dlse, attn.getSequsedQ(), attn.getSequsedK(), attn.getQOffset(),
        attn.getSink(), /*gradient_buffers=*/ValueRange(), attn.getCaptures(),
        attn.getMask(), attn.getScaleAttr(),
        wrtCaptures.empty() ? DenseI64ArrayAttr()
                            : builder.getDenseI64ArrayAttr(wrtCaptures),
        /*scoreCount=*/0);
  varlen::detail::cloneScore(attn, state);
}

template <typename Adaptor>
static LogicalResult inferGradients(Adaptor adaptor,
                                    SmallVectorImpl<Type> &types) {
  // Into buffers: no results.
  if (isa<BaseMemRefType>(adaptor.getQ().getType()))
    return success();
  llvm::append_range(
      types,
      inferGradientTypes(shaped(adaptor.getQ()), shaped(adaptor.getK()),
                         shaped(adaptor.getV()), adaptor.getSink() != Value(),
                         adaptor.getCaptures(), adaptor.getWrtCaptures()));
  return success();
}

LogicalResult AttnGradOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>,
                                           AttnGradOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  return inferGradients(adaptor, types);
}

bool AttnGradOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<Value> AttnGradOp::getDestinations() {
  return SmallVector<Value>(getGradientBuffers());
}

//===----------------------------------------------------------------------===//
// AttnGradIntoOp
//===----------------------------------------------------------------------===//

MutableOperandRange AttnGradIntoOp::getDpsInitsMutable() {
  return getGradientInitsMutable();
}

SmallVector<Value> AttnGradIntoOp::getDestinations() {
  return SmallVector<Value>(getGradientInits());
}

//===----------------------------------------------------------------------===//
// AttnJVPOp
//===----------------------------------------------------------------------===//

void AttnJVPOp::build(OpBuilder &builder, OperationState &state,
                      AttentionOpInterface attn, Value tq, Value tk, Value tv,
                      Value tsink, ValueRange tcaptures,
                      ArrayRef<int64_t> wrtCaptures) {
  assert(!attn.isBufferized() && "buffers have no tangents");
  OutAndLse like = getOutAndLse(attn);
  Type out = like.out.getType(), lse = like.lse.getType();
  SmallVector<Type> types = {out, lse, out, lse};
  build(builder, state, types, attn.getQ(), attn.getK(), attn.getV(), tq, tk,
        tv, attn.getCuQ(), attn.getCuK(), attn.getSequsedQ(),
        attn.getSequsedK(), attn.getQOffset(), attn.getSink(), tsink, tcaptures,
        /*out_buffer=*/Value(), /*lse_buffer=*/Value(), /*tout_buffer=*/Value(),
        /*tlse_buffer=*/Value(), attn.getCaptures(), attn.getMask(),
        attn.getScaleAttr(),
        wrtCaptures.empty() ? DenseI64ArrayAttr()
                            : builder.getDenseI64ArrayAttr(wrtCaptures),
        /*scoreCount=*/0);
  varlen::detail::cloneScore(attn, state);
}

LogicalResult AttnJVPOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          AttnJVPOp::Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  // Into buffers: no results.
  if (isa<BaseMemRefType>(adaptor.getQ().getType()))
    return success();
  ShapedType q = shaped(adaptor.getQ());
  for (int i = 0; i < 2; ++i) {
    types.push_back(inferOutType(q, shaped(adaptor.getV())));
    types.push_back(inferLseType(q));
  }
  return success();
}

bool AttnJVPOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<Value> AttnJVPOp::getDestinations() {
  SmallVector<Value> buffers = {getOutBuffer(), getLseBuffer(), getToutBuffer(),
                                getTlseBuffer()};
  llvm::erase(buffers, Value());
  return buffers;
}

//===----------------------------------------------------------------------===//
// AttnJVPIntoOp
//===----------------------------------------------------------------------===//

MutableOperandRange AttnJVPIntoOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getOutInitMutable().getOperandNumber(), 4);
}

SmallVector<Value> AttnJVPIntoOp::getDestinations() {
  return SmallVector<Value>(getDpsInits());
}

//===----------------------------------------------------------------------===//
// AttnJVPGradOp
//===----------------------------------------------------------------------===//

void AttnJVPGradOp::build(OpBuilder &builder, OperationState &state,
                          AttentionOpInterface jvp, Value dtout, Value dtlse,
                          Value dout, Value dlse, ValueRange tcaptures,
                          ArrayRef<int64_t> wrtCaptures) {
  assert(jvp.isTangent() && !jvp.isGradient() && !jvp.isBufferized() &&
         "expected a varlen.attn_jvp on tensors");
  AttnTangents tangents = jvp.getTangents();
  SmallVector<Type> types = inferGradientTypes(
      shaped(jvp.getQ()), shaped(jvp.getK()), shaped(jvp.getV()),
      jvp.getSink() != Value(), jvp.getCaptures(), wrtCaptures);
  build(builder, state, types, dtout, jvp.getQ(), jvp.getK(), jvp.getV(),
        tangents.q, tangents.k, tangents.v, jvp->getResult(0),
        jvp->getResult(1), jvp->getResult(2), jvp->getResult(3), jvp.getCuQ(),
        jvp.getCuK(), dtlse, dout, dlse, jvp.getSequsedQ(), jvp.getSequsedK(),
        jvp.getQOffset(), jvp.getSink(), tangents.sink, tcaptures,
        /*gradient_buffers=*/ValueRange(), jvp.getCaptures(), jvp.getMask(),
        jvp.getScaleAttr(),
        wrtCaptures.empty() ? DenseI64ArrayAttr()
                            : builder.getDenseI64ArrayAttr(wrtCaptures),
        /*scoreCount=*/0);
  varlen::detail::cloneScore(jvp, state);
}

LogicalResult AttnJVPGradOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>,
                                              AttnJVPGradOp::Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  return inferGradients(adaptor, types);
}

bool AttnJVPGradOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<Value> AttnJVPGradOp::getDestinations() {
  return SmallVector<Value>(getGradientBuffers());
}

//===----------------------------------------------------------------------===//
// AttnJVPGradIntoOp
//===----------------------------------------------------------------------===//

MutableOperandRange AttnJVPGradIntoOp::getDpsInitsMutable() {
  return getGradientInitsMutable();
}

SmallVector<Value> AttnJVPGradIntoOp::getDestinations() {
  return SmallVector<Value>(getGradientInits());
}

//===----------------------------------------------------------------------===//
// WorkTilesOp
//===----------------------------------------------------------------------===//

LogicalResult WorkTilesOp::verify() {
  if (failed(verifyBatch(*this)))
    return failure();
  if (static_cast<int64_t>(getBlockM()) < 1)
    return emitOpError("expected a positive block_m, got ")
           << static_cast<int64_t>(getBlockM());
  int64_t columns = getTiles().getType().getDimSize(1);
  if (failed(verifyCompatibleShape(columns, NumColumns)))
    return emitOpError("expected a list of ")
           << static_cast<int64_t>(NumColumns) << " columns, got "
           << getTiles().getType();
  return success();
}

void WorkTilesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getTiles(), "tiles");
}

//===----------------------------------------------------------------------===//
// SplitTilesOp
//===----------------------------------------------------------------------===//

LogicalResult SplitTilesOp::verify() {
  auto verifyColumns = [&](MemRefType type, int64_t wanted,
                           StringRef name) -> LogicalResult {
    if (succeeded(verifyCompatibleShape(type.getDimSize(1), wanted)))
      return success();
    return emitOpError("expected ")
           << name << " of " << wanted << " columns, got " << type;
  };
  if (failed(verifyColumns(getTiles().getType(), WorkTilesOp::NumColumns,
                           "tiles")) ||
      failed(verifyColumns(getItems().getType(), NumColumns, "items")))
    return failure();
  if (int64_t few = getFew(); few < 0)
    return emitOpError("expected few to be 0 or more, got ") << few;
  for (auto [name, value] : {std::pair("kv_block", getKvBlockAttr()),
                             std::pair("blocks", getBlocksAttr()),
                             std::pair("few_blocks", getFewBlocksAttr())})
    if (value && value.getInt() < 1)
      return emitOpError("expected a positive ")
             << name << ", got " << value.getInt();
  if (bool(getBlocksAttr()) != bool(getFewBlocksAttr()))
    return emitOpError("expected both blocks and few_blocks, or none");
  return success();
}

void SplitTilesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getItems(), "items");
  setName(getFirstMerge(), "first_merge");
  setName(getSlots(), "slots");
  setName(getFewSlots(), "few_slots");
}
