//===- MmaSync.cpp - Contractions in mma.sync -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemRefAddress.h"
#include "TensorCores.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

namespace {

/// Registers of one thread, 32 bits each.
using Registers = SmallVector<Value, 4>;

/// Reads 8 x 8 matrices of a shared tile with ldmatrix, four at a time: two by
/// two of them, along the rows (8 apart) and the 16-byte chunks of a row.
///
/// Lane l gives the address of row l % 8 of matrix l / 8. The address splits
/// into a part of the lane and a constant: the rows of a constant are a
/// multiple of 8, so they leave the swizzle alone, and its chunks are a
/// multiple of 2 that touches other bits than the lane's, so they can be xored.
class MatrixReader {
public:
  /// `rowBit`: the bit of the matrix number that selects the row half; the
  /// other selects the chunk. `row`, `chunk`: where this warp starts, if not at
  /// 0; the chunk is even.
  MatrixReader(ThreadBuilder &b, Value tile, unsigned rowBit, Value row = {},
               Value chunk = {});

  /// The matrices at (`row`, `chunk`) and half a step from there: four of them,
  /// or the two of the first row half (rowBit 1) or chunk (rowBit 0).
  Registers read(int64_t row, int64_t chunk, bool transposed, int matrices = 4);

private:
  static constexpr int64_t kChunkBytes = 16;
  static constexpr int64_t kChunks = kRowBytes / kChunkBytes;

  ThreadBuilder &b;
  int64_t slabBytes;
  /// Address of the tile.
  Value base;
  /// Byte offset of the lane's row of its matrix in a slab.
  Value laneOffset;
  /// Byte offset of the warp's slab, if that is not the first.
  Value slabOffset;
};

} // namespace

MatrixReader::MatrixReader(ThreadBuilder &b, Value tile, unsigned rowBit,
                           Value row, Value chunk)
    : b(b),
      slabBytes(getSharedRows(cast<MemRefType>(tile.getType())) * kRowBytes),
      base(getAddress(b, tile)) {
  Value lane = b.lane();
  Value rowInMatrix = b.bitAnd(lane, 7);
  Value bits[] = {b.bitAnd(b.shiftRight(lane, 3), 1), b.shiftRight(lane, 4)};
  Value laneRow = b.add(b.mul(bits[rowBit], 8), rowInMatrix);
  if (row)
    laneRow = b.add(laneRow, row);
  Value laneChunk = bits[1 - rowBit];
  if (chunk) {
    laneChunk = b.add(laneChunk, b.bitAnd(chunk, kChunks - 1));
    slabOffset = b.mul(b.shiftRight(chunk, llvm::Log2_64(kChunks)), slabBytes);
  }
  laneOffset = b.add(b.mul(laneRow, kRowBytes),
                     b.mul(b.bitXor(laneChunk, rowInMatrix), kChunkBytes));
}

Registers MatrixReader::read(int64_t row, int64_t chunk, bool transposed,
                             int matrices) {
  Value offset = b.bitXor(laneOffset, chunk % kChunks * kChunkBytes);
  if (slabOffset)
    offset = b.add(offset, slabOffset);
  Value address = advance(b, base, b.getI8Type(), offset);
  if (int64_t constant = chunk / kChunks * slabBytes + row * kRowBytes)
    address =
        advance(b, address, b.getI8Type(), static_cast<int32_t>(constant));
  SmallVector<Type> words(matrices, b.getI32Type());
  Value loaded = NVVM::LdMatrixOp::create(
      b, LLVM::LLVMStructType::getLiteral(b.getContext(), words), address,
      matrices, transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Registers registers;
  for (int64_t i = 0; i < matrices; ++i)
    registers.push_back(
        LLVM::ExtractValueOp::create(b, loaded, ArrayRef<int64_t>{i}));
  return registers;
}

Registers kernel::getFactorRegisters(ThreadBuilder &b, Value fragment,
                                     int64_t mTile, int64_t step) {
  Registers registers;
  for (int64_t column = 0; column < 2; ++column)
    for (int64_t row = 0; row < 2; ++row) {
      Value pair = vector::ExtractOp::create(
          b, fragment, ArrayRef<int64_t>{mTile, 2 * step + column, row});
      registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    }
  return registers;
}

namespace {

/// The A operand of each step of k and m-tile.
class AOperand {
public:
  AOperand(ThreadBuilder &b, const Contraction &contraction, int64_t warps)
      : b(b), fragment(contraction.a), transposed(contraction.aT),
        warps(warps) {
    if (isa<VectorType>(fragment.getType()))
      return;
    // In the order of a fragment, [column half][row half]: the lower bit of the
    // matrix number is the half of m, which is a row where A is not transposed.
    if (transposed)
      reader.emplace(b, contraction.a, /*rowBit=*/1, Value(),
                     b.mul(b.warp(), 2));
    else
      reader.emplace(b, contraction.a, /*rowBit=*/0, b.mul(b.warp(), 16));
  }

  Registers get(int64_t mTile, int64_t step) {
    int64_t m = 16 * warps * mTile, k = 16 * step;
    if (reader)
      return transposed ? reader->read(k, m / 8, /*transposed=*/true)
                        : reader->read(m, k / 8, /*transposed=*/false);
    return getFactorRegisters(b, fragment, mTile, step);
  }

private:
  ThreadBuilder &b;
  Value fragment;
  bool transposed;
  int64_t warps;
  std::optional<MatrixReader> reader;
};

/// Emits the products of one contraction.
class Products {
public:
  Products(ThreadBuilder &b, const Contraction &contraction, int64_t warps)
      : b(b), contraction(contraction), a(b, contraction, warps),
        // The lower bit of the matrix number is the half of k, which is a row
        // where B is transposed.
        reader(b, contraction.b, /*rowBit=*/contraction.bT ? 0 : 1),
        element(cast<MemRefType>(contraction.b.getType()).getElementType()),
        shape(cast<VectorType>(contraction.acc.getType()).getShape()) {}

  int64_t numSteps() const { return contraction.k / 16; }
  /// The A operands of a step, one for each m-tile.
  SmallVector<Registers> readA(int64_t step);
  /// Adds the products of a step to n-tile `pair` and the next one, if there
  /// is one, of `acc`: the elements of a fragment.
  void multiply(ArrayRef<Registers> aOperands, int64_t step, int64_t pair,
                MutableArrayRef<Value> acc);

private:
  /// The operation wants f16 in pairs and bf16 in words.
  void toOperand(Value &word) {
    if (element.isF16())
      word = LLVM::BitcastOp::create(b, VectorType::get(2, element), word);
  }

  ThreadBuilder &b;
  Contraction contraction;
  AOperand a;
  MatrixReader reader;
  Type element;
  ArrayRef<int64_t> shape;
};

} // namespace

/// Each is an instruction of its own.
static constexpr int64_t kMaxProducts = 1 << 16;

LogicalResult TensorCores::check(Operation *op,
                                 const Contraction &contraction) const {
  auto acc = cast<VectorType>(contraction.acc.getType());
  int64_t products = acc.getDimSize(0) * acc.getDimSize(1) * contraction.k / 16;
  if (products > kMaxProducts)
    return op->emitOpError("expected at most ")
           << kMaxProducts << " products of 16 x 8 x 16 for a warp, got "
           << products;
  auto a = dyn_cast<MemRefType>(contraction.a.getType());
  if (!a)
    return success();
  int64_t m = 16 * warps * acc.getDimSize(0);
  int64_t found = contraction.aT ? getSharedColumns(a) : getSharedRows(a);
  if (found < m)
    return op->emitOpError("expected A to have the ")
           << m << " rows of " << warps << " warps, got " << found;
  if (contraction.aT && !llvm::isPowerOf2_64(warps))
    return op->emitOpError("expected a number of warps that is a power of 2 "
                           "for a transposed A, got ")
           << warps;
  return success();
}

SmallVector<Registers> Products::readA(int64_t step) {
  SmallVector<Registers> operands;
  for (int64_t mTile = 0; mTile < shape[0]; ++mTile) {
    operands.push_back(a.get(mTile, step));
    for (Value &word : operands.back())
      toOperand(word);
  }
  return operands;
}

void Products::multiply(ArrayRef<Registers> aOperands, int64_t step,
                        int64_t pair, MutableArrayRef<Value> acc) {
  NVVM::MMATypes factor =
      element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  SmallVector<Type> four(4, b.getF32Type());
  Type result = LLVM::LLVMStructType::getLiteral(b.getContext(), four);
  int64_t inPair = std::min<int64_t>(2, shape[1] - pair);
  int64_t n = 8 * pair, k = 16 * step;
  Registers words =
      contraction.bT ? reader.read(k, n / 8, /*transposed=*/true, 2 * inPair)
                     : reader.read(n, k / 8, /*transposed=*/false, 2 * inPair);
  for (Value &word : words)
    toOperand(word);
  for (int64_t i = 0; i < inPair; ++i)
    for (int64_t mTile = 0; mTile < shape[0]; ++mTile) {
      auto d = acc.slice((mTile * shape[1] + pair + i) * 4, 4);
      Value sum = NVVM::MmaOp::create(
          b, result, aOperands[mTile],
          ValueRange{words[2 * i], words[2 * i + 1]}, d,
          ArrayRef<int64_t>{16, 8, 16}, /*b1Op=*/std::nullopt,
          /*intOverflow=*/std::nullopt, std::array{factor, factor},
          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
      for (int64_t e = 0; e < 4; ++e)
        d[e] = LLVM::ExtractValueOp::create(b, sum, ArrayRef<int64_t>{e});
    }
}

static SmallVector<Value> getElements(ThreadBuilder &b, Value fragment) {
  return llvm::to_vector_of<Value>(
      vector::ToElementsOp::create(b, fragment).getResults());
}

Value TensorCores::start(ThreadBuilder &b,
                         ArrayRef<Contraction> contractions) const {
  auto type = cast<VectorType>(contractions.front().acc.getType());
  SmallVector<Value> acc = getElements(b, contractions.front().acc);
  for (const Contraction &contraction : contractions) {
    Products products(b, contraction, warps);
    // A is read once for all columns, B once for all rows of the warp.
    for (int64_t step = 0; step < products.numSteps(); ++step) {
      SmallVector<Registers> a = products.readA(step);
      for (int64_t pair = 0; pair < type.getDimSize(1); pair += 2)
        products.multiply(a, step, pair, acc);
    }
  }
  return vector::FromElementsOp::create(b, type, acc);
}

Value TensorCores::contractAll(ThreadBuilder &b,
                               ArrayRef<Contraction> contractions,
                               Value addend) const {
  auto type = cast<VectorType>(contractions[0].acc.getType());
  SmallVector<Value> acc = getElements(b, contractions[0].acc), addends;
  if (addend)
    addends = getElements(b, addend);
  std::vector<Products> products;
  for (const Contraction &contraction : contractions)
    products.emplace_back(b, contraction, warps);
  int64_t steps = products.front().numSteps();
  int64_t nTiles = type.getDimSize(1);
  auto addTo = [&](Value &sum, Value term) {
    sum = arith::AddFOp::create(b, term, sum);
  };

  if (isa<MemRefType>(contractions[0].a.getType())) {
    // Step by step: what the contractions read of a step is in registers for
    // that step only. The last term, the large one, is summed apart.
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
    SmallVector<Value> large(acc.size(), zero);
    for (int64_t step = 0; step < steps; ++step) {
      SmallVector<SmallVector<Registers>> a;
      for (Products &one : products)
        a.push_back(one.readA(step));
      for (int64_t pair = 0; pair < nTiles; pair += 2)
        for (auto [i, one] : llvm::enumerate(products))
          one.multiply(a[i], step, pair, i + 1 < products.size() ? acc : large);
    }
    for (auto [i, sum] : llvm::enumerate(acc)) {
      addTo(sum, large[i]);
      if (addend)
        addTo(sum, addends[i]);
    }
    return vector::FromElementsOp::create(b, type, acc);
  }

  // Column by column: few accumulators are in use beside the addend.
  for (int64_t pair = 0; pair < nTiles; pair += 2) {
    for (Products &one : products)
      for (int64_t step = 0; step < steps; ++step)
        one.multiply(one.readA(step), step, pair, acc);
    if (!addend)
      continue;
    for (int64_t mTile = 0; mTile < type.getDimSize(0); ++mTile)
      for (int64_t nTile = pair; nTile < std::min(pair + 2, nTiles); ++nTile)
        for (int64_t e = 0; e < 4; ++e) {
          int64_t i = (mTile * nTiles + nTile) * 4 + e;
          addTo(acc[i], addends[i]);
        }
  }
  return vector::FromElementsOp::create(b, type, acc);
}
