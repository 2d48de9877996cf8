//===- TableRows.cpp - Sums to rows of a table, of fragments --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableRows.h"

#include "varlen/Dialect/Varlen/Utils/TableMemory.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// The lanes that share the rows of a fragment, and how many of the rows and
/// columns that a thread has side by side.
static constexpr int64_t kQuad = 4, kSide = 2;

namespace {
/// Of two rows that the lanes of four share, the first lane owns the first and
/// the second the other.
struct Owner {
  explicit Owner(ThreadBuilder &b) : b(b) {
    Value member = b.bitAnd(b.lane(), kQuad - 1);
    isSecond = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, member,
                                     b.constant(1));
    isOwner = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, member,
                                    b.constant(kSide));
  }
  /// Of what a lane has of both rows, what is of its own.
  Value get(function_ref<Value(int64_t)> of) const {
    Value first = of(0), second = of(1);
    return arith::SelectOp::create(b, isSecond, second, first);
  }
  /// Whether the lane adds what is of its own to `row` of a table.
  Value adds(Value row) const {
    Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(kNoTableRow));
    return arith::AndIOp::create(
        b, isOwner,
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, row, none));
  }

  ThreadBuilder &b;
  Value isSecond, isOwner;
};
} // namespace

/// Adds to an element of flat memory.
static void emitAdd(ThreadBuilder &b, Value memory, Value place, Value value) {
  Value sum = memref::LoadOp::create(b, memory, place);
  sum = arith::AddFOp::create(b, sum, value);
  memref::StoreOp::create(b, sum, memory, place);
}

void kernel::emitScatterAdd(ThreadBuilder &b, Value values, Value index,
                            Value memory, Value rows) {
  ArrayRef<int64_t> shape = cast<VectorType>(values.getType()).getShape();
  IndexBuilder at{b};
  Value flat = emitFlatTable(at, memory);
  Value quad = b.bitAnd(b.lane(), ~(kQuad - 1));
  Owner owner(b);
  for (int64_t i = 0; i < shape[0]; ++i) {
    Value row = owner.get([&](int64_t k) -> Value {
      return vector::ExtractOp::create(b, rows, ArrayRef<int64_t>{i, 0, k, 0});
    });
    Value adds = owner.adds(row);
    for (int64_t j = 0; j < shape[1]; ++j)
      varlen::emitLoop(
          b, b.constant(0), b.constant(kQuad), b.constant(1), [&](Value turn) {
            Value source = b.add(quad, turn), width = b.constant(kWarpLanes);
            auto fromSource = [&](Value fragment, int64_t l) {
              return owner.get([&](int64_t k) -> Value {
                Value number = vector::ExtractOp::create(
                    b, fragment, ArrayRef<int64_t>{i, j, k, l});
                return gpu::ShuffleOp::create(b, number, source, width,
                                              gpu::ShuffleMode::IDX)
                    .getShuffleResult();
              });
            };
            // All lanes hand on before some of them go on alone.
            SmallVector<std::pair<Value, Value>> terms;
            for (int64_t l = 0; l < kSide; ++l)
              terms.push_back({fromSource(values, l), fromSource(index, l)});
            emitIf(b, adds, [&] {
              for (auto [value, entry] : terms) {
                Value place = at.cast(emitTableOffset(at, memory, row, entry));
                emitAdd(b, flat, place, value);
              }
            });
          });
  }
}

void kernel::emitAddKeys(ThreadBuilder &b, Value values, Value memory,
                         Value row, Value firstKey, int64_t warps) {
  ArrayRef<int64_t> shape = cast<VectorType>(values.getType()).getShape();
  IndexBuilder at{b};
  Value flat = emitFlatTable(at, memory);
  Value sums = reduceRows(b, values, gpu::AllReduceOperation::ADD);
  Value keys = b.coordinates(0, shape, warps);
  Owner owner(b);
  Value count = IndexBuilder{b, b.getI32Type()}.dim(memory, 1);
  Value adds = owner.adds(row);
  for (int64_t i = 0; i < shape[0]; ++i) {
    auto ofOwn = [&](Value fragment) {
      return owner.get([&](int64_t k) -> Value {
        return vector::ExtractOp::create(b, fragment,
                                         ArrayRef<int64_t>{i, 0, k, 0});
      });
    };
    Value entry = b.add(firstKey, ofOwn(keys)), sum = ofOwn(sums);
    Value isThere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, entry, count);
    emitIf(b, arith::AndIOp::create(b, adds, isThere), [&] {
      emitAdd(b, flat, at.cast(emitTableOffset(at, memory, row, entry)), sum);
    });
  }
}
