//===- QueryOps.cpp - Queries of a tile on a CPU --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// KeyLimitsOp
//===----------------------------------------------------------------------===//

LogicalResult KeyLimitsOp::verify() {
  MemRefType lo = getLo().getType(), hi = getHi().getType();
  if (lo.isDynamicDim(1))
    return emitOpError("expected memory of a static number of columns, got ")
           << lo;
  if (lo.getDimSize(1) != hi.getDimSize(1))
    return emitOpError("expected lo and hi of as many columns, got ")
           << lo << " and " << hi;
  return success();
}

//===----------------------------------------------------------------------===//
// ForQueriesOp
//===----------------------------------------------------------------------===//

void ForQueriesOp::build(OpBuilder &builder, OperationState &state,
                         Orientation orientation, Value row, Value head,
                         Value first, Value group, Value valid,
                         ValueRange inputs, TypeRange tiles,
                         ArrayRef<QueryValues> outputs) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands({row, head, first, group, valid});
  state.addOperands(inputs);
  SmallVector<Attribute> places;
  for (const QueryValues &output : outputs) {
    state.addOperands(output.memref);
    places.push_back(QueryMemoryAttr::get(builder.getContext(), output.place));
  }
  auto &properties = state.getOrAddProperties<Properties>();
  properties.orientation =
      OrientationAttr::get(builder.getContext(), orientation);
  properties.places = builder.getArrayAttr(places);
  llvm::copy(ArrayRef<int32_t>{1, 1, 1, 1, 1,
                               static_cast<int32_t>(inputs.size()),
                               static_cast<int32_t>(outputs.size())},
             properties.operandSegmentSizes.begin());
  builder.createBlock(state.addRegion(), {}, tiles,
                      SmallVector<Location>(tiles.size(), state.location));
}

SmallVector<QueryValues> ForQueriesOp::getQueryValues() {
  SmallVector<QueryValues> values;
  for (auto [memory, place] :
       llvm::zip_equal(getOutputs(), getPlaces().getAsRange<QueryMemoryAttr>()))
    values.push_back({place.getValue(), memory});
  return values;
}

unsigned ForQueriesOp::getQueriesDim(Value tile) {
  if (auto computed = tile.getDefiningOp<QueryTileOpInterface>())
    return computed.getQueriesDim(tile);
  if (isa<BlockArgument>(tile))
    for (Operation *user : tile.getUsers())
      if (auto computed = dyn_cast<QueryTileOpInterface>(user))
        return computed.getQueriesDim(tile);
  return varlen::getQueriesDim(getOrientation());
}

int64_t ForQueriesOp::getPerQuery(Value tile) {
  return cast<RankedTensorType>(tile.getType())
      .getDimSize(1 - getQueriesDim(tile));
}

/// That memory has the values of `tile`, a value of the body.
static LogicalResult verifyMemory(ForQueriesOp op, const QueryValues &values,
                                  Value tile) {
  auto type = cast<MemRefType>(values.memref.getType());
  auto of = dyn_cast<RankedTensorType>(tile.getType());
  if (!of || of.getRank() != 2 || !isa<FloatType>(of.getElementType()))
    return op.emitOpError("expected tiles of rank 2 of floats, got ")
           << tile.getType();
  int64_t perQuery = op.getPerQuery(tile);
  auto error = [&](StringRef wanted) {
    return op.emitOpError("expected ")
           << wanted << " for " << perQuery << " values of each query, of "
           << of << ", got " << type << " as "
           << stringifyQueryMemory(values.place);
  };
  if (ShapedType::isDynamic(perQuery))
    return op.emitOpError("expected a static number of values of each query, "
                          "got ")
           << of;
  int64_t rank = type.getRank();
  switch (values.place) {
  case QueryMemory::Scratch: {
    if (rank != 2 || type.getElementType() != of.getElementType())
      return error("memory of rank 2 and of the type of the tile");
    if (op.getOrientation() == Orientation::QK)
      return type.getDimSize(1) == perQuery
                 ? success()
                 : LogicalResult(error("a column for each value"));
    if (type.isDynamicDim(1) ||
        (!type.isDynamicDim(0) && type.getDimSize(0) % perQuery != 0))
      return error("panels of a row for each value and a static number of "
                   "columns");
    return success();
  }
  case QueryMemory::Rows:
    if (rank != 3 || type.getDimSize(2) != perQuery ||
        op.getQueriesDim(tile) != 0)
      return error("memory of T x H x D, and queries as rows of the tile,");
    break;
  case QueryMemory::Numbers:
    if (perQuery != 1 || rank == 3)
      return error("memory of H x T or H, and one number,");
    break;
  }
  if (type.getElementTypeBitWidth() > of.getElementTypeBitWidth())
    return error("a type that is no wider than that of the tile");
  return success();
}

LogicalResult ForQueriesOp::verify() {
  Block *body = getBody();
  if (body->getNumArguments() != getInputs().size())
    return emitOpError("expected an argument of the body for each of the ")
           << getInputs().size() << " inputs, got " << body->getNumArguments();
  if (!isa<YieldOp>(body->back()))
    return emitOpError("expected a body that ends with varlen.yield");
  if (getOutputs().empty() || getPlaces().size() != getOutputs().size())
    return emitOpError("expected outputs, and a place for each, got ")
           << getOutputs().size() << " outputs and " << getPlaces().size()
           << " places";
  if (getYielded().size() != getOutputs().size())
    return emitOpError("expected to yield a tile for each of the ")
           << getOutputs().size() << " outputs, got " << getYielded().size();
  for (Operation &op : body->without_terminator()) {
    if (!isa<QueryTileOpInterface, StateInitOpInterface>(op))
      return op.emitOpError("expected an operation on each query by itself, as "
                            "varlen.online_finish, or the beginning of a "
                            "state, as varlen.online_init");
    if (isa<StateInitOpInterface>(op))
      for (OpOperand &use : op.getUses())
        if (!isa<YieldOp>(use.getOwner()) ||
            use.getOperandNumber() >= getPlaces().size() ||
            cast<QueryMemoryAttr>(getPlaces()[use.getOperandNumber()])
                    .getValue() != QueryMemory::Scratch)
          return op.emitOpError("expected the beginning of a state to be "
                                "yielded to scratch, and nothing else");
  }
  for (auto [memory, tile] : llvm::zip_equal(getInputs(), body->getArguments()))
    if (failed(verifyMemory(*this, {QueryMemory::Scratch, memory}, tile)))
      return failure();
  for (auto [values, tile] : llvm::zip_equal(getQueryValues(), getYielded())) {
    if (tile.getParentBlock() != body)
      return emitOpError("expected to yield tiles of the body, got ")
             << tile.getType() << " from outside of it";
    if (failed(verifyMemory(*this, values, tile)))
      return failure();
  }
  return success();
}
