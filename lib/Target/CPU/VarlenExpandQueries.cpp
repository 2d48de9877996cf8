//===- VarlenExpandQueries.cpp - Queries of a tile, vector by vector ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/Utils/RowViews.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Matrices.h"
#include "varlen/Support/MergeConstants.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDQUERIES
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The schedule around an operation; an error if its queries are columns, and
/// there is none.
static FailureOr<CPUScheduleAttr> getSchedule(Operation *op, bool isKQ) {
  CPUScheduleAttr schedule = getEnclosingSchedule(op);
  if (isKQ && !schedule)
    return op->emitOpError("expected a #varlen.cpu_schedule around it under ")
           << kScheduleAttrName << " where queries are columns";
  return schedule;
}

//===----------------------------------------------------------------------===//
// ForQueriesOp
//===----------------------------------------------------------------------===//

namespace {
class QueryExpander {
public:
  QueryExpander(ForQueriesOp op, CPUScheduleAttr schedule)
      : op(op), isKQ(op.getOrientation() == Orientation::KQ),
        lanes(isKQ ? schedule.getLanes() : 0), b(op.getLoc(), op) {}

  void expand();

private:
  /// Queries that are computed at once: `count` from query `from` of a panel
  /// on, of which `rows` are there.
  struct Run {
    Run(Value panel, Value from, OpFoldResult count, RowRange rows)
        : panel(panel), from(from), count(count), rows(rows) {}

    Value panel, from;
    OpFoldResult count;
    RowRange rows;
    /// What was computed of them, and the dimension that they are.
    DenseMap<Value, Value> tiles;
    DenseMap<Value, unsigned> dims;
  };
  /// Where rows are written: to their destination if they are `inPlace` or
  /// there is no scratch, else to scratch. `memory` is what it is.
  struct RowPlace {
    Value memory, scratch = {}, inPlace = {};
  };

  unsigned getOwnDim() { return getQueriesDim(op.getOrientation()); }
  /// Scratch of the operation, with the tiles of the body that are there.
  SmallVector<std::pair<Value, Value>> getScratch();
  void emitPanel(Value number, Value first, Value rows);
  void emitRun(Run run);
  /// The memory of a run, so that its queries are dimension `dim`.
  Value view(Value memory, Value tile, const Run &run, unsigned dim);
  Value load(Value memory) {
    return bufferization::ToTensorOp::create(
        b, memref::getTensorTypeFromMemRefType(memory.getType()), memory,
        /*restrict=*/true);
  }
  /// Stores a tile, rounded to the type of memory.
  void store(Value tile, Value memory);
  Value tileOf(Value value, const Run &run, unsigned dim);
  void emitTileOp(QueryTileOpInterface computed, Run &run);
  /// Results of `producer`, or arguments where that is null, to scratch.
  void emitStores(Operation *producer, const Run &run);
  RowPlace emitPlace(Value memory, Value tile, const Run &run);
  void emitRows(Value memory, Value tile, const RowPlace &place,
                const Run &run);
  void emitNumbers(const Run &run);

  ForQueriesOp op;
  bool isKQ;
  int64_t lanes;
  ImplicitLocOpBuilder b;
  IndexBuilder index{b};
};
} // namespace

SmallVector<std::pair<Value, Value>> QueryExpander::getScratch() {
  SmallVector<std::pair<Value, Value>> scratch;
  for (auto [memory, tile] :
       llvm::zip_equal(op.getInputs(), op.getBody()->getArguments()))
    scratch.push_back({memory, tile});
  for (auto [values, tile] :
       llvm::zip_equal(op.getQueryValues(), op.getYielded()))
    if (values.place == QueryMemory::Scratch)
      scratch.push_back({values.memref, tile});
  return scratch;
}

void QueryExpander::expand() {
  Value zero = index.constant(0), first = op.getFirst(), valid = op.getValid();
  RowMap map = {op.getRow(), op.getHead(), op.getGroup()};
  if (!isKQ)
    return emitRun({zero, zero, getAsOpFoldResult(valid), {map, first, valid}});
  SmallVector<std::pair<Value, Value>> scratch = getScratch();
  bool isOnePanel = llvm::any_of(scratch, [&](const auto &pair) {
    return memoryType(pair.first).getDimSize(0) == op.getPerQuery(pair.second);
  });
  if (isOnePanel)
    return emitPanel(zero, first, valid);
  int64_t size = scratch.empty() ? lanes : innerSize(scratch.front().first);
  emitLoop(b, zero, index.ceilDiv(valid, size), 1, [&](Value number) {
    Value offset = index.mul(number, size);
    emitPanel(number, index.add(first, offset),
              index.min(index.sub(valid, offset), size));
  });
}

void QueryExpander::emitPanel(Value number, Value first, Value rows) {
  RowMap map = {op.getRow(), op.getHead(), op.getGroup()};
  OpFoldResult width = b.getIndexAttr(lanes);
  Value zero = index.constant(0);
  SmallVector<std::pair<Value, Value>> scratch = getScratch();
  if (scratch.empty() || innerSize(scratch.front().first) == lanes)
    return emitRun({number, zero, width, {map, first, rows}});
  emitLoop(b, zero, rows, lanes, [&](Value from) {
    emitRun({number,
             from,
             width,
             {map, index.add(first, from),
              index.min(index.sub(rows, from), lanes)}});
  });
}

void QueryExpander::emitRun(Run run) {
  // First, so that what is computed can be written there at once.
  SmallVector<std::optional<RowPlace>> places;
  SmallVector<QueryValues> outputs = op.getQueryValues();
  for (auto [values, tile] : llvm::zip_equal(outputs, op.getYielded())) {
    places.emplace_back();
    if (values.place == QueryMemory::Rows)
      places.back() = emitPlace(values.memref, tile, run);
  }
  emitStores(/*producer=*/nullptr, run);
  for (Operation &body : op.getBody()->without_terminator()) {
    if (auto computed = dyn_cast<QueryTileOpInterface>(body))
      emitTileOp(computed, run);
    emitStores(&body, run);
  }
  for (auto [values, tile, place] :
       llvm::zip_equal(outputs, op.getYielded(), places))
    if (place)
      emitRows(values.memref, tile, *place, run);
  emitNumbers(run);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value QueryExpander::view(Value memory, Value tile, const Run &run,
                          unsigned dim) {
  int64_t perQuery = op.getPerQuery(tile);
  OpFoldResult values = b.getIndexAttr(perQuery), zero = b.getIndexAttr(0);
  Value part = isKQ
                   ? emitPart(b, memory,
                              getAsOpFoldResult(index.mul(run.panel, perQuery)),
                              getAsOpFoldResult(run.from), values, run.count)
                   : emitPart(b, memory, getAsOpFoldResult(run.from), zero,
                              run.count, values);
  if (dim == getOwnDim())
    return part;
  AffineMap swap =
      AffineMap::getPermutationMap(ArrayRef<int64_t>{1, 0}, b.getContext());
  return memref::TransposeOp::create(b, part, AffineMapAttr::get(swap));
}

Value QueryExpander::tileOf(Value value, const Run &run, unsigned dim) {
  if (Value tile = run.tiles.lookup(value))
    return tile;
  unsigned number = cast<BlockArgument>(value).getArgNumber();
  return load(view(op.getInputs()[number], value, run, dim));
}

void QueryExpander::store(Value tile, Value memory) {
  Type element = elementOf(memory);
  if (cast<RankedTensorType>(tile.getType()).getElementType() != element) {
    Value init = tensor::EmptyOp::create(
        b, tensor::getMixedSizes(b, b.getLoc(), tile), element);
    tile = emitElementwise(b, tile, init,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) {
                             return Values{convertScalarToDtype(
                                 b, b.getLoc(), args[0], element,
                                 /*isUnsignedCast=*/false)};
                           })
               .getResult(0);
  }
  bufferization::MaterializeInDestinationOp::create(
      b, TypeRange{}, tile, memory, /*restrict=*/true, /*writable=*/true);
}

void QueryExpander::emitTileOp(QueryTileOpInterface computed, Run &run) {
  auto copy = cast<QueryTileOpInterface>(computed->clone());
  // As the operation has its queries, once it is asked for a tile of that type.
  unsigned own = getOwnDim();
  for (OpOperand &operand : copy->getOpOperands()) {
    Value value = operand.get();
    operand.set(tileOf(value, run, own));
    if (unsigned dim = copy.getQueriesDim(operand.get()); dim != own)
      operand.set(tileOf(value, run, dim));
  }
  for (auto [value, result] :
       llvm::zip_equal(computed->getResults(), copy->getResults())) {
    OpFoldResult perQuery = b.getIndexAttr(op.getPerQuery(value));
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    auto setDim = [&, &result = result](unsigned dim) {
      SmallVector<OpFoldResult> sizes = {run.count, perQuery};
      if (dim == 1)
        std::swap(sizes[0], sizes[1]);
      result.setType(
          RankedTensorType::get(decomposeMixedValues(sizes).first, element));
      return copy.getQueriesDim(result);
    };
    unsigned dim = setDim(own);
    if (dim != own)
      setDim(dim);
    run.tiles[value] = result;
    run.dims[value] = dim;
  }
  b.insert(copy);
}

void QueryExpander::emitStores(Operation *producer, const Run &run) {
  for (auto [values, tile] :
       llvm::zip_equal(op.getQueryValues(), op.getYielded())) {
    if (values.place != QueryMemory::Scratch ||
        tile.getDefiningOp() != producer)
      continue;
    auto to = [&, &values = values, tile = tile](unsigned dim) {
      return view(values.memref, tile, run, dim);
    };
    if (auto begin = tile.getDefiningOp<StateInitOpInterface>()) {
      unsigned number = cast<OpResult>(tile).getResultNumber();
      emitFill(b, begin.getNumbers()[number], to(getOwnDim()));
    } else if (auto argument = dyn_cast<BlockArgument>(tile)) {
      Value from =
          view(op.getInputs()[argument.getArgNumber()], tile, run, getOwnDim());
      linalg::CopyOp::create(b, from, to(getOwnDim()));
    } else {
      store(run.tiles.at(tile), to(run.dims.at(tile)));
    }
  }
}

//===----------------------------------------------------------------------===//
// To memory
//===----------------------------------------------------------------------===//

QueryExpander::RowPlace QueryExpander::emitPlace(Value memory, Value tile,
                                                 const Run &run) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = elementOf(memory);
  int64_t columns = innerSize(memory);
  const RowRange &rows = run.rows;
  if (!isKQ) {
    SmallVector<Value> extents;
    if (type.isDynamicDim(0))
      extents.push_back(rows.count);
    Value scratch = emitAllocation(b, {type.getDimSize(0), columns},
                                   type.getElementType(), extents);
    return {varlen::emitRows(b, scratch, b.getIndexAttr(0), run.count),
            scratch};
  }
  // Rows of one head are all there is to write.
  if (isConstantIntValue(rows.map.group, 1) && isOfRows(memory, element))
    return {emitRowsInPlace(b, memory, rows)};
  Value scratch = emitAllocation(b, {lanes, columns}, element);
  Value inPlace = emitIsInPlace(b, memory, rows, element, lanes);
  Value chosen =
      emitVectorRows(b, memory, rows, lanes, inPlace, scratch, [] {});
  return {chosen, scratch, inPlace};
}

void QueryExpander::emitRows(Value memory, Value value, const RowPlace &place,
                             const Run &run) {
  Value tile = tileOf(value, run, /*dim=*/0);
  if (!place.scratch) {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, b.getLoc(), tile);
    sizes[0] = run.rows.count;
    tile = tensor::ExtractSliceOp::create(
        b, tile, SmallVector<OpFoldResult>(2, b.getIndexAttr(0)), sizes,
        SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
    return store(tile, place.memory);
  }
  store(tile, place.memory);
  auto copy = [&] {
    const RowRange &rows = run.rows;
    WriteRowsOp::create(b, place.scratch, memory, rows.map.firstRow,
                        rows.map.kvHead, rows.first, rows.map.group, rows.count,
                        /*factor=*/FloatAttr());
  };
  if (!place.inPlace)
    return copy();
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  emitIf(b, arith::XOrIOp::create(b, place.inPlace, yes), copy);
}

void QueryExpander::emitNumbers(const Run &run) {
  SmallVector<std::pair<Value, Value>> numbers;
  for (auto [values, tile] :
       llvm::zip_equal(op.getQueryValues(), op.getYielded()))
    if (values.place == QueryMemory::Numbers)
      numbers.push_back({values.memref, tileOf(tile, run, getOwnDim())});
  if (numbers.empty())
    return;
  Value zero = index.constant(0);
  emitLoop(b, zero, run.rows.count, 1, [&](Value lane) {
    Value pair = index.add(run.rows.first, lane);
    // Of memory of one rank once.
    DenseMap<int64_t, SmallVector<Value>> places;
    for (auto [memory, tile] : numbers) {
      int64_t rank = memoryType(memory).getRank();
      SmallVector<Value> &place = places[rank];
      if (place.empty())
        place = run.rows.map.placeOf(index, rank, pair);
      bool isRow =
          isKQ && cast<RankedTensorType>(tile.getType()).getDimSize(0) == 1;
      Value number = tensor::ExtractOp::create(
          b, tile, isRow ? ValueRange{zero, lane} : ValueRange{lane, zero});
      number = convertScalarToDtype(b, b.getLoc(), number, elementOf(memory),
                                    /*isUnsignedCast=*/false);
      memref::StoreOp::create(b, number, memory, place);
    }
  });
}

static LogicalResult expand(ForQueriesOp op) {
  FailureOr<CPUScheduleAttr> schedule =
      getSchedule(op, op.getOrientation() == Orientation::KQ);
  if (failed(schedule))
    return failure();
  QueryExpander(op, *schedule).expand();
  return success();
}

//===----------------------------------------------------------------------===//
// KeyLimitsOp
//===----------------------------------------------------------------------===//

static LogicalResult expand(KeyLimitsOp op) {
  int64_t columns = innerSize(op.getLo());
  bool areColumns = columns != 1;
  FailureOr<CPUScheduleAttr> schedule = getSchedule(op, areColumns);
  if (failed(schedule))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  IndexBuilder index{b};
  Position offset;
  if (Value given = op.getOffset())
    offset = given;
  SequenceMask mask(index, op.getMask(), op.getQueries(), op.getKeys(), offset);
  IndexBuilder narrow{b, b.getI32Type()};
  auto store = [&](Value lo, Value hi, ValueRange place) {
    memref::StoreOp::create(b, lo, op.getLo(), place);
    memref::StoreOp::create(b, hi, op.getHi(), place);
  };
  auto emitPair = [&](Value pair, ValueRange place) {
    Value query = index.div(pair, op.getGroup());
    auto [lo, hi] = mask.emitLimits(index, query, op.getKeys());
    store(narrow.cast(lo), narrow.cast(hi), place);
  };
  Value zero = index.constant(0), first = op.getFirst(), valid = op.getValid();
  if (!areColumns) {
    emitLoop(b, zero, valid, 1, [&](Value i) {
      emitPair(index.add(first, i), ValueRange{i, zero});
    });
    return success();
  }
  Value last = index.sub(index.add(first, valid), 1);
  Value none = narrow.cast(op.getKeys());
  emitLoop(b, zero, index.ceilDiv(valid, columns), 1, [&](Value row) {
    Value offset = index.mul(row, columns);
    Value rest = index.min(index.sub(valid, offset), columns);
    Value end = index.min(index.roundUp(rest, schedule->getLanes()), columns);
    emitLoop(b, zero, end, 1, [&](Value lane) {
      Value pair = index.add(index.add(first, offset), lane);
      emitPair(index.min(pair, last), ValueRange{row, lane});
    });
    emitLoop(b, end, index.constant(columns), 1,
             [&](Value lane) { store(none, none, ValueRange{row, lane}); });
  });
  return success();
}

namespace {
struct VarlenExpandQueries
    : varlen::impl::VarlenExpandQueriesBase<VarlenExpandQueries> {
  void runOnOperation() override {
    SetVector<FunctionOpInterface> functions;
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return TypeSwitch<Operation *, WalkResult>(op)
          .Case<ForQueriesOp, KeyLimitsOp>([&](auto queries) -> WalkResult {
            if (failed(expand(queries)))
              return failure();
            if (auto function = op->getParentOfType<FunctionOpInterface>())
              functions.insert(function);
            op->erase();
            ++numExpanded;
            return WalkResult::advance();
          })
          .Default([](Operation *) { return WalkResult::advance(); });
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (FunctionOpInterface function : functions)
      mergeConstants(function);
  }
};
} // namespace
