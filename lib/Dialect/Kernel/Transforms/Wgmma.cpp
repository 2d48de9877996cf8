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
// NVVM's operation has no A in registers, and its wait does not say which
// registers it waits for, so both are inline assembly with tied accumulators.
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

#include "llvm/ADT/StringExtras.h"

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
  Value start(ThreadBuilder &b, const Contraction &contraction) const override;
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

static SmallVector<Value> getElements(ThreadBuilder &b, Value registers) {
  auto type = cast<LLVM::LLVMStructType>(registers.getType());
  SmallVector<Value> elements;
  for (int64_t i = 0, e = type.getBody().size(); i < e; ++i)
    elements.push_back(
        LLVM::ExtractValueOp::create(b, registers, ArrayRef<int64_t>{i}));
  return elements;
}

/// Assembly with f32 results, to which the `tied` operands are, all or none,
/// and `others` with these constraints.
static Value createAssembly(ThreadBuilder &b, LLVM::LLVMStructType type,
                            ValueRange tied, ValueRange others, StringRef text,
                            StringRef constraintsOfOthers) {
  int64_t count = type.getBody().size();
  std::string constraints;
  llvm::raw_string_ostream os(constraints);
  llvm::interleave(
      llvm::seq<int64_t>(count), os, [&](int64_t) { os << "=f"; }, ",");
  for (size_t i = 0; i < tied.size(); ++i)
    os << ',' << i;
  os << constraintsOfOthers;
  SmallVector<Value> operands(tied);
  llvm::append_range(operands, others);
  return LLVM::InlineAsmOp::create(
             b, type, operands, text, constraints, /*has_side_effects=*/true,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             /*asm_dialect=*/
             LLVM::AsmDialectAttr::get(b.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getRes();
}

/// "{$0, $1, ...}" from `first`.
static std::string getPlaceholders(int64_t first, int64_t count) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '{';
  llvm::interleaveComma(llvm::seq(first, first + count), os,
                        [&](int64_t i) { os << '$' << i; });
  os << '}';
  return text;
}

bool kernel::fitsWgmma(const Contraction &contraction, int64_t warps) {
  auto accumulator = cast<VectorType>(contraction.acc.getType());
  return warps % kWarpsOfGroup == 0 && accumulator.getDimSize(0) == 1 &&
         8 * accumulator.getDimSize(1) <= kMaxColumns;
}

Type Wgmma::getPendingType(VectorType fragment) const {
  return getRegistersType(fragment);
}

Value Wgmma::start(ThreadBuilder &b, const Contraction &contraction) const {
  auto fragment = cast<VectorType>(contraction.acc.getType());
  LLVM::LLVMStructType type = getRegistersType(fragment);
  int64_t count = fragment.getNumElements(), columns = count * 2;
  int64_t steps = contraction.k / 16;
  auto tile = cast<MemRefType>(contraction.b.getType());
  StringRef element = tile.getElementType().isF16() ? "f16" : "bf16";
  bool isShared = isa<MemRefType>(contraction.a.getType());

  // All registers are written before the fence. A sum that starts with zero
  // needs none.
  SmallVector<Value> tied;
  if (!matchPattern(contraction.acc, m_AnyZeroFloat()))
    tied = llvm::to_vector_of<Value>(
        vector::ToElementsOp::create(b, contraction.acc).getResults());
  SmallVector<SmallVector<Value, 4>> a;
  for (int64_t step = 0; step < steps && !isShared; ++step)
    a.push_back(getFactorRegisters(b, contraction.a, /*mTile=*/0, step));
  if (isShared) {
    SharedOperand operand(b, contraction.a, contraction.aT, getGroup(b, warps));
    for (int64_t step = 0; step < steps; ++step)
      a.push_back({operand.get(step)});
  }
  SharedOperand operand(b, contraction.b, contraction.bT);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value sum;
  for (int64_t step = 0; step < steps; ++step) {
    if (step > 0)
      tied = getElements(b, sum);
    bool isTied = !tied.empty();
    int64_t next = count + tied.size();
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "wgmma.mma_async.sync.aligned.m64n" << columns << "k16.f32."
       << element << '.' << element << ' ' << getPlaceholders(0, count) << ", ";
    if (isShared)
      os << '$' << next;
    else
      os << getPlaceholders(next, 4);
    os << ", $" << next + (isShared ? 1 : 4) << ", " << isTied << ", 1, 1";
    if (isShared)
      os << ", " << contraction.aT;
    os << ", " << contraction.bT << ';';
    SmallVector<Value, 4> others = a[step];
    others.push_back(operand.get(step));
    sum = createAssembly(b, type, tied, others, text,
                         isShared ? ",l,l" : ",r,r,r,r,l");
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sum;
}

Value Wgmma::wait(ThreadBuilder &b, Value pending, VectorType fragment,
                  int64_t younger) const {
  std::string text =
      "wgmma.wait_group.sync.aligned " + std::to_string(younger) + ";";
  Value sum = createAssembly(b, getRegistersType(fragment),
                             getElements(b, pending), {}, text, "");
  return vector::FromElementsOp::create(b, fragment, getElements(b, sum));
}

std::unique_ptr<TensorCores> kernel::createWgmma(int64_t warps) {
  return std::make_unique<Wgmma>(warps);
}
