//===- Wgmma.cpp - Contractions in wgmma ----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma.mma_async of PTX: four warps multiply 64 rows of A, in registers or in
// shared memory, by up to 256 columns of B in shared memory, which is read by
// descriptors. The 128-byte swizzle is that of our tiles.
//
//===----------------------------------------------------------------------===//

#include "MemRefAddress.h"
#include "TensorCores.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Rows that the four warps of a warpgroup multiply together.
static constexpr int64_t kGroupRows = 64;
static constexpr int64_t kWarpsOfGroup = 4;
/// The most columns of an instruction.
static constexpr int64_t kMaxColumns = 256;

/// Eight rows of a slab, in which the swizzle repeats.
static constexpr int64_t kAtomBytes = 8 * kRowBytes;
/// Offsets in descriptors are in units of 16 bytes.
static constexpr int64_t kUnit = 16;

namespace {

/// An operand in shared memory: the descriptor of each step of k.
class SharedOperand {
public:
  /// `isTransposed`: whether the rows of the tile are those of k. `group`: the
  /// number of the warpgroup, each of which has 64 rows of the operand; null if
  /// all have the same.
  SharedOperand(ThreadBuilder &b, Value tile, bool isTransposed,
                Value group = {});

  Value get(int64_t step) const;

private:
  ThreadBuilder &b;
  bool isTransposed;
  int64_t slabBytes;
  Value first;
};

class Wgmma : public TensorCores {
public:
  using TensorCores::TensorCores;

  Type getPendingType(VectorType fragment) const override;
  Value start(ThreadBuilder &b,
              ArrayRef<Contraction> contractions) const override;
  Value wait(ThreadBuilder &b, Value pending, VectorType fragment,
             int64_t younger) const override;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

SharedOperand::SharedOperand(ThreadBuilder &b, Value tile, bool isTransposed,
                             Value group)
    : b(b), isTransposed(isTransposed),
      slabBytes(getSharedRows(cast<MemRefType>(tile.getType())) * kRowBytes) {
  Value address =
      LLVM::PtrToIntOp::create(b, b.getI32Type(), getAddress(b, tile));
  // 64 rows, or a slab of as many columns.
  if (group)
    address =
        b.add(address,
              b.mul(group, isTransposed ? slabBytes : kGroupRows * kRowBytes));
  Value units = arith::ExtUIOp::create(
      b, b.getI64Type(), b.shiftRight(b.bitAnd(address, 0x3ffff), 4));
  // Bits 62 and 63: the 128-byte swizzle. 32 to 45: from eight rows to the next
  // eight. 16 to 29: from slab to slab, where the columns are those of M or N.
  uint64_t leading = isTransposed ? slabBytes / kUnit : 1;
  uint64_t constant =
      uint64_t{1} << 62 | uint64_t{kAtomBytes / kUnit} << 32 | leading << 16;
  first = arith::OrIOp::create(
      b, units,
      arith::ConstantOp::create(
          b, b.getI64IntegerAttr(static_cast<int64_t>(constant))));
}

Value SharedOperand::get(int64_t step) const {
  int64_t k = 16 * step;
  int64_t bytes = isTransposed
                      ? k * kRowBytes
                      : k / kSlabColumns * slabBytes + k % kSlabColumns * 2;
  if (bytes == 0)
    return first;
  return arith::AddIOp::create(
      b, first,
      arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes / kUnit)));
}

/// The number of the calling thread's warpgroup; null if there is one.
static Value getGroup(ThreadBuilder &b, int64_t warps) {
  if (warps == kWarpsOfGroup)
    return {};
  // Of one lane: descriptors are in uniform registers.
  Value warp = NVVM::ShflOp::create(b, b.getI32Type(), b.constant(-1), b.warp(),
                                    b.constant(0), b.constant(kWarpLanes - 1),
                                    NVVM::ShflKind::idx, UnitAttr());
  return b.shiftRight(warp, 2);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static LLVM::LLVMStructType getRegistersType(VectorType fragment) {
  SmallVector<Type> registers(fragment.getNumElements(),
                              Float32Type::get(fragment.getContext()));
  return LLVM::LLVMStructType::getLiteral(fragment.getContext(), registers);
}

/// The elements of a fragment as the registers of an accumulator.
static Value packRegisters(ThreadBuilder &b, Value fragment) {
  Value registers = LLVM::PoisonOp::create(
      b, getRegistersType(cast<VectorType>(fragment.getType())));
  auto elements = vector::ToElementsOp::create(b, fragment);
  for (int64_t i = 0, e = elements.getNumResults(); i < e; ++i)
    registers = LLVM::InsertValueOp::create(b, registers, elements.getResult(i),
                                            ArrayRef<int64_t>{i});
  return registers;
}

/// The inverse.
static Value unpackRegisters(ThreadBuilder &b, Value registers,
                             VectorType fragment) {
  SmallVector<Value> elements;
  for (int64_t i = 0, e = fragment.getNumElements(); i < e; ++i)
    elements.push_back(
        LLVM::ExtractValueOp::create(b, registers, ArrayRef<int64_t>{i}));
  return vector::FromElementsOp::create(b, fragment, elements);
}

bool kernel::fitsWgmma(const Contraction &contraction, int64_t warps) {
  auto accumulator = cast<VectorType>(contraction.acc.getType());
  return warps % kWarpsOfGroup == 0 && accumulator.getDimSize(0) == 1 &&
         8 * accumulator.getDimSize(1) <= kMaxColumns;
}

Type Wgmma::getPendingType(VectorType fragment) const {
  return getRegistersType(fragment);
}

/// The operand A of each step of a contraction.
static SmallVector<SmallVector<Value, 4>>
getFirstOperands(ThreadBuilder &b, const Contraction &contraction,
                 int64_t warps) {
  int64_t steps = contraction.k / 16;
  SmallVector<SmallVector<Value, 4>> operands;
  if (!isa<MemRefType>(contraction.a.getType())) {
    for (int64_t step = 0; step < steps; ++step)
      operands.push_back(
          getFactorRegisters(b, contraction.a, /*mTile=*/0, step));
    return operands;
  }
  SharedOperand operand(b, contraction.a, contraction.aT, getGroup(b, warps));
  for (int64_t step = 0; step < steps; ++step)
    operands.push_back({operand.get(step)});
  return operands;
}

Value Wgmma::start(ThreadBuilder &b, ArrayRef<Contraction> contractions) const {
  Value acc = contractions.front().acc;
  Type type = getRegistersType(cast<VectorType>(acc.getType()));

  // All registers are written before the fence. A sum that starts with zero
  // needs none.
  Value sum;
  if (!matchPattern(acc, m_AnyZeroFloat()))
    sum = packRegisters(b, acc);
  SmallVector<SmallVector<SmallVector<Value, 4>>> a;
  for (const Contraction &contraction : contractions)
    a.push_back(getFirstOperands(b, contraction, warps));
  SmallVector<SharedOperand> second;
  for (const Contraction &contraction : contractions)
    second.emplace_back(b, contraction.b, contraction.bT);
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (auto [contraction, first, operand] :
       llvm::zip_equal(contractions, a, second)) {
    Type element = cast<MemRefType>(contraction.b.getType()).getElementType();
    for (auto [step, registers] : llvm::enumerate(first))
      sum = WgmmaOp::create(b, type, element, registers, operand.get(step), sum,
                            contraction.aT, contraction.bT);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sum;
}

Value Wgmma::wait(ThreadBuilder &b, Value pending, VectorType fragment,
                  int64_t younger) const {
  return unpackRegisters(b, WgmmaWaitOp::create(b, pending, younger), fragment);
}

std::unique_ptr<TensorCores> kernel::createWgmma(int64_t warps) {
  return std::make_unique<Wgmma>(warps);
}
