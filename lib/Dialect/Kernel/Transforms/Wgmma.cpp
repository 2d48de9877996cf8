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

static constexpr int64_t kRowBytes = kSlabColumns * 2;
/// Eight rows of a slab, in which the swizzle repeats.
static constexpr int64_t kAtomBytes = 8 * kRowBytes;
/// Offsets in descriptors are in units of 16 bytes.
static constexpr int64_t kUnit = 16;

namespace {

/// An operand in shared memory: the descriptor of each step of k.
class SharedOperand {
public:
  /// `isTransposed`: whether the rows of the tile are those of k. `row`: the
  /// first row of M or N, in whole slabs where those are columns; may be null.
  SharedOperand(ThreadBuilder &b, Value tile, bool isTransposed,
                Value row = {});

  Value get(int64_t step) const;

private:
  ThreadBuilder &b;
  bool isTransposed;
  int64_t slabBytes;
  Value first;
};

class Wgmma : public TensorCores {
public:
  explicit Wgmma(int64_t warps) : warps(warps), terms(createMmaSync(warps)) {}

  LogicalResult check(Operation *op,
                      const Contraction &contraction) const override;
  Type getPendingType(VectorType fragment) const override;
  Value start(ThreadBuilder &b, const Contraction &contraction) const override;
  /// The sums of f32's terms take their order from registers that are read
  /// between two products, as only mma.sync lets them be.
  Value contractAll(ThreadBuilder &b, ArrayRef<Contraction> contractions,
                    Value addend) const override {
    return terms->contractAll(b, contractions, addend);
  }
  Value wait(ThreadBuilder &b, Value pending, VectorType fragment,
             int64_t younger) const override;

private:
  int64_t warps;
  std::unique_ptr<TensorCores> terms;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

SharedOperand::SharedOperand(ThreadBuilder &b, Value tile, bool isTransposed,
                             Value row)
    : b(b), isTransposed(isTransposed),
      slabBytes(getSharedRows(cast<MemRefType>(tile.getType())) * kRowBytes) {
  Value address =
      LLVM::PtrToIntOp::create(b, b.getI32Type(), getAddress(b, tile));
  if (row)
    // Whole slabs of 64 columns, or rows.
    address = b.add(address, isTransposed
                                 ? b.mul(b.shiftRight(row, 6), slabBytes)
                                 : b.mul(row, kRowBytes));
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

/// The first of the rows of the calling thread's warpgroup; null if it is 0.
static Value getGroupRow(ThreadBuilder &b, int64_t warps) {
  if (warps == kWarpsOfGroup)
    return {};
  // Of one lane: descriptors are in uniform registers.
  Value warp = NVVM::ShflOp::create(
      b, b.getI32Type(), b.constant(-1), b.warp(), b.constant(0),
      b.constant(31), NVVM::ShflKind::idx, UnitAttr());
  return b.mul(b.shiftRight(warp, 2), kGroupRows);
}

/// The four registers of a step of A, two numbers each.
static SmallVector<Value> getRegisters(ThreadBuilder &b, Value fragment,
                                       int64_t step) {
  SmallVector<Value> registers;
  for (int64_t column = 0; column < 2; ++column)
    for (int64_t row = 0; row < 2; ++row) {
      Value pair = vector::ExtractOp::create(
          b, fragment, ArrayRef<int64_t>{0, 2 * step + column, row});
      registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    }
  return registers;
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

/// Assembly whose results are `registers` f32 registers, tied to the first
/// operands unless these are other ones.
static Value createAssembly(ThreadBuilder &b, LLVM::LLVMStructType type,
                            ValueRange operands, StringRef text, bool isTied,
                            StringRef others) {
  int64_t count = type.getBody().size();
  std::string constraints;
  llvm::raw_string_ostream os(constraints);
  llvm::interleave(
      llvm::seq<int64_t>(count), os, [&](int64_t) { os << "=f"; }, ",");
  if (isTied)
    for (int64_t i = 0; i < count; ++i)
      os << ',' << i;
  os << others;
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

LogicalResult Wgmma::check(Operation *op,
                           const Contraction &contraction) const {
  auto acc = cast<VectorType>(contraction.acc.getType());
  if (acc.getDimSize(0) != 1 || 8 * acc.getDimSize(1) > kMaxColumns)
    return op->emitOpError("expected wgmma to have 16 rows for each warp and "
                           "at most ")
           << kMaxColumns << " columns, got " << 16 * acc.getDimSize(0)
           << " and " << 8 * acc.getDimSize(1);
  // What is left is as for mma.sync.
  return terms->check(op, contraction);
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
  bool isZero = matchPattern(contraction.acc, m_AnyZeroFloat());
  Value sum;
  if (!isZero) {
    sum = LLVM::PoisonOp::create(b, type);
    auto elements = vector::ToElementsOp::create(b, contraction.acc);
    for (auto [i, value] : llvm::enumerate(elements.getResults()))
      sum = LLVM::InsertValueOp::create(
          b, sum, value, ArrayRef<int64_t>{static_cast<int64_t>(i)});
  }
  SmallVector<SmallVector<Value>> a;
  for (int64_t step = 0; step < steps && !isShared; ++step)
    a.push_back(getRegisters(b, contraction.a, step));
  if (isShared) {
    SharedOperand operand(b, contraction.a, contraction.aT,
                          getGroupRow(b, warps));
    for (int64_t step = 0; step < steps; ++step)
      a.push_back({operand.get(step)});
  }
  SharedOperand operand(b, contraction.b, contraction.bT);
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (int64_t step = 0; step < steps; ++step) {
    bool isTied = step > 0 || !isZero;
    int64_t next = isTied ? 2 * count : count;
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
    SmallVector<Value> operands;
    if (isTied)
      operands = getElements(b, sum);
    llvm::append_range(operands, a[step]);
    operands.push_back(operand.get(step));
    sum = createAssembly(b, type, operands, text, isTied,
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
                             getElements(b, pending), text,
                             /*isTied=*/true, "");
  return vector::FromElementsOp::create(b, fragment, getElements(b, sum));
}

std::unique_ptr<TensorCores> kernel::createWgmma(int64_t warps) {
  return std::make_unique<Wgmma>(warps);
}
