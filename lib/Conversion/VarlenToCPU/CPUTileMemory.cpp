//===- CPUTileMemory.cpp - Packing of query tiles and kv blocks -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"
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

static int64_t innerSize(Value memory) {
  return memoryType(memory).getShape().back();
}

namespace {
/// The (row, head) of each lane.
struct LanePairs {
  SmallVector<Value> rows, heads;

  LanePairs(IndexBuilder &index, const RowMap &map, Value first, Value last,
            int64_t lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value pair = index.min(index.add(first, lane), last);
      rows.push_back(map.row(index, pair));
      heads.push_back(map.head(index, pair));
    }
  }
};
} // namespace

void CPUTileBuilder::emitPackColumns(Value source, const RowMap &map,
                                     Value first, Value last, Value destination,
                                     Value columnOffset, bool bf16Pairs) {
  LanePairs at(index, map, first, last, lanes);
  // What is transposed: elements of the compute type, or words of two bf16.
  int64_t perWord = bf16Pairs ? 2 : 1;
  int64_t words = innerSize(source) / perWord;
  int64_t whole = words / lanes * lanes;
  auto loadWords = [&](int64_t lane, Value word, int64_t count) -> Value {
    auto type = VectorType::get({count * perWord}, elementOf(source));
    Value row = vector::LoadOp::create(
        b, type, source,
        ValueRange{at.rows[lane], at.heads[lane], index.mul(word, perWord)});
    if (!bf16Pairs)
      return emitConvert(b, row, elementOf(destination));
    return vector::BitCastOp::create(
        b, VectorType::get({count}, b.getI32Type()), row);
  };
  auto storeWords = [&](Value words, Value row, Value column) {
    int64_t count = cast<VectorType>(words.getType()).getDimSize(0);
    if (bf16Pairs)
      words = vector::BitCastOp::create(
          b, VectorType::get({count * perWord}, elementOf(destination)), words);
    vector::StoreOp::create(b, words, destination, ValueRange{row, column});
  };

  if (whole)
    loop(index.constant(0), index.constant(whole), lanes, [&](Value w) {
      SmallVector<Value> rows;
      for (int64_t lane = 0; lane < lanes; ++lane)
        rows.push_back(loadWords(lane, w, lanes));
      rows = transposeVectors(b, rows);
      for (int64_t lane = 0; lane < lanes; ++lane)
        storeWords(rows[lane], index.add(w, lane), columnOffset);
    });
  if (whole != words)
    loop(index.constant(whole), index.constant(words), 1, [&](Value w) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        storeWords(loadWords(lane, w, 1), w,
                   index.add(columnOffset, lane * perWord));
    });
}

void CPUTileBuilder::emitUnpackColumns(Value source, Value rowOffset,
                                       Value columnOffset, const RowMap &map,
                                       Value first, Value last,
                                       Value destination) {
  LanePairs at(index, map, first, last, lanes);
  int64_t size = innerSize(destination), whole = size / lanes * lanes;
  Type element = elementOf(destination);
  auto type = VectorType::get({lanes}, elementOf(source));
  auto column = [&](Value d) -> Value {
    return vector::LoadOp::create(
        b, type, source, ValueRange{index.add(rowOffset, d), columnOffset});
  };

  if (whole)
    loop(index.constant(0), index.constant(whole), lanes, [&](Value d) {
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
    loop(index.constant(whole), index.constant(size), 1, [&](Value d) {
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

void CPUTileBuilder::emitFillRun(double value, Value memory, ValueRange row,
                                 int64_t begin, int64_t end, int64_t most) {
  forEachRun(begin, end, most, [&](int64_t d, int64_t length) {
    SmallVector<Value> at(row);
    at.push_back(index.constant(d));
    vector::StoreOp::create(b, splat(length, elementOf(memory), value), memory,
                            at);
  });
}

void CPUTileBuilder::forEachRow(const RowRange &rows,
                                function_ref<void(Value, Value, Value)> body) {
  loop(index.constant(0), rows.count, 1, [&](Value i) {
    Value pair = index.add(rows.first, i);
    Value row = rows.map.row(index, pair), head = rows.map.head(index, pair);
    body(i, row, head);
  });
}

void CPUTileBuilder::emitPrefetchRows(Value source, const RowRange &rows) {
  constexpr unsigned secondLevel = 2;
  int64_t line = getCacheLineElements(elementOf(source));
  forEachRow(rows, [&](Value, Value row, Value head) {
    for (int64_t d = 0; d < innerSize(source); d += line)
      memref::PrefetchOp::create(b, source,
                                 ValueRange{row, head, index.constant(d)},
                                 /*isWrite=*/false, secondLevel,
                                 /*isDataCache=*/true);
  });
}

void CPUTileBuilder::emitCopyRows(Value source, const RowRange &rows,
                                  Value paddedRows, Value destination) {
  int64_t size = innerSize(source), padded = innerSize(destination);
  forEachRow(rows, [&](Value i, Value row, Value head) {
    forEachRun(0, size, lanes, [&](int64_t d, int64_t length) {
      auto type = VectorType::get({length}, elementOf(source));
      Value at = index.constant(d);
      Value x =
          vector::LoadOp::create(b, type, source, ValueRange{row, head, at});
      vector::StoreOp::create(b, emitConvert(b, x, elementOf(destination)),
                              destination, ValueRange{i, at});
    });
    emitFillRun(0.0, destination, i, size, padded, lanes);
  });
  loop(rows.count, paddedRows, 1,
       [&](Value i) { emitFillRun(0.0, destination, i, 0, padded, lanes); });
}

void CPUTileBuilder::emitPairRows(Value source, const RowRange &rows,
                                  Value paddedRows, Value destination) {
  int64_t size = innerSize(source), padded = innerSize(destination);
  FloatType element = elementOf(source);
  // Pairs from row `from` on whose first, and maybe second, row exists.
  auto emitPairs = [&](Value from, Value to, int64_t present) {
    loop(from, to, 2, [&](Value i) {
      Value to = index.div(i, 2);
      SmallVector<Value> rowAt, headAt;
      for (int64_t half = 0; half < present; ++half) {
        Value pair = index.add(index.add(rows.first, i), half);
        rowAt.push_back(rows.map.row(index, pair));
        headAt.push_back(rows.map.head(index, pair));
      }
      forEachRun(0, size, 2 * lanes, [&](int64_t d, int64_t length) {
        SmallVector<Value> halves;
        for (int64_t half = 0; half < 2; ++half)
          halves.push_back(
              half >= present
                  ? splat(length, element, 0.0)
                  : Value(vector::LoadOp::create(
                        b, VectorType::get({length}, element), source,
                        ValueRange{rowAt[half], headAt[half],
                                   index.constant(d)})));
        Value both = vector::InterleaveOp::create(b, halves[0], halves[1]);
        vector::StoreOp::create(b, both, destination,
                                ValueRange{to, index.constant(2 * d)});
      });
      emitFillRun(0.0, destination, to, 2 * size, padded, 2 * lanes);
    });
  };
  Value even = index.roundDown(rows.count, 2),
        up = index.roundUp(rows.count, 2);
  emitPairs(index.constant(0), even, 2);
  emitPairs(even, up, 1);
  loop(up, paddedRows, 2, [&](Value i) {
    emitFillRun(0.0, destination, index.div(i, 2), 0, padded, 2 * lanes);
  });
}

void CPUTileBuilder::emitStoreRows(Value source, Value factor,
                                   const RowRange &rows, Value destination) {
  forEachRow(rows, [&](Value i, Value row, Value head) {
    forEachRun(
        0, innerSize(destination), lanes, [&](int64_t d, int64_t length) {
          auto type = VectorType::get({length}, elementOf(source));
          Value at = index.constant(d);
          Value x = vector::LoadOp::create(b, type, source, ValueRange{i, at});
          if (factor)
            x = arith::MulFOp::create(
                b, x, vector::BroadcastOp::create(b, type, factor));
          vector::StoreOp::create(b, emitConvert(b, x, elementOf(destination)),
                                  destination, ValueRange{row, head, at});
        });
  });
}

void CPUTileBuilder::emitFillRows(double value, const RowRange &rows,
                                  Value destination) {
  forEachRow(rows, [&](Value, Value row, Value head) {
    emitFillRun(value, destination, {row, head}, 0, innerSize(destination),
                lanes);
  });
}

void CPUTileBuilder::emitFill(double value, Value tile, Value rows) {
  loop(index.constant(0), rows, 1, [&](Value i) {
    emitFillRun(value, tile, i, 0, innerSize(tile), lanes);
  });
}

Value CPUTileBuilder::emitRowsInPlace(Value source, const RowRange &rows) {
  int64_t columns = innerSize(source);
  auto offsets = getAsOpFoldResult(rows.map.placeOf(index, 3, rows.first));
  offsets.push_back(b.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes = {rows.count, b.getIndexAttr(1),
                                     b.getIndexAttr(columns)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  auto type = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, columns}, memoryType(source), offsets, sizes,
      strides);
  return memref::SubViewOp::create(b, type, source, offsets, sizes, strides);
}
