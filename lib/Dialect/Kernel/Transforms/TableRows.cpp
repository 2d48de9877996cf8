//===- TableRows.cpp - Sums to rows of a table, of fragments --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableRows.h"

#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// The lanes that share the rows of a fragment, and how many of the rows and
/// columns that a thread has side by side.
static constexpr int64_t kQuad = 4, kSide = 2;

void kernel::emitScatterAdd(ThreadBuilder &b, Value values, Value index,
                            Value memory, Value rows) {
  ArrayRef<int64_t> shape = cast<VectorType>(values.getType()).getShape();
  IndexBuilder at{b};
  Value flat = emitFlatTable(at, memory);
  Value member = b.bitAnd(b.lane(), kQuad - 1);
  Value quad = b.bitAnd(b.lane(), ~(kQuad - 1));
  Value isSecond =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, member, b.constant(1));
  Value isOwner = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, member,
                                        b.constant(kSide));
  // Of the two rows that a thread has numbers of, what is of its own.
  auto ofOwn = [&](function_ref<Value(int64_t)> of) -> Value {
    Value first = of(0), second = of(1);
    return arith::SelectOp::create(b, isSecond, second, first);
  };
  for (int64_t i = 0; i < shape[0]; ++i) {
    Value row = ofOwn([&](int64_t k) -> Value {
      return vector::ExtractOp::create(b, rows, ArrayRef<int64_t>{i, 0, k, 0});
    });
    Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(kNoTableRow));
    Value adds = arith::AndIOp::create(
        b, isOwner,
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, row, none));
    for (int64_t j = 0; j < shape[1]; ++j)
      varlen::emitLoop(
          b, b.constant(0), b.constant(kQuad), b.constant(1), [&](Value turn) {
            Value source = b.add(quad, turn), width = b.constant(32);
            auto fromSource = [&](Value fragment, int64_t l) {
              return ofOwn([&](int64_t k) -> Value {
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
                Value sum = memref::LoadOp::create(b, flat, place);
                sum = arith::AddFOp::create(b, sum, value);
                memref::StoreOp::create(b, sum, flat, place);
              }
            });
          });
  }
}
