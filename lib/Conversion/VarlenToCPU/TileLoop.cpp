//===- TileLoop.cpp - A loop over tiles and its steps ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"

#include "CPUTileBuilder.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What both kinds of loops have
//===----------------------------------------------------------------------===//

namespace {
class LoopVerifier {
public:
  LoopVerifier(ForTilesOp tiles, Block *body, Value tile,
               Orientation orientation, CPUScheduleAttr schedule)
      : schedule(schedule) {
    loop.tiles = tiles;
    loop.body = body;
    loop.tile = tile;
    loop.orientation = orientation;
  }

protected:
  LogicalResult findBlocks();
  /// The dimension of a value that queries are, if it is computed, or read as
  /// numbers, at the tile.
  std::optional<unsigned> getQueriesDim(Value value);
  LogicalResult verifyBlocks();
  LogicalResult verifyFactor(StepOpInterface step, const StepFactor &factor,
                             int64_t columnMultiple);
  /// An operand of a step that is a number of each key.
  LogicalResult verifyKeyNumber(StepOpInterface step, Value number);
  /// Columns of factors are rounded up to a multiple.
  LogicalResult verifyStep(StepOpInterface step, int64_t columnMultiple);
  LogicalResult verifyRead(ReadOp read);

  CPUScheduleAttr schedule;
  TileLoop loop;
};
} // namespace

/// The tile or the block of the loop that an operation is in.
static Value getOwnTile(Operation *op) {
  return op->getBlock()->getArgument(0);
}

/// That an operation without a case of its own is a constant.
static LogicalResult verifyOther(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return success();
  return op->emitOpError("is not known to tile loops on a CPU");
}

LogicalResult LoopVerifier::findBlocks() {
  for (Operation &op : *loop.body) {
    auto parts = dyn_cast<ForPartsOp>(op);
    auto blocks = parts ? parts.getLoop() : dyn_cast<ForBlocksOp>(op);
    if (blocks && loop.blocks)
      return op.emitOpError("expected one loop over blocks for each tile");
    if (blocks)
      std::tie(loop.parts, loop.blocks) = std::pair(parts, blocks);
  }
  return success();
}

std::optional<unsigned> LoopVerifier::getQueriesDim(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.body)
    return std::nullopt;
  if (auto computed = dyn_cast<QueryTileOpInterface>(op))
    return computed.getQueriesDim(value);
  if (isa<ForPartsOp, ForBlocksOp>(op))
    return varlen::getQueriesDim(loop.orientation);
  auto read = dyn_cast<ReadOp>(op);
  if (!isa<RowDotOp>(op) && (!read || read.isOfVectors()))
    return std::nullopt;
  // A number of a single query is a row as well as a column.
  if (loop.getSize() == 1)
    return varlen::getQueriesDim(loop.orientation);
  return cast<RankedTensorType>(value.getType()).getDimSize(0) == 1 ? 1 : 0;
}

LogicalResult LoopVerifier::verifyBlocks() {
  Value tile = loop.parts ? loop.parts.getTile() : loop.blocks.getTile();
  if (tile != loop.tile)
    return loop.getOuter()->emitOpError("expected blocks of the tile of "
                                        "their loop");
  int64_t size = loop.blocks.getBlockType().getSize();
  if (size != schedule.getKvBlock())
    return loop.blocks.emitOpError("expected blocks of ")
           << schedule.getKvBlock() << " keys, the kv_block of the schedule, "
           << "got " << size;
  return success();
}

/// `factor` is what a read at its tile or block returns, or an error at the
/// step.
LogicalResult LoopVerifier::verifyFactor(StepOpInterface step,
                                         const StepFactor &factor,
                                         int64_t columnMultiple) {
  auto read = factor.operand->get().getDefiningOp<ReadOp>();
  Value tile = factor.ofQueries ? step.getQueries() : step.getKeys();
  if (!read || read.getTile() != tile || !read.isOfVectors())
    return step->emitOpError("expected ")
           << factor.name << " to be rows that are read at the "
           << (factor.ofQueries ? "tile" : "block");
  auto source = memoryType(read.getSource());
  auto type = cast<RankedTensorType>(factor.operand->get().getType());
  bool isPaired = schedule.getKv() == KVStorage::Pairs;
  bool isQuantised =
      !factor.ofQueries && isQuantisedElement(source.getElementType());
  if (isPaired && !isQuantised && !source.getElementType().isBF16())
    return read.emitOpError("expected rows of bf16 for kv = pairs, got ")
           << source;
  // Pairs that are summed over rows are made of two of them.
  int64_t sourceColumns = source.getShape().back();
  if (isPaired && factor.alongColumns && sourceColumns % 2 != 0)
    return read.emitOpError("expected an even number of columns for kv = "
                            "pairs, got ")
           << source;
  Type element = step.getComputeType();
  if (isPaired)
    element = BFloat16Type::get(element.getContext());
  int64_t columns = llvm::alignTo(sourceColumns, columnMultiple);
  if (type.getElementType() != element || type.getDimSize(1) != columns)
    return read.emitOpError("expected rows of ")
           << columns << " x " << element << ", got " << type;
  if (read.getOtherwise() && read.getOtherwise()->front() != 0)
    return read.emitOpError("expected 0 for rows that are not in use, got ")
           << read.getOtherwise()->front();
  return success();
}

LogicalResult LoopVerifier::verifyKeyNumber(StepOpInterface step,
                                            Value number) {
  auto read = number.getDefiningOp<ReadOp>();
  if (!read || read.getTile() != step.getKeys() || !read.isOfVectors() ||
      memoryType(read.getSource()).getElementType() != step.getComputeType())
    return step->emitOpError("expected numbers of keys to be rows of ")
           << step.getComputeType() << " that are read at the block";
  if (read.getOtherwise() && read.getOtherwise()->front() != 0)
    return read.emitOpError("expected 0 for rows that are not in use, got ")
           << read.getOtherwise()->front();
  return success();
}

LogicalResult LoopVerifier::verifyStep(StepOpInterface step,
                                       int64_t columnMultiple) {
  if (!loop.blocks || step.getQueries() != loop.tile ||
      step.getKeys() != loop.blocks.getBlock())
    return step->emitOpError("expected a step at the tile and the block of its "
                             "loops");
  if (step.getOrientation() != loop.orientation)
    return step->emitOpError("expected orientation ")
           << stringifyOrientation(loop.orientation)
           << (loop.orientation == Orientation::QK ? " of few queries" : "")
           << " on a CPU, got " << stringifyOrientation(step.getOrientation());
  for (const StepFactor &factor : step.getFactors())
    if (failed(verifyFactor(step, factor, columnMultiple)))
      return failure();
  for (OpOperand *number : step.getKeyNumbers())
    if (failed(verifyKeyNumber(step, number->get())))
      return failure();
  for (OpOperand *number : getNumbers(step))
    if (!getQueriesDim(number->get()))
      return step->emitOpError("expected numbers of queries to be read or "
                               "computed at the tile, got ")
             << number->get().getType();
  for (Value operand : step->getOperands())
    if (isa<MemRefType>(operand.getType()) &&
        loop.tiles->isAncestor(operand.getParentBlock()->getParentOp()))
      return step->emitOpError("expected tables that are defined outside of "
                               "the loop over tiles");
  loop.step = step;
  return success();
}

LogicalResult LoopVerifier::verifyRead(ReadOp read) {
  if (read.getTile() != loop.tile)
    return read.emitOpError("expected a read at the tile of its loop");
  if (!read.isOfVectors())
    return success();
  for (Operation *user : read->getUsers())
    if (!isa<StepOpInterface, RowDotOp>(user))
      return user->emitOpError(
          "expected rows that are read to be operands of a "
          "step or of varlen.row_dot on a CPU");
  return success();
}

//===----------------------------------------------------------------------===//
// Loops over queries
//===----------------------------------------------------------------------===//

namespace {
class QueryLoopVerifier : LoopVerifier {
public:
  using LoopVerifier::LoopVerifier;
  FailureOr<TileLoop> verify();

private:
  LogicalResult verifyOp(ForPartsOp parts);
  LogicalResult verifyOp(ForBlocksOp blocks);
  LogicalResult verifyOp(StepOpInterface step);
  LogicalResult verifyOp(ReadOp read) { return verifyRead(read); }
  LogicalResult verifyOp(RowDotOp dot);
  LogicalResult verifyOp(QueryTileOpInterface op);
  LogicalResult verifyOp(WriteOp write);
};
} // namespace

LogicalResult QueryLoopVerifier::verifyOp(ForPartsOp parts) {
  if (parts.getBlocks() == 0)
    return parts.emitOpError("expected parts of a block or more on a CPU, got "
                             "blocks(0)");
  for (Operation &op : *parts.getBody())
    if (!isa<StateInitOpInterface, ForBlocksOp, YieldOp>(op))
      return op.emitOpError("expected the beginning of a state, as "
                            "varlen.online_init, and a loop over blocks in a "
                            "part on a CPU");
  if (!isa_and_present<QueryTileOpInterface>(parts.getMergeOp()))
    return parts.emitOpError("expected one operation on each query by itself, "
                             "as varlen.online_merge, in 'merge'");
  return verifyOp(loop.blocks);
}

LogicalResult QueryLoopVerifier::verifyOp(ForBlocksOp blocks) {
  if (loop.orientation == Orientation::KQ &&
      loop.getSize() != schedule.getBlockM())
    return loop.tiles.emitOpError("expected tiles of ")
           << schedule.getBlockM() << " queries, as many as the panels of "
           << "the schedule have, got " << loop.getSize();
  if (failed(verifyBlocks()))
    return failure();
  for (Operation &op : *blocks.getBody()) {
    auto step = dyn_cast<StepOpInterface>(op);
    if (step && !loop.step) {
      if (failed(verifyOp(step)))
        return failure();
    } else if (!isa<ReadOp, YieldOp>(op)) {
      return op.emitOpError("expected reads and one step in a loop over blocks "
                            "on a CPU");
    }
  }
  if (!loop.step || blocks.getStateStep() != loop.step)
    return blocks.emitOpError(
        "expected a step that takes the iter_args as they "
        "are and is yielded");
  if (!blocks.getBeginning())
    return blocks.emitOpError(
        "expected a state that begins with one operation, "
        "as varlen.online_init");
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(StepOpInterface step) {
  if (failed(verifyStep(step, /*columnMultiple=*/1)))
    return failure();
  for (OpOperand &init : step.getDpsInitsMutable())
    if (step.getDimOfQueries(init) != varlen::getQueriesDim(loop.orientation))
      return step->emitOpError("expected sums whose ")
             << (loop.orientation == Orientation::KQ ? "columns" : "rows")
             << " are queries, got " << init.get().getType();
  // Few queries read keys and values as they are in memory; products convert
  // quantised ones.
  auto elementOf = [](const StepFactor &factor) {
    auto read = factor.operand->get().getDefiningOp<ReadOp>();
    return memoryType(read.getSource()).getElementType();
  };
  Type first = elementOf(step.getFactors().front());
  for (const StepFactor &factor : step.getFactors())
    if (Type other = elementOf(factor);
        first != other && (factor.ofQueries || !isQuantisedElement(other)))
      return step->emitOpError("expected rows of one element type in memory, "
                               "got ")
             << first << " and, of " << factor.name << ", " << other;
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(RowDotOp dot) {
  SmallVector<MemRefType, 2> types;
  for (Value operand : dot->getOperands()) {
    auto read = operand.getDefiningOp<ReadOp>();
    if (!read || !read.isOfVectors())
      return dot.emitOpError("expected rows that are read at the tile, got ")
             << operand.getType();
    types.push_back(memoryType(read.getSource()));
  }
  if (types[0].getDimSize(2) != types[1].getDimSize(2))
    return dot.emitOpError("expected rows of one head_dim, got ")
           << types[0] << " and " << types[1];
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(QueryTileOpInterface op) {
  for (Value operand : op->getOperands()) {
    std::optional<unsigned> queries = getQueriesDim(operand);
    if (!queries)
      return op->emitOpError("expected operands that are numbers of the tile, "
                             "or computed of it, got ")
             << operand.getType();
    if (*queries != op.getQueriesDim(operand))
      return op->emitOpError("expected queries to be the ")
             << (*queries == 0 ? "columns" : "rows") << " of "
             << operand.getType() << ", not the "
             << (*queries == 0 ? "rows" : "columns");
  }
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(WriteOp write) {
  if (write.getTile() != loop.tile)
    return write.emitOpError("expected a write at the tile of its loop");
  for (Value value : write.getValues()) {
    std::optional<unsigned> queries = getQueriesDim(value);
    if (!queries || (write.isOfVectors() && *queries != 0))
      return write.emitOpError("expected numbers of the tile, or rows that are "
                               "computed of it, got ")
             << value.getType();
  }
  if (!write.isOfVectors())
    return success();
  if (write.getFactor())
    return write.emitOpError("expected rows without 'times' on a CPU");
  int64_t wanted = memoryType(write.getDestination()).getDimSize(2),
          columns = cast<RankedTensorType>(write.getValues().front().getType())
                        .getDimSize(1);
  if (columns != wanted)
    return write.emitOpError("expected rows of ")
           << wanted << " columns, as memory has them, got " << columns;
  return success();
}

FailureOr<TileLoop> QueryLoopVerifier::verify() {
  if (failed(findBlocks()))
    return failure();
  for (Operation &op : *loop.body) {
    LogicalResult result = TypeSwitch<Operation *, LogicalResult>(&op)
                               .Case<ForPartsOp, ForBlocksOp, ReadOp, RowDotOp,
                                     QueryTileOpInterface, WriteOp>(
                                   [&](auto known) { return verifyOp(known); })
                               .Case<YieldOp, StateInitOpInterface>(
                                   [](Operation *) { return success(); })
                               .Default(verifyOther);
    if (failed(result))
      return failure();
  }
  return loop;
}

//===----------------------------------------------------------------------===//
// Loops over sequences
//===----------------------------------------------------------------------===//

namespace {
class SequenceLoopVerifier : LoopVerifier {
public:
  using LoopVerifier::LoopVerifier;
  FailureOr<TileLoop> verify();

private:
  /// The body of the loop over tiles or of the one over blocks.
  LogicalResult verifyBody(Block &body);
  LogicalResult verifyOp(ForBlocksOp blocks);
  LogicalResult verifyOp(StepOpInterface step);
  LogicalResult verifyOp(ReadOp read);
  LogicalResult verifyOp(SizeOp size);
  LogicalResult verifyOp(ClearOp clear);
  LogicalResult verifyOp(WriteOp write);
};
} // namespace

/// The zeros that a sum starts from; null if it does not.
static linalg::FillOp getZeros(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  bool isZero =
      fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
  return isZero ? fill : linalg::FillOp();
}

/// Whether the rows, or numbers, of a fill are as many as a `varlen.size` says.
static bool hasSizeOf(linalg::FillOp fill, Value tile) {
  auto empty = fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>();
  if (!empty || empty.getDynamicSizes().size() != 1)
    return false;
  auto size = empty.getDynamicSizes()[0].getDefiningOp<SizeOp>();
  int64_t rows = empty.getType().getDimSize(0);
  return size && size.getTile() == tile &&
         (ShapedType::isDynamic(rows) || rows == 1);
}

LogicalResult SequenceLoopVerifier::verifyOp(ForBlocksOp blocks) {
  if (blocks != loop.blocks)
    return blocks.emitOpError("expected one loop over blocks for each tile");
  if (failed(verifyBlocks()) || failed(verifyBody(*blocks.getBody())))
    return failure();
  if (!loop.step)
    return blocks.emitOpError("expected one step, got none");
  for (auto [init, sum, yielded] : llvm::zip_equal(
           blocks.getInits(), blocks.getIterArgs(), blocks.getYielded())) {
    OpOperand *use = sum.hasOneUse() ? &*sum.use_begin() : nullptr;
    if (!use || use->getOwner() != loop.step || !loop.step.isDpsInit(use) ||
        loop.step.getTiedOpResult(use) != yielded || !yielded.hasOneUse())
      return blocks.emitOpError("expected sums of the step, and nothing else, "
                                "to go from block to block");
    linalg::FillOp zeros = getZeros(init);
    if (!zeros || !hasSizeOf(zeros, loop.tiles.getTile()))
      return blocks.emitOpError("expected sums that start from linalg.fill of "
                                "0, of the varlen.size of the sequence");
  }
  return success();
}

LogicalResult SequenceLoopVerifier::verifyOp(StepOpInterface step) {
  if (loop.step)
    return step->emitOpError("expected one step in a loop over blocks, got "
                             "another");
  if (failed(verifyStep(step, schedule.getLanes())))
    return failure();
  for (OpOperand &init : step.getDpsInitsMutable()) {
    if (step.getDimOfQueries(init)) {
      if (!llvm::is_contained(loop.blocks.getIterArgs(), init.get()))
        return step->emitOpError("expected sums of queries to go from block to "
                                 "block");
    } else if (linalg::FillOp zeros = getZeros(init.get());
               !zeros || zeros.hasDynamicShape()) {
      return step->emitOpError("expected sums of keys that start from "
                               "linalg.fill of 0, of static extents");
    }
  }
  return success();
}

LogicalResult SequenceLoopVerifier::verifyOp(ReadOp read) {
  // The step says what it reads of a block.
  if (read->getBlock() != loop.tiles.getBody())
    return success();
  if (failed(verifyRead(read)))
    return failure();
  if (read.isOfVectors() || isa<RowsType>(read.getSource().getType()))
    return success();
  return read.emitOpError("expected numbers of varlen.rows, which are read "
                          "where they are, got ")
         << read.getSource().getType();
}

LogicalResult SequenceLoopVerifier::verifyOp(SizeOp size) {
  if (static_cast<int64_t>(size.getMultiple()) == schedule.getPanelSize())
    return success();
  return size.emitOpError("expected multiples of ")
         << schedule.getPanelSize() << ", the queries of a panel, got "
         << size.getMultiple();
}

LogicalResult SequenceLoopVerifier::verifyOp(ClearOp clear) {
  if (clear.getTile() == getOwnTile(clear) && !loop.step)
    return success();
  return clear.emitOpError("expected the tile of its loop, before the step");
}

LogicalResult SequenceLoopVerifier::verifyOp(WriteOp write) {
  if (write.getTile() != getOwnTile(write))
    return write.emitOpError("expected a write at the tile of its loop");
  bool isAtBlock = write->getBlock() != loop.tiles.getBody();
  for (auto [value, otherwise] :
       llvm::zip_equal(write.getValues(), write.getOtherwise())) {
    Operation *sums = isAtBlock ? loop.step : loop.blocks;
    auto type = cast<RankedTensorType>(value.getType());
    bool isOfRows = isAtBlock || type.isDynamicDim(0);
    if (value.getDefiningOp() != sums || isOfRows != write.isOfVectors())
      return write.emitOpError("expected sums of the ")
             << (isAtBlock ? "block" : "sequence")
             << ", rows to memory of T x H x D, numbers to other, got " << type;
    // Rows in use that visit nothing get it, too.
    if (otherwise != 0)
      return write.emitOpError("expected 0 for rows that are not in use, got ")
             << otherwise;
  }
  return success();
}

LogicalResult SequenceLoopVerifier::verifyBody(Block &body) {
  for (Operation &op : body) {
    LogicalResult result =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<ForBlocksOp, StepOpInterface, ReadOp, SizeOp, ClearOp,
                  WriteOp>([&](auto known) { return verifyOp(known); })
            .Case<YieldOp, tensor::EmptyOp, linalg::FillOp>(
                [](Operation *) { return success(); })
            .Default(verifyOther);
    if (failed(result))
      return failure();
  }
  return success();
}

FailureOr<TileLoop> SequenceLoopVerifier::verify() {
  if (failed(findBlocks()))
    return failure();
  if (!loop.blocks)
    return loop.tiles.emitOpError("expected one loop over the blocks of each "
                                  "sequence");
  if (failed(verifyBody(*loop.tiles.getBody())))
    return failure();
  return loop;
}

/// A loop over queries, in a form for few and one for others, or in one form.
static FailureOr<TileLoopForms> verifyQueryLoop(ForTilesOp tiles,
                                                CPUScheduleAttr schedule) {
  TileLoopForms loop;
  auto forms = tiles.getBody()->getOps<IfFewOp>();
  IfFewOp ifFew = forms.empty() ? IfFewOp() : *forms.begin();
  Block *body = ifFew ? ifFew.getManyBody() : tiles.getBody();
  FailureOr<TileLoop> many =
      QueryLoopVerifier(tiles, body, tiles.getTile(), Orientation::KQ, schedule)
          .verify();
  if (failed(many))
    return failure();
  loop.many = *many;
  if (!ifFew)
    return loop;
  FailureOr<TileLoop> few =
      QueryLoopVerifier(tiles, ifFew.getFewBody(), ifFew.getFewTile(),
                        Orientation::QK, schedule)
          .verify();
  if (failed(few))
    return failure();
  if (!loop.many.blocks || !few->blocks || !loop.many.parts != !few->parts)
    return ifFew.emitOpError("expected both regions to visit blocks, in parts "
                             "or not");
  loop.few = *few;
  return loop;
}

FailureOr<TileLoopForms> varlen::verifyTileLoop(ForTilesOp tiles,
                                                CPUScheduleAttr schedule) {
  Axis axis = tiles.getTileType().getAxis();
  if (axis == Axis::Queries)
    return verifyQueryLoop(tiles, schedule);
  if (axis != Axis::Sequences)
    return tiles.emitOpError("expected tiles of queries or sequences on a CPU, "
                             "got ")
           << tiles.getTileType();
  FailureOr<TileLoop> loop =
      SequenceLoopVerifier(tiles, tiles.getBody(), tiles.getTile(),
                           Orientation::KQ, schedule)
          .verify();
  if (failed(loop))
    return failure();
  return TileLoopForms{*loop, std::nullopt};
}
