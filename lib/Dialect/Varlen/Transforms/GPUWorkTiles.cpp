//===- GPUWorkTiles.cpp - The work tiles of a batch, on a GPU -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread a sequence, none waits for another: each looks at all sequences,
// counts the tiles of those that come before its own, and so knows where its
// tiles go. Bad cu_seqlens are seen by every thread alike, and none writes.
//
//===----------------------------------------------------------------------===//

#include "GPUWorkTiles.h"

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Runtime/GPUStatus.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::varlen;

/// Threads of a block of the kernel that makes the list.
static constexpr int64_t kThreads = 128;

void varlen::emitLaunch(ImplicitLocOpBuilder &b, const Twine &name,
                        Value blocks, int64_t threads,
                        function_ref<void(Value, Value, Value)> body) {
  IndexBuilder index{b};
  Value one = index.constant(1);
  auto launch = gpu::LaunchOp::create(b, blocks, one, one,
                                      index.constant(threads), one, one);
  launch.setFunctionAttr(FlatSymbolRefAttr::get(b.getStringAttr(name)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&launch.getBody().front());
  body(launch.getBlockIds().x, launch.getGridSize().x, launch.getThreadIds().x);
  gpu::TerminatorOp::create(b);
}

PackedRows varlen::emitPackedRows(IndexBuilder &index, Value cu, Value s,
                                  Value end) {
  Value last =
      index.sub(index.b.createOrFold<memref::DimOp>(cu, index.constant(0)),
                index.constant(1));
  Value next = index.load(cu, index.min(index.add(s, 1), last));
  return {index.load(cu, s), index.select(index.less(s, last), next, end)};
}

Value varlen::emitUsed(IndexBuilder &index, Value used, Value s,
                       Value sequences, Value otherwise) {
  if (!used)
    return otherwise;
  ImplicitLocOpBuilder &b = index.b;
  auto yield = [&](function_ref<Value()> value) {
    return [&, value](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      scf::YieldOp::create(b, value());
    };
  };
  return scf::IfOp::create(b, index.less(s, sequences),
                           yield([&] { return index.load(used, s); }),
                           yield([&] { return otherwise; }))
      .getResult(0);
}

namespace {

/// Code of the kernel; every method emits at the builder's place.
class ListBuilder {
public:
  ListBuilder(ImplicitLocOpBuilder &b, AttnOp op, Value group, int64_t blockM)
      : b(b), index{b}, op(op), group(group), blockM(blockM),
        tq(dim(op.getQ())), tk(dim(op.getK())),
        sequences(index.sub(dim(op.getCuQ()), index.constant(1))) {}

  FailureOr<GPUWorkTiles> emit();

private:
  struct Sequence {
    PackedRows q, k;
    /// Keys in use, and tiles that its query rows make.
    Value keys, tiles;
  };

  Value dim(Value memref) {
    return b.createOrFold<memref::DimOp>(memref, index.constant(0));
  }
  /// The code of the first length that does not fit the number of sequences,
  /// or 0.
  Value checkLengths();
  Sequence sequence(Value s);
  /// (index of the element << kGPUStatusBits | code) of what is wrong with
  /// sequence s, or `none`.
  Value check(Value s, const Sequence &sequence, Value none);
  void emitThread(Value thread, Value wrongLength, Value list, Value count);
  void emitStatus(Value fault);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  AttnOp op;
  Value group;
  int64_t blockM;
  Value tq, tk, sequences, status;
};

} // namespace

Value ListBuilder::checkLengths() {
  Value fault = index.constant(0), n = dim(op.getCuQ());
  auto expect = [&](Value operand, Value size, GPUStatus code) {
    if (!operand)
      return;
    Value wrong =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, dim(operand), size);
    fault = index.select(wrong, index.constant(code), fault);
  };
  expect(op.getQOffset(), sequences, VARLEN_GPU_OFFSET_LENGTH);
  expect(op.getSequsedK(), sequences, VARLEN_GPU_SEQUSED_K_LENGTH);
  expect(op.getSequsedQ(), sequences, VARLEN_GPU_SEQUSED_Q_LENGTH);
  expect(op.getCuK(), n, VARLEN_GPU_CU_K_LENGTH);
  return index.select(index.less(n, index.constant(1)),
                      index.constant(VARLEN_GPU_CU_Q_LENGTH), fault);
}

ListBuilder::Sequence ListBuilder::sequence(Value s) {
  Sequence result;
  result.q = emitPackedRows(index, op.getCuQ(), s, tq);
  // No keys belong to the rows past the last sequence.
  Value kEnd = index.load(op.getCuK(), sequences);
  result.k = emitPackedRows(index, op.getCuK(), s, kEnd);
  result.keys = emitUsed(index, op.getSequsedK(), s, sequences,
                         index.sub(result.k.end, result.k.begin));
  Value pairs = index.mul(index.sub(result.q.end, result.q.begin), group);
  result.tiles = index.ceilDiv(pairs, blockM);
  return result;
}

Value ListBuilder::check(Value s, const Sequence &sequence, Value none) {
  Value fault = none;
  // Later checks come first: the last one that fails is kept.
  auto expect = [&](Value wrong, Value at, GPUStatus code) {
    Value packed =
        index.add(index.mul(at, int64_t{1} << VARLEN_GPU_STATUS_BITS), code);
    fault = index.select(wrong, packed, fault);
  };
  auto both = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::AndIOp>(lhs, rhs);
  };
  Value zero = index.constant(0), next = index.add(s, 1);
  Value isSequence = index.less(s, sequences);
  auto used = [&](Value operand, const PackedRows &rows, GPUStatus code) {
    if (!operand)
      return;
    Value size = index.sub(rows.end, rows.begin);
    Value value = emitUsed(index, operand, s, sequences, zero);
    Value wrong = b.createOrFold<arith::OrIOp>(index.less(value, zero),
                                               index.less(size, value));
    expect(both(isSequence, wrong), s, code);
  };
  used(op.getSequsedK(), sequence.k, VARLEN_GPU_SEQUSED_K);
  used(op.getSequsedQ(), sequence.q, VARLEN_GPU_SEQUSED_Q);
  Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, s, zero);
  auto packed = [&](Value cu, const PackedRows &rows, Value rowsInMemory,
                    GPUStatus decreases, GPUStatus past, GPUStatus start) {
    Value end = index.load(cu, sequences);
    Value beyond = both(b.createOrFold<arith::XOrIOp>(
                            isSequence, arith::ConstantIntOp::create(b, 1, 1)),
                        index.less(rowsInMemory, end));
    expect(beyond, sequences, past);
    expect(both(isSequence, index.less(rows.end, rows.begin)), next, decreases);
    Value nonZero =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rows.begin, zero);
    expect(both(first, nonZero), s, start);
  };
  packed(op.getCuK(), sequence.k, tk, VARLEN_GPU_CU_K_DECREASES,
         VARLEN_GPU_CU_K_END, VARLEN_GPU_CU_K_START);
  packed(op.getCuQ(), sequence.q, tq, VARLEN_GPU_CU_Q_DECREASES,
         VARLEN_GPU_CU_Q_END, VARLEN_GPU_CU_Q_START);
  return fault;
}

void ListBuilder::emitStatus(Value fault) {
  auto i64 = b.getI64Type();
  Value kept = LLVM::LoadOp::create(b, i64, status);
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, kept,
                                     arith::ConstantIntOp::create(b, 0, 64));
  scf::IfOp::create(b, none, [&](OpBuilder &nested, Location loc) {
    Value code = arith::IndexCastOp::create(nested, loc, i64, fault);
    LLVM::StoreOp::create(nested, loc, code, status);
    scf::YieldOp::create(nested, loc);
  });
}

void ListBuilder::emitThread(Value thread, Value wrongLength, Value list,
                             Value count) {
  Value zero = index.constant(0), one = index.constant(1);
  // An index that no fault of a sequence reaches.
  Value none = index.constant(std::numeric_limits<int64_t>::max());
  Value valid =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, wrongLength, zero);
  Value segments = index.select(valid, index.add(sequences, 1), zero);
  auto emitIf = [&](Value condition, function_ref<void()> body) {
    scf::IfOp::create(b, condition, [&](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      body();
      scf::YieldOp::create(b);
    });
  };

  // Threads past the last segment only repeat what its thread does.
  Value own = index.min(thread, sequences);
  auto ownKeys = [&]() -> Value {
    Sequence mine = sequence(own);
    return mine.keys;
  };
  auto keysOrNone = scf::IfOp::create(
      b, valid,
      [&](OpBuilder &nested, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(nested.saveInsertionPoint());
        scf::YieldOp::create(b, ownKeys());
      },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, zero);
      });
  Value keys = keysOrNone.getResult(0);
  auto loop = scf::ForOp::create(
      b, zero, segments, one, ValueRange{none, zero, zero},
      [&](OpBuilder &, Location, Value s, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(s.getParentBlock());
        Sequence other = sequence(s);
        Value fault = index.min(state[0], check(s, other, none));
        Value total = index.add(state[1], other.tiles);
        Value equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            other.keys, keys);
        Value before = b.createOrFold<arith::OrIOp>(
            index.less(keys, other.keys),
            b.createOrFold<arith::AndIOp>(equal, index.less(s, own)));
        Value start =
            index.add(state[2], index.select(before, other.tiles, zero));
        scf::YieldOp::create(b, ValueRange{fault, total, start});
      });
  Value fault = index.select(valid, loop.getResult(0), wrongLength);
  Value good = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, fault, none);

  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, zero);
  emitIf(isFirst, [&] {
    Value total = index.select(good, loop.getResult(1), zero);
    memref::StoreOp::create(
        b, arith::IndexCastOp::create(b, b.getI64Type(), total), count,
        ValueRange{zero});
    Value bad = b.createOrFold<arith::XOrIOp>(
        good, arith::ConstantIntOp::create(b, 1, 1));
    emitIf(bad, [&] { emitStatus(fault); });
  });
  Value writes =
      b.createOrFold<arith::AndIOp>(good, index.less(thread, segments));
  emitIf(writes, [&] {
    Value tiles = sequence(own).tiles, start = loop.getResult(2);
    Value own32 = arith::IndexCastOp::create(b, b.getI32Type(), own);
    scf::ForOp::create(
        b, zero, tiles, one, ValueRange{},
        [&](OpBuilder &, Location, Value i, ValueRange) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(i.getParentBlock());
          // The last rows of a causal sequence see the most keys.
          Value tile = index.sub(index.sub(tiles, one), i);
          Value row = index.add(start, i);
          memref::StoreOp::create(b, own32, list, ValueRange{row, zero});
          memref::StoreOp::create(
              b, arith::IndexCastOp::create(b, b.getI32Type(), tile), list,
              ValueRange{row, one});
          scf::YieldOp::create(b);
        });
  });
}

FailureOr<GPUWorkTiles> ListBuilder::emit() {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  FailureOr<func::FuncOp> getStatus =
      getRuntimeFunction(op->getParentOfType<ModuleOp>(), op,
                         "varlen_gpu_status", b.getFunctionType({}, pointer));
  if (failed(getStatus))
    return failure();
  status = func::CallOp::create(b, *getStatus, ValueRange{}).getResult(0);
  // Each segment rounds up once; with bad cu_seqlens nothing is written.
  Value segments = index.max(index.add(sequences, 1), index.constant(1));
  Value bound = index.add(
      index.div(index.mul(tq, group), index.constant(blockM)), segments);
  auto allocate = [&](MemRefType type, ValueRange sizes) -> Value {
    return memref::AllocOp::create(b, type, sizes);
  };
  Value list = allocate(
      MemRefType::get({ShapedType::kDynamic, 2}, b.getI32Type()), bound);
  Value count = allocate(MemRefType::get({1}, b.getI64Type()), {});
  Value wrongLength = checkLengths();
  emitLaunch(b, op->getParentOfType<func::FuncOp>().getName() + "_tiles",
             index.ceilDiv(segments, kThreads), kThreads,
             [&](Value block, Value, Value thread) {
               Value global = index.add(index.mul(block, kThreads), thread);
               emitThread(global, wrongLength, list, count);
             });
  return GPUWorkTiles{list, count};
}

FailureOr<GPUWorkTiles> varlen::emitGPUWorkTiles(ImplicitLocOpBuilder &b,
                                                 AttnOp op, Value group,
                                                 int64_t blockM) {
  return ListBuilder(b, op, group, blockM).emit();
}
