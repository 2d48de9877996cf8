//===- CPUTileMemory.cpp - Packing of query tiles and kv blocks -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileMemory.h"

#include "varlen/Dialect/Varlen/Utils/TransposeVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value mlir::varlen::emitConvert(ImplicitLocOpBuilder &b, Value value,
                                Type element) {
  auto from = cast<FloatType>(getElementTypeOrSelf(value.getType()));
  if (from == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (from.getWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, type, value);
  return arith::TruncFOp::create(b, type, value);
}

static int64_t innerSize(Value memref) {
  return cast<MemRefType>(memref.getType()).getShape().back();
}

static Type elementType(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType();
}

static Value splat(ImplicitLocOpBuilder &b, int64_t length, Type element,
                   double value) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({length}, element),
                                b.getFloatAttr(element, value)));
}

namespace {
/// The (row, head) of each lane.
struct LanePairs {
  SmallVector<Value> rows, heads;

  LanePairs(IndexBuilder &index, const RowMap &pairs, Value first, Value last,
            int64_t lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value pair = index.min(index.add(first, lane), last);
      rows.push_back(pairs.row(index, pair));
      heads.push_back(pairs.head(index, pair));
    }
  }
};
} // namespace

void mlir::varlen::emitPackColumns(ImplicitLocOpBuilder &b, Value source,
                                   const RowMap &pairs, Value first, Value last,
                                   Value destination, Value rowOffset,
                                   Value columnOffset, int64_t lanes,
                                   bool bf16Pairs) {
  IndexBuilder index{b};
  LanePairs at(index, pairs, first, last, lanes);
  // What is transposed: elements of the compute type, or words of two bf16.
  int64_t perWord = bf16Pairs ? 2 : 1;
  int64_t words = innerSize(source) / perWord;
  int64_t whole = words / lanes * lanes;
  auto loadWords = [&](int64_t lane, Value word, int64_t count) -> Value {
    auto type = VectorType::get({count * perWord}, elementType(source));
    Value row = vector::LoadOp::create(
        b, type, source,
        ValueRange{at.rows[lane], at.heads[lane], index.mul(word, perWord)});
    if (!bf16Pairs)
      return emitConvert(b, row, elementType(destination));
    return vector::BitCastOp::create(
        b, VectorType::get({count}, b.getI32Type()), row);
  };
  auto storeWords = [&](Value words, Value row, Value column) {
    int64_t count = cast<VectorType>(words.getType()).getDimSize(0);
    if (bf16Pairs)
      words = vector::BitCastOp::create(
          b, VectorType::get({count * perWord}, elementType(destination)),
          words);
    vector::StoreOp::create(b, words, destination, ValueRange{row, column});
  };

  if (whole)
    emitLoop(b, index.constant(0), index.constant(whole), lanes, [&](Value w) {
      SmallVector<Value> rows;
      for (int64_t lane = 0; lane < lanes; ++lane)
        rows.push_back(loadWords(lane, w, lanes));
      rows = transposeVectors(b, rows);
      for (int64_t lane = 0; lane < lanes; ++lane)
        storeWords(rows[lane], index.add(index.add(rowOffset, w), lane),
                   columnOffset);
    });
  if (whole != words)
    emitLoop(b, index.constant(whole), index.constant(words), 1, [&](Value w) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        storeWords(loadWords(lane, w, 1), index.add(rowOffset, w),
                   index.add(columnOffset, lane * perWord));
    });
}

void mlir::varlen::emitUnpackColumns(ImplicitLocOpBuilder &b, Value source,
                                     Value rowOffset, Value columnOffset,
                                     const RowMap &pairs, Value first,
                                     Value last, Value destination,
                                     int64_t lanes) {
  IndexBuilder index{b};
  LanePairs at(index, pairs, first, last, lanes);
  int64_t size = innerSize(destination), whole = size / lanes * lanes;
  Type element = elementType(destination);
  auto type = VectorType::get({lanes}, elementType(source));
  auto column = [&](Value d) -> Value {
    return vector::LoadOp::create(
        b, type, source, ValueRange{index.add(rowOffset, d), columnOffset});
  };

  if (whole)
    emitLoop(b, index.constant(0), index.constant(whole), lanes, [&](Value d) {
      SmallVector<Value> rows;
      for (int64_t lane = 0; lane < lanes; ++lane)
        rows.push_back(column(index.add(d, lane)));
      rows = transposeVectors(b, rows);
      for (int64_t lane = 0; lane < lanes; ++lane)
        vector::StoreOp::create(b, emitConvert(b, rows[lane], element),
                                destination,
                                ValueRange{at.rows[lane], at.heads[lane], d});
    });
  if (whole != size)
    emitLoop(b, index.constant(whole), index.constant(size), 1, [&](Value d) {
      Value values = column(d);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value x = vector::ExtractOp::create(b, values, lane);
        memref::StoreOp::create(b, emitConvert(b, x, element), destination,
                                ValueRange{at.rows[lane], at.heads[lane], d});
      }
    });
}

/// Calls `body` with (offset, length) of runs of at most `most` elements.
static void forEachRun(int64_t begin, int64_t end, int64_t most,
                       function_ref<void(int64_t, int64_t)> body) {
  for (int64_t d = begin; d < end; d += most)
    body(d, std::min(most, end - d));
}

/// Stores a number to elements [begin, end) of a row.
static void emitFillRun(ImplicitLocOpBuilder &b, double value, Value memref,
                        ValueRange row, int64_t begin, int64_t end,
                        int64_t lanes) {
  IndexBuilder index{b};
  forEachRun(begin, end, lanes, [&](int64_t d, int64_t length) {
    SmallVector<Value> at(row);
    at.push_back(index.constant(d));
    vector::StoreOp::create(b, splat(b, length, elementType(memref), value),
                            memref, at);
  });
}

/// Stores zeros to elements [begin, end) of a row.
static void emitZeroRun(ImplicitLocOpBuilder &b, Value memref, ValueRange row,
                        int64_t begin, int64_t end, int64_t lanes) {
  emitFillRun(b, 0.0, memref, row, begin, end, lanes);
}

void mlir::varlen::emitPrefetchRows(ImplicitLocOpBuilder &b, Value source,
                                    const RowMap &pairs, Value first,
                                    Value rows) {
  constexpr unsigned secondLevel = 2;
  IndexBuilder index{b};
  int64_t line = getCacheLineElements(elementType(source));
  emitLoop(b, index.constant(0), rows, 1, [&](Value i) {
    Value pair = index.add(first, i);
    Value row = pairs.row(index, pair), head = pairs.head(index, pair);
    for (int64_t d = 0; d < innerSize(source); d += line)
      memref::PrefetchOp::create(b, source,
                                 ValueRange{row, head, index.constant(d)},
                                 /*isWrite=*/false, secondLevel,
                                 /*isDataCache=*/true);
  });
}

void mlir::varlen::emitCopyRows(ImplicitLocOpBuilder &b, Value source,
                                const RowMap &pairs, Value first, Value rows,
                                Value paddedRows, Value destination,
                                int64_t lanes) {
  IndexBuilder index{b};
  int64_t size = innerSize(source), padded = innerSize(destination);
  emitLoop(b, index.constant(0), rows, 1, [&](Value i) {
    Value pair = index.add(first, i);
    Value row = pairs.row(index, pair), head = pairs.head(index, pair);
    forEachRun(0, size, lanes, [&](int64_t d, int64_t length) {
      auto type = VectorType::get({length}, elementType(source));
      Value at = index.constant(d);
      Value x =
          vector::LoadOp::create(b, type, source, ValueRange{row, head, at});
      vector::StoreOp::create(b, emitConvert(b, x, elementType(destination)),
                              destination, ValueRange{i, at});
    });
    emitZeroRun(b, destination, i, size, padded, lanes);
  });
  emitLoop(b, rows, paddedRows, 1,
           [&](Value i) { emitZeroRun(b, destination, i, 0, padded, lanes); });
}

void mlir::varlen::emitPairRows(ImplicitLocOpBuilder &b, Value source,
                                const RowMap &pairs, Value first, Value rows,
                                Value paddedRows, Value destination,
                                int64_t lanes) {
  IndexBuilder index{b};
  int64_t size = innerSize(source), padded = innerSize(destination);
  // Pairs from row `from` on whose first, and maybe second, row exists.
  auto emitPairs = [&](Value from, Value to, int64_t present) {
    emitLoop(b, from, to, 2, [&](Value i) {
      Value to = index.div(i, index.constant(2));
      SmallVector<Value> rowAt, headAt;
      for (int64_t half = 0; half < present; ++half) {
        Value pair = index.add(index.add(first, i), half);
        rowAt.push_back(pairs.row(index, pair));
        headAt.push_back(pairs.head(index, pair));
      }
      forEachRun(0, size, 2 * lanes, [&](int64_t d, int64_t length) {
        auto type = VectorType::get({length}, elementType(source));
        SmallVector<Value> halves;
        for (int64_t half = 0; half < 2; ++half)
          halves.push_back(half >= present
                               ? splat(b, length, elementType(source), 0.0)
                               : Value(vector::LoadOp::create(
                                     b, type, source,
                                     ValueRange{rowAt[half], headAt[half],
                                                index.constant(d)})));
        Value both = vector::InterleaveOp::create(b, halves[0], halves[1]);
        vector::StoreOp::create(b, both, destination,
                                ValueRange{to, index.constant(2 * d)});
      });
      emitZeroRun(b, destination, to, 2 * size, padded, 2 * lanes);
    });
  };
  Value even = index.roundDown(rows, 2), up = index.roundUp(rows, 2);
  emitPairs(index.constant(0), even, 2);
  emitPairs(even, up, 1);
  emitLoop(b, up, paddedRows, 2, [&](Value i) {
    emitZeroRun(b, destination, index.div(i, index.constant(2)), 0, padded,
                2 * lanes);
  });
}

void mlir::varlen::emitStoreRows(ImplicitLocOpBuilder &b, Value source,
                                 Value factor, const RowMap &pairs, Value first,
                                 Value rows, Value destination, int64_t lanes) {
  IndexBuilder index{b};
  emitLoop(b, index.constant(0), rows, 1, [&](Value i) {
    Value pair = index.add(first, i);
    Value row = pairs.row(index, pair), head = pairs.head(index, pair);
    forEachRun(
        0, innerSize(destination), lanes, [&](int64_t d, int64_t length) {
          auto type = VectorType::get({length}, elementType(source));
          Value at = index.constant(d);
          Value x = vector::LoadOp::create(b, type, source, ValueRange{i, at});
          if (factor)
            x = arith::MulFOp::create(
                b, x, vector::BroadcastOp::create(b, type, factor));
          vector::StoreOp::create(b,
                                  emitConvert(b, x, elementType(destination)),
                                  destination, ValueRange{row, head, at});
        });
  });
}

void mlir::varlen::emitFillRows(ImplicitLocOpBuilder &b, double value,
                                const RowMap &pairs, Value first, Value rows,
                                Value destination, int64_t lanes) {
  IndexBuilder index{b};
  emitLoop(b, index.constant(0), rows, 1, [&](Value i) {
    Value pair = index.add(first, i);
    emitFillRun(b, value, destination,
                {pairs.row(index, pair), pairs.head(index, pair)}, 0,
                innerSize(destination), lanes);
  });
}

void mlir::varlen::emitFill(ImplicitLocOpBuilder &b, double value, Value tile,
                            Value rows, int64_t lanes) {
  IndexBuilder index{b};
  emitLoop(b, index.constant(0), rows, 1, [&](Value i) {
    emitFillRun(b, value, tile, i, 0, innerSize(tile), lanes);
  });
}

Value mlir::varlen::emitRowsInPlace(ImplicitLocOpBuilder &b, Value source,
                                    const RowMap &pairs, Value first,
                                    Value rows) {
  IndexBuilder index{b};
  int64_t columns = innerSize(source);
  auto offsets = getAsOpFoldResult(pairs.placeOf(index, 3, first));
  offsets.push_back(b.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes = {rows, b.getIndexAttr(1),
                                     b.getIndexAttr(columns)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  auto type = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, columns}, cast<MemRefType>(source.getType()),
      offsets, sizes, strides);
  return memref::SubViewOp::create(b, type, source, offsets, sizes, strides);
}
