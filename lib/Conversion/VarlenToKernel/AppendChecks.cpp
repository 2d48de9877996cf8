//===- AppendChecks.cpp - Errors in an append, on a GPU -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three phases, for all sequences and new rows at once: owners of pages are
// cleared; sequences are checked, and each entry that is written to makes
// itself the owner of its page, of which the first remains; entries are
// compared with the owners. One CTA does it if there are few rows, as in
// decoding; otherwise each phase is a launch. Of faults the least is kept, so
// what is reported does not depend on the order of threads.
//
//===----------------------------------------------------------------------===//

#include "AppendKernels.h"
#include "varlen/Runtime/GPU.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

/// Threads of the CTA that does all phases, and how many rows it does at most.
static constexpr int64_t kCTAThreads = 1024;
static constexpr int64_t kCTARows = 4 * kCTAThreads;

GPUFault AppendKernels::checkExtents() {
  SmallVector<GPUFault> checks;
  Value zero = index.constant(0);
  auto expect = [&](Value isWrong, int64_t code, Value value, Value bound) {
    checks.push_back({isWrong, index.constant(code), zero, value, bound});
  };
  auto same = [&](Value value, Value wanted, int64_t rule) {
    expect(index.notEqual(value, wanted), VARLEN_STATUS_EXTENT + 8 * rule,
           value, wanted);
  };
  auto pagesOf = [&](Value cache, int64_t tensor, int64_t page) {
    same(
        index.dim(cache, 0), pages,
        VARLEN_EXTENT_RULE(tensor, VARLEN_EXTENT_PAGES, VARLEN_TENSOR_K_CACHE));
    same(index.dim(cache, 1), pageRows,
         VARLEN_EXTENT_RULE(page, VARLEN_EXTENT_ROWS,
                            VARLEN_TENSOR_K_CACHE_PAGE));
  };
  same(
      index.dim(op.getV(), 0), rows,
      VARLEN_EXTENT_RULE(VARLEN_TENSOR_V, VARLEN_EXTENT_ROWS, VARLEN_TENSOR_K));
  pagesOf(op.getVCache(), VARLEN_TENSOR_V_CACHE, VARLEN_TENSOR_V_CACHE_PAGE);
  if (op.isQuantised()) {
    pagesOf(op.getKScale(), VARLEN_TENSOR_K_SCALE, VARLEN_TENSOR_K_SCALE_PAGE);
    pagesOf(op.getVScale(), VARLEN_TENSOR_V_SCALE, VARLEN_TENSOR_V_SCALE_PAGE);
  }
  expect(index.less(pageRows, 1),
         VARLEN_STATUS_EXTENT +
             8 * VARLEN_EXTENT_RULE(VARLEN_TENSOR_K_CACHE_PAGE,
                                    VARLEN_EXTENT_ROWS,
                                    VARLEN_TENSOR_K_CACHE_PAGE),
         pageRows, pageRows);
  expect(index.less(index.dim(op.getCu(), 0), 1),
         VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_CU, zero, zero);
  auto count = [&](Value list, int64_t code) {
    Value entries = index.dim(list, 0);
    expect(index.notEqual(entries, sequences), VARLEN_STATUS_LENGTH + code,
           entries, sequences);
  };
  count(op.getSequsedK(), VARLEN_STATUS_NEW_USED);
  if (op.getBlockTable())
    count(op.getBlockTable(), VARLEN_STATUS_NEW_PAGES);
  else
    expect(index.less(pages, sequences),
           VARLEN_STATUS_LENGTH + VARLEN_STATUS_NEW_SLOTS, sequences, pages);
  return firstOf(b, checks);
}

GPUFault AppendKernels::checkSequence(Value s) {
  SmallVector<GPUFault> checks;
  PackedRows packed = emitPackedRows(index, op.getCu(), s, rows);
  appendCuChecks(checks, index, s, sequences, packed, rows,
                 VARLEN_STATUS_NEW_CU);
  Value isSequence = index.less(s, sequences);
  Value length = index.sub(packed.end, packed.begin);
  Value used = emitUsed(index, op.getSequsedK(), s, sequences,
                        /*otherwise=*/index.constant(0));
  auto expect = [&](Value isWrong, int64_t code, Value at, Value value,
                    Value bound) {
    checks.push_back({index.both(isSequence, isWrong), index.constant(code), at,
                      value, bound});
  };
  int64_t place =
      op.getBlockTable() ? VARLEN_STATUS_NEW_PAGES : VARLEN_STATUS_NEW_SLOTS;
  expect(index.less(capacity, length), VARLEN_STATUS_LONG + place, s, length,
         capacity);
  Value room = index.sub(capacity, length);
  expect(index.either(index.less(used, 0), index.less(room, used)),
         VARLEN_STATUS_USED + place,
         index.add(index.mul(s, VARLEN_STATUS_COLUMNS), length), used, room);
  Value end = index.add(used, length);
  auto positions = [&](Value table, int64_t list) {
    if (!table)
      return;
    Value extent = index.dim(table, 0);
    Value isShort = index.both(index.less(0, length), index.less(extent, end));
    expect(isShort, VARLEN_STATUS_LENGTH + list, s, extent, end);
  };
  positions(op.getCos(), VARLEN_STATUS_COS);
  positions(op.getSin(), VARLEN_STATUS_SIN);
  return firstOf(b, checks);
}

//===----------------------------------------------------------------------===//
// Entries of the table
//===----------------------------------------------------------------------===//

Value AppendKernels::isPage(Value page) {
  return index.both(index.lessEqual(0, page), index.less(page, pages));
}

void AppendKernels::emitAtEntry(Value row,
                                function_ref<void(Value, Value)> body) {
  emitAtRow(row, [&](const NewRow &found) {
    emitIf(b, found.isFirst, [&] {
      Value key = index.add(index.mul(found.sequence, VARLEN_STATUS_COLUMNS),
                            found.column);
      body(key, index.load(op.getBlockTable(), {found.sequence, found.column}));
    });
  });
}

/// Threads of several entries may have one place.
static void emitAtomic(IndexBuilder &index, arith::AtomicRMWKind kind,
                       Value value, Value memory, Value at) {
  IndexBuilder wide{index.b, index.b.getI64Type()};
  memref::AtomicRMWOp::create(index.b, kind, wide.cast(value), memory, at);
}

void AppendKernels::emitNoteFault(Value key) {
  emitAtomic(index, arith::AtomicRMWKind::mins, key, fault, index.constant(0));
}

SmallVector<std::function<void(Value)>> AppendKernels::getPhases() {
  auto atEntry = [this](Value i, function_ref<void(Value, Value)> body) {
    if (owners)
      emitIf(b, index.less(i, rows), [&] { emitAtEntry(i, body); });
  };
  auto clear = [this, atEntry](Value i) {
    Value none = index.constant(kNone);
    emitIf(b, index.equal(i, 0), [&] {
      memref::StoreOp::create(b, IndexBuilder{b, b.getI64Type()}.cast(none),
                              fault, index.constant(0));
    });
    atEntry(i, [&](Value, Value page) {
      emitIf(b, isPage(page), [&] {
        emitAtomic(index, arith::AtomicRMWKind::assign, none, owners, page);
      });
    });
  };
  auto check = [this, atEntry](Value i) {
    emitIf(b, index.lessEqual(i, sequences), [&] {
      emitIf(b, checkSequence(i).wrong,
             [&] { emitNoteFault(index.mul(i, VARLEN_STATUS_COLUMNS)); });
    });
    atEntry(i, [&](Value key, Value page) {
      emitIf(
          b, isPage(page),
          [&] {
            emitAtomic(index, arith::AtomicRMWKind::mins, key, owners, page);
          },
          [&] { emitNoteFault(key); });
    });
  };
  auto compare = [this, atEntry](Value i) {
    atEntry(i, [&](Value key, Value page) {
      emitIf(b, isPage(page), [&] {
        Value owner = index.load(owners, page);
        emitIf(b, index.notEqual(owner, key),
               [&] { emitNoteFault(index.add(key, kSamePage)); });
      });
    });
  };
  SmallVector<std::function<void(Value)>> phases = {clear, check};
  if (owners)
    phases.push_back(compare);
  return phases;
}

void AppendKernels::emitChecks() {
  // With extents that do not agree nothing is looked at.
  Value isGood = index.equal(extents.code, 0);
  Value bound = index.max(rows, index.add(sequences, 1));
  bound = index.select(isGood, bound, index.constant(0));
  auto phases = getPhases();
  emitIfOnHost(b, index.lessEqual(bound, kCTARows), [&] {
    emitLaunch(b, getName() + "_checks", index.constant(1), kCTAThreads,
               [&](Value, Value, Value thread) {
                 llvm::interleave(
                     phases,
                     [&](const std::function<void(Value)> &phase) {
                       emitLoop(b, thread, bound, kCTAThreads, phase);
                     },
                     [&] { gpu::BarrierOp::create(b); });
               });
  });
  emitIfOnHost(b, index.less(kCTARows, bound), [&] {
    static constexpr StringRef suffixes[] = {"_clear", "_check", "_compare"};
    for (auto [suffix, phase] : llvm::zip(suffixes, phases))
      emitLaunchOfThreads(b, getName() + suffix, bound, phase);
  });
}

Value AppendKernels::emitIsGood() {
  Value found =
      emitChoice(
          b, index.equal(extents.code, 0),
          [&] { return Values{index.load(fault, index.constant(0))}; },
          [&] { return Values{index.constant(0)}; })
          .front();
  return index.equal(found, kNone);
}

void AppendKernels::emitReport() {
  emitIf(
      b, index.less(0, extents.code), [&] { emitStatus(b, status, extents); },
      [&] {
        Value zero = index.constant(0);
        Value found = index.load(fault, zero);
        Value isSame = index.lessEqual(kSamePage, found);
        Value key = index.select(isSame, index.sub(found, kSamePage), found);
        Value s = index.div(key, VARLEN_STATUS_COLUMNS);
        SmallVector<GPUFault> checks = {checkSequence(s)};
        if (Value table = op.getBlockTable()) {
          Value column = index.rem(key, VARLEN_STATUS_COLUMNS);
          auto loadIf = [&](Value condition, Value memory, ValueRange at) {
            return emitChoice(
                       b, condition,
                       [&] { return Values{index.load(memory, at)}; },
                       [&] { return Values{zero}; })
                .front();
          };
          Value isEntry = index.both(index.less(s, sequences),
                                     index.less(column, index.dim(table, 1)));
          Value page = loadIf(isEntry, table, {s, column});
          Value owner = loadIf(index.both(isSame, isPage(page)), owners, page);
          checks.push_back(
              {isSame,
               index.constant(VARLEN_STATUS_USED + VARLEN_STATUS_SAME_PAGE),
               key, page, owner});
          // No other fault is left.
          checks.push_back(
              {arith::ConstantIntOp::create(b, 1, 1),
               index.constant(VARLEN_STATUS_END + VARLEN_STATUS_NEW_PAGES), key,
               page, pages});
        }
        emitStatus(b, status, firstOf(b, checks));
      });
}
