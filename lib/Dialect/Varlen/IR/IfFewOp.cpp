//===- IfFewOp.cpp - Two forms of the body of a tile loop -----------------===//
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

void IfFewOp::build(OpBuilder &builder, OperationState &state, Value tile,
                    TileType few) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(tile);
  for (ArrayRef<Type> arguments : {ArrayRef<Type>(few), ArrayRef<Type>()}) {
    Region *region = state.addRegion();
    builder.createBlock(
        region, {}, arguments,
        SmallVector<Location>(arguments.size(), state.location));
    ensureTerminator(*region, builder, state.location);
  }
}

void IfFewOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  if (&region == &getFew())
    setName(getFewTile(), "f");
}

ParseResult IfFewOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument few;
  OpAsmParser::UnresolvedOperand tile;
  Type type;
  Region *fewBody = result.addRegion(), *manyBody = result.addRegion();
  if (parser.parseArgument(few) || parser.parseKeyword("of") ||
      parser.parseOperand(tile) || parser.parseColonType(few.type) ||
      parser.parseKeyword("of") || parser.parseType(type) ||
      parser.resolveOperand(tile, type, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*fewBody, few) || parser.parseKeyword("else") ||
      parser.parseRegion(*manyBody))
    return failure();
  for (Region *region : {fewBody, manyBody})
    ensureTerminator(*region, parser.getBuilder(), result.location);
  return success();
}

void IfFewOp::print(OpAsmPrinter &p) {
  p << ' ' << getFewTile() << " of " << getTile() << " : " << getFewType()
    << " of " << getTile().getType();
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  p << ' ';
  p.printRegion(getFew(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
  p << " else ";
  p.printRegion(getMany(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
}

LogicalResult IfFewOp::verify() {
  auto tiles = dyn_cast<ForTilesOp>((*this)->getParentOp());
  if (!tiles || getTile() != tiles.getTile())
    return emitOpError("expected the tile of the varlen.for_tiles around it");
  TileType type = tiles.getTileType();
  if (type.getAxis() != Axis::Queries)
    return emitOpError("expected a tile of queries, got ") << type;
  if (getManyBody()->getNumArguments() != 0)
    return emitOpError("expected no argument of the second region, got ")
           << getManyBody()->getNumArguments();
  Block *few = getFewBody();
  auto fewType = few->getNumArguments() == 1
                     ? dyn_cast<TileType>(few->getArgument(0).getType())
                     : TileType();
  if (!fewType || fewType.getAxis() != Axis::Queries || fewType.getByHead() ||
      fewType.getSize() > type.getSize())
    return emitOpError("expected the first region to have one argument, a tile "
                       "of at most ")
           << type.getSize() << " queries, got (" << few->getArgumentTypes()
           << ')';
  for (Block *body : {few, getManyBody()})
    if (unsigned count = body->getTerminator()->getNumOperands())
      return emitOpError("expected to yield nothing, got ")
             << count << " values";
  for (Operation &op : *tiles.getBody())
    if (&op != getOperation() && !isa<YieldOp>(op) &&
        !op.hasTrait<OpTrait::ConstantLike>())
      return op.emitOpError("expected to be in a region of the varlen.if_few "
                            "that the loop over tiles has");
  return success();
}
