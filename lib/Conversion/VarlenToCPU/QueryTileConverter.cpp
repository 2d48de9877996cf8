//===- QueryTileConverter.cpp - The body of a loop over queries -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTileConverter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

/// The values of a query in an operand or result of an operation.
static int64_t getPerQuery(QueryTileOpInterface op, Value tile) {
  return cast<RankedTensorType>(tile.getType())
      .getDimSize(1 - op.getQueriesDim(tile));
}

SmallVector<int64_t> QueryTileConverter::getStateSizes() {
  return llvm::map_to_vector(ops.blocks.getInits(), [&](Value init) {
    return cast<RankedTensorType>(init.getType())
        .getDimSize(1 - getQueriesDim());
  });
}

SmallVector<Value> QueryTileConverter::allocateStates(Value count) {
  return llvm::map_to_vector(getStateSizes(), [&](int64_t perQuery) {
    SmallVector<int64_t> shape = getBufferShape(perQuery);
    shape.insert(shape.begin(), ShapedType::kDynamic);
    return CPUTileBuilder::allocate(shape, compute, count);
  });
}

QueryTileConverter::State QueryTileConverter::getState(ValueRange states,
                                                       Value number) {
  State state;
  for (auto [memory, perQuery] : llvm::zip_equal(states, getStateSizes()))
    state.push_back({matrixAt(memory, number), perQuery});
  return state;
}

void QueryTileConverter::allocate(const WorkTile &workTile) {
  setTile(workTile);
  buffers.clear();
  if (ops.step) {
    factors->allocateQueries(b.getIndexAttr(panels));
    Type key = b.getI32Type();
    lo = allocateBuffer(1, key);
    hi = allocateBuffer(1, key);
  }
  Operation *outer = ops.getOuter();
  for (Operation &op : *ops.body)
    TypeSwitch<Operation *>(&op)
        .Case([&](ReadOp read) {
          if (read.isOfVectors())
            return;
          for (Value number : read.getValues())
            buffers[number] = allocateBuffer(1, compute);
        })
        .Case([&](RowDotOp dot) {
          buffers[dot.getResult()] = allocateBuffer(1, compute);
        })
        .Case([&](QueryTileOpInterface computed) {
          if (outer && computed->isBeforeInBlock(outer))
            for (Value result : computed->getResults())
              buffers[result] =
                  allocateBuffer(getPerQuery(computed, result), compute);
        });
  if (!ops.step)
    return;
  SmallVector<Value> memory =
      score->allocate(b.getIndexAttr(panels),
                      [&](Type type) { return allocateBuffer(1, type); });
  useScore(memory);
  score->emitViews();
  factors->allocateKeys();
}

//===----------------------------------------------------------------------===//
// Operations of a tile
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitBefore() {
  Block *body = ops.body;
  Operation *outer = ops.getOuter();
  auto end = outer ? outer->getIterator() : body->end();
  forEachPanel([&](Panel at) {
    // Without blocks scratch of one panel serves all.
    if (!outer)
      at.number = at.offset = index.constant(0);
    // Reads depend on nothing but their tile.
    if (factors)
      factors->pack(at);
    emitNumbers(at);
    emitOps(body->begin(), end, at);
    if (outer)
      score->storeRanges(at);
  });
}

void QueryTileConverter::emitAfter(const State &state) {
  Operation *outer = ops.getOuter();
  for (auto [result, buffer] : llvm::zip_equal(outer->getResults(), state))
    buffers[result] = buffer;
  forEachPanel([&](const Panel &at) {
    emitOps(std::next(outer->getIterator()), outer->getBlock()->end(), at);
  });
}

void QueryTileConverter::emitOps(Block::iterator begin, Block::iterator end,
                                 const Panel &at) {
  auto body = llvm::make_range(begin, end);
  if (llvm::none_of(body, llvm::IsaPred<QueryTileOpInterface, WriteOp>))
    return;
  forEachRun(at, [&](Value from, OpFoldResult count) {
    Run run(at, from, count);
    if (llvm::any_of(body, llvm::IsaPred<WriteOp>))
      run.rows = rowsOf(run);
    // First, so that what is computed can be written there at once.
    DenseMap<Operation *, RowPlace> places;
    for (Operation &op : body)
      if (auto write = dyn_cast<WriteOp>(op); write && write.isOfVectors())
        places[write] = emitPlace(write, run);
    for (Operation &op : body)
      TypeSwitch<Operation *>(&op)
          .Case(
              [&](QueryTileOpInterface computed) { emitTileOp(computed, run); })
          .Case([&](WriteOp write) {
            if (write.isOfVectors())
              emitWriteRows(write, places.at(write), run);
            else
              emitWriteNumbers(write, run);
          });
  });
}

/// What is a number of each query. Lanes behind the last one have its numbers;
/// vectors behind it begin and end with the last key: nothing is computed for
/// them.
void QueryTileConverter::emitNumbers(const Panel &at) {
  forEachLane(at, [&](Value lane, Value pair) {
    if (ops.step) {
      emitLimits(tile.pairs.query(index, pair), placeOf(lo, at, lane));
      score->store(at, lane);
    }
    for (Operation &op : *ops.body)
      TypeSwitch<Operation *>(&op)
          .Case([&](ReadOp read) {
            if (read.isOfVectors())
              return;
            Values loaded =
                loadNumbers(read.getSource(), pair, read.getValues().size());
            for (auto [number, value] :
                 llvm::zip_equal(loaded, read.getValues()))
              storeNumber(number, buffers.at(value), at, lane);
          })
          .Case([&](RowDotOp dot) {
            storeNumber(emitRowProduct(dot, pair), buffers.at(dot.getResult()),
                        at, lane);
          });
  });
  if (!ops.step || !isKQ())
    return;
  Value end = arith::IndexCastOp::create(b, b.getI32Type(), tile.kRows);
  loop(index.roundUp(at.rows, lanes), index.constant(size), 1, [&](Value lane) {
    for (const PanelBuffer &limits : {lo, hi})
      storeNumber(end, limits, at, lane);
  });
}

Value QueryTileConverter::emitRowProduct(RowDotOp dot, Value pair) {
  SmallVector<Value> sources =
      llvm::map_to_vector(dot->getOperands(), [](Value operand) -> Value {
        return operand.getDefiningOp<ReadOp>().getSource();
      });
  int64_t columns = memoryType(sources[0]).getDimSize(2);
  int64_t whole = columns / lanes * lanes;
  auto load = [&](Value source, Value at, int64_t length) {
    auto type = VectorType::get({length}, elementOf(source));
    SmallVector<Value> place = tile.pairs.placeOf(index, 3, pair);
    place.push_back(at);
    return emitConvert(b, vector::LoadOp::create(b, type, source, place),
                       compute);
  };
  auto sum = [&](Value vector) -> Value {
    return vector::ReductionOp::create(b, vector::CombiningKind::ADD, vector,
                                       arith::FastMathFlags::reassoc);
  };
  Value total = floatConstant(0.0);
  if (whole) {
    ValueRange products = emitLoop(
        b, index.constant(0), index.constant(whole), index.constant(lanes),
        splat(lanes, compute, 0.0), [&](Value at, ValueRange acc) {
          return Values{math::FmaOp::create(b, load(sources[0], at, lanes),
                                            load(sources[1], at, lanes),
                                            acc.front())};
        });
    total = sum(products.front());
  }
  if (whole != columns) {
    Value at = index.constant(whole);
    Value rest = arith::MulFOp::create(b, load(sources[0], at, columns - whole),
                                       load(sources[1], at, columns - whole));
    total = arith::AddFOp::create(b, total, sum(rest));
  }
  return total;
}

//===----------------------------------------------------------------------===//
// Runs of queries
//===----------------------------------------------------------------------===//

RowRange QueryTileConverter::rowsOf(const Run &run) {
  Value rest = index.sub(run.at.rows, run.from);
  return {tile.pairs, index.add(run.at.first, run.from),
          isKQ() ? index.min(rest, lanes) : rest};
}

Value QueryTileConverter::view(const PanelBuffer &buffer, const Run &run,
                               unsigned dim) {
  Value memory = QueryPanels::view(buffer, run.at, run.from, run.count);
  if (dim == getQueriesDim())
    return memory;
  AffineMap swap =
      AffineMap::getPermutationMap(ArrayRef<int64_t>{1, 0}, b.getContext());
  return memref::TransposeOp::create(b, memory, AffineMapAttr::get(swap));
}

Value QueryTileConverter::tileOf(Value value, const Run &run, unsigned dim) {
  if (Value tile = run.tiles.lookup(value))
    return tile;
  return load(view(buffers.at(value), run, dim));
}

void QueryTileConverter::emitTileOp(QueryTileOpInterface op, Run &run) {
  auto copy = cast<QueryTileOpInterface>(op->clone());
  // Where the steps round probabilities.
  copy.setRounded(factors && factors->roundsProbabilities());
  // As the operation has its queries, once it is asked for a tile of that type.
  unsigned own = getQueriesDim();
  for (OpOperand &operand : copy->getOpOperands()) {
    Value value = operand.get();
    operand.set(tileOf(value, run, own));
    if (unsigned dim = copy.getQueriesDim(operand.get()); dim != own)
      operand.set(tileOf(value, run, dim));
  }
  SmallVector<std::pair<Value, Value>> stored;
  for (auto [value, result] :
       llvm::zip_equal(op->getResults(), copy->getResults())) {
    OpFoldResult perQuery = b.getIndexAttr(getPerQuery(op, value));
    auto setDim = [&, &result = result](unsigned dim) {
      SmallVector<OpFoldResult> sizes = {run.count, perQuery};
      if (dim == 1)
        std::swap(sizes[0], sizes[1]);
      result.setType(
          RankedTensorType::get(decomposeMixedValues(sizes).first, compute));
      return copy.getQueriesDim(result);
    };
    unsigned dim = setDim(own);
    if (dim != own)
      setDim(dim);
    run.tiles[value] = result;
    if (auto buffer = buffers.find(value); buffer != buffers.end())
      stored.push_back({result, view(buffer->second, run, dim)});
  }
  b.insert(copy);
  for (auto [result, memory] : stored)
    store(result, memory);
}

QueryTileConverter::RowPlace QueryTileConverter::emitPlace(WriteOp write,
                                                           const Run &run) {
  Value destination = write.getDestination();
  Type element = elementOf(destination);
  int64_t columns = memoryType(destination).getDimSize(2);
  RowRange rows = *run.rows;
  if (!isKQ()) {
    Value scratch = CPUTileBuilder::allocate({size, columns}, compute);
    return {rows, rowView(scratch, b.getIndexAttr(0), run.count), scratch};
  }
  // Rows of one head are all there is to write.
  if (isConstantIntValue(rows.map.group, 1) && isOfRows(destination, element))
    return {rows, emitRowsInPlace(b, destination, rows)};
  Value scratch = CPUTileBuilder::allocate({lanes, columns}, element);
  Value inPlace = emitIsInPlace(b, destination, rows, element, lanes);
  Value memory =
      emitVectorRows(b, destination, rows, lanes, inPlace, scratch, [] {});
  return {rows, memory, scratch, inPlace};
}

void QueryTileConverter::emitWriteRows(WriteOp write, const RowPlace &place,
                                       const Run &run) {
  Value tile = tileOf(write.getValues().front(), run, /*dim=*/0);
  if (!place.scratch) {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, b.getLoc(), tile);
    sizes[0] = place.rows.count;
    tile = tensor::ExtractSliceOp::create(
        b, tile, SmallVector<OpFoldResult>(2, b.getIndexAttr(0)), sizes,
        SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
    return store(tile, place.memory);
  }
  store(tile, place.memory);
  auto copy = [&] {
    CPUTileBuilder::emitWriteRows(place.scratch, /*factor=*/FloatAttr(),
                                  place.rows, write.getDestination());
  };
  if (place.inPlace)
    branch(isNot(place.inPlace), copy);
  else
    copy();
}

void QueryTileConverter::emitWriteNumbers(WriteOp write, const Run &run) {
  SmallVector<Value> tiles =
      llvm::map_to_vector(write.getValues(), [&](Value value) {
        return tileOf(value, run, getQueriesDim());
      });
  TileConverter::emitWriteNumbers(
      write, run.rows->first, run.rows->count,
      [&](size_t i, Value lane) -> Value {
        auto type = cast<RankedTensorType>(tiles[i].getType());
        SmallVector<Value> place = {index.constant(0), lane};
        if (type.getDimSize(0) != 1)
          std::swap(place[0], place[1]);
        return tensor::ExtractOp::create(b, tiles[i], place);
      });
}

//===----------------------------------------------------------------------===//
// Ends of tiles
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitUnused() {
  for (auto write : ops.body->getOps<WriteOp>())
    emitOtherwise(write, {tile.pairs, tile.first, tile.rows});
}

void QueryTileConverter::emitCopy(const State &from, const State &to) {
  for (auto [source, destination] : llvm::zip_equal(from, to))
    linalg::CopyOp::create(b, viewAll(source), viewAll(destination));
}

void QueryTileConverter::emitMerge(const State &state, const State &more) {
  auto merge = cast<QueryTileOpInterface>(ops.parts.getMergeOp());
  SmallVector<PanelBuffer> operands(state);
  llvm::append_range(operands, more);
  for (auto [operand, buffer] : llvm::zip_equal(merge->getOperands(), operands))
    buffers[operand] = buffer;
  for (auto [result, buffer] : llvm::zip_equal(merge->getResults(), state))
    buffers[result] = buffer;
  forEachPanel([&](const Panel &at) {
    forEachRun(at, [&](Value from, OpFoldResult count) {
      Run run(at, from, count);
      emitTileOp(merge, run);
    });
  });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

// Where one panel is all the work that could hide the way of keys from memory,
// as in decoding, the block behind is asked for. No hardware foresees it: rows
// of a head lie as far apart as a token has heads.

void QueryTileConverter::emitBlocks(Value begin, Value end,
                                    const State &state) {
  SmallVector<double> numbers = ops.blocks.getBeginning().getNumbers();
  auto begins = llvm::zip_equal(numbers, state);
  if (isKQ()) {
    // Vectors behind the last query of a single panel are not even touched.
    Value columns =
        index.select(index.equal(numPanels, 1), index.roundUp(tile.rows, lanes),
                     index.constant(size));
    loop(index.constant(0), columns, lanes, [&](Value column) {
      for (auto [number, buffer] : begins)
        emitFill(number,
                 CPUTileBuilder::view(buffer.memory, b.getIndexAttr(0), column,
                                      index.mul(numPanels, buffer.perQuery),
                                      b.getIndexAttr(lanes)));
    });
  } else {
    for (auto [number, buffer] : begins)
      emitFill(number, viewAll(buffer));
  }
  // A single panel is checked when it visits the block.
  SmallVector<NumberRange> ofTile;
  if (isKQ())
    ofTile = score->uniteRanges(numPanels);
  Values tiles =
      llvm::map_to_vector(state, [&](const PanelBuffer &buffer) -> Value {
        return CPUTileBuilder::load(buffer.memory, /*writable=*/true);
      });
  ValueRange ends =
      emitLoop(b, begin, end, index.constant(schedule.getKvBlock()), tiles,
               [&](Value k0, ValueRange tiles) {
                 Value may;
                 if (isKQ() && score->hidesKeys())
                   may = score->mayBeVisible(ofTile, tile.first, tile.rows, k0,
                                             index.add(k0, blockKeys(k0)));
                 if (!may)
                   return emitBlock(k0, tiles);
                 return Values(emitChoice(
                     b, may, [&] { return emitBlock(k0, tiles); },
                     [&] { return Values(tiles); }));
               });
  for (auto [tile, buffer] : llvm::zip_equal(ends, state))
    store(tile, buffer.memory);
}

Values QueryTileConverter::emitBlock(Value k0, ValueRange state) {
  Value keys = blockKeys(k0), next = index.add(k0, keys);
  auto prefetch = [&] { factors->prefetch(next, blockKeys(next)); };
  factors->readNumbers(k0, keys);
  if (isKQ()) {
    // Copying keys is worthwhile if several panels read them. A partial last
    // register block must be copied so that its remaining rows are zero.
    Value rest = index.rem(keys, kRegisterBlock);
    Value isSingle = index.equal(numPanels, 1);
    factors->readKeys(k0, keys, index.both(index.equal(rest, 0), isSingle));
    branch(isSingle, prefetch);
  } else {
    prefetch();
    if (!factors->areInPlace())
      factors->readKeys(k0, keys, /*inPlace=*/Value());
  }
  if (!isKQ())
    return emitPanelStep(
        {index.constant(0), index.constant(0), tile.first, tile.rows},
        {k0, keys}, state);
  return forEachPanel(state, [&](const Panel &at, ValueRange state) {
    return emitPanelStep(at, {k0, keys}, state);
  });
}

Values QueryTileConverter::emitPanelStep(const Panel &at, const KeyBlock &block,
                                         ValueRange state) {
  return emitSeen(at, block, state, [&](KeyRange keys) {
    if (isKQ()) {
      // Vectors without a query see nothing.
      Value isFull = index.less(size - lanes, at.rows);
      keys.seenEnd = index.select(isFull, keys.seenEnd, index.constant(0));
    } else {
      // A minimum bounds the size of the scores.
      keys.size = index.min(keys.size, schedule.getKvBlock());
    }
    auto places =
        llvm::map_to_vector(state, [&](Value all) { return sliceOf(all, at); });
    return emitStep(at, block, keys, view(lo, at), view(hi, at), state, places);
  });
}
