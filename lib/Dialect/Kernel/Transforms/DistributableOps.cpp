//===- DistributableOps.cpp - What fragments can do -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DistributableOps.h"

#include "FragmentLayout.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

bool kernel::hasTensors(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

Operation *kernel::getCombined(linalg::GenericOp generic) {
  return generic.getBody()->getTerminator()->getOperand(0).getDefiningOp();
}

std::optional<gpu::AllReduceOperation>
kernel::getCombiner(linalg::GenericOp generic) {
  BlockArgument acc = generic.getBody()->getArguments().back();
  Operation *op = getCombined(generic);
  if (!op || op->getNumOperands() != 2 || !acc.hasOneUse() ||
      *acc.user_begin() != op)
    return std::nullopt;
  if (isa<arith::AddFOp>(op))
    return gpu::AllReduceOperation::ADD;
  if (isa<arith::MaxNumFOp>(op))
    return gpu::AllReduceOperation::MAXNUMF;
  return std::nullopt;
}

/// Whether an operand of a loop nest over `loops` is read (or written) at the
/// point of the loops, or at its projection where its extent is 1.
static bool isProjection(AffineMap map, ArrayRef<int64_t> loops,
                         ArrayRef<int64_t> shape) {
  if (map.getNumResults() != 2)
    return false;
  for (unsigned dim = 0; dim < 2; ++dim) {
    AffineExpr expr = map.getResult(dim);
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    bool projected = constant && constant.getValue() == 0 && shape[dim] == 1;
    if (!projected && (expr != getAffineDimExpr(dim, map.getContext()) ||
                       shape[dim] != loops[dim]))
      return false;
  }
  return true;
}

VectorType kernel::getFragmentType(linalg::GenericOp op, int64_t warps) {
  auto element = Float32Type::get(op.getContext());
  return getFragmentType(
      RankedTensorType::get(op.getStaticLoopRanges(), element), warps);
}

/// That keys are the columns of the loops and each row has its limits:
/// varlen-expand-scores has a form for others.
static LogicalResult checkHide(HideOp hide, linalg::GenericOp loops) {
  auto key = hide.getKey().getDefiningOp<linalg::IndexOp>();
  auto isOfRow = [&](Value limit) {
    auto argument = dyn_cast<BlockArgument>(limit);
    return argument ? loops
                          .getMatchingIndexingMap(
                              loops.getMatchingOpOperand(argument))
                          .getResult(1)
                          .isSymbolicOrConstant()
                    : matchPattern(limit, m_Constant());
  };
  if (key && key.getDim() == 1 && isOfRow(hide.getLo()) &&
      isOfRow(hide.getHi()) && !computesFunctions(loops.getBody()))
    return success();
  return hide.emitOpError("expected limits of rows for keys that are the "
                          "columns of its tile");
}

/// That the loops do the same to each element of a tile whose columns warps
/// share.
static LogicalResult checkSharedByColumns(linalg::GenericOp op) {
  bool isAlike = op.getNumReductionLoops() == 0 &&
                 op.getBody()->getOps<linalg::IndexOp>().empty() &&
                 op.getBody()->getOps<HideOp>().empty();
  for (OpOperand &operand : op->getOpOperands())
    isAlike &= !isa<ShapedType>(operand.get().getType()) ||
               op.getMatchingIndexingMap(&operand).isIdentity();
  if (isAlike)
    return success();
  return op.emitOpError("expected rows for all warps where elements depend on "
                        "their row or column");
}

static LogicalResult checkGeneric(linalg::GenericOp op, int64_t warps) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  if (loops.size() != 2)
    return op.emitOpError("expected two loops, rows and columns, got ")
           << loops.size();
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!isa<ShapedType>(type))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!isProjection(map, loops, cast<ShapedType>(type).getShape()))
      return op.emitOpError("expected operands with the maps (m, n) -> (m, n), "
                            "(m, 0) or (0, n), got ")
             << AffineMapAttr::get(map) << " for " << type;
  }
  if (isSharedByColumns(
          RankedTensorType::get(loops, Float32Type::get(op.getContext())),
          warps) &&
      failed(checkSharedByColumns(op)))
    return failure();
  if (!getFragmentType(op, warps))
    return op.emitOpError("expected loops over numbers that a thread's "
                          "registers have room for, got ")
           << loops[0] << " x " << loops[1];
  if (op.getNumReductionLoops() != 0) {
    if (op.getNumResults() != 1 || op.getNumReductionLoops() != 1 ||
        op.getIteratorTypesArray()[1] != utils::IteratorType::reduction ||
        !getCombiner(op))
      return op.emitOpError("expected a reduction of columns with addf or "
                            "maxnumf");
  }
  auto hides = op.getBody()->getOps<HideOp>();
  for (HideOp hide : hides)
    if (failed(checkHide(hide, op)))
      return failure();
  for (Operation &nested : op.getBody()->without_terminator())
    if (!isa<linalg::IndexOp, arith::ConstantOp, HideOp>(nested) &&
        !OpTrait::hasElementwiseMappableTraits(&nested))
      return nested.emitOpError("cannot be distributed: expected elementwise "
                                "operations on scalars in a tile's loops");
  return success();
}

static LogicalResult checkContract(linalg::ContractOp op, int64_t warps) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto isSharedTile = [](Value value) {
    return value.getDefiningOp<TileOp>() != nullptr;
  };
  if (loops.size() != 3 ||
      llvm::any_of(maps,
                   [](AffineMap map) {
                     return map.getNumResults() != 2 ||
                            !map.isProjectedPermutation();
                   }) ||
      op.getNumReductionLoops() != 1)
    return op.emitOpError("expected a contraction of two rank-2 tiles");
  unsigned m = maps[2].getDimPosition(0), n = maps[2].getDimPosition(1);
  if (!maps[0].isFunctionOfDim(m) || !maps[1].isFunctionOfDim(n))
    return op.emitOpError("expected the rows of the result to come from the "
                          "first factor and its columns from the second");
  int64_t k = loops[3 - m - n];
  if (k % 16 != 0)
    return op.emitOpError("expected to contract over a multiple of 16, got ")
           << k;
  if (!isSharedTile(op.getInputs()[1]))
    return op.emitOpError(
        "expected the second factor to be a kernel.tile, in shared memory");
  auto result = cast<RankedTensorType>(op.getResult(0).getType());
  auto factor = cast<RankedTensorType>(op.getInputs()[0].getType());
  if (isSharedByColumns(result, warps) && !isSharedTile(op.getInputs()[0]) &&
      (maps[0].getDimPosition(0) == m || isSharedByColumns(factor, warps)))
    return op.emitOpError("expected rows for all warps, or a first factor "
                          "whose rows are those of the sum, got ")
           << result << " for " << warps << " warps";
  Type element = getElementTypeOrSelf(op.getInputs()[1].getType());
  if (Type first = getElementTypeOrSelf(op.getInputs()[0].getType());
      !isSharedTile(op.getInputs()[0]) && maps[0].getDimPosition(0) != m &&
      first != element)
    return op.emitOpError("expected a first factor of 16 bits where its rows "
                          "are not those of the result, got ")
           << first;
  if (!element.isF16() && !element.isBF16())
    return op.emitOpError("expected factors of f16 or bf16, got ")
           << element
           << (element.isF32() ? "; kernel-split-f32 takes these apart" : "");
  return success();
}

static LogicalResult checkTile(TileOp op) {
  for (Operation *user : op->getUsers())
    if (!isa<linalg::ContractOp>(user))
      return op.emitOpError("expected only contractions to read a shared "
                            "tile, got ")
             << user->getName();
  return success();
}

static LogicalResult checkScatterAdd(ScatterAddOp op, int64_t warps) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  VectorType fragment = getFragmentType(values, warps);
  if (fragment && !isStatistic(fragment) &&
      op.getRows().getType().getDimSize(1) == 1)
    return success();
  return op.emitOpError("expected values of a tile, and a row for each of its "
                        "rows, got ")
         << values << " and " << op.getRows().getType();
}

Value kernel::getOneRow(AddKeysOp op) {
  auto fill = op.getRows().getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs()[0] : Value();
}

static LogicalResult checkAddKeys(AddKeysOp op, int64_t warps) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  VectorType fragment = getFragmentType(values, warps);
  if (fragment && !isStatistic(fragment) &&
      op.getRows().getType().getDimSize(0) == 1 && getOneRow(op))
    return success();
  return op.emitOpError(
             "expected values of a tile, keys x queries, and one row "
             "for all of them, a linalg.fill of 1 x C, got ")
         << values << " and " << op.getRows().getType();
}

LogicalResult kernel::checkDistributable(Operation *op, int64_t warps) {
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isa<TensorType>(type) && !isa<TileOp>(op)) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile ||
          (!getFragmentType(tile, warps) && !isa<linalg::ContractOp>(op)))
        return op->emitOpError("expected tiles of R x C, R 1 or a multiple of "
                               "16 rows for each of ")
               << warps
               << " warps, C 1 or a multiple of 8, of numbers that a thread's "
                  "registers have room for, got "
               << type;
    }
  auto hasColumnsShared = [&](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && isSharedByColumns(tile, warps);
  };
  if (isa<LoadOp, RescaleOp, ScatterAddOp, AddKeysOp>(op) &&
      (llvm::any_of(op->getOperandTypes(), hasColumnsShared) ||
       llvm::any_of(op->getResultTypes(), hasColumnsShared)))
    return op->emitOpError("expected rows for all warps");
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](linalg::GenericOp generic) {
        return checkGeneric(generic, warps);
      })
      .Case([&](linalg::ContractOp contract) {
        return checkContract(contract, warps);
      })
      .Case([](TileOp tile) { return checkTile(tile); })
      .Case([&](ScatterAddOp add) { return checkScatterAdd(add, warps); })
      .Case([&](AddKeysOp add) { return checkAddKeys(add, warps); })
      .Default([&](Operation *op) -> LogicalResult {
        if (!hasTensors(op) ||
            isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp,
                arith::SelectOp, RescaleOp, LoadOp, StoreOp,
                kernel::AddInOrderOp>(op) ||
            isa<scf::SCFDialect>(op->getDialect()))
          return success();
        return op->emitOpError(
            "cannot be distributed: expected linalg.generic, "
            "linalg.fill, linalg.contract, tensor.empty, scf, "
            "varlen.rescale, varlen.scatter_add, varlen.add_keys or kernel "
            "operations on "
            "tiles");
      });
}
