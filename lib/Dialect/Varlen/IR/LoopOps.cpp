//===- LoopOps.cpp - Tile loops of the varlen dialect ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// TileType, RowsType
//===----------------------------------------------------------------------===//

/// "queries(128) by_head".
static void printTile(raw_ostream &stream, TileType type) {
  stream << stringifyAxis(type.getAxis());
  if (ShapedType::isStatic(type.getSize()))
    stream << '(' << type.getSize() << ')';
  if (type.getByHead())
    stream << " by_head";
}

static FailureOr<TileType> parseTile(AsmParser &parser) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Axis> axis = symbolizeAxis(name);
  if (!axis)
    return parser.emitError(loc, "expected queries, keys, heads or sequences, "
                                 "got ")
           << name;
  int64_t size = ShapedType::kDynamic;
  if (succeeded(parser.parseOptionalLParen()))
    if (parser.parseInteger(size) || parser.parseRParen())
      return failure();
  bool byHead = succeeded(parser.parseOptionalKeyword("by_head"));
  auto type = parser.getChecked<TileType>(loc, parser.getContext(), *axis, size,
                                          byHead);
  if (!type)
    return failure();
  return type;
}

Type TileType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<TileType> type = parseTile(parser);
  if (failed(type) || parser.parseGreater())
    return {};
  return *type;
}

void TileType::print(AsmPrinter &printer) const {
  printer << '<';
  printTile(printer.getStream(), *this);
  printer << '>';
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> error,
                               Axis axis, int64_t size, bool byHead) {
  if (axis == Axis::Heads || axis == Axis::Sequences) {
    if (ShapedType::isStatic(size))
      return error() << "expected no number of rows for " << stringifyAxis(axis)
                     << ", got " << size;
  } else if (size < 1 || size > kMaxTileRows) {
    InFlightDiagnostic diagnostic =
        error() << "expected a number of rows of " << stringifyAxis(axis)
                << " from 1 to " << kMaxTileRows << ", got ";
    if (ShapedType::isDynamic(size))
      return diagnostic << "none";
    return diagnostic << size;
  }
  if (byHead && axis != Axis::Queries)
    return error() << "expected 'by_head' for queries only, got "
                   << stringifyAxis(axis);
  return success();
}

LogicalResult RowsType::verify(function_ref<InFlightDiagnostic()> error,
                               int64_t columns, Type element) {
  if (columns < 1)
    return error() << "expected a positive number of values, got " << columns;
  if (!element.isF32() && !element.isF64())
    return error() << "expected values of f32 or f64, got " << element;
  return success();
}

//===----------------------------------------------------------------------===//
// BatchOp
//===----------------------------------------------------------------------===//

LogicalResult BatchOp::verify() { return verifyBatch(*this); }

void BatchOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBatch(), "batch");
}

//===----------------------------------------------------------------------===//
// ForTilesOp
//===----------------------------------------------------------------------===//

BatchOp ForTilesOp::getBatchOp() { return getBatch().getDefiningOp<BatchOp>(); }

void ForTilesOp::build(OpBuilder &builder, OperationState &state,
                       StringRef name, Value batch, TileType tile) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(batch);
  state.getOrAddProperties<Properties>().name = builder.getStringAttr(name);
  Region *body = state.addRegion();
  builder.createBlock(body, {}, {tile}, {state.location});
  ensureTerminator(*body, builder, state.location);
}

void ForTilesOp::getAsmBlockArgumentNames(Region &,
                                          OpAsmSetValueNameFn setName) {
  setName(getTile(), "t");
}

ParseResult ForTilesOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument tile;
  OpAsmParser::UnresolvedOperand batch;
  StringAttr name;
  if (parser.parseAttribute(name) || parser.parseArgument(tile) ||
      parser.parseKeyword("of"))
    return failure();
  FailureOr<TileType> type = parseTile(parser);
  if (failed(type))
    return failure();
  tile.type = *type;
  result.getOrAddProperties<Properties>().name = name;
  Region *body = result.addRegion();
  if (parser.parseKeyword("in") || parser.parseOperand(batch) ||
      parser.resolveOperand(batch, BatchType::get(parser.getContext()),
                            result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, tile))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ForTilesOp::print(OpAsmPrinter &p) {
  p << ' ' << getNameAttr() << ' ' << getTile() << " of ";
  printTile(p.getStream(), getTileType());
  p << " in " << getBatch();
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getNameAttrName()});
  p << ' ';
  p.printRegion(getRegion(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
}

LogicalResult ForTilesOp::verify() {
  if (getBody()->getNumArguments() != 1 || !isa<TileType>(getTile().getType()))
    return emitOpError("expected the body to have one argument, a tile");
  if (getTileType().getByHead())
    return emitOpError("expected tiles of all heads of a group, got ")
           << getTileType();
  if (getName().empty())
    return emitOpError("expected a name, got none");
  if (unsigned count = getBody()->getTerminator()->getNumOperands())
    return emitOpError("expected to yield nothing, got ") << count << " values";
  return success();
}

//===----------------------------------------------------------------------===//
// ForBlocksOp
//===----------------------------------------------------------------------===//

void ForBlocksOp::build(OpBuilder &builder, OperationState &state, Value tile,
                        TileType block, ValueRange inits) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(tile);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  SmallVector<Type> types = {block};
  llvm::append_range(types, inits.getTypes());
  builder.createBlock(state.addRegion(), {}, types,
                      SmallVector<Location>(types.size(), state.location));
}

void ForBlocksOp::getAsmBlockArgumentNames(Region &,
                                           OpAsmSetValueNameFn setName) {
  setName(getBlock(), "b");
}

ParseResult ForBlocksOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments(1);
  SmallVector<OpAsmParser::UnresolvedOperand> operands(1);
  SmallVector<Type> types(1);
  if (parser.parseArgument(arguments.front()) || parser.parseKeyword("of"))
    return failure();
  FailureOr<TileType> block = parseTile(parser);
  if (failed(block))
    return failure();
  SMLoc relation = parser.getCurrentLocation();
  bool isOwn = succeeded(parser.parseOptionalKeyword("of"));
  if ((!isOwn && parser.parseKeyword("meeting")) ||
      parser.parseOperand(operands.front()) ||
      parser.parseColonType(types.front()))
    return failure();
  auto tile = dyn_cast<TileType>(types.front());
  if (tile && isOwn != (tile.getAxis() == Axis::Sequences))
    return parser.emitError(relation, "expected 'of' sequences and 'meeting' "
                                      "other tiles, got ")
           << tile;
  arguments.front().type = *block;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("iter_args"))) {
    if (parser.parseAssignmentList(arguments, operands) ||
        parser.parseArrowTypeList(result.types))
      return failure();
    if (arguments.size() != result.types.size() + 1)
      return parser.emitError(loc, "expected a type for each of the ")
             << arguments.size() - 1 << " iter_args, got "
             << result.types.size();
    for (auto [argument, type] :
         llvm::zip_equal(llvm::drop_begin(arguments), result.types))
      argument.type = type;
    llvm::append_range(types, result.types);
  }
  Region *body = result.addRegion();
  if (parser.resolveOperands(operands, types, loc, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ForBlocksOp::print(OpAsmPrinter &p) {
  p << ' ' << getBlock() << " of ";
  printTile(p.getStream(), getBlockType());
  p << (isOfOwn() ? " of " : " meeting ") << getTile() << " : "
    << getTile().getType();
  if (!getInits().empty()) {
    p << " iter_args(";
    llvm::interleaveComma(
        llvm::zip_equal(getIterArgs(), getInits()), p, [&](auto pair) {
          p << std::get<0>(pair) << " = " << std::get<1>(pair);
        });
    p << ')';
    p.printArrowTypeList(getResultTypes());
  }
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  p << ' ';
  p.printRegion(getRegion(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/!getInits().empty());
}

StateInitOpInterface ForBlocksOp::getBeginning() {
  if (getInits().empty())
    return {};
  auto init = getInits().front().getDefiningOp<StateInitOpInterface>();
  return init && getInits() == init->getResults() ? init
                                                  : StateInitOpInterface();
}

StepOpInterface ForBlocksOp::getStateStep() {
  if (getYielded().empty())
    return {};
  auto step = getYielded().front().getDefiningOp<StepOpInterface>();
  bool isAlone = step && getYielded() == step->getResults() &&
                 ValueRange(getIterArgs()) == step.getDpsInits();
  return isAlone ? step : StepOpInterface();
}

LogicalResult ForBlocksOp::verify() {
  if (getBody()->getNumArguments() == 0 || !isa<TileType>(getBlock().getType()))
    return emitOpError("expected the first argument of the body to be a tile");
  auto agree = [&](TypeRange types, StringRef name) -> LogicalResult {
    if (types == TypeRange(getInits()))
      return success();
    return emitOpError("expected ")
           << name << " of the types of the inits (" << TypeRange(getInits())
           << "), got (" << types << ')';
  };
  if (failed(agree(ValueRange(getIterArgs()).getTypes(), "iter_args")) ||
      failed(agree(getYielded().getTypes(), "yielded values")))
    return failure();
  Axis own = getTile().getType().getAxis(), other = getBlockType().getAxis();
  bool isMet = (own == Axis::Queries && other == Axis::Keys) ||
               (own == Axis::Keys && other == Axis::Queries);
  if (!isMet && (!isOfOwn() || other != Axis::Keys))
    return emitOpError("expected blocks of keys meeting queries, of queries "
                       "meeting keys or of keys of sequences, got ")
           << stringifyAxis(other) << (isOfOwn() ? " of " : " meeting ")
           << stringifyAxis(own);
  return success();
}

//===----------------------------------------------------------------------===//
// RowsOp, ReadOp, WriteOp
//===----------------------------------------------------------------------===//

void RowsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRows(), "rows");
}

/// Whether memory has rows in pages.
static bool isPaged(Type memory) {
  auto memref = dyn_cast<MemRefType>(memory);
  return memref && memref.getRank() == 4;
}

/// The values of memory of T x H x D are rows of D, in pages, too, of other
/// memory one number.
static std::optional<int64_t> getColumns(Type memory) {
  auto memref = dyn_cast<MemRefType>(memory);
  if (memref && memref.getRank() >= 3)
    return memref.getShape().back();
  return std::nullopt;
}

/// That `values` are what rows of `tile` in `memory` are.
static LogicalResult verifyRows(Operation *op, ValueRange values, Value memory,
                                TileType tile) {
  std::optional<int64_t> columns = getColumns(memory.getType());
  auto rows = dyn_cast<RowsType>(memory.getType());
  int64_t count = rows ? rows.getColumns() : 1;
  if (static_cast<int64_t>(values.size()) != count)
    return op->emitOpError("expected a value for each of the ")
           << count << " that memory has of a row, got " << values.size();
  if (tile.getAxis() == Axis::Heads ||
      (!columns && tile.getAxis() == Axis::Keys))
    return op->emitOpError("expected a tile of queries")
           << (columns ? ", keys or sequences of " : " or sequences of ")
           << memory.getType() << ", got " << tile;
  if (columns == 0)
    return op->emitOpError("expected rows of a column at least, got ")
           << memory.getType();
  int64_t size = tile.getSize();
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    if (columns) {
      // A number of each row may be a row of them.
      if (columns == 1 && type.getShape() == ArrayRef<int64_t>{1, size})
        continue;
      // Columns past the head_dim are padding.
      bool fits = type.getDimSize(0) == size && !type.isDynamicDim(1) &&
                  ShapedType::isStatic(*columns) &&
                  type.getDimSize(1) >= *columns;
      if (!fits) {
        auto error = op->emitOpError("expected ");
        if (ShapedType::isDynamic(size))
          error << "a dynamic number of rows of ";
        else
          error << size << " rows of ";
        if (ShapedType::isDynamic(*columns))
          return error << "a static number of columns, got "
                       << memory.getType();
        return error << *columns << " columns or more, got " << type;
      }
      continue;
    }
    int64_t column[] = {size, 1}, row[] = {1, size};
    if (type.getShape() != ArrayRef(column) && type.getShape() != ArrayRef(row))
      return op->emitOpError("expected a number for each row of ")
             << tile << ", got " << type;
  }
  return success();
}

static LogicalResult verifyOtherwise(Operation *op, DenseF64ArrayAttr otherwise,
                                     ValueRange values) {
  if (otherwise.size() == static_cast<int64_t>(values.size()))
    return success();
  return op->emitOpError("expected ")
         << values.size() << " numbers in 'otherwise', one for each value, got "
         << otherwise.size();
}

static Type getElement(Type memory) {
  if (auto rows = dyn_cast<RowsType>(memory))
    return rows.getElement();
  return cast<MemRefType>(memory).getElementType();
}

bool ReadOp::isOfVectors() {
  return getColumns(getSource().getType()).has_value();
}

LogicalResult ReadOp::verify() {
  Type element = getElement(getSource().getType());
  Type wide = getComputeType(element);
  for (Value value : getValues()) {
    Type type = cast<RankedTensorType>(value.getType()).getElementType();
    if (type == element || type == wide)
      continue;
    // f16 and bf16 have all numbers of quantised rows, too.
    bool isQuantised = isQuantisedElement(element);
    if (isQuantised && (type.isF16() || type.isBF16()))
      continue;
    auto error = emitOpError("expected values of ") << element;
    if (isQuantised)
      error << ", f16, bf16 or " << wide;
    else if (wide != element)
      error << " or " << wide;
    return error << ", got " << type;
  }
  if (getOtherwiseAttr() &&
      failed(verifyOtherwise(*this, getOtherwiseAttr(), getValues())))
    return failure();
  if (auto loop = (*this)->getParentOfType<ForTilesOp>();
      loop && loop->isAncestor(getSource().getParentRegion()->getParentOp()))
    return emitOpError("expected memory that is defined outside of the loop "
                       "over tiles");
  // A tile outside of a loop is an argument of a function, of an unknown batch.
  auto loop = (*this)->getParentOfType<ForTilesOp>();
  BatchOp batch = loop ? loop.getBatchOp() : BatchOp();
  bool ofPages = batch && batch.getBlockTable() && isOfVectors() &&
                 getTile().getType().getAxis() == Axis::Keys;
  if (batch && isPaged(getSource().getType()) != ofPages)
    return emitOpError("expected memory ")
           << (ofPages ? "of pages" : "without pages") << " at "
           << getTile().getType() << " of a batch "
           << (batch.getBlockTable() ? "with" : "without")
           << " a block_table, got " << getSource().getType();
  return verifyRows(*this, getValues(), getSource(), getTile().getType());
}

bool WriteOp::isOfVectors() {
  return getColumns(getDestination().getType()).has_value();
}

LogicalResult WriteOp::verify() {
  Type element = getElement(getDestination().getType());
  for (Value value : getValues()) {
    Type type = cast<RankedTensorType>(value.getType()).getElementType();
    if (type.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
      return emitOpError("expected values of ")
             << element << " or a wider type, got " << type;
  }
  if (failed(verifyOtherwise(*this, getOtherwiseAttr(), getValues())))
    return failure();
  if (isPaged(getDestination().getType()))
    return emitOpError("expected memory without pages, got ")
           << getDestination().getType();
  return verifyRows(*this, getValues(), getDestination(), getTile().getType());
}

LogicalResult AddInOrderOp::verify() {
  auto block = dyn_cast<BlockArgument>(getTile());
  auto blocks =
      block ? dyn_cast<ForBlocksOp>(block.getOwner()->getParentOp()) : nullptr;
  TileType tile = getTile().getType();
  if (!blocks || tile.getAxis() != Axis::Queries || !tile.getByHead())
    return emitOpError("expected a block of queries by_head, got ") << tile;
  if (!getColumns(getDestination().getType()))
    return emitOpError("expected memory of T x H x D, got ")
           << getDestination().getType();
  if (!getPart().getType().getElementType().isF32())
    return emitOpError("expected a part of f32, got ") << getPart().getType();
  return verifyRows(*this, getPart(), getDestination(), tile);
}
