//===- VarlenTileAttn.cpp - Attention to work tiles and dense blocks ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// varlen.attn on buffers becomes a loop over work tiles. A work tile packs its
// queries, walks over the kv blocks its rows can see, and runs one step of
// online attention per kv block and panel of queries. Blocks outside the mask
// are never visited and blocks wholly inside are never masked.
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"
#include "RoleEmitter.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/ScoreReference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Tiles one attention on buffers for a CPU.
class CPUTiler : CPUTileBuilder {
public:
  CPUTiler(AttnOp op, CPUScheduleAttr schedule, OpBuilder &builder)
      : CPUTileBuilder(op, schedule, builder), op(op), d(op.getHeadDim()),
        dv(op.getValueHeadDim()),
        reference(scale, compute, /*isRounded=*/tileElement != compute) {}

  LogicalResult emit();

private:
  void allocateScratch();
  void emitWorkTile(const WorkTile &tile);
  void emitPrologue(const WorkTile &tile, Value p);
  void emitInitialState(const WorkTile &tile, Value p);
  void emitBlock(const WorkTile &tile, Value panels, Value k0);
  void emitPrefetchBlock(const WorkTile &tile, Value panels, Value k0);
  void emitPanel(const WorkTile &tile, Value p, Value k0, Value keys,
                 Value kBlock, Value vBlock);
  /// One step for `vectors` vectors of the columns of panel `p`, whose first
  /// key is `from`. The limits count unless `whole`.
  void emitStep(Value p, Value column, int64_t vectors, Value kTile,
                Value vTile, Value from, Value whole);
  void emitEpilogue(const WorkTile &tile, Value p);
  void emitResults(const WorkTile &tile, Value p);

  /// Keys and values of the block at k0 as tiles of the compute type.
  std::pair<Value, Value> emitLoadBlock(const WorkTile &tile, Value panels,
                                        Value k0, Value keys);

  AttnOp op;
  int64_t d, dv;
  ScoreReference reference;
  Value group;

  // Scratch of a work tile. Row r of panel p lies in row p * (rows) + r.
  Value qTile, accTile, mTile, lTile, loTile, hiTile, kScratch, vScratch;
};

} // namespace

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

void CPUTiler::allocateScratch() {
  int64_t panels = schedule.getPanels();
  qTile = pairs ? allocate(panels * d / 2, 2 * panel, element)
                : allocate(panels * d, panel, compute);
  accTile = allocate(panels * dv, panel, compute);
  mTile = allocate(panels, panel, compute);
  lTile = allocate(panels, panel, compute);
  loTile = allocate(panels, panel, b.getI32Type());
  hiTile = allocate(panels, panel, b.getI32Type());
  kScratch = allocatePadded(schedule.getKvBlock(), d, tileElement);
  vScratch =
      pairs ? allocatePadded(schedule.getKvBlock() / 2, 2 * dv, tileElement)
            : allocatePadded(schedule.getKvBlock(), dv, tileElement);
}

LogicalResult CPUTiler::emit() {
  FailureOr<Value> checkedGroup = emitCheckedGroup();
  if (failed(checkedGroup))
    return failure();
  group = *checkedGroup;
  Value tiles = emitWorkTiles(dim(op.getK(), 1), group, schedule.getBlockM());
  auto work = forEachTile(tiles, group,
                          [&](const WorkTile &tile) { emitWorkTile(tile); });
  work->setAttr(kScheduleAttrName, schedule);
  memref::DeallocOp::create(b, tiles);
  return success();
}

void CPUTiler::emitWorkTile(const WorkTile &tile) {
  allocateScratch();
  Value panels = index.ceilDiv(tile.rows, panel);
  loop(index.constant(0), panels, 1, [&](Value p) { emitPrologue(tile, p); });
  loop(tile.kBegin, tile.kEnd, schedule.getKvBlock(),
       [&](Value k0) { emitBlock(tile, panels, k0); });
  loop(index.constant(0), panels, 1, [&](Value p) { emitEpilogue(tile, p); });
}

void CPUTiler::emitPrologue(const WorkTile &tile, Value p) {
  Value first = index.mul(p, panel);
  Value rows = index.min(index.sub(tile.rows, first), index.constant(panel));
  Value qRow = index.mul(p, pairs ? d / 2 : d), accRow = index.mul(p, dv);
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(VectorType::get({lanes}, compute)));
  loop(index.constant(0), rows, lanes, [&](Value column) {
    emitPackColumns(b, op.getQ(), tile.pairs,
                    index.add(index.add(tile.first, first), column),
                    lastPair(tile), qTile, qRow,
                    pairs ? index.mul(column, 2) : column, lanes, pairs);
    loop(index.constant(0), index.constant(dv), 1, [&](Value i) {
      vector::StoreOp::create(b, zero, accTile,
                              ValueRange{index.add(accRow, i), column});
    });
  });
  emitInitialState(tile, p);
}

/// m, l and the visible keys of each lane.
void CPUTiler::emitInitialState(const WorkTile &tile, Value p) {
  Value first = index.add(tile.first, index.mul(p, panel));
  Value m = floatConstant(OnlineAttnOp::getInitialM(scale, compute));
  Value l = floatConstant(0.0);
  loop(index.constant(0), index.constant(panel), 1, [&](Value lane) {
    Value pair = index.min(index.add(first, lane), lastPair(tile));
    memref::StoreOp::create(b, m, mTile, ValueRange{p, lane});
    memref::StoreOp::create(b, l, lTile, ValueRange{p, lane});
    emitLimits(tile, index.div(pair, group), loTile, hiTile,
               ValueRange{p, lane});
  });
}

std::pair<Value, Value> CPUTiler::emitLoadBlock(const WorkTile &tile,
                                                Value panels, Value k0,
                                                Value keys) {
  Value row = index.add(tile.kRow, k0);
  Value head = tile.pairs.kvHead;
  auto tileType = [&](int64_t size) {
    return MemRefType::get({ShapedType::kDynamic, size}, tileElement,
                           StridedLayoutAttr::get(b.getContext(),
                                                  ShapedType::kDynamic,
                                                  {ShapedType::kDynamic, 1}));
  };
  auto copied = [&](Value source, Value scratch) -> Value {
    Value padded = index.roundUp(keys, kGranule);
    emitCopyRows(b, source, keyRows(tile), k0, keys, padded, scratch, lanes);
    int64_t size = cast<MemRefType>(scratch.getType()).getDimSize(1);
    Value view =
        rowView(scratch, b.getIndexAttr(0), padded, b.getIndexAttr(size));
    return memref::CastOp::create(b, tileType(size), view);
  };
  auto inPlace = [&](Value source) -> Value {
    auto type = cast<MemRefType>(source.getType());
    int64_t size = type.getDimSize(2);
    SmallVector<OpFoldResult> offsets = {row, head, b.getIndexAttr(0)};
    SmallVector<OpFoldResult> sizes = {keys, b.getIndexAttr(1),
                                       b.getIndexAttr(size)};
    SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
    auto viewType = memref::SubViewOp::inferRankReducedResultType(
        {ShapedType::kDynamic, size}, type, offsets, sizes, strides);
    Value view = memref::SubViewOp::create(b, cast<MemRefType>(viewType),
                                           source, offsets, sizes, strides);
    return memref::CastOp::create(b, tileType(size), view);
  };

  // A copy pays when several panels share it; rows that no one owns, past the
  // last granule, must be copied to be made zero.
  auto is = [&](Value value, int64_t constant) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                 index.constant(constant));
  };
  Value whole = arith::AndIOp::create(
      b, is(index.rem(keys, index.constant(kGranule)), 0), is(panels, 1));
  auto either = [&](Value source, Value scratch) -> Value {
    auto yield = [&](function_ref<Value()> load) {
      return [&, load](OpBuilder &nested, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(nested.saveInsertionPoint());
        scf::YieldOp::create(b, load());
      };
    };
    return scf::IfOp::create(b, whole, yield([&] { return inPlace(source); }),
                             yield([&] { return copied(source, scratch); }))
        .getResult(0);
  };
  if (pairs) {
    // Keys have their pairs in a row already, values get theirs from two rows.
    emitPairRows(b, op.getV(), keyRows(tile), k0, keys,
                 index.roundUp(keys, kGranule), vScratch, lanes);
    return {either(op.getK(), kScratch), vScratch};
  }
  if (element != compute)
    return {copied(op.getK(), kScratch), copied(op.getV(), vScratch)};
  Value kBlock = either(op.getK(), kScratch);
  return {kBlock, either(op.getV(), vScratch)};
}

/// Asks for the kv block at k0 where one panel is all the work that could hide
/// its way from memory, as in decoding. No hardware foresees it: rows of a head
/// lie as far apart as a token has heads.
void CPUTiler::emitPrefetchBlock(const WorkTile &tile, Value panels, Value k0) {
  Value single = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, panels,
                                       index.constant(1));
  Value keys = blockKeys(tile, k0);
  branch(
      single,
      [&] {
        for (Value source : {op.getK(), op.getV()})
          emitPrefetchRows(b, source, keyRows(tile), k0, keys);
      },
      nullptr);
}

void CPUTiler::emitBlock(const WorkTile &tile, Value panels, Value k0) {
  Value keys = blockKeys(tile, k0);
  auto [kBlock, vBlock] = emitLoadBlock(tile, panels, k0, keys);
  emitPrefetchBlock(tile, panels, index.add(k0, keys));
  loop(index.constant(0), panels, 1, [&, k = kBlock, v = vBlock](Value p) {
    emitPanel(tile, p, k0, keys, k, v);
  });
}

void CPUTiler::emitPanel(const WorkTile &tile, Value p, Value k0, Value keys,
                         Value kBlock, Value vBlock) {
  Value first = index.mul(p, panel);
  Value rows = index.min(index.sub(tile.rows, first), index.constant(panel));
  VisiblePart seen =
      visiblePart(tile, index.add(tile.first, first), rows, k0, keys);
  Value begin = seen.begin, end = seen.end;
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, end);
  branch(
      any,
      [&] {
        Value size = index.sub(end, begin);
        Value kTile = rowView(kBlock, begin, size, b.getIndexAttr(d));
        Value two = index.constant(2);
        Value vTile =
            pairs ? rowView(vBlock, index.div(begin, two), index.div(size, two),
                            b.getIndexAttr(2 * dv))
                  : rowView(vBlock, begin, size, b.getIndexAttr(dv));
        // Whether every row sees all of it.
        Value from = index.add(k0, begin);
        Value whole = arith::AndIOp::create(
            b,
            arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                  seen.keys.wholeBegin, from),
            arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                  seen.keys.wholeEnd, index.add(k0, end)));
        Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
        // A panel takes one step, or, if most of it is empty (the last panel of
        // a sequence, decoding), a step for each vector of its columns.
        int64_t vectors = schedule.getVectors();
        auto emitNarrow = [&] {
          loop(index.constant(0), rows, lanes, [&](Value column) {
            emitStep(p, column, 1, kTile, vTile, from32, whole);
          });
        };
        if (vectors == 1)
          return emitNarrow();
        Value wide =
            arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rows,
                                  index.constant((vectors - 1) * lanes));
        branch(
            wide,
            [&] {
              emitStep(p, index.constant(0), vectors, kTile, vTile, from32,
                       whole);
            },
            emitNarrow);
      },
      nullptr);
}

void CPUTiler::emitStep(Value p, Value column, int64_t vectors, Value kTile,
                        Value vTile, Value from, Value whole) {
  // Columns from `column` on of panel p's rows in a scratch tile.
  auto columnsOf = [&](Value scratch, int64_t rows,
                       int64_t perColumn) -> Value {
    OpFoldResult one = b.getIndexAttr(1);
    return memref::SubViewOp::create(
        b, scratch,
        ArrayRef<OpFoldResult>{getAsOpFoldResult(index.mul(p, rows)),
                               getAsOpFoldResult(index.mul(column, perColumn))},
        ArrayRef<OpFoldResult>{b.getIndexAttr(rows),
                               b.getIndexAttr(vectors * lanes * perColumn)},
        ArrayRef<OpFoldResult>{one, one});
  };
  auto view = [&](Value scratch, int64_t rows) {
    return columnsOf(scratch, rows, 1);
  };
  Value accView = view(accTile, dv), mView = view(mTile, 1),
        lView = view(lTile, 1);
  auto tile = [&](Value memref) {
    return emitTile(b, {{TileOrder::Rows, memref}});
  };
  // Pairs that neighbour along the reduction lie side by side.
  Value q =
      pairs
          ? emitTile(b, {{TileOrder::ColumnPairs, columnsOf(qTile, d / 2, 2)}})
          : emitTile(b, {{TileOrder::Columns, view(qTile, d)}});
  Value v = pairs ? emitTile(b, {{TileOrder::RowPairs, vTile}}) : tile(vTile);
  auto step = OnlineAttnOp::create(
      b, q, tile(kTile), v, tile(view(loTile, 1)), tile(view(hiTile, 1)), from,
      whole, /*queries=*/Value(), /*keys=*/Value(), tile(accView), tile(mView),
      tile(lView), b.getF64FloatAttr(scale),
      OrientationAttr::get(b.getContext(), Orientation::KQ));
  if (Attribute degree = op->getAttr(kExp2DegreeAttrName))
    step->setAttr(kExp2DegreeAttrName, degree);
  store(step.getAccOut(), accView);
  store(step.getMOut(), mView);
  store(step.getLOut(), lView);
}

void CPUTiler::emitEpilogue(const WorkTile &tile, Value p) {
  Value first = index.mul(p, panel);
  Value rows = index.min(index.sub(tile.rows, first), index.constant(panel));
  auto type = VectorType::get({lanes}, compute);
  emitResults(tile, p);
  loop(index.constant(0), rows, lanes, [&](Value column) {
    Value factor =
        vector::LoadOp::create(b, type, lTile, ValueRange{p, column});
    emitUnpackColumns(b, accTile, index.mul(p, dv), column, factor, tile.pairs,
                      index.add(index.add(tile.first, first), column),
                      lastPair(tile), op.getOutBuffer(), lanes);
  });
}

/// Stores lse of the rows of panel p and, in place of l, what acc has to be
/// multiplied by. Lanes behind the last row have the state of that row.
void CPUTiler::emitResults(const WorkTile &tile, Value p) {
  Value first = index.mul(p, panel);
  Value rows = index.min(index.sub(tile.rows, first), index.constant(panel));
  Value owned = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.kRows,
                                      index.constant(0));
  auto store = [&](Value factor, Value lane) {
    memref::StoreOp::create(b, factor, lTile, ValueRange{p, lane});
  };
  loop(index.constant(0), rows, 1, [&](Value lane) {
    Value pair = index.add(index.add(tile.first, first), lane);
    Value head = tile.pairs.head(index, pair);
    Value m = memref::LoadOp::create(b, mTile, ValueRange{p, lane});
    Value l = memref::LoadOp::create(b, lTile, ValueRange{p, lane});
    Value sink;
    if (op.getSink()) {
      // Rows that belong to no sequence have none.
      sink = emitConvert(b, memref::LoadOp::create(b, op.getSink(), head),
                         compute);
      sink = arith::SelectOp::create(
          b, owned, sink,
          floatConstant(-std::numeric_limits<double>::infinity()));
    }
    ScoreReference::Result result =
        reference.emitResult(b, b.getLoc(), m, l, sink);
    store(result.factor, lane);
    memref::StoreOp::create(b, result.lse, op.getLseBuffer(),
                            ValueRange{head, tile.pairs.row(index, pair)});
  });
  Value last = memref::LoadOp::create(
      b, lTile, ValueRange{p, index.sub(rows, index.constant(1))});
  loop(rows, index.roundUp(rows, lanes), 1,
       [&](Value lane) { store(last, lane); });
}

//===----------------------------------------------------------------------===//
// Tile loops
//===----------------------------------------------------------------------===//

/// Rows and columns of tiles are whole multiples of this for tensor cores.
static constexpr int64_t kFragment = 16;

/// The kernel of `schedule` whose tiles are of queries, or of keys.
static RoleShape getShape(AttentionOpInterface op, GPUScheduleAttr schedule,
                          Axis owner) {
  if (owner == Axis::Queries)
    return {schedule.getBlockM(), schedule.getKvBlock(), Orientation::QK,
            kFragment, op.getElementType()};
  return {schedule.getKvBlock(), schedule.getBlockM(), Orientation::KQ,
          kFragment, op.getElementType()};
}

static void emitRoles(AttnOp op, GPUScheduleAttr schedule, OpBuilder &b) {
  RoleEmitter(op, b)
      .emitOut(op, getShape(op, schedule, Axis::Queries))
      ->setAttr(kScheduleAttrName, schedule);
}

/// An owner for each gradient: seven products, and no two CTAs that add to one
/// element.
static void emitRoles(AttnGradOp op, GPUGradScheduleAttr schedule,
                      OpBuilder &b) {
  RoleEmitter emitter(op, b);
  GPUScheduleAttr dq = schedule.getDq(), dk = schedule.getDk(),
                  dv = schedule.getDv();
  auto add = [](ForTilesOp loop, GPUScheduleAttr schedule) {
    loop->setAttr(kScheduleAttrName, schedule);
  };
  add(emitter.emitStatistics(op, dq.getBlockM(), op.getElementType()), dq);
  add(emitter.emitQueryGrad(op, getShape(op, dq, Axis::Queries)), dq);
  add(emitter.emitKeyGrad(op, getShape(op, dk, Axis::Keys), /*ofKeys=*/true,
                          /*ofValues=*/!dv),
      dk);
  if (dv)
    add(emitter.emitKeyGrad(op, getShape(op, dv, Axis::Keys),
                            /*ofKeys=*/false, /*ofValues=*/true),
        dv);
  if (op.getSink())
    emitter.emitSinkGrad(op);
  emitter.finish();
}

namespace {
struct VarlenTileAttn : varlen::impl::VarlenTileAttnBase<VarlenTileAttn> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
      if (!op.isBufferized())
        return WalkResult::advance();
      rewriter.setInsertionPoint(op);
      FailureOr<bool> tiled = tile(op, rewriter);
      if (failed(tiled))
        return WalkResult::interrupt();
      if (!*tiled)
        return WalkResult::advance();
      rewriter.eraseOp(op);
      ++numTiled;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Whether the operation has a schedule that says how.
  static FailureOr<bool> tile(AttentionOpInterface op, OpBuilder &builder) {
    Attribute schedule = op->getAttr(kScheduleAttrName);
    LogicalResult result = success();
    if (auto attn = dyn_cast<AttnOp>(*op)) {
      if (auto cpu = dyn_cast_or_null<CPUScheduleAttr>(schedule))
        result = CPUTiler(attn, cpu, builder).emit();
      else if (auto gpu = dyn_cast_or_null<GPUScheduleAttr>(schedule))
        emitRoles(attn, gpu, builder);
      else
        return false;
    } else if (auto grad = dyn_cast<AttnGradOp>(*op)) {
      if (auto cpu = dyn_cast_or_null<CPUScheduleAttr>(schedule))
        result = tileGradForCPU(grad, cpu, builder);
      else if (auto gpu = dyn_cast_or_null<GPUGradScheduleAttr>(schedule))
        emitRoles(grad, gpu, builder);
      else
        return false;
    } else {
      return false;
    }
    if (failed(result))
      return failure();
    return true;
  }
};
} // namespace
