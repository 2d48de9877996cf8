//===- VarlenKeepOnDevice.cpp - Numbers and constants in kernels ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENKEEPONDEVICE
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// An elementwise operation without inputs that yields what `body` makes of the
/// indices.
static Value emitAtIndices(ImplicitLocOpBuilder &b, Value target,
                           function_ref<Value(OpBuilder &, ValueRange)> body) {
  int64_t rank = cast<RankedTensorType>(target.getType()).getRank();
  return emitElementwise(b, /*inputs=*/{}, target,
                         [&](ImplicitLocOpBuilder &inner, ValueRange) {
                           Values indices;
                           for (int64_t d = 0; d < rank; ++d)
                             indices.push_back(
                                 linalg::IndexOp::create(inner, d));
                           return Values{body(inner, indices)};
                         })
      .getResult(0);
}

/// A constant becomes a tensor that a kernel writes, but where a body only
/// takes elements of it.
static void writeConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type)
    return;
  auto isKept = [](OpOperand &use) {
    Operation *user = use.getOwner();
    // A shape is the host's.
    if (auto reshape = dyn_cast<tensor::ReshapeOp>(user))
      return use == reshape.getShapeMutable();
    return isa<tensor::DimOp>(user) ||
           (isa<tensor::ExtractOp>(user) &&
            user->getParentOfType<linalg::LinalgOp>());
  };
  if (llvm::all_of(op->getUses(), isKept))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
  b.setInsertionPointAfter(op);
  Value target =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  Value tensor;
  if (elements && elements.isSplat()) {
    Value number = arith::ConstantOp::create(
        b, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
    tensor = linalg::FillOp::create(b, number, target).getResult(0);
  } else {
    tensor =
        emitAtIndices(b, target, [&](OpBuilder &inner, ValueRange indices) {
          return tensor::ExtractOp::create(inner, op.getLoc(), op, indices);
        });
  }
  op.getResult().replaceUsesWithIf(tensor, [&](OpOperand &use) {
    return !isKept(use) && use.get() != tensor &&
           !tensor.getDefiningOp()->isAncestor(use.getOwner());
  });
}

/// Whether the operation is part of a loop or branch over elements, which a
/// thread will run as it is.
static bool isInThread(Operation *op) {
  auto isElementwise = [](Operation &inside) {
    return isa<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
               tensor::TensorDialect>(inside.getDialect());
  };
  for (; isa<scf::SCFDialect>(op->getParentOp()->getDialect());
       op = op->getParentOp())
    if (llvm::all_of(op->getBlock()->getOperations(), isElementwise))
      return true;
  return false;
}

namespace {

/// Numbers of the host that are known on the device only.
class DeviceNumbers {
public:
  /// Whether the number is computed from elements of tensors.
  bool contains(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<linalg::LinalgOp>(op->getParentOp()))
      return false;
    auto known = numbers.find(op);
    if (known != numbers.end())
      return known->second;
    bool isOne = isa<tensor::ExtractOp>(op);
    if (!isOne && isPure(op) && op->getNumRegions() == 0 &&
        llvm::all_of(op->getResultTypes(),
                     [](Type type) { return type.isIntOrIndexOrFloat(); }) &&
        !isa<tensor::DimOp>(op))
      isOne = llvm::any_of(op->getOperands(),
                           [&](Value operand) { return contains(operand); });
    return numbers[op] = isOne;
  }

  /// The number, computed where the builder is.
  Value emit(OpBuilder &b, Value value, IRMapping &map) {
    if (Value known = map.lookupOrNull(value))
      return known;
    if (!contains(value))
      return value;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      map.map(operand, emit(b, operand, map));
    b.clone(*op, map);
    return map.lookup(value);
  }

private:
  llvm::DenseMap<Operation *, bool> numbers;
};

struct VarlenKeepOnDevice
    : varlen::impl::VarlenKeepOnDeviceBase<VarlenKeepOnDevice> {
  void runOnOperation() override {
    numbers = DeviceNumbers();
    SmallVector<arith::ConstantOp> constants;
    getOperation().walk([&](arith::ConstantOp op) { constants.push_back(op); });
    for (arith::ConstantOp op : constants)
      writeConstant(op);

    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<linalg::LinalgOp, tensor::InsertOp, tensor::FromElementsOp,
              tensor::SplatOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      if (auto insert = dyn_cast<tensor::InsertOp>(op))
        writeNumber(b, insert);
      else if (auto list = dyn_cast<tensor::FromElementsOp>(op))
        writeNumbers(b, list);
      else if (auto splat = dyn_cast<tensor::SplatOp>(op))
        writeEverywhere(b, splat, splat.getInput(),
                        tensor::EmptyOp::create(
                            b, tensor::getMixedSizes(b, b.getLoc(), splat),
                            getElementTypeOrSelf(splat.getType())));
      else if (auto fill = dyn_cast<linalg::FillOp>(op);
               fill && fill.hasPureTensorSemantics())
        writeEverywhere(b, fill, fill.getInputs().front(),
                        fill.getOutputs().front());
      else if (isa<linalg::LinalgOp>(op))
        computeInside(b, op);
    }
  }

private:
  void computeInside(ImplicitLocOpBuilder &b, Operation *op);
  void writeEverywhere(ImplicitLocOpBuilder &b, Operation *op, Value number,
                       Value target);
  Value insertNumber(ImplicitLocOpBuilder &b, Value number, Value tensor,
                     ArrayRef<OpFoldResult> at);
  void writeNumber(ImplicitLocOpBuilder &b, tensor::InsertOp op);
  void writeNumbers(ImplicitLocOpBuilder &b, tensor::FromElementsOp op);

  DeviceNumbers numbers;
};

} // namespace

/// Numbers that a body takes from around it are computed in it.
void VarlenKeepOnDevice::computeInside(ImplicitLocOpBuilder &b, Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  b.setInsertionPointToStart(&op->getRegion(0).front());
  IRMapping map;
  for (Value value : captured)
    if (numbers.contains(value))
      replaceAllUsesInRegionWith(value, numbers.emit(b, value, map),
                                 op->getRegion(0));
}

void VarlenKeepOnDevice::writeEverywhere(ImplicitLocOpBuilder &b, Operation *op,
                                         Value number, Value target) {
  if (!numbers.contains(number))
    return;
  Value written = emitAtIndices(b, target, [&](OpBuilder &inner, ValueRange) {
    IRMapping map;
    return numbers.emit(inner, number, map);
  });
  op->replaceAllUsesWith(ValueRange{written});
  op->erase();
}

/// The tensor with a number at an index, which a kernel of one element writes.
Value VarlenKeepOnDevice::insertNumber(ImplicitLocOpBuilder &b, Value number,
                                       Value tensor,
                                       ArrayRef<OpFoldResult> at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  auto element = RankedTensorType::get({}, type.getElementType());
  Value slice =
      tensor::ExtractSliceOp::create(b, element, tensor, at, ones, ones);
  Value written = emitAtIndices(b, slice, [&](OpBuilder &inner, ValueRange) {
    IRMapping map;
    return numbers.emit(inner, number, map);
  });
  return tensor::InsertSliceOp::create(b, written, tensor, at, ones, ones);
}

void VarlenKeepOnDevice::writeNumber(ImplicitLocOpBuilder &b,
                                     tensor::InsertOp op) {
  if (!numbers.contains(op.getScalar()) || isInThread(op))
    return;
  op.replaceAllUsesWith(insertNumber(b, op.getScalar(), op.getDest(),
                                     getAsOpFoldResult(op.getIndices())));
  op.erase();
}

void VarlenKeepOnDevice::writeNumbers(ImplicitLocOpBuilder &b,
                                      tensor::FromElementsOp op) {
  auto isKnown = [&](Value value) { return !numbers.contains(value); };
  if (llvm::all_of(op.getElements(), isKnown) || isInThread(op))
    return;
  RankedTensorType type = op.getType();
  Value tensor =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  for (auto [i, number] : llvm::enumerate(op.getElements())) {
    SmallVector<OpFoldResult> at(type.getRank());
    auto rest = static_cast<int64_t>(i);
    for (int64_t d = type.getRank(); d-- > 0; rest /= type.getDimSize(d))
      at[d] = b.getIndexAttr(rest % type.getDimSize(d));
    tensor = insertNumber(b, number, tensor, at);
  }
  op.replaceAllUsesWith(tensor);
  op.erase();
}
