//===- CPUGradTiler.cpp - Gradients of an attention on a CPU --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// varlen.attn_grad on buffers becomes parallel loops over lists of work tiles:
//
// 1. statistics: lse and delta of each query, once; zeros for the gradients of
//    rows that belong to no sequence;
// 2. gradients: an item is a sequence and a kv head. It walks over kv blocks
//    and, for each, over the panels of queries that see it, so dk and dv of a
//    block stay in cache and are written once. dq of the item is summed in
//    scratch, in the order of kv blocks;
// 3. the gradient of a sink, one head at a time.
//
// Every gradient has one owner and a fixed order of sums, which depends on its
// sequence alone.
//
//===----------------------------------------------------------------------===//

#include "CPUGradTiler.h"

#include "ExtentChecks.h"
#include "varlen/Dialect/Varlen/Utils/CPUTileBuilder.h"
#include "varlen/Dialect/Varlen/Utils/ScoreReference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Rows of a work tile of statistics, and of a run of rows that are made zero;
/// a row for each head.
constexpr int64_t kStatisticsRows = 1024;

class CPUGradTiler : CPUTileBuilder {
public:
  CPUGradTiler(AttnGradOp op, CPUScheduleAttr schedule, OpBuilder &builder)
      : CPUTileBuilder(op.getLoc(), builder, schedule, op.getMask(),
                       op.getElementType(), op.getComputeType()),
        op(op), scale(*op.getScaleValue()),
        d(llvm::alignTo(op.getHeadDim(), lanes)),
        dv(llvm::alignTo(op.getValueHeadDim(), lanes)),
        isNatural(tileElement == compute), reference(compute, isNatural) {}

  LogicalResult emit();

private:
  /// A factor of products in the orders they read it.
  struct Factor {
    Value columns, rows;
  };

  /// The list of work of the attention, in tiles of `blockM` rows.
  Value emitWorkTiles(Value kvHeads, Value group, int64_t blockM);
  /// `count`, or 0 if an extent is wrong: then there is nothing to be done.
  Value unlessWrong(Value count) {
    return wrongExtent ? index.select(wrongExtent, index.constant(0), count)
                       : count;
  }
  void emitStatistics(const WorkTile &tile);
  Value emitRowProduct(Value row, Value head);
  void emitUnseenKeys(Value kvHeads);
  Value emitMostRows(Value tiles);
  void allocateScratch(Value mostRows, Value mostPanels);
  void emitItem(const WorkTile &tile);
  void emitBlock(const WorkTile &tile, Value k0);
  void emitPanel(const WorkTile &tile, Value p, Value k0, Value keys);
  Value panelAt(Value all, Value p);
  Factor panelAt(const Factor &all, Value p) {
    return {panelAt(all.columns, p), panelAt(all.rows, p)};
  }
  void emitPack(const WorkTile &tile, Value source, Value p, Value columns,
                const Factor &to);
  /// The panel at `p` against `size` keys of the block from `begin` on, of
  /// which the first is key `from`.
  void emitStep(const WorkTile &tile, Value p, Value begin, Value size,
                Value from, Value whole);
  void emitSinkGradient(Value tq, Value tiles);

  Value lessEqual(Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, lhs, rhs);
  }

  AttnGradOp op;
  double scale;
  /// Whether some extent breaks a rule; null if types say that none does.
  Value wrongExtent;
  /// Head sizes in tiles: whole vectors.
  int64_t d, dv;
  /// The units of lse.
  bool isNatural;
  RecomputedReference reference;
  /// Neighbours that lie side by side in a row of memory: pairs, or none.
  int64_t perRow = pairs ? 2 : 1;
  Value group;
  /// kv heads x (rows * group): of all queries, those of a kv head side by
  /// side. As steps want them.
  Value lseOfRows, delta;

  // Scratch of an item: all panels of queries, a kv block, their gradients.
  Factor q, dout;
  Value loTile, hiTile;
  Value kTile, kPairs, vTile, dkTile, dvTile, dqTile;
};

} // namespace

LogicalResult CPUGradTiler::emit() {
  FailureOr<Value> wrong = emitReportedChecks(b, op);
  if (failed(wrong))
    return failure();
  wrongExtent = *wrong;
  Value tq = dim(op.getQ(), 0), kvHeads = dim(op.getK(), 1);
  // What divides is at least 1.
  Value one = index.constant(1);
  group = index.max(index.div(dim(op.getQ(), 1), index.max(kvHeads, one)), one);
  // A vector of the last row's statistics may end behind them.
  Value columns = index.add(index.mul(tq, group), panel);
  SmallVector<Value> buffers;
  for (Value *statistic : {&lseOfRows, &delta})
    buffers.push_back(*statistic =
                          allocate({ShapedType::kDynamic, ShapedType::kDynamic},
                                   compute, {kvHeads, columns}));

  // All heads of a token one after the other, as they lie in memory.
  Value heads = dim(op.getQ(), 1);
  Value rows = emitWorkTiles(index.constant(1), heads, kStatisticsRows);
  forEachTile(rows, heads, [&](const WorkTile &tile) { emitStatistics(tile); });
  emitUnseenKeys(kvHeads);

  // One tile for each sequence and kv head.
  Value items =
      emitWorkTiles(kvHeads, group, std::numeric_limits<int64_t>::max());
  Value mostRows = emitMostRows(items);
  // Scratch whose size is known before the loop is kept from item to item.
  Value mostPanels = index.div(mostRows, index.constant(panel));
  auto work = forEachTile(items, group, [&](const WorkTile &tile) {
    allocateScratch(mostRows, mostPanels);
    emitItem(tile);
  });
  work->setAttr(kScheduleAttrName, schedule);
  if (op.getSink())
    emitSinkGradient(tq, dim(rows, 0));
  buffers.append({rows, items});
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, buffer);
  return success();
}

Value CPUGradTiler::emitWorkTiles(Value kvHeads, Value group, int64_t blockM) {
  return WorkTilesOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, WorkTilesOp::NumColumns},
                      b.getI64Type()),
      op.getCuQ(), op.getCuK(), op.getSequsedQ(), op.getSequsedK(),
      op.getQOffset(), dim(op.getQ(), 0), dim(op.getK(), 0),
      unlessWrong(kvHeads), group, mask, blockM);
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

/// sum_d dout[row, head, d] * out[row, head, d].
Value CPUGradTiler::emitRowProduct(Value row, Value head) {
  int64_t size = op.getValueHeadDim(), whole = size / lanes * lanes;
  auto load = [&](Value source, Value at, int64_t length) {
    auto type = VectorType::get({length}, element);
    Value x =
        vector::LoadOp::create(b, type, source, ValueRange{row, head, at});
    return emitConvert(b, x, compute);
  };
  auto sum = [&](Value vector) -> Value {
    return vector::ReductionOp::create(b, vector::CombiningKind::ADD, vector,
                                       arith::FastMathFlags::reassoc);
  };
  Value total = floatConstant(0.0);
  if (whole) {
    auto loop = scf::ForOp::create(
        b, index.constant(0), index.constant(whole), index.constant(lanes),
        splat(0.0), [&](OpBuilder &, Location, Value at, ValueRange acc) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(at.getParentBlock());
          Value next =
              math::FmaOp::create(b, load(op.getDout(), at, lanes),
                                  load(op.getOut(), at, lanes), acc.front());
          scf::YieldOp::create(b, next);
        });
    total = sum(loop.getResult(0));
  }
  if (whole != size) {
    Value at = index.constant(whole);
    Value rest = arith::MulFOp::create(b, load(op.getDout(), at, size - whole),
                                       load(op.getOut(), at, size - whole));
    total = arith::AddFOp::create(b, total, sum(rest));
  }
  return total;
}

void CPUGradTiler::emitStatistics(const WorkTile &tile) {
  const double infinity = std::numeric_limits<double>::infinity();
  Value owned = lessEqual(index.constant(0), tile.kRows);
  auto forEachPair =
      [&](function_ref<std::pair<Value, Value>(Value, Value)> statistics) {
        loop(index.constant(0), tile.rows, 1, [&](Value i) {
          Value pair = index.add(tile.first, i);
          Value row = tile.pairs.row(index, pair);
          Value head = tile.pairs.head(index, pair);
          auto [lse, difference] = statistics(row, head);
          SmallVector<Value> place = {
              index.div(head, group),
              index.add(index.mul(row, group), index.rem(head, group))};
          memref::StoreOp::create(b, lse, lseOfRows, place);
          memref::StoreOp::create(b, difference, delta, place);
        });
      };
  auto owns = [&] {
    forEachPair([&](Value row, Value head) -> std::pair<Value, Value> {
      Value lse = memref::LoadOp::create(b, op.getLse(), ValueRange{head, row});
      Value difference = emitRowProduct(row, head);
      if (op.getDlse())
        difference = arith::SubFOp::create(
            b, difference,
            memref::LoadOp::create(b, op.getDlse(), ValueRange{head, row}));
      return {reference.emitLse(b, b.getLoc(), lse), difference};
    });
  };
  auto isGap = [&] {
    forEachPair([&](Value, Value) -> std::pair<Value, Value> {
      return {floatConstant(infinity), floatConstant(0.0)};
    });
    emitFillRows(b, 0.0, tile.pairs, tile.first, tile.rows, op.getDq(), lanes);
  };
  branch(owned, owns, isGap);
}

/// Makes the gradients of keys zero that no item has: those that belong to no
/// sequence, or to one without queries. To a list of work the other way round
/// they are rows without a key.
void CPUGradTiler::emitUnseenKeys(Value kvHeads) {
  Value one = index.constant(1);
  Value tiles = WorkTilesOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, WorkTilesOp::NumColumns},
                      b.getI64Type()),
      op.getCuK(), op.getCuQ(), op.getSequsedK(), op.getSequsedQ(),
      /*q_offset=*/Value(), dim(op.getK(), 0), dim(op.getQ(), 0),
      unlessWrong(kvHeads), one, MaskAttr::getFull(b.getContext()),
      kStatisticsRows);
  forEachTile(tiles, one, [&](const WorkTile &tile) {
    branch(
        lessEqual(tile.kRows, index.constant(0)),
        [&] {
          for (Value gradient : {op.getDk(), op.getDv()})
            emitFillRows(b, 0.0, tile.pairs, tile.first, tile.rows, gradient,
                         lanes);
        },
        nullptr);
  });
  memref::DeallocOp::create(b, tiles);
}

/// -sum_i exp(sink - lse[i]) * delta[i] over all rows of a head. Rows that
/// belong to no sequence have lse = inf and delta = 0.
void CPUGradTiler::emitSinkGradient(Value tq, Value tiles) {
  // Rows without a tile: cu_seqlens are bad, and nothing is written.
  Value zero = index.constant(0);
  Value good =
      arith::OrIOp::create(b, index.less(zero, tiles), lessEqual(tq, zero));
  Value heads = index.select(good, unlessWrong(dim(op.getQ(), 1)), zero);
  auto work = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{heads},
                                    ValueRange{}, std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(work.getBody());
  Value head = work.getInductionVar(0);
  Value kvHead = index.div(head, group), first = index.rem(head, group);
  Value sink = memref::LoadOp::create(b, op.getSink(), head);
  sink = emitConvert(b, sink, compute);
  // Many thousand terms of either sign: what rounding has lost of each sum is
  // carried along (Kahan, 1965).
  Value none = floatConstant(0.0);
  auto sum = scf::ForOp::create(
      b, index.constant(0), tq, index.constant(1), ValueRange{none, none},
      [&](OpBuilder &, Location, Value row, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(row.getParentBlock());
        Value at = index.add(index.mul(row, group), first);
        Value lse =
            memref::LoadOp::create(b, lseOfRows, ValueRange{kvHead, at});
        Value x = memref::LoadOp::create(b, delta, ValueRange{kvHead, at});
        Value product = reference.emitSinkTerm(b, b.getLoc(), sink, lse, x);
        auto subtract = [&](Value lhs, Value rhs) -> Value {
          return arith::SubFOp::create(b, lhs, rhs);
        };
        Value term = subtract(product, state[1]);
        Value next = subtract(state[0], term);
        Value lost = subtract(subtract(state[0], next), term);
        scf::YieldOp::create(b, ValueRange{next, lost});
      });
  memref::StoreOp::create(b, sum.getResult(0), op.getDsink(), head);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The most rows of a work tile that sees a key.
Value CPUGradTiler::emitMostRows(Value tiles) {
  auto most = scf::ForOp::create(
      b, index.constant(0), dim(tiles, 0), index.constant(1), index.constant(0),
      [&](OpBuilder &, Location, Value item, ValueRange most) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(item.getParentBlock());
        auto field = [&](WorkTilesOp::Column column) {
          return index.load(tiles, ValueRange{item, index.constant(column)});
        };
        Value seen =
            index.less(field(WorkTilesOp::KBegin), field(WorkTilesOp::KEnd));
        Value rows = index.select(seen, field(WorkTilesOp::Rows), most.front());
        scf::YieldOp::create(b, index.max(most.front(), rows));
      });
  return index.roundUp(most.getResult(0), panel);
}

void CPUGradTiler::allocateScratch(Value mostRows, Value mostPanels) {
  int64_t kvBlock = schedule.getKvBlock();
  auto allocatePanels = [&](int64_t rows, int64_t columns) {
    return allocate({ShapedType::kDynamic, rows, columns}, tileElement,
                    mostPanels);
  };
  auto factor = [&](int64_t size) -> Factor {
    return {allocatePanels(size / perRow, perRow * panel),
            allocatePanels(panel / perRow, perRow * size)};
  };
  q = factor(d);
  dout = factor(dv);
  loTile = allocate(1, panel, b.getI32Type());
  hiTile = allocate(1, panel, b.getI32Type());
  kTile = allocatePadded(kvBlock, d, tileElement);
  if (pairs)
    kPairs = allocatePadded(kvBlock / 2, 2 * d, element);
  vTile = allocatePadded(kvBlock, dv, tileElement);
  dkTile = allocate(kvBlock, d, compute);
  dvTile = allocate(kvBlock, dv, compute);
  dqTile = allocate({ShapedType::kDynamic, d}, compute, mostRows);
}

void CPUGradTiler::emitItem(const WorkTile &tile) {
  auto zeroKeys = [&](Value from, Value to) {
    for (Value gradient : {op.getDk(), op.getDv()})
      emitFillRows(b, 0.0, keyRows(tile), from, index.sub(to, from), gradient,
                   lanes);
  };
  auto seen = [&] {
    emitClear(b, dqTile, index.roundUp(tile.rows, panel), lanes);
    // Once for all kv blocks: rows lie as far apart as a token has heads, where
    // no hardware fetches them in advance.
    loop(index.constant(0), tile.rows, panel, [&](Value p) {
      Value columns = index.min(index.sub(tile.rows, p), index.constant(panel));
      emitPack(tile, op.getQ(), p, columns, panelAt(q, p));
      emitPack(tile, op.getDout(), p, columns, panelAt(dout, p));
    });
    zeroKeys(index.constant(0), tile.kBegin);
    loop(tile.kBegin, tile.kEnd, schedule.getKvBlock(),
         [&](Value k0) { emitBlock(tile, k0); });
    zeroKeys(tile.kEnd, tile.kRows);
    emitStoreRows(b, dqTile, floatConstant(scale), tile.pairs,
                  index.constant(0), tile.rows, op.getDq(), lanes);
  };
  auto unseen = [&] {
    // Rows that belong to no sequence (kRows = -1) have their zeros already.
    zeroKeys(index.constant(0), tile.kRows);
    emitFillRows(b, 0.0, tile.pairs, index.constant(0), tile.rows, op.getDq(),
                 lanes);
  };
  branch(index.less(tile.kBegin, tile.kEnd), seen, unseen);
}

void CPUGradTiler::emitBlock(const WorkTile &tile, Value k0) {
  Value keys = blockKeys(tile, k0);
  Value padded = index.roundUp(keys, kGranule);
  emitCopyRows(b, op.getK(), keyRows(tile), k0, keys, padded, kTile, lanes);
  emitCopyRows(b, op.getV(), keyRows(tile), k0, keys, padded, vTile, lanes);
  if (pairs)
    emitPairRows(b, op.getK(), keyRows(tile), k0, keys, padded, kPairs, lanes);
  emitClear(b, dkTile, padded, lanes);
  emitClear(b, dvTile, padded, lanes);

  // The queries that see some key of the block.
  Value last = index.sub(index.add(k0, keys), index.constant(1));
  MaskRange queries =
      emitQueriesOf(index, tile.window, k0, last, index.div(tile.rows, group));
  Value begin = index.roundDown(index.mul(queries.begin, group), panel);
  loop(begin, index.mul(queries.end, group), panel,
       [&](Value p) { emitPanel(tile, p, k0, keys); });

  emitStoreRows(b, dkTile, floatConstant(scale), keyRows(tile), k0, keys,
                op.getDk(), lanes);
  emitStoreRows(b, dvTile, /*factor=*/Value(), keyRows(tile), k0, keys,
                op.getDv(), lanes);
}

/// The panel at `p` of a buffer of all panels.
Value CPUGradTiler::panelAt(Value all, Value p) {
  auto type = cast<MemRefType>(all.getType());
  int64_t rows = type.getDimSize(1), columns = type.getDimSize(2);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {index.div(p, index.constant(panel)),
                                       zero, zero};
  SmallVector<OpFoldResult> sizes = {one, b.getIndexAttr(rows),
                                     b.getIndexAttr(columns)};
  SmallVector<OpFoldResult> strides(3, one);
  auto view = memref::SubViewOp::inferRankReducedResultType(
      {rows, columns}, type, offsets, sizes, strides);
  return memref::SubViewOp::create(b, view, all, offsets, sizes, strides);
}

void CPUGradTiler::emitPack(const WorkTile &tile, Value source, Value p,
                            Value columns, const Factor &to) {
  // Rows first: a loop over them has more misses in flight than one that
  // transposes.
  (pairs ? emitPairRows : emitCopyRows)(b, source, tile.pairs, p, columns,
                                        index.constant(panel), to.rows, lanes);
  loop(index.constant(0), columns, lanes, [&](Value column) {
    emitPackColumns(b, source, tile.pairs, index.add(p, column), lastPair(tile),
                    to.columns, index.constant(0), index.mul(column, perRow),
                    lanes, pairs);
  });
  // Of rows it makes what is past the head size zero, of columns we do.
  auto type = cast<MemRefType>(to.columns.getType());
  int64_t size = cast<MemRefType>(source.getType()).getDimSize(2) / perRow;
  int64_t past = type.getDimSize(0) - size;
  if (past != 0)
    emitClear(b,
              rowView(to.columns, b.getIndexAttr(size), b.getIndexAttr(past),
                      b.getIndexAttr(type.getDimSize(1))),
              index.constant(past), lanes);
}

void CPUGradTiler::emitPanel(const WorkTile &tile, Value p, Value k0,
                             Value keys) {
  Value columns = index.min(index.sub(tile.rows, p), index.constant(panel));
  VisiblePart seen = visiblePart(tile, p, columns, k0, keys);
  Value begin = seen.begin, end = seen.end;
  auto compute = [&] {
    // Lanes behind the last query see nothing.
    Value from = index.add(k0, begin);
    Value whole = arith::AndIOp::create(
        b, lessEqual(seen.keys.wholeBegin, from),
        lessEqual(index.add(k0, end), seen.keys.wholeEnd));
    whole = arith::AndIOp::create(b, whole,
                                  lessEqual(index.constant(panel), columns));
    branch(
        whole, [] {},
        [&] {
          loop(index.constant(0), columns, 1, [&](Value lane) {
            emitLimits(tile, index.div(index.add(p, lane), group), loTile,
                       hiTile, ValueRange{index.constant(0), lane});
          });
          // Limits do not fall from one lane to the next.
          Value zero = index.constant(0);
          Value end = memref::LoadOp::create(
              b, hiTile,
              ValueRange{zero, index.sub(columns, index.constant(1))});
          loop(columns, index.constant(panel), 1, [&](Value lane) {
            for (Value limit : {loTile, hiTile})
              memref::StoreOp::create(b, end, limit, ValueRange{zero, lane});
          });
        });
    emitStep(tile, p, begin, index.sub(end, begin), from, whole);
  };
  branch(index.less(begin, end), compute, nullptr);
}

void CPUGradTiler::emitStep(const WorkTile &tile, Value p, Value begin,
                            Value size, Value from, Value whole) {
  auto rowsOf = [&](Value memref, OpFoldResult row, OpFoldResult rows) {
    return rowView(
        memref, row, rows,
        b.getIndexAttr(cast<MemRefType>(memref.getType()).getDimSize(1)));
  };
  auto queries = [&](const Factor &all) -> Value {
    Factor at = panelAt(all, p);
    if (pairs)
      return emitTile(b, {{TileOrder::ColumnPairs, at.columns},
                          {TileOrder::RowPairs, at.rows}});
    return emitTile(
        b, {{TileOrder::Rows, at.rows}, {TileOrder::Columns, at.columns}});
  };
  auto keys = [&](Value memref) { return rowsOf(memref, begin, size); };
  auto one = [&](Value memref) {
    return emitTile(b, {{TileOrder::Rows, memref}});
  };
  auto statistic = [&](Value memref, Value row, Value at) {
    return one(view(memref, row, at, b.getIndexAttr(1), b.getIndexAttr(panel)));
  };
  Value two = index.constant(2);
  SmallVector<TileCopy> k = {{TileOrder::Rows, keys(kTile)}};
  if (pairs)
    k.push_back({TileOrder::RowPairs,
                 rowsOf(kPairs, index.div(begin, two), index.div(size, two))});
  Value zero = index.constant(0);
  Value at = index.add(index.mul(tile.pairs.qRow, group), p);
  Value dqView = rowsOf(dqTile, p, b.getIndexAttr(panel));
  Value dkView = keys(dkTile), dvView = keys(dvTile);
  Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
  auto step = OnlineAttnGradOp::create(
      b, queries(q), emitTile(b, k), one(keys(vTile)), queries(dout),
      statistic(lseOfRows, tile.pairs.kvHead, at),
      statistic(delta, tile.pairs.kvHead, at), statistic(loTile, zero, zero),
      statistic(hiTile, zero, zero), from32, whole,
      /*queries=*/Value(), /*keys=*/Value(), one(dqView), one(dkView),
      one(dvView), b.getF64FloatAttr(scale),
      OrientationAttr::get(b.getContext(), Orientation::KQ),
      isNatural ? b.getUnitAttr() : UnitAttr());
  if (Attribute degree = op->getAttr(kExp2DegreeAttrName))
    step->setAttr(kExp2DegreeAttrName, degree);
  store(step.getDqOut(), dqView);
  store(step.getDkOut(), dkView);
  store(step.getDvOut(), dvView);
}

LogicalResult varlen::tileGradForCPU(AttnGradOp op, CPUScheduleAttr schedule,
                                     OpBuilder &builder) {
  return CPUGradTiler(op, schedule, builder).emit();
}
