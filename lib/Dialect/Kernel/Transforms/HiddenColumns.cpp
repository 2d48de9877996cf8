//===- HiddenColumns.cpp - varlen.hide on fragments -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HiddenColumns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// A thread has two neighbouring columns of each 8.
static constexpr int64_t kTileColumns = 8, kOwnColumns = 2;
/// The columns whose bits a word has.
static constexpr int64_t kWordTiles = 32 / kOwnColumns,
                         kWordColumns = kWordTiles * kTileColumns;

/// From so many columns of a thread on a word takes no more instructions than
/// comparisons with one limit, or with two, in each column (sm_80 and sm_90a:
/// 16 columns of one limit take up to five more, 4 of two up to four more).
static constexpr int64_t kManyOfOne = 20, kManyOfTwo = 8;

namespace {
/// Arithmetic on one i32 for each row of a fragment.
class RowWords {
public:
  RowWords(ThreadBuilder &b, int64_t tiles)
      : b(b), type(VectorType::get({tiles, 1, 2, 1}, b.getI32Type())) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
  }
  Value ofRows(Value value) {
    return value.getType() == type
               ? value
               : vector::BroadcastOp::create(b, type, value).getResult();
  }
  template <typename Op> Value apply(Value lhs, Value rhs) {
    return Op::create(b, lhs, rhs);
  }
  template <typename Op> Value apply(Value lhs, int64_t rhs) {
    return Op::create(b, lhs, constant(rhs));
  }

  /// The bits of the columns from `limit` on, of the thread's among the
  /// kWordColumns from `first`.
  Value getBitsFrom(Value limit, int64_t first, Value k0);

  ThreadBuilder &b;
  VectorType type;
};
} // namespace

Value RowWords::getBitsFrom(Value limit, int64_t first, Value k0) {
  // No key is before the first one, and the difference of two that are not
  // negative does not overflow. The block's number comes last: what does not
  // depend on it leaves the loop over blocks.
  Value own = b.add(b.firstColumn(), first);
  Value ahead = apply<arith::SubIOp>(apply<arith::MaxSIOp>(ofRows(limit), 0),
                                     ofRows(own));
  ahead = apply<arith::SubIOp>(ahead, ofRows(k0));
  ahead = apply<arith::MaxSIOp>(ahead, 0);
  ahead = apply<arith::MinSIOp>(ahead, kWordColumns);
  Value tiles = apply<arith::ShRUIOp>(
      ahead, static_cast<int64_t>(llvm::Log2_64(kTileColumns)));
  Value columns = apply<arith::MinSIOp>(
      apply<arith::AndIOp>(ahead, kTileColumns - 1), kOwnColumns);
  // All bits of a word are one more than a shift takes at once.
  Value bits = apply<arith::ShLIOp>(constant(-1), tiles);
  bits = apply<arith::ShLIOp>(bits, tiles);
  return apply<arith::ShLIOp>(bits, columns);
}

/// Which columns a row sees, by comparisons in each.
static Value compareColumns(ThreadBuilder &b, VectorType type,
                            const ColumnLimits &limits) {
  VectorType ints = type.clone(b.getI32Type());
  auto stretch = [&](Value value) -> Value {
    return vector::BroadcastOp::create(b, ints, value);
  };
  // Columns are the same for any number of warps.
  Value column = b.coordinates(/*dim=*/1, type.getShape(), /*warps=*/1);
  Value key = arith::AddIOp::create(b, stretch(column), stretch(limits.k0));
  Value isVisible = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key,
                                          stretch(limits.hi));
  if (limits.lo)
    isVisible = arith::AndIOp::create(
        b, isVisible,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, key,
                              stretch(limits.lo)));
  if (!limits.whole)
    return isVisible;
  Value whole =
      vector::BroadcastOp::create(b, type.clone(b.getI1Type()), limits.whole);
  return arith::OrIOp::create(b, isVisible, whole);
}

/// The same by bits of words.
static Value testColumns(ThreadBuilder &b, VectorType type,
                         const ColumnLimits &limits) {
  int64_t mTiles = type.getDimSize(0), nTiles = type.getDimSize(1);
  RowWords rows(b, mTiles);
  // By word and by row.
  SmallVector<SmallVector<Value>> words;
  for (int64_t tile = 0; tile < nTiles; tile += kWordTiles) {
    int64_t first = tile * kTileColumns;
    Value past = rows.getBitsFrom(limits.hi, first, limits.k0);
    Value visible = rows.apply<arith::XOrIOp>(past, -1);
    if (limits.lo)
      visible = rows.apply<arith::AndIOp>(
          visible, rows.getBitsFrom(limits.lo, first, limits.k0));
    if (limits.whole)
      visible =
          arith::SelectOp::create(b, limits.whole, rows.constant(-1), visible);
    words.emplace_back(vector::ToElementsOp::create(b, visible).getResults());
  }
  SmallVector<Value> ofColumns;
  SmallVector<int32_t> bits;
  for (int64_t mTile = 0; mTile < mTiles; ++mTile)
    for (int64_t nTile = 0; nTile < nTiles; ++nTile)
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t column = 0; column < kOwnColumns; ++column) {
          ofColumns.push_back(words[nTile / kWordTiles][2 * mTile + half]);
          bits.push_back(static_cast<int32_t>(
              uint32_t(1) << (kOwnColumns * (nTile % kWordTiles) + column)));
        }
  VectorType ints = type.clone(b.getI32Type());
  Value word = vector::FromElementsOp::create(b, ints, ofColumns);
  Value bit = arith::AndIOp::create(
      b, word,
      arith::ConstantOp::create(b,
                                DenseElementsAttr::get(ints, ArrayRef(bits))));
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(ints));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, none);
}

Value kernel::emitHiddenColumns(ThreadBuilder &b, Value scores, Value hidden,
                                const ColumnLimits &limits) {
  auto type = cast<VectorType>(scores.getType());
  int64_t columns = kOwnColumns * type.getDimSize(1);
  bool isWord = columns >= (limits.lo ? kManyOfTwo : kManyOfOne);
  Value isVisible =
      isWord ? testColumns(b, type, limits) : compareColumns(b, type, limits);
  return arith::SelectOp::create(b, isVisible, scores,
                                 vector::BroadcastOp::create(b, type, hidden));
}
