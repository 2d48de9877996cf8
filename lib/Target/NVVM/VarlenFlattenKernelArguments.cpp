//===- VarlenFlattenKernelArguments.cpp - Kernels on bare pointers --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A memref becomes a memref of rank 0, which the lowering to a bare pointer
// accepts, and the numbers of its type that are not constants.
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/ADT/MapVector.h"

#include <array>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENFLATTENKERNELARGUMENTS
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

namespace {

/// Rewrites one kernel and its launch.
class KernelFlattener {
public:
  KernelFlattener(gpu::GPUFuncOp kernel, gpu::LaunchFuncOp launch,
                  const DenseMap<Operation *, unsigned> &order,
                  bool splitNumbers)
      : kernel(kernel), launch(launch), order(order),
        splitNumbers(splitNumbers), inside(kernel.getBody()), outside(launch) {}

  LogicalResult run();

private:
  enum class Kind { Tensor, Pointer, Number };
  Kind getKind(unsigned i);
  /// The place of the value in the function: arguments and their extents, then
  /// results of operations.
  std::array<unsigned, 3> getPlace(Value value) const;
  /// Parameters as they are, in the order of the flat ones.
  SmallVector<unsigned> getOrder();
  /// A parameter for `value`, at the end of the ones so far.
  Value addParameter(Value value, Type type);
  /// The same of a number, which may become two parameters.
  Value addNumber(Value value);
  LogicalResult flattenTensor(unsigned i);

  gpu::GPUFuncOp kernel;
  gpu::LaunchFuncOp launch;
  const DenseMap<Operation *, unsigned> &order;
  bool splitNumbers;
  OpBuilder inside, outside;
  /// What is passed of a tensor besides its pointer: where, and what for.
  struct Tensor {
    MemRefType type;
    Value pointer;
    memref::ExtractStridedMetadataOp metadata;
  };
  llvm::MapVector<unsigned, Tensor> tensors;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  unsigned numOld;
};

} // namespace

KernelFlattener::Kind KernelFlattener::getKind(unsigned i) {
  Type type = launch.getKernelOperand(i).getType();
  if (isa<BaseMemRefType>(type))
    return Kind::Tensor;
  return isa<LLVM::LLVMPointerType>(type) ? Kind::Pointer : Kind::Number;
}

std::array<unsigned, 3> KernelFlattener::getPlace(Value value) const {
  unsigned extent = 0;
  if (auto dim = value.getDefiningOp<memref::DimOp>()) {
    extent = dim.getConstantIndex().value_or(0) + 1;
    value = dim.getSource();
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    return {isa<func::FuncOp>(parent) ? 0 : order.lookup(parent),
            argument.getArgNumber(), extent};
  }
  auto result = cast<OpResult>(value);
  return {order.lookup(result.getOwner()), result.getResultNumber(), extent};
}

SmallVector<unsigned> KernelFlattener::getOrder() {
  auto numbers =
      llvm::to_vector(llvm::seq<unsigned>(0, launch.getNumKernelOperands()));
  llvm::sort(numbers, [&](unsigned lhs, unsigned rhs) {
    if (getKind(lhs) != getKind(rhs))
      return getKind(lhs) < getKind(rhs);
    return std::pair(getPlace(launch.getKernelOperand(lhs)), lhs) <
           std::pair(getPlace(launch.getKernelOperand(rhs)), rhs);
  });
  return numbers;
}

Value KernelFlattener::addParameter(Value value, Type type) {
  operands.push_back(value);
  types.push_back(type);
  // Workgroup attributions stay behind the parameters.
  return kernel.getBody().front().insertArgument(numOld + operands.size() - 1,
                                                 type, value.getLoc());
}

Value KernelFlattener::addNumber(Value value) {
  Type type = value.getType(), narrow = inside.getI32Type();
  if (!splitNumbers || !(type.isIndex() || type.isInteger(64)))
    return addParameter(value, type);
  Location loc = value.getLoc();
  Type wide = inside.getI64Type();
  auto cast = [&](OpBuilder &b, Value number, Type to) -> Value {
    if (number.getType() == to)
      return number;
    return arith::IndexCastOp::create(b, loc, to, number);
  };
  auto shift = [&](OpBuilder &b) -> Value {
    return arith::ConstantIntOp::create(b, loc, wide, 32);
  };
  Value number = cast(outside, value, wide);
  Value top = arith::ShRUIOp::create(outside, loc, number, shift(outside));
  Value low = addParameter(
      arith::TruncIOp::create(outside, loc, narrow, number), narrow);
  Value high =
      addParameter(arith::TruncIOp::create(outside, loc, narrow, top), narrow);
  low = arith::ExtUIOp::create(inside, loc, wide, low);
  high = arith::ExtUIOp::create(inside, loc, wide, high);
  high = arith::ShLIOp::create(inside, loc, high, shift(inside));
  return cast(inside, arith::OrIOp::create(inside, loc, high, low), type);
}

/// The strides of dense memory, from the extents.
static SmallVector<OpFoldResult> getDenseStrides(OpBuilder &b, Location loc,
                                                 ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  for (size_t d = sizes.size(); d > 1; --d) {
    std::optional<int64_t> stride = getConstantIntValue(strides[d - 1]);
    std::optional<int64_t> size = getConstantIntValue(sizes[d - 1]);
    strides[d - 2] =
        stride && size
            ? OpFoldResult(b.getIndexAttr(*stride * *size))
            : OpFoldResult(
                  arith::MulIOp::create(
                      b, loc,
                      getValueOrCreateConstantIndexOp(b, loc, strides[d - 1]),
                      getValueOrCreateConstantIndexOp(b, loc, sizes[d - 1]))
                      .getResult());
  }
  return strides;
}

/// Passes the numbers of a tensor and makes its memref in the kernel.
LogicalResult KernelFlattener::flattenTensor(unsigned i) {
  Tensor &tensor = tensors[i];
  Location loc = kernel.getLoc();
  auto pass = [&](int64_t constant, Value value) -> OpFoldResult {
    if (ShapedType::isStatic(constant))
      return inside.getIndexAttr(constant);
    return addNumber(value);
  };
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(tensor.type.getStridesAndOffset(strides, offset)))
    return launch.emitOpError("expected strided memrefs as arguments, got ")
           << tensor.type;
  OpFoldResult at = pass(offset, tensor.metadata.getOffset());
  SmallVector<OpFoldResult> sizes, steps;
  for (auto [size, value] :
       llvm::zip_equal(tensor.type.getShape(), tensor.metadata.getSizes()))
    sizes.push_back(pass(size, value));
  if (tensor.type.getLayout().isIdentity())
    steps = getDenseStrides(inside, loc, sizes);
  else
    for (auto [stride, value] :
         llvm::zip_equal(strides, tensor.metadata.getStrides()))
      steps.push_back(pass(stride, value));
  Value memref = memref::ReinterpretCastOp::create(inside, loc, tensor.pointer,
                                                   at, sizes, steps);
  if (memref.getType() != tensor.type)
    memref = memref::CastOp::create(inside, loc, tensor.type, memref);
  kernel.getArgument(i).replaceAllUsesWith(memref);
  return success();
}

LogicalResult KernelFlattener::run() {
  numOld = launch.getNumKernelOperands();
  SmallVector<unsigned> numbers = getOrder();
  for (unsigned i : numbers) {
    Value operand = launch.getKernelOperand(i);
    if (getKind(i) == Kind::Tensor) {
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (!type)
        return launch.emitOpError("expected ranked memrefs as arguments, got ")
               << operand.getType();
      auto metadata = memref::ExtractStridedMetadataOp::create(
          outside, launch.getLoc(), operand);
      Value base = metadata.getBaseBuffer();
      tensors[i] = {type, addParameter(base, base.getType()), metadata};
    } else if (getKind(i) == Kind::Pointer) {
      kernel.getArgument(i).replaceAllUsesWith(
          addParameter(operand, operand.getType()));
    }
  }
  for (unsigned i : numbers)
    if (getKind(i) == Kind::Tensor && failed(flattenTensor(i)))
      return failure();
  for (unsigned i : numbers) {
    if (getKind(i) != Kind::Number)
      continue;
    Value operand = launch.getKernelOperand(i), value;
    if (operand.getDefiningOp<arith::ConstantOp>())
      value = inside.clone(*operand.getDefiningOp())->getResult(0);
    else
      value = addNumber(operand);
    kernel.getArgument(i).replaceAllUsesWith(value);
  }
  kernel.getBody().front().eraseArguments(0, numOld);
  kernel.setType(FunctionType::get(kernel.getContext(), types, {}));
  kernel.removeArgAttrsAttr();
  launch.getKernelOperandsMutable().assign(operands);
  return success();
}

namespace {

struct VarlenFlattenKernelArguments
    : varlen::impl::VarlenFlattenKernelArgumentsBase<
          VarlenFlattenKernelArguments> {
  using VarlenFlattenKernelArgumentsBase::VarlenFlattenKernelArgumentsBase;

  void runOnOperation() override {
    DenseMap<Operation *, unsigned> order;
    llvm::MapVector<Operation *, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      order[op] = order.size();
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
        if (auto kernel = dyn_cast_or_null<gpu::GPUFuncOp>(
                SymbolTable::lookupNearestSymbolFrom(launch,
                                                     launch.getKernel())))
          launches[kernel].push_back(launch);
    });
    for (auto &[kernel, found] : launches) {
      // Each has an order of its own, which the kernel can have only one of.
      if (found.size() > 1) {
        found[1].emitOpError("expected one launch of each kernel, got another "
                             "of ")
            << found[1].getKernel();
        return signalPassFailure();
      }
      KernelFlattener flattener(cast<gpu::GPUFuncOp>(kernel), found.front(),
                                order, splitNumbers);
      if (failed(flattener.run()))
        return signalPassFailure();
      ++numFlattened;
    }
  }
};

} // namespace
