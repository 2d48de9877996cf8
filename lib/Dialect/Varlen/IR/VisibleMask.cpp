//===- VisibleMask.cpp - Hidden keys that a mask can hide -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A condition on the distance of key and query is a window, and that both are
// in one chunk a chunk mask where it is causal, which the tiling of every
// target knows: it visits no block that is hidden.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// query * position of the query + key * position of the key + constant.
struct Linear {
  int64_t query = 0, key = 0, constant = 0;
};
} // namespace

/// Numbers that sums of a few of, and of positions, stay within 32 bits.
static constexpr int64_t kMost = int64_t(1) << 28;

static std::optional<Linear> getLinear(Value value, Block *score) {
  if (value == score->getArgument(QueryPosition))
    return Linear{1, 0, 0};
  if (value == score->getArgument(KeyPosition))
    return Linear{0, 1, 0};
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    int64_t number = constant.getSExtValue();
    if (number < -kMost || number > kMost)
      return std::nullopt;
    return Linear{0, 0, number};
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<Linear> lhs = getLinear(op->getOperand(0), score);
  std::optional<Linear> rhs = getLinear(op->getOperand(1), score);
  if (!lhs || !rhs)
    return std::nullopt;
  int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
  Linear sum = {lhs->query + sign * rhs->query, lhs->key + sign * rhs->key,
                lhs->constant + sign * rhs->constant};
  // More than a distance and a number might wrap around.
  if (std::abs(sum.query) > 1 || std::abs(sum.key) > 1 ||
      sum.query + sum.key > 1 || sum.query + sum.key < -1 ||
      std::abs(sum.constant) > kMost)
    return std::nullopt;
  return sum;
}

/// The predicate of b and a that says what one of a and b does.
static arith::CmpIPredicate swapSides(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return predicate;
  }
}

/// The window that a comparison leaves, as `left` and `right` of a mask; -1 is
/// open.
static std::optional<std::pair<int64_t, int64_t>> getWindow(Value condition,
                                                            Block *score) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  std::optional<Linear> lhs = getLinear(compare.getLhs(), score);
  std::optional<Linear> rhs = getLinear(compare.getRhs(), score);
  if (!lhs || !rhs)
    return std::nullopt;
  arith::CmpIPredicate predicate = compare.getPredicate();
  // To key - query + constant on one side, 0 on the other.
  Linear distance = {lhs->query - rhs->query, lhs->key - rhs->key,
                     lhs->constant - rhs->constant};
  if (distance.key == -1 && distance.query == 1) {
    distance = {-1, 1, -distance.constant};
    predicate = swapSides(predicate);
  }
  if (distance.key != 1 || distance.query != -1)
    return std::nullopt;
  int64_t bound = -distance.constant;
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    --bound;
    [[fallthrough]];
  case arith::CmpIPredicate::sle:
    // A mask knows no window that ends before the query.
    return bound < 0 ? std::nullopt
                     : std::optional(std::pair(int64_t(-1), bound));
  case arith::CmpIPredicate::sgt:
    ++bound;
    [[fallthrough]];
  case arith::CmpIPredicate::sge:
    return bound > 0 ? std::nullopt
                     : std::optional(std::pair(-bound, int64_t(-1)));
  default:
    return std::nullopt;
  }
}

/// The narrower one of two bounds of a window.
static int64_t narrower(int64_t a, int64_t b) {
  if (a < 0 || b < 0)
    return std::max(a, b);
  return std::min(a, b);
}

/// The size of chunks of positions of which a comparison wants one that the
/// query and the key are both in. Quotients of positions before the first key,
/// which differ between divisions, matter to no causal mask.
static std::optional<int64_t> getChunk(Value condition, Block *score) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  auto getSize = [&](Value quotient,
                     ScoreArgument position) -> std::optional<int64_t> {
    Operation *op = quotient.getDefiningOp();
    APInt size;
    if (!isa_and_nonnull<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
            op) ||
        op->getOperand(0) != score->getArgument(position) ||
        !matchPattern(op->getOperand(1), m_ConstantInt(&size)) ||
        !size.isStrictlyPositive() || size.ugt(kMaxChunk))
      return std::nullopt;
    return size.getSExtValue();
  };
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  if (!getSize(lhs, QueryPosition))
    std::swap(lhs, rhs);
  std::optional<int64_t> size = getSize(lhs, QueryPosition);
  return size == getSize(rhs, KeyPosition) ? size : std::nullopt;
}

/// The conditions that all have to hold.
static SmallVector<Value> getConditions(Value visible) {
  SmallVector<Value> all = {visible}, conditions;
  for (size_t i = 0; i < all.size(); ++i) {
    if (auto both = all[i].getDefiningOp<arith::AndIOp>())
      llvm::append_range(all, both->getOperands());
    else
      conditions.push_back(all[i]);
  }
  return conditions;
}

namespace {
/// A window or, with a size, a causal chunk mask.
class MaskBounds {
public:
  /// Nothing of a mask that is neither.
  static std::optional<MaskBounds> get(MaskAttrInterface mask) {
    MaskBounds bounds;
    if (auto window = dyn_cast<MaskAttr>(mask)) {
      bounds.left = window.getLeft();
      bounds.right = window.getRight();
    } else if (auto chunks = dyn_cast<ChunkMaskAttr>(mask)) {
      bounds.right = 0;
      bounds.size = chunks.getSize();
    } else {
      return std::nullopt;
    }
    return bounds;
  }

  /// Takes over what those conditions say, as far as one mask can.
  void narrow(ArrayRef<Value> conditions, Block *score) {
    int64_t chunk = size;
    for (Value condition : conditions) {
      if (auto window = getWindow(condition, score)) {
        if (size == 0)
          left = narrower(left, window->first);
        right = narrower(right, window->second);
      } else if (auto other = getChunk(condition, score)) {
        // The smaller one, in which the mask's own chunks begin.
        if (chunk == 0 || (*other < chunk && (size == 0 || size % *other == 0)))
          chunk = *other;
      }
    }
    if (right == 0 && isWithin(left, chunk))
      size = chunk;
  }

  /// Whether every key that is left satisfies a condition.
  bool imply(Value condition, Block *score) const {
    if (matchPattern(condition, m_One()))
      return true;
    if (auto window = getWindow(condition, score))
      return size == 0 || isWithin(window->first, size);
    auto chunk = getChunk(condition, score);
    return chunk && size != 0 && *chunk % size == 0;
  }

  MaskAttrInterface getMask(MLIRContext *context, Alignment alignment) const {
    if (size != 0)
      return ChunkMaskAttr::get(context, size, alignment);
    return MaskAttr::get(context, left, right, alignment);
  }

private:
  /// Whether keys that are so far behind a query are no more than the chunk.
  static bool isWithin(int64_t left, int64_t chunk) {
    return left < 0 || left >= chunk - 1;
  }

  int64_t left = -1, right = -1, size = 0;
};
} // namespace

bool varlen::absorbVisible(AttentionOpInterface op, RewriterBase &rewriter) {
  Block *score = op.getScoreBody();
  Value visible = getVisible(score);
  std::optional<MaskBounds> bounds = MaskBounds::get(op.getMask());
  if (!visible || !bounds)
    return false;
  SmallVector<Value> conditions = getConditions(visible);
  bounds->narrow(conditions, score);
  auto isImplied = [&](Value value) { return bounds->imply(value, score); };
  if (llvm::none_of(conditions, isImplied))
    return false;
  llvm::erase_if(conditions, isImplied);
  rewriter.modifyOpInPlace(op, [&] {
    op->setAttr("mask",
                bounds->getMask(op.getContext(), op.getMask().getAlignment()));
    Operation *yield = score->getTerminator();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(yield);
    if (conditions.empty()) {
      yield->eraseOperand(1);
      return;
    }
    Value both = conditions.front();
    for (Value other : ArrayRef(conditions).drop_front())
      both = arith::AndIOp::create(rewriter, yield->getLoc(), both, other);
    yield->setOperand(1, both);
  });
  return true;
}

AttentionOpInterface varlen::dropIdentityScore(AttentionOpInterface op,
                                               RewriterBase &rewriter) {
  Block *score = op.getScoreBody();
  if (!score || changesScores(score) || getVisible(score) || getFactor(score) ||
      !op.getWrtCaptures().empty())
    return op;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  AttentionOpInterface plain = detail::createAttention(
      rewriter, op, op->getResultTypes(), op.getInputSlots(), /*captures=*/{},
      op.getDestinations(), /*hasScore=*/false);
  rewriter.replaceOp(op, plain);
  return plain;
}
