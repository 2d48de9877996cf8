//===- Body.cpp - What the body of an operation computes ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/Body.h"

#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

bool varlen::isReduced(linalg::LinalgOp op, OpOperand &init) {
  AffineMap map = op.getMatchingIndexingMap(&init);
  SmallVector<unsigned> dims;
  op.getReductionDims(dims);
  return llvm::any_of(dims,
                      [&](unsigned dim) { return !map.isFunctionOfDim(dim); });
}

bool varlen::variesAlong(linalg::LinalgOp op, Value value, unsigned dim) {
  if (value.getParentBlock() != op.getBlock())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    OpOperand *operand = op.getMatchingOpOperand(argument);
    return op.getMatchingIndexingMap(operand).isFunctionOfDim(dim) ||
           (op.isDpsInit(operand) && isReduced(op, *operand));
  }
  Operation *inner = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(inner))
    return index.getDim() == dim;
  return llvm::any_of(getDependencies(inner), [&](Value dependency) {
    return variesAlong(op, dependency, dim);
  });
}

void varlen::moveIndices(OpBuilder &b, linalg::GenericOp op,
                         ValueRange origin) {
  OpBuilder::InsertionGuard guard(b);
  for (auto index :
       llvm::make_early_inc_range(op.getBody()->getOps<linalg::IndexOp>())) {
    if (index.getDim() >= origin.size())
      continue;
    b.setInsertionPointAfter(index);
    Value moved =
        arith::AddIOp::create(b, index.getLoc(), index, origin[index.getDim()]);
    index.getResult().replaceAllUsesExcept(moved, moved.getDefiningOp());
  }
}

/// Loops are parallel as far as the last result has them. Results are those of
/// tensors.
static linalg::GenericOp
createGeneric(ImplicitLocOpBuilder &b, ValueRange inputs, ValueRange inits,
              ArrayRef<AffineMap> maps,
              function_ref<Values(ImplicitLocOpBuilder &, ValueRange)> body) {
  SmallVector<utils::IteratorType> loops;
  for (unsigned dim = 0; dim < maps.back().getNumDims(); ++dim)
    loops.push_back(maps.back().isFunctionOfDim(dim)
                        ? utils::IteratorType::parallel
                        : utils::IteratorType::reduction);
  auto results = llvm::make_filter_range(inits.getTypes(),
                                         llvm::IsaPred<RankedTensorType>);
  return linalg::GenericOp::create(
      b, llvm::to_vector_of<Type>(results), inputs, inits, maps, loops,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, arguments));
      });
}

Value varlen::emitGeneric(
    ImplicitLocOpBuilder &b, ValueRange inputs, Value init,
    ArrayRef<AffineMap> maps,
    function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body) {
  return createGeneric(b, inputs, init, maps,
                       [&](ImplicitLocOpBuilder &inner, ValueRange x) {
                         return Values{body(inner, x)};
                       })
      .getResult(0);
}

linalg::GenericOp varlen::emitElementwise(
    ImplicitLocOpBuilder &b, ValueRange inputs, ValueRange inits,
    function_ref<Values(ImplicitLocOpBuilder &, ValueRange)> body) {
  int64_t rank = cast<ShapedType>(inits[0].getType()).getRank();
  SmallVector<AffineMap> maps(inputs.size() + inits.size(),
                              b.getMultiDimIdentityMap(rank));
  return createGeneric(b, inputs, inits, maps, body);
}

void varlen::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}
