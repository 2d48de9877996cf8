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
#include "varlen/Runtime/GPU.h"

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
  // One binary for all kernels of a program.
  launch.setModuleAttr(FlatSymbolRefAttr::get(b.getStringAttr("kernels")));
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
  ListBuilder(ImplicitLocOpBuilder &b, AttentionOpInterface op,
              const GPUBatch &batch, TilesOf of, int64_t size,
              const GPUWorkTiles *checked)
      : b(b), index{b}, op(op), group(batch.group),
        ofQueries(of == TilesOf::Queries), size(size), checked(checked),
        tq(batch.tq), tk(batch.tk), sequences(batch.sequences) {}

  FailureOr<GPUWorkTiles> emit();

private:
  struct Sequence {
    PackedRows q, k;
    /// How long a tile takes: rows in use on the other side. And the tiles.
    Value work, tiles;
  };
  /// Something that may be wrong; the fields of varlen_gpu_status. No bound:
  /// the code says it.
  struct Check {
    Value wrong;
    int64_t code;
    Value at, value, bound;
  };

  Value dim(Value memref) {
    return b.createOrFold<memref::DimOp>(memref, index.constant(0));
  }
  Value conjunction(Value lhs, Value rhs) {
    return b.createOrFold<arith::AndIOp>(lhs, rhs);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
  }
  Value any(ArrayRef<Check> checks);
  /// Whether each list has as many entries as there are sequences.
  SmallVector<Check> lengthChecks();
  SmallVector<Check> entryChecks(Value s, const Sequence &sequence);
  Sequence sequence(Value s);

  void emitIf(Value condition, function_ref<void()> body);
  void emitThread(Value thread, Value list, Value count);
  void emitCount(Value value, Value count);
  void emitOwnTiles(Value own, Value start, Value list);
  /// Stores the first check that fails, one of them, unless the status has an
  /// error already.
  void emitStatus(ArrayRef<Check> checks);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  AttentionOpInterface op;
  Value group;
  bool ofQueries;
  int64_t size;
  const GPUWorkTiles *checked;
  Value tq, tk, sequences, status;
};

} // namespace

void ListBuilder::emitIf(Value condition, function_ref<void()> body) {
  scf::IfOp::create(b, condition, [&](OpBuilder &nested, Location) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(nested.saveInsertionPoint());
    body();
    scf::YieldOp::create(b);
  });
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

Value ListBuilder::any(ArrayRef<Check> checks) {
  Value result = arith::ConstantIntOp::create(b, 0, 1);
  for (const Check &check : checks)
    result = b.createOrFold<arith::OrIOp>(result, check.wrong);
  return result;
}

SmallVector<ListBuilder::Check> ListBuilder::lengthChecks() {
  SmallVector<Check> checks;
  Value zero = index.constant(0), one = index.constant(1), n = dim(op.getCuQ());
  checks.push_back({index.less(n, one),
                    VARLEN_STATUS_LENGTH + VARLEN_STATUS_CU_Q, zero, n,
                    Value()});
  auto expect = [&](Value list, Value size, int64_t code) {
    if (!list)
      return;
    Value actual = dim(list);
    checks.push_back({compare(arith::CmpIPredicate::ne, actual, size),
                      VARLEN_STATUS_LENGTH + code, zero, actual, size});
  };
  expect(op.getCuK(), n, VARLEN_STATUS_CU_K);
  expect(op.getSequsedQ(), sequences, VARLEN_STATUS_USED_Q);
  expect(op.getSequsedK(), sequences, VARLEN_STATUS_USED_K);
  expect(op.getQOffset(), sequences, VARLEN_STATUS_OFFSET);
  return checks;
}

SmallVector<ListBuilder::Check>
ListBuilder::entryChecks(Value s, const Sequence &sequence) {
  SmallVector<Check> checks;
  Value zero = index.constant(0);
  Value isFirst = compare(arith::CmpIPredicate::eq, s, zero);
  Value isSequence = index.less(s, sequences);
  Value isLast = compare(arith::CmpIPredicate::eq, s, sequences);
  auto packed = [&](Value cu, const PackedRows &rows, Value rowsInMemory,
                    int64_t list) {
    checks.push_back({conjunction(isFirst, compare(arith::CmpIPredicate::ne,
                                                   rows.begin, zero)),
                      VARLEN_STATUS_START + list, s, rows.begin, Value()});
    checks.push_back({conjunction(isSequence, index.less(rows.end, rows.begin)),
                      VARLEN_STATUS_DECREASE + list, index.add(s, 1), rows.end,
                      rows.begin});
    checks.push_back({conjunction(isLast, index.less(rowsInMemory, rows.begin)),
                      VARLEN_STATUS_END + list, s, rows.begin, rowsInMemory});
  };
  packed(op.getCuQ(), sequence.q, tq, VARLEN_STATUS_CU_Q);
  packed(op.getCuK(), sequence.k, tk, VARLEN_STATUS_CU_K);
  auto used = [&](Value list, const PackedRows &rows, int64_t code) {
    if (!list)
      return;
    Value size = index.sub(rows.end, rows.begin);
    Value value = emitUsed(index, list, s, sequences, zero);
    Value outside = b.createOrFold<arith::OrIOp>(index.less(value, zero),
                                                 index.less(size, value));
    checks.push_back({conjunction(isSequence, outside),
                      VARLEN_STATUS_USED + code, s, value, size});
  };
  used(op.getSequsedQ(), sequence.q, VARLEN_STATUS_USED_Q);
  used(op.getSequsedK(), sequence.k, VARLEN_STATUS_USED_K);
  return checks;
}

void ListBuilder::emitStatus(ArrayRef<Check> checks) {
  Value zero = index.constant(0);
  const Check &last = checks.back();
  Value code = index.constant(last.code), at = last.at, value = last.value;
  Value bound = last.bound ? last.bound : zero;
  for (const Check &check : llvm::reverse(checks.drop_back())) {
    code = index.select(check.wrong, index.constant(check.code), code);
    at = index.select(check.wrong, check.at, at);
    value = index.select(check.wrong, check.value, value);
    if (check.bound)
      bound = index.select(check.wrong, check.bound, bound);
  }
  auto i64 = b.getI64Type();
  Value kept = LLVM::LoadOp::create(b, i64, status);
  emitIf(compare(arith::CmpIPredicate::eq, index.cast(kept), zero), [&] {
    Value fields[] = {code, at, value, bound};
    for (auto [number, field] : llvm::enumerate(fields)) {
      Value address =
          LLVM::GEPOp::create(b, status.getType(), i64, status,
                              ArrayRef<LLVM::GEPArg>{int32_t(number)});
      LLVM::StoreOp::create(b, arith::IndexCastOp::create(b, i64, field),
                            address);
    }
  });
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

ListBuilder::Sequence ListBuilder::sequence(Value s) {
  Sequence result;
  result.q = emitPackedRows(index, op.getCuQ(), s, tq);
  result.k = emitPackedRows(index, op.getCuK(), s, tk);
  auto rows = [&](const PackedRows &packed) {
    return index.sub(packed.end, packed.begin);
  };
  Value other = rows(ofQueries ? result.k : result.q);
  Value used = ofQueries ? op.getSequsedK() : op.getSequsedQ();
  result.work = emitUsed(index, used, s, sequences, other);
  Value own = ofQueries ? index.mul(rows(result.q), group) : rows(result.k);
  result.tiles = index.ceilDiv(own, size);
  return result;
}

void ListBuilder::emitCount(Value value, Value count) {
  memref::StoreOp::create(b,
                          arith::IndexCastOp::create(b, b.getI64Type(), value),
                          count, ValueRange{index.constant(0)});
}

void ListBuilder::emitOwnTiles(Value own, Value start, Value list) {
  Value zero = index.constant(0), one = index.constant(1);
  Value tiles = sequence(own).tiles;
  auto narrow = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(), value);
  };
  scf::ForOp::create(
      b, zero, tiles, one, ValueRange{},
      [&](OpBuilder &, Location, Value i, ValueRange) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(i.getParentBlock());
        // The last rows of a causal sequence see the most keys, and its first
        // keys are seen by the most rows.
        Value tile = ofQueries ? index.sub(index.sub(tiles, one), i) : Value(i);
        Value row = index.add(start, i);
        memref::StoreOp::create(b, narrow(own), list, ValueRange{row, zero});
        memref::StoreOp::create(b, narrow(tile), list, ValueRange{row, one});
        scf::YieldOp::create(b);
      });
}

/// The thread of sequence `thread`; those past the last segment do nothing.
/// All entries are there to be read.
void ListBuilder::emitThread(Value thread, Value list, Value count) {
  Value zero = index.constant(0), one = index.constant(1);
  Value segments = index.add(sequences, 1);
  Value work = sequence(thread).work;
  // The tiles of the segments that come before this one, those of all, and,
  // unless that is known, the first segment with an error (else their number).
  SmallVector<Value> initial = {zero, zero};
  if (!checked)
    initial.push_back(segments);
  auto loop = scf::ForOp::create(
      b, zero, segments, one, initial,
      [&](OpBuilder &, Location, Value s, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(s.getParentBlock());
        Sequence other = sequence(s);
        Value equal = compare(arith::CmpIPredicate::eq, other.work, work);
        Value before = b.createOrFold<arith::OrIOp>(
            index.less(work, other.work),
            conjunction(equal, index.less(s, thread)));
        SmallVector<Value> next = {
            index.add(state[0], index.select(before, other.tiles, zero)),
            index.add(state[1], other.tiles)};
        if (!checked) {
          Value wrong = any(entryChecks(s, other));
          next.push_back(index.min(state[2], index.select(wrong, s, segments)));
        }
        scf::YieldOp::create(b, next);
      });
  Value start = loop.getResult(0), total = loop.getResult(1), fault, good;
  if (!checked) {
    fault = loop.getResult(2);
    good = compare(arith::CmpIPredicate::eq, fault, segments);
    total = index.select(good, total, index.constant(-1));
  }
  emitIf(compare(arith::CmpIPredicate::eq, thread, zero), [&] {
    emitCount(total, count);
    if (fault)
      emitIf(index.less(fault, segments),
             [&] { emitStatus(entryChecks(fault, sequence(fault))); });
  });
  auto emitOwn = [&] { emitOwnTiles(thread, start, list); };
  good ? emitIf(good, emitOwn) : emitOwn();
}

FailureOr<GPUWorkTiles> ListBuilder::emit() {
  if (!checked) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    FailureOr<func::FuncOp> getStatus = getRuntimeFunction(
        op->getParentOfType<ModuleOp>(), op, "varlen_gpu_status_buffer",
        b.getFunctionType({}, pointer));
    if (failed(getStatus))
      return failure();
    status = func::CallOp::create(b, *getStatus, ValueRange{}).getResult(0);
  }
  // Each segment rounds up once; with bad cu_seqlens nothing is written.
  Value segments = index.max(index.add(sequences, 1), index.constant(1));
  Value rows = ofQueries ? index.mul(tq, group) : tk;
  Value bound = index.add(index.div(rows, index.constant(size)), segments);
  auto allocate = [&](MemRefType type, ValueRange sizes) -> Value {
    return memref::AllocOp::create(b, type, sizes);
  };
  Value list = allocate(
      MemRefType::get({ShapedType::kDynamic, 2}, b.getI32Type()), bound);
  Value count = allocate(MemRefType::get({1}, b.getI64Type()), {});
  emitLaunch(b,
             op->getParentOfType<func::FuncOp>().getName() +
                 (ofQueries ? "_tiles" : "_key_tiles"),
             index.ceilDiv(segments, kThreads), kThreads,
             [&](Value block, Value, Value thread) {
               Value own = index.add(index.mul(block, kThreads), thread);
               Value zero = index.constant(0);
               SmallVector<Check> lengths;
               if (!checked)
                 lengths = lengthChecks();
               Value bad =
                   checked ? index.less(index.load(checked->count, zero), zero)
                           : any(lengths);
               Value isFirst = compare(arith::CmpIPredicate::eq, own, zero);
               auto branch = scf::IfOp::create(b, bad, /*withElseRegion=*/true);
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPoint(branch.thenYield());
               emitIf(isFirst, [&] {
                 emitCount(index.constant(-1), count);
                 if (!checked)
                   emitStatus(lengths);
               });
               b.setInsertionPoint(branch.elseYield());
               emitIf(index.less(own, segments),
                      [&] { emitThread(own, list, count); });
               b.setInsertionPointAfter(branch);
             });
  return GPUWorkTiles{list, count};
}

GPUBatch varlen::emitGPUBatch(ImplicitLocOpBuilder &b,
                              AttentionOpInterface op) {
  IndexBuilder index{b};
  auto dim = [&](Value memref, int64_t dim) -> Value {
    return b.createOrFold<memref::DimOp>(memref, index.constant(dim));
  };
  Value one = index.constant(1);
  Value kvHeads = index.max(dim(op.getK(), 1), one);
  return {dim(op.getQ(), 0), dim(op.getK(), 0),
          index.sub(dim(op.getCuQ(), 0), one), kvHeads,
          index.max(index.div(dim(op.getQ(), 1), kvHeads), one)};
}

void GPUWorkTiles::free(ImplicitLocOpBuilder &b) const {
  memref::DeallocOp::create(b, list);
  memref::DeallocOp::create(b, count);
}

FailureOr<GPUWorkTiles> varlen::emitGPUWorkTiles(ImplicitLocOpBuilder &b,
                                                 AttentionOpInterface op,
                                                 const GPUBatch &batch,
                                                 TilesOf of, int64_t size,
                                                 const GPUWorkTiles *checked) {
  return ListBuilder(b, op, batch, of, size, checked).emit();
}
