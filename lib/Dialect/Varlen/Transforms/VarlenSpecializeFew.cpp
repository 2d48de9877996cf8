//===- VarlenSpecializeFew.cpp - Loops over tiles in a form for few -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENSPECIALIZEFEW
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The loop over blocks of a tile; null if there is not one that updates its
/// state by one step, with queries as columns.
static ForBlocksOp findBlocks(ForTilesOp tiles) {
  ForBlocksOp found;
  WalkResult result = tiles.walk([&](ForBlocksOp blocks) {
    if (found)
      return WalkResult::interrupt();
    found = blocks;
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || !found)
    return {};
  StepOpInterface step = found.getStateStep();
  bool isKQ = step && step.getOrientation() == Orientation::KQ;
  return isKQ ? found : ForBlocksOp();
}

namespace {
/// Makes a copy of the body of a loop one for few queries, which are rows.
class FewForm {
public:
  FewForm(ForBlocksOp blocks, Type many, BlockArgument few)
      : blocks(blocks), step(blocks.getStateStep()), many(many), few(few) {}

  /// Whether all operations from `root` on are known.
  static bool isKnown(ForTilesOp root);
  void change(Block &body);

private:
  /// Notes the type of `tile` for few queries, which are dimension `dim` now.
  void note(Value tile, unsigned dim);
  void note(Operation *op);

  ForBlocksOp blocks;
  StepOpInterface step;
  Type many;
  BlockArgument few;
  SmallVector<std::pair<Value, Type>> types;
};
} // namespace

bool FewForm::isKnown(ForTilesOp root) {
  WalkResult result = root.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == root)
      return WalkResult::advance();
    // What is in a score region is of scores.
    if (isa<StepOpInterface>(op))
      return WalkResult::skip();
    return isa<ForPartsOp, ForBlocksOp, ReadOp, RowDotOp, WriteOp, YieldOp,
               QueryTileOpInterface, StateInitOpInterface>(op) ||
                   op->hasTrait<OpTrait::ConstantLike>()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

void FewForm::note(Value tile, unsigned dim) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t shape[] = {cast<TileType>(few.getType()).getSize(),
                     type.getDimSize(1 - dim)};
  types.push_back({tile, type.clone(shape)});
}

void FewForm::note(Operation *op) {
  // The state of queries, and two of them where parts are merged.
  auto noteState = [&](ValueRange state) {
    MutableArrayRef<OpOperand> inits = step.getDpsInitsMutable();
    for (auto [number, tile] : llvm::enumerate(state))
      note(tile, *step.getDimOfQueries(inits[number % inits.size()]));
  };
  auto notePart = [&](Block *body) {
    for (BlockArgument argument : body->getArguments())
      if (argument.getType() == many)
        types.push_back({argument, few.getType()});
  };
  if (auto parts = dyn_cast<ForPartsOp>(op)) {
    notePart(parts.getBody());
    noteState(parts.getMergeBody()->getArguments());
    return noteState(parts.getResults());
  }
  if (auto loop = dyn_cast<ForBlocksOp>(op)) {
    noteState(loop.getIterArgs());
    return noteState(loop.getResults());
  }
  if (isa<StepOpInterface, StateInitOpInterface>(op))
    return noteState(op->getResults());
  for (Value result : op->getResults()) {
    if (auto computed = dyn_cast<QueryTileOpInterface>(op)) {
      note(result, computed.getQueriesDim(result));
      continue;
    }
    auto read = dyn_cast<ReadOp>(op);
    if (read && read.getTile() == blocks.getBlock())
      continue;
    if (isa<RowDotOp>(op) || read) {
      auto type = cast<RankedTensorType>(result.getType());
      bool isRow = type.getDimSize(0) == 1 && !(read && read.isOfVectors());
      note(result, isRow ? 1 : 0);
    }
  }
}

void FewForm::change(Block &body) {
  SmallVector<Operation *> oriented;
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    note(op);
    if (isa<StepOpInterface>(op)) {
      oriented.push_back(op);
      return WalkResult::skip();
    }
    if (isa<QueryTileOpInterface, StateInitOpInterface>(op))
      oriented.push_back(op);
    return WalkResult::advance();
  });
  // Numbers of keys are columns, as keys are.
  for (OpOperand *number : step.getKeyNumbers()) {
    auto type = cast<RankedTensorType>(number->get().getType());
    types.push_back(
        {number->get(), type.clone({type.getDimSize(1), type.getDimSize(0)})});
  }
  for (auto [value, type] : types)
    value.setType(type);
  for (Operation *op : oriented)
    TypeSwitch<Operation *>(op)
        .Case<StepOpInterface, QueryTileOpInterface, StateInitOpInterface>(
            [](auto it) { it.setOrientation(Orientation::QK); });
}

/// The most queries that are few.
static int64_t getMaxQueries(ForTilesOp tiles) {
  auto schedule = tiles->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
  return schedule ? schedule.getLanes() / 2 : 0;
}

static LogicalResult specialize(ForTilesOp tiles, PatternRewriter &rewriter) {
  TileType type = tiles.getTileType();
  int64_t most = getMaxQueries(tiles);
  if (type.getAxis() != Axis::Queries || most < 1 || most > type.getSize())
    return failure();
  if (!findBlocks(tiles) || !FewForm::isKnown(tiles))
    return failure();
  Block *body = tiles.getBody();
  Operation *last = body->getTerminator();
  rewriter.setInsertionPoint(last);
  auto few =
      TileType::get(type.getContext(), Axis::Queries, most, type.getByHead());
  auto forms = IfFewOp::create(rewriter, tiles.getLoc(), tiles.getTile(), few);
  Operation *ends[] = {forms.getFewBody()->getTerminator(),
                       forms.getManyBody()->getTerminator()};
  IRMapping mapping;
  mapping.map(tiles.getTile(), forms.getFewTile());
  SmallVector<Operation *> ops;
  for (Operation &op : body->without_terminator())
    if (&op != forms && !op.hasTrait<OpTrait::ConstantLike>())
      ops.push_back(&op);
  rewriter.setInsertionPoint(ends[0]);
  for (Operation *op : ops)
    rewriter.clone(*op, mapping);
  for (Operation *op : ops)
    rewriter.moveOpBefore(op, ends[1]);
  ForBlocksOp blocks;
  forms.getFewBody()->walk([&](ForBlocksOp loop) { blocks = loop; });
  FewForm(blocks, type, forms.getFewTile()).change(*forms.getFewBody());
  return success();
}

namespace {
struct VarlenSpecializeFew
    : varlen::impl::VarlenSpecializeFewBase<VarlenSpecializeFew> {
  void runOnOperation() override {
    SmallVector<ForTilesOp> loops;
    getOperation()->walk([&](ForTilesOp tiles) { loops.push_back(tiles); });
    PatternRewriter rewriter(&getContext());
    for (ForTilesOp tiles : loops)
      if (succeeded(specialize(tiles, rewriter)))
        ++numSpecialized;
  }
};
} // namespace
