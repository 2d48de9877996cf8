//===- KernelSplitF32.cpp - f32 contractions as bf16 ones -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// An f32 number is the sum of three bf16 numbers, each what rounding the ones
// before has left: 3 x 8 bits of significand and two signs. Among the nine
// products of two such sums six matter to f32: the others are below 2^-26 of
// the largest.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELSPLITF32
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

using Planes = SmallVector<Value, kPlanes>;

static Value emitEmpty(ImplicitLocOpBuilder &b, Value like, Type element) {
  auto shape = cast<RankedTensorType>(like.getType()).getShape();
  return tensor::EmptyOp::create(b, shape, element);
}

/// The three terms of an f32 tile, largest first.
static Planes getPlanes(ImplicitLocOpBuilder &b, Value tile) {
  Planes planes;
  Type narrow = b.getBF16Type();
  if (auto shared = tile.getDefiningOp<TileOp>()) {
    Type type = shared.getTile().getType().clone(narrow);
    for (Value memory : shared.getMem())
      planes.push_back(TileOp::create(b, type, memory));
    return planes;
  }
  Values inits;
  for (int64_t i = 0; i < kPlanes; ++i)
    inits.push_back(emitEmpty(b, tile, narrow));
  linalg::GenericOp split = emitElementwise(
      b, tile, inits, [&](ImplicitLocOpBuilder &inner, ValueRange arguments) {
        Values terms;
        Value rest = arguments[0];
        for (int64_t i = 0; i < kPlanes; ++i) {
          terms.push_back(arith::TruncFOp::create(inner, narrow, rest));
          if (i + 1 == kPlanes)
            break;
          Value wide =
              arith::ExtFOp::create(inner, inner.getF32Type(), terms.back());
          rest = arith::SubFOp::create(inner, rest, wide);
        }
        return terms;
      });
  llvm::append_range(planes, split.getResults());
  return planes;
}

static bool isZero(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(init, m_AnyZeroFloat());
}

static void split(linalg::ContractOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Planes lhs = getPlanes(b, op.getInputs()[0]);
  Planes rhs = getPlanes(b, op.getInputs()[1]);
  Value init = op.getOutputs()[0], sum = init;
  Type type = init.getType();
  // Tensor cores cut off where they add, so what was accumulated before is
  // added in the end, rounded; and small terms come first.
  bool startsFromZero = isZero(init);
  if (!startsFromZero) {
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
    auto shape = cast<RankedTensorType>(type).getShape();
    Value empty = tensor::EmptyOp::create(b, shape, b.getF32Type());
    sum = linalg::FillOp::create(b, zero, empty).getResult(0);
  }
  constexpr std::pair<int, int> products[] = {{0, 2}, {2, 0}, {1, 1},
                                              {0, 1}, {1, 0}, {0, 0}};
  for (auto [i, j] : products)
    sum = linalg::ContractOp::create(b, TypeRange{type},
                                     ValueRange{lhs[i], rhs[j]},
                                     ValueRange{sum}, op.getIndexingMapsAttr())
              .getResult(0);
  if (!startsFromZero)
    sum = emitElementwise(b, {init, sum}, emitEmpty(b, init, b.getF32Type()),
                          [](ImplicitLocOpBuilder &inner, ValueRange x) {
                            return Values{
                                arith::AddFOp::create(inner, x[0], x[1])};
                          })
              .getResult(0);
  op.getResult(0).replaceAllUsesWith(sum);
  op.erase();
}

namespace {
struct KernelSplitF32 : kernel::impl::KernelSplitF32Base<KernelSplitF32> {
  void runOnOperation() override {
    SmallVector<linalg::ContractOp> contracts;
    SmallVector<TileOp> tiles;
    getOperation()->walk([&](Operation *op) {
      auto isF32 = [](Value value) {
        return isTile(value.getType()) &&
               getElementTypeOrSelf(value.getType()).isF32();
      };
      if (auto contract = dyn_cast<linalg::ContractOp>(op)) {
        if (llvm::all_of(contract->getOperands(), isF32))
          contracts.push_back(contract);
      } else if (auto tile = dyn_cast<TileOp>(op); tile && isF32(tile)) {
        tiles.push_back(tile);
      }
    });
    llvm::for_each(contracts, split);
    numSplit += contracts.size();
    for (TileOp tile : tiles)
      if (tile->use_empty())
        tile->erase();
  }
};
} // namespace
