//===- ForPartsOp.cpp - Blocks of a tile in parts -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::varlen;

ForBlocksOp ForPartsOp::getLoop() {
  auto loops = getBody()->getOps<ForBlocksOp>();
  return llvm::hasSingleElement(loops) ? *loops.begin() : ForBlocksOp();
}

Operation *ForPartsOp::getMergeOp() {
  Block *body = getMergeBody();
  Operation &merge = body->front();
  bool isOnly = llvm::hasNItems(*body, 2) &&
                merge.getOperands() == ValueRange(body->getArguments()) &&
                body->getTerminator()->getOperands() == merge.getResults();
  return isOnly ? &merge : nullptr;
}

void ForPartsOp::build(OpBuilder &builder, OperationState &state, Value tile,
                       PartSizes sizes, TypeRange states) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(tile);
  state.addTypes(states);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.blocks = builder.getI64IntegerAttr(sizes.blocks);
  properties.few = builder.getI64IntegerAttr(sizes.few);
  builder.createBlock(state.addRegion(), {}, {tile.getType()},
                      {state.location});
  SmallVector<Type> both(states);
  llvm::append_range(both, states);
  builder.createBlock(state.addRegion(), {}, both,
                      SmallVector<Location>(both.size(), state.location));
}

void ForPartsOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  if (&region == &getRegion())
    setName(getPart(), "p");
}

ParseResult ForPartsOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument part;
  OpAsmParser::UnresolvedOperand tile;
  auto &properties = result.getOrAddProperties<Properties>();
  Type i64 = parser.getBuilder().getI64Type();
  auto parseBlocks = [&](StringRef keyword,
                         IntegerAttr &blocks) -> ParseResult {
    return failure(parser.parseKeyword(keyword) || parser.parseLParen() ||
                   parser.parseAttribute(blocks, i64) || parser.parseRParen());
  };
  Region *body = result.addRegion(), *merge = result.addRegion();
  if (parser.parseArgument(part) || parser.parseKeyword("of") ||
      parser.parseOperand(tile) || parseBlocks("blocks", properties.blocks) ||
      parseBlocks("few", properties.few) || parser.parseColonType(part.type) ||
      parser.resolveOperand(tile, part.type, result.operands) ||
      parser.parseArrowTypeList(result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, part))
    return failure();
  SmallVector<OpAsmParser::Argument> states, more;
  auto parseStates =
      [&](SmallVectorImpl<OpAsmParser::Argument> &arguments) -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseArgumentList(arguments))
      return failure();
    if (arguments.size() != result.types.size())
      return parser.emitError(loc, "expected a value for each of the ")
             << result.types.size() << " results, got " << arguments.size();
    for (auto [argument, type] : llvm::zip_equal(arguments, result.types))
      argument.type = type;
    return success();
  };
  if (parser.parseKeyword("merge") || parser.parseLParen() ||
      parseStates(states) || parser.parseKeyword("with") || parseStates(more) ||
      parser.parseRParen())
    return failure();
  llvm::append_range(states, more);
  return parser.parseRegion(*merge, states);
}

void ForPartsOp::print(OpAsmPrinter &p) {
  p << ' ' << getPart() << " of " << getTile() << " blocks(" << getBlocks()
    << ") few(" << getFew() << ") : " << getTile().getType();
  p.printArrowTypeList(getResultTypes());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {getBlocksAttrName(), getFewAttrName()});
  p << ' ';
  p.printRegion(getRegion(), /*printEntryBlockArgs=*/false);
  ValueRange states = getMergeBody()->getArguments();
  p << " merge(" << states.take_front(getNumResults()) << " with "
    << states.drop_front(getNumResults()) << ") ";
  p.printRegion(getMerge(), /*printEntryBlockArgs=*/false);
}

LogicalResult ForPartsOp::verify() {
  TypeRange states = getResultTypes();
  if (states.empty())
    return emitOpError("expected a state, got no results");
  Axis axis = getTile().getType().getAxis();
  if (axis != Axis::Queries && axis != Axis::Keys)
    return emitOpError("expected a tile of queries or keys, got ")
           << getTile().getType();
  if (getBody()->getArgumentTypes() != TypeRange(getTile().getType()))
    return emitOpError("expected the body to have one argument, a ")
           << getTile().getType();
  SmallVector<Type> both(states);
  llvm::append_range(both, states);
  if (getMergeBody()->getArgumentTypes() != TypeRange(both))
    return emitOpError("expected 'merge' to have two states as arguments, of (")
           << states << "), got (" << getMergeBody()->getArgumentTypes() << ')';
  if (TypeRange types = getMergeBody()->getTerminator()->getOperandTypes();
      types != states)
    return emitOpError("expected 'merge' to yield a state of (")
           << states << "), got (" << types << ')';
  ForBlocksOp loop = getLoop();
  if (!loop || loop.getTile() != getPart())
    return emitOpError("expected one varlen.for_blocks in the body, over the "
                       "blocks of the part");
  if (getBody()->getTerminator()->getOperands() != loop.getResults() ||
      loop.getResultTypes() != states)
    return emitOpError("expected the results of the varlen.for_blocks to be "
                       "the state of a part, of (")
           << states << ')';
  return success();
}
