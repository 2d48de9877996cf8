//===- QueryTileConverter.cpp - The body of a loop over queries -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTileConverter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

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

/// Whether numbers are stored one by one: those of `varlen.rows`, which may
/// have other groups than the tile, and those that are multiplied by a factor.
static bool isOneByOne(WriteOp write) {
  return isa<RowsType>(write.getDestination().getType()) || write.getFactor();
}

/// Whether what a tile computes is read after it is: by the loop over blocks
/// and behind it, or to be stored one by one.
static bool isInScratch(Value result, Operation *outer) {
  return (outer && result.getDefiningOp()->isBeforeInBlock(outer)) ||
         llvm::any_of(result.getUsers(), [](Operation *user) {
           auto write = dyn_cast<WriteOp>(user);
           return write && isOneByOne(write);
         });
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
          for (Value result : computed->getResults())
            if (isInScratch(result, outer))
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
  if (!outer)
    // Scratch of one panel serves all.
    return forEachPanel([&](Panel at) {
      at.number = at.offset = index.constant(0);
      if (hasNumbers())
        emitNumbers(at);
      emitOps(body->begin(), body->end(), &at);
    });
  // Reads depend on nothing but their tile.
  forEachPanel([&](const Panel &at) {
    factors->pack(at);
    if (hasNumbers())
      emitNumbers(at);
  });
  emitKeyLimits();
  emitOps(body->begin(), outer->getIterator(), /*only=*/nullptr);
  if (score->hasRanges())
    forEachPanel([&](const Panel &at) { score->storeRanges(at); });
}

void QueryTileConverter::emitAfter(const State &state) {
  Operation *outer = ops.getOuter();
  for (auto [result, buffer] : llvm::zip_equal(outer->getResults(), state))
    buffers[result] = buffer;
  emitOps(std::next(outer->getIterator()), ops.body->end(), /*only=*/nullptr);
}

/// Vectors behind the last query begin and end with the last key: nothing is
/// computed for them.
void QueryTileConverter::emitKeyLimits() {
  BatchOp batch = ops.tiles.getBatchOp();
  KeyLimitsOp::create(b, batch.getMask(), tile.first, tile.pairs.group,
                      tile.rows, tile.queries, tile.kRows,
                      batch.getQOffset() ? tile.offset : Value(), lo.memory,
                      hi.memory);
}

bool QueryTileConverter::hasNumbers() {
  if (ops.step && !score->isEmpty())
    return true;
  return llvm::any_of(*ops.body, [](Operation &op) {
    auto read = dyn_cast<ReadOp>(op);
    return isa<RowDotOp>(op) || (read && !read.isOfVectors());
  });
}

/// What is a number of each query. Lanes behind the last one have its numbers.
void QueryTileConverter::emitNumbers(const Panel &at) {
  forEachLane(at, [&](Value lane, Value pair) {
    if (ops.step)
      score->store(at, lane);
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
// Queries by themselves
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitForQueries(Value first, Value rows,
                                        ArrayRef<PanelBuffer> inputs,
                                        TypeRange tiles,
                                        ArrayRef<QueryValues> outputs,
                                        function_ref<Values(ValueRange)> body) {
  auto memory = llvm::map_to_vector(
      inputs, [](const PanelBuffer &buffer) { return buffer.memory; });
  auto loop = ForQueriesOp::create(b, orientation, tile.pairs.firstRow,
                                   tile.pairs.kvHead, first, tile.pairs.group,
                                   rows, memory, tiles, outputs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  YieldOp::create(b, body(loop.getBody()->getArguments()));
}

Type QueryTileConverter::getTileType(Value value, ArrayRef<Operation *> ops) {
  auto type = cast<RankedTensorType>(value.getType());
  // As those operations have it; else as scratch does.
  if (llvm::any_of(value.getUsers(), [&](Operation *user) {
        return llvm::is_contained(ops, user);
      }))
    return type;
  int64_t perQuery = buffers.at(value).perQuery;
  SmallVector<int64_t> shape = {perQuery, type.getNumElements() / perQuery};
  if (!isKQ())
    std::swap(shape[0], shape[1]);
  return type.clone(shape);
}

void QueryTileConverter::emitNumbersOneByOne(WriteOp write, const Panel *only) {
  auto emit = [&](const Panel &at) {
    emitWriteNumbers(write, at.first, at.rows, [&](size_t i, Value lane) {
      return loadNumber(buffers.at(write.getValues()[i]), at, lane);
    });
  };
  if (only)
    return emit(*only);
  forEachPanel(emit);
}

void QueryTileConverter::emitOps(Block::iterator begin, Block::iterator end,
                                 const Panel *only) {
  SetVector<Value> inputs;
  SmallVector<Operation *> computed;
  SmallVector<WriteOp> oneByOne;
  SmallVector<QueryValues> outputs;
  Values results;
  auto use = [&](ValueRange values) {
    for (Value value : values)
      if (!llvm::is_contained(computed, value.getDefiningOp()))
        inputs.insert(value);
  };
  for (Operation &op : llvm::make_range(begin, end)) {
    auto write = dyn_cast<WriteOp>(op);
    if (isa<QueryTileOpInterface>(op)) {
      use(op.getOperands());
      computed.push_back(&op);
      for (Value result : op.getResults())
        if (auto buffer = buffers.find(result); buffer != buffers.end()) {
          outputs.push_back({QueryMemory::Scratch, buffer->second.memory});
          results.push_back(result);
        }
    } else if (write && isOneByOne(write)) {
      oneByOne.push_back(write);
    } else if (write) {
      use(write.getValues());
      outputs.push_back(
          {write.isOfVectors() ? QueryMemory::Rows : QueryMemory::Numbers,
           write.getDestination()});
      results.push_back(write.getValues().front());
    }
  }
  auto memory = llvm::map_to_vector(
      inputs, [&](Value input) { return buffers.at(input); });
  auto types = llvm::map_to_vector(
      inputs, [&](Value input) { return getTileType(input, computed); });
  if (!outputs.empty())
    emitForQueries(
        only ? only->first : tile.first, only ? only->rows : tile.rows, memory,
        types, outputs, [&](ValueRange tiles) {
          IRMapping mapping;
          mapping.map(inputs.getArrayRef(), tiles);
          for (Operation *op : computed) {
            auto copy = cast<QueryTileOpInterface>(b.clone(*op, mapping));
            // Where the steps round probabilities.
            copy.setRounded(factors && factors->roundsProbabilities());
          }
          return llvm::map_to_vector(
              results, [&](Value result) { return mapping.lookup(result); });
        });
  for (WriteOp write : oneByOne)
    emitNumbersOneByOne(write, only);
}

//===----------------------------------------------------------------------===//
// Ends of tiles
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitUnused() {
  for (auto write : ops.body->getOps<WriteOp>())
    emitOtherwise(write, {tile.pairs, tile.first, tile.rows});
}

/// The memory of a state, as outputs of an operation on its queries.
static SmallVector<QueryValues>
getOutputs(const QueryTileConverter::State &state) {
  return llvm::map_to_vector(state, [](const PanelBuffer &buffer) {
    return QueryValues{QueryMemory::Scratch, buffer.memory};
  });
}

void QueryTileConverter::emitCopy(const State &from, const State &to) {
  emitForQueries(tile.first, tile.rows, from, ops.blocks.getResultTypes(),
                 getOutputs(to),
                 [](ValueRange state) { return Values(state); });
}

void QueryTileConverter::emitMerge(const State &state, const State &more) {
  auto merge = cast<QueryTileOpInterface>(ops.parts.getMergeOp());
  State both(state);
  llvm::append_range(both, more);
  emitForQueries(tile.first, tile.rows, both, merge->getOperandTypes(),
                 getOutputs(state), [&](ValueRange states) {
                   IRMapping mapping;
                   mapping.map(merge->getOperands(), states);
                   auto copy =
                       cast<QueryTileOpInterface>(b.clone(*merge, mapping));
                   copy.setRounded(factors->roundsProbabilities());
                   return Values(copy->getResults());
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
  emitForQueries(tile.first, tile.rows, {}, {}, getOutputs(state),
                 [&](ValueRange) {
                   Operation *init = b.clone(*ops.blocks.getBeginning());
                   return Values(init->getResults());
                 });
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
  Value keys = blockKeys(k0);
  factors->readNumbers(k0, keys);
  // Products on rows where they are ask for those behind them.
  if (!isKQ())
    return emitFewStep({k0, keys}, state);
  // Copying keys is worthwhile if several panels read them. A partial last
  // register block must be copied so that its remaining rows are zero.
  Value rest = index.rem(keys, kRegisterBlock);
  Value isSingle = index.equal(numPanels, 1);
  factors->readKeys(k0, keys, index.both(index.equal(rest, 0), isSingle));
  Value next = index.add(k0, keys);
  branch(isSingle, [&] { factors->prefetch(next, blockKeys(next)); });
  return forEachPanel(state, [&](const Panel &at, ValueRange state) {
    return emitPanelStep(at, {k0, keys}, state);
  });
}

Values QueryTileConverter::emitFewStep(const KeyBlock &block,
                                       ValueRange state) {
  auto emit = [&] {
    return emitPanelStep(
        {index.constant(0), index.constant(0), tile.first, tile.rows}, block,
        state);
  };
  auto emitInPlace = [&] {
    factors->readKeysInPlace();
    return emit();
  };
  auto emitOnCopies = [&] {
    factors->readKeys(block.k0, block.keys, /*asTheyAre=*/Value());
    return emit();
  };
  Value inPlace = factors->getInPlace();
  if (!inPlace)
    return emitInPlace();
  if (getConstantIntValue(inPlace) == 0)
    return emitOnCopies();
  return Values(emitChoice(b, inPlace, emitInPlace, emitOnCopies));
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
