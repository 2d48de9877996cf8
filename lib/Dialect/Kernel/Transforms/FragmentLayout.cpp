//===- FragmentLayout.cpp - Where the elements of a fragment are ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"

#include "Roles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

FailureOr<int64_t> kernel::getWarps(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block)
    return kernel.emitOpError("expected known_block_size, which says how many "
                              "warps share a tile");
  if ((*block)[0] <= 0 || (*block)[0] % kWarpLanes != 0 || (*block)[1] != 1 ||
      (*block)[2] != 1)
    return kernel.emitOpError("expected known_block_size to be one row of "
                              "whole warps, got ")
           << (*block)[0] << " x " << (*block)[1] << " x " << (*block)[2];
  if (failed(verifyRoles(kernel)))
    return failure();
  return getComputingThreads(kernel).count / kWarpLanes;
}

Value ThreadBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value ThreadBuilder::add(Value lhs, Value rhs) {
  return createOrFold<arith::AddIOp>(lhs, rhs);
}
Value ThreadBuilder::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, constant(rhs));
}
Value ThreadBuilder::mul(Value lhs, int64_t rhs) {
  return createOrFold<arith::MulIOp>(lhs, constant(rhs));
}
Value ThreadBuilder::div(Value lhs, int64_t rhs) {
  return createOrFold<arith::DivUIOp>(lhs, constant(rhs));
}
Value ThreadBuilder::rem(Value lhs, int64_t rhs) {
  return createOrFold<arith::RemUIOp>(lhs, constant(rhs));
}
Value ThreadBuilder::bitAnd(Value lhs, int64_t rhs) {
  return createOrFold<arith::AndIOp>(lhs, constant(rhs));
}
Value ThreadBuilder::bitXor(Value lhs, Value rhs) {
  return createOrFold<arith::XOrIOp>(lhs, rhs);
}
Value ThreadBuilder::bitXor(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : bitXor(lhs, constant(rhs));
}
Value ThreadBuilder::shiftRight(Value lhs, int64_t rhs) {
  return createOrFold<arith::ShRUIOp>(lhs, constant(rhs));
}
Value ThreadBuilder::toIndex(Value value) {
  return createOrFold<arith::IndexCastOp>(getIndexType(), value);
}

Value ThreadBuilder::thread() {
  Value id = gpu::ThreadIdOp::create(*this, gpu::Dimension::x);
  return createOrFold<arith::IndexCastOp>(getI32Type(), id);
}
Value ThreadBuilder::lane() { return bitAnd(thread(), kWarpLanes - 1); }
Value ThreadBuilder::warp() {
  return shiftRight(thread(), llvm::Log2_64(kWarpLanes));
}

Value ThreadBuilder::firstRow() {
  return add(mul(warp(), 16), shiftRight(lane(), 2));
}
Value ThreadBuilder::firstColumn() { return mul(bitAnd(lane(), 3), 2); }
Value ThreadBuilder::isFirstOfRow() {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq,
                               bitAnd(lane(), 3), constant(0));
}

Value ThreadBuilder::coordinates(unsigned dim, ArrayRef<int64_t> shape,
                                 int64_t warps) {
  unsigned outer = dim, inner = dim + 2;
  SmallVector<int64_t> projected(4, 1);
  projected[outer] = shape[outer];
  projected[inner] = shape[inner];
  auto type = VectorType::get(projected, getI32Type());
  // A statistic has one row or column.
  if (shape[inner] == 1)
    return arith::ConstantOp::create(*this, getZeroAttr(type));
  int64_t outerStep = dim == 0 ? 16 * warps : 8, innerStep = dim == 0 ? 8 : 1;
  SmallVector<int32_t> distances;
  for (int64_t i = 0; i < shape[outer]; ++i)
    for (int64_t k = 0; k < 2; ++k)
      distances.push_back(i * outerStep + k * innerStep);
  Value first = vector::BroadcastOp::create(
      *this, type, dim == 0 ? firstRow() : firstColumn());
  return arith::AddIOp::create(
      *this, first,
      arith::ConstantOp::create(
          *this, DenseElementsAttr::get(type, ArrayRef(distances))));
}

Value kernel::reduceRows(ThreadBuilder &b, Value fragment,
                         gpu::AllReduceOperation operation) {
  auto type = cast<VectorType>(fragment.getType());
  Type element = type.getElementType();
  auto rows =
      VectorType::get({type.getDimSize(0), type.getDimSize(2)}, element);
  bool isSum = operation == gpu::AllReduceOperation::ADD;
  Value identity = arith::ConstantOp::create(
      b, DenseElementsAttr::get(
             rows, b.getFloatAttr(element, isSum ? -0.0 : -INFINITY)));
  Value value = vector::MultiDimReductionOp::create(
      b, fragment, identity, ArrayRef<bool>{false, true, false, true},
      gpu::convertReductionKind(operation));
  auto column =
      VectorType::get({type.getDimSize(0), 1, type.getDimSize(2), 1}, element);
  return reduceLanes(b, value, operation, column);
}

Value kernel::reduceLanes(ThreadBuilder &b, Value values,
                          gpu::AllReduceOperation operation, VectorType type) {
  auto flat = VectorType::get({type.getNumElements()}, type.getElementType());
  Value value = vector::ShapeCastOp::create(b, flat, values);
  value = gpu::SubgroupReduceOp::create(b, value, operation,
                                        /*uniform=*/false, /*cluster_size=*/4u);
  return vector::ShapeCastOp::create(b, type, value);
}

bool kernel::isFactor(Type type) {
  auto fragment = dyn_cast<VectorType>(type);
  return fragment && isa<Float16Type, BFloat16Type>(fragment.getElementType());
}
