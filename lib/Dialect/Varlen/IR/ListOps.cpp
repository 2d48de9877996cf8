//===- ListOps.cpp - Lists of tiles on a GPU ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// ListTilesOp
//===----------------------------------------------------------------------===//

BatchOp ListTilesOp::getBatchOp() {
  return getBatch().getDefiningOp<BatchOp>();
}

std::optional<KeyParts> ListTilesOp::getKeyParts() {
  if (!getPartKeys() || !getPartPairs())
    return std::nullopt;
  return KeyParts{static_cast<int64_t>(*getPartKeys()),
                  static_cast<int64_t>(*getPartPairs())};
}

void ListTilesOp::build(OpBuilder &builder, OperationState &state,
                        TileType tile, Value batch, int64_t loops,
                        std::optional<KeyParts> parts, Value checked) {
  Type i32 = builder.getI32Type();
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.tile = TypeAttr::get(tile);
  properties.loops = builder.getI64IntegerAttr(loops);
  state.addOperands(batch);
  if (checked)
    state.addOperands(checked);
  state.addTypes({MemRefType::get({ShapedType::kDynamic, 2}, i32),
                  MemRefType::get({1 + loops}, builder.getI64Type())});
  if (parts) {
    properties.part_keys = builder.getI64IntegerAttr(parts->keys);
    properties.part_pairs = builder.getI64IntegerAttr(parts->pairs);
    state.addTypes(MemRefType::get({ShapedType::kDynamic}, i32));
  }
  state.addRegion();
}

LogicalResult ListTilesOp::verify() {
  auto tile = cast<TileType>(getTile());
  Axis axis = tile.getAxis();
  if (axis != Axis::Queries && axis != Axis::Keys)
    return emitOpError("expected tiles of queries or keys, got ") << tile;
  auto list = MemRefType::get({ShapedType::kDynamic, 2},
                              IntegerType::get(getContext(), 32));
  if (getList().getType() != list)
    return emitOpError("expected a list of type ")
           << list << ", got " << getList().getType();
  int64_t numbers = 1 + static_cast<int64_t>(getLoops());
  if (getCount().getType().getDimSize(0) != numbers)
    return emitOpError("expected a count of ")
           << numbers << " numbers, one for each loop and one more, got "
           << getCount().getType();
  if (getPartKeys().has_value() != getPartPairs().has_value())
    return emitOpError("expected part_keys and part_pairs, or none of the two");
  if (getPartKeys().has_value() != static_cast<bool>(getFirstParts()))
    return emitOpError("expected first_parts where keys are in parts, and only "
                       "there");
  if (getPartKeys() && axis != Axis::Queries)
    return emitOpError("expected parts of tiles of queries, got ") << tile;
  if (getLastFirst() && (axis != Axis::Keys || !getWeights().empty()))
    return emitOpError("expected last_first of tiles of keys without weights, "
                       "got ")
           << tile;
  if (getWeights().empty())
    return getByHead() ? emitOpError("expected weights with by_head")
                       : success();
  if (getPartKeys())
    return emitOpError("expected no weights of tiles in parts, which are of "
                       "one length");
  Block &body = getWeights().front();
  if (body.getNumArguments() != 3 ||
      !llvm::all_of(body.getArgumentTypes(), llvm::IsaPred<IndexType>))
    return emitOpError("expected weights of a sequence, a tile and a kv head, "
                       "three index arguments");
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getNumOperands() != 1 ||
      !yield.getOperand(0).getType().isInteger(32))
    return emitOpError("expected weights to yield an i32");
  return success();
}

void ListTilesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getList(), "list");
  setName(getCount(), "count");
  if (getFirstParts())
    setName(getFirstParts(), "first_parts");
}

void ListTilesOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  StringRef names[] = {"sequence", "tile", "kv_head"};
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}

//===----------------------------------------------------------------------===//
// ReadSequenceOp
//===----------------------------------------------------------------------===//

BatchOp ReadSequenceOp::getBatchOp() {
  return getBatch().getDefiningOp<BatchOp>();
}

void ReadSequenceOp::build(OpBuilder &builder, OperationState &state,
                           BatchOp batch, Value sequence) {
  SmallVector<Type> types(batch.getQOffset() ? 7 : 6, builder.getIndexType());
  build(builder, state, types, {batch.getBatch(), sequence});
}

LogicalResult ReadSequenceOp::verify() {
  BatchOp batch = getBatchOp();
  if (batch &&
      static_cast<bool>(batch.getQOffset()) != static_cast<bool>(getOffset()))
    return emitOpError("expected an offset with a q_offset of the batch, and "
                       "only then");
  return success();
}

void ReadSequenceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getQRow(), "q_row");
  setName(getQRows(), "q_rows");
  setName(getQUsed(), "q_used");
  setName(getKRow(), "k_row");
  setName(getKRows(), "k_rows");
  setName(getKUsed(), "k_used");
  if (getOffset())
    setName(getOffset(), "offset");
}
