//===- LinalgGroups.cpp - Operations that share a loop over tiles ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinalgGroups.h"

#include "varlen/Target/Tiles.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

/// Elements of a tile: a few vectors' worth of work a thread wakes up for, and
/// little enough to stay in the first caches.
static constexpr int64_t kTileElements = 16384;
/// What an extent counts as that is known at run time only.
static constexpr int64_t kTypicalExtent = 64;
/// Columns of a tile of a contraction with few rows.
static constexpr int64_t kTileColumns = 256;
/// Columns of an input that are rows of a result: a few cache lines of each row
/// of the input, which may all fall into the same set of a cache.
static constexpr int64_t kTransposedColumns = 128;

namespace {
class GroupFinder {
public:
  GroupFinder(const CPUTarget &target, bool hasFewRows)
      : target(target), blockRows(getContractionTile(target).blockRows),
        hasFewRows(hasFewRows) {}

  void visit(linalg::LinalgOp op);

  SmallVector<std::unique_ptr<LinalgGroup>> groups;

private:
  bool join(linalg::LinalgOp op);
  void begin(linalg::LinalgOp op);
  FailureOr<ContractionForm> getBlockForm(linalg::LinalgOp op,
                                          const LinalgGroup &group,
                                          ArrayRef<unsigned> loops);

  /// Whether tiles of the contraction that the operation is or reads, if there
  /// is one, are of columns.
  bool hasColumnTiles(linalg::LinalgOp op);

  const CPUTarget &target;
  int64_t blockRows;
  bool hasFewRows;
  llvm::DenseMap<Operation *, LinalgGroup *> groupOf;
};
} // namespace

static bool hasSimpleMaps(linalg::LinalgOp op) {
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation();
  });
}

/// Whether each result has all of the loops.
static bool haveLoops(linalg::LinalgOp op, ArrayRef<unsigned> loops) {
  for (OpOperand &init : op.getDpsInitsMutable())
    for (unsigned dim : loops)
      if (!op.getMatchingIndexingMap(&init).isFunctionOfDim(dim))
        return false;
  return true;
}

/// The form of a contraction of which a tile of the group is a block: some
/// rows, all columns, and one index of every other loop. Failure for others.
FailureOr<ContractionForm> GroupFinder::getBlockForm(linalg::LinalgOp op,
                                                     const LinalgGroup &group,
                                                     ArrayRef<unsigned> loops) {
  FailureOr<ContractionForm> form = getContractionForm(op);
  if (failed(form) || getElementWidth(form->result) < 32)
    return failure();
  for (unsigned dim : form->outer) {
    const auto *place = llvm::find(loops, dim);
    if (place == loops.end() || group.sizes[place - loops.begin()] != 1)
      return failure();
  }
  const auto *rows = llvm::find(loops, form->rows);
  if (loops.size() != form->outer.size() + 1 || rows == loops.end() ||
      group.sizes[rows - loops.begin()] > blockRows)
    return failure();
  return form;
}

static FailureOr<ContractionForm> getForm(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp)
    return failure();
  return getContractionForm(linalgOp);
}

/// The contraction that the operation is, or else one that it reads.
static linalg::LinalgOp findContraction(linalg::LinalgOp op) {
  if (succeeded(getForm(op)))
    return op;
  for (Value operand : op->getOperands())
    if (succeeded(getForm(operand.getDefiningOp())))
      return cast<linalg::LinalgOp>(operand.getDefiningOp());
  return {};
}

int64_t varlen::getFewRows(const ContractionForm &form,
                           const CPUTarget &target) {
  if (form.hasColumnsLast)
    return 16;
  // It is transposed again for each tile of rows. Panels of pairs are half as
  // large.
  int64_t rows = getContractionTileTransposed(target).rows;
  return isBF16Product(form, target) ? rows : 2 * rows;
}

bool varlen::canHaveColumnTiles(linalg::LinalgOp op,
                                const ContractionForm &form) {
  if (form.hasColumnsLast)
    return true;
  // Of many rows it would be in blocks.
  AffineMap result = op.getMatchingIndexingMap(form.result);
  return form.hasRightDepthLast && op.getNumReductionLoops() == 1 &&
         getElementWidth(form.result) >= 32 &&
         result.getDimPosition(result.getNumResults() - 2) == form.rows;
}

bool GroupFinder::hasColumnTiles(linalg::LinalgOp op) {
  ContractionForm form = *getForm(op);
  if (!canHaveColumnTiles(op, form))
    return false;
  int64_t rows = op.getStaticLoopRanges()[form.rows];
  return ShapedType::isDynamic(rows) ? hasFewRows
                                     : rows <= getFewRows(form, target);
}

/// Adds an operation to the group of all that read it.
bool GroupFinder::join(linalg::LinalgOp op) {
  LinalgGroup *group = nullptr;
  SmallVector<unsigned> loops;
  bool isFactor = false;
  for (OpOperand &use : op->getUses()) {
    // Extents are those of the destination, too.
    if (isa<tensor::DimOp>(use.getOwner()))
      continue;
    auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
    LinalgGroup *other = user ? groupOf.lookup(user) : nullptr;
    if (!other || (group && other != group))
      return false;
    group = other;
    AffineMap read = user.getMatchingIndexingMap(&use);
    AffineMap written =
        op.getIndexingMapMatchingResult(cast<OpResult>(use.get()));
    SmallVector<unsigned> needed;
    for (unsigned dim : group->loops[user]) {
      std::optional<unsigned> place =
          read.getResultPosition(getAffineDimExpr(dim, op.getContext()));
      if (!place)
        return false;
      needed.push_back(written.getDimPosition(*place));
    }
    if (!loops.empty() && loops != needed)
      return false;
    loops = needed;
    isFactor |= group->factors.contains(user) ||
                (group->contractions.contains(user) && user.isDpsInput(&use));
  }
  if (!group || !haveLoops(op, loops))
    return false;
  if (succeeded(getContractionForm(op))) {
    // A block of it would be computed with all of its columns, and kept.
    if (isFactor)
      return false;
    FailureOr<ContractionForm> form = getBlockForm(op, *group, loops);
    if (succeeded(form))
      group->contractions[op] = *form;
    else if (!hasColumnTiles(op))
      return false;
  }
  if (isFactor)
    group->factors.insert(op);
  group->loops[op] = loops;
  groupOf[op] = group;
  return true;
}

/// Whether an input has rows along which the loop runs.
static bool isAlongRows(linalg::LinalgOp op, unsigned dim) {
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    return map.getNumResults() > 1 &&
           map.getDimPosition(map.getNumResults() - 1) == dim;
  });
}

/// Begins a group with the operation as its root.
void GroupFinder::begin(linalg::LinalgOp op) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (map.getNumResults() == 0)
    return;
  SmallVector<unsigned> dims;
  for (AffineExpr expr : map.getResults())
    dims.push_back(cast<AffineDimExpr>(expr).getPosition());
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (llvm::is_contained(ranges, 0))
    return;
  auto extent = [&](unsigned dim) {
    return ShapedType::isDynamic(ranges[dim]) ? kTypicalExtent : ranges[dim];
  };
  bool isStatic = llvm::none_of(ranges, ShapedType::isDynamic);
  int64_t work = 1;
  for (unsigned dim = 0; dim < ranges.size(); ++dim)
    work *= extent(dim);
  if (isStatic && work < kTileElements)
    return;

  auto group = std::make_unique<LinalgGroup>();
  group->root = op;
  SmallVector<unsigned> loops;
  linalg::LinalgOp contraction = findContraction(op);
  if (contraction && dims.size() > 1) {
    // All but the columns, or all but the rows; else the first one.
    bool ofColumns = hasColumnTiles(contraction);
    loops.assign(dims.begin(), dims.end() - 1);
    if (ofColumns)
      loops.back() = dims.back();
    group->sizes.assign(loops.size(), 1);
    group->sizes.back() = ofColumns ? kTileColumns : blockRows;
  } else {
    loops = {dims.front()};
    int64_t inner = std::max<int64_t>(work / extent(dims.front()), 1);
    group->sizes = {std::max<int64_t>(kTileElements / inner, 1)};
    // Of columns of sums over rows, whole cache lines.
    if (dims.size() == 1 && op.getNumReductionLoops())
      group->sizes.front() = std::max<int64_t>(group->sizes.front(), 64);
    else if (dims.size() > 1 && isAlongRows(op, dims.front()))
      group->sizes.front() =
          std::max<int64_t>(group->sizes.front(), kTransposedColumns);
  }
  if (!haveLoops(op, loops))
    return;
  if (contraction == op)
    if (FailureOr<ContractionForm> form = getBlockForm(op, *group, loops);
        succeeded(form))
      group->contractions[op] = *form;
  group->loops[op] = loops;
  groupOf[op] = group.get();
  groups.push_back(std::move(group));
}

void GroupFinder::visit(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !hasSimpleMaps(op) ||
      !op->hasTrait<OpTrait::SingleBlock>())
    return;
  if (!join(op))
    begin(op);
}

SmallVector<std::unique_ptr<LinalgGroup>>
varlen::findGroups(Block &block, const CPUTarget &target, bool hasFewRows) {
  GroupFinder finder(target, hasFewRows);
  for (Operation &op : llvm::reverse(block))
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      finder.visit(linalgOp);
  return std::move(finder.groups);
}
