//===- Warp.cpp - What a warp does together -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

static Lowered lower(NVVM::ShflOp op, CallBuilder &b) {
  Type valueType = op.getVal().getType();
  Value word =
      b.call("varlen_sim_shfl", b.i32,
             {op.getThreadMask(), b.bitcast(op.getVal(), b.i32), op.getOffset(),
              op.getMaskAndClamp(),
              b.i32Constant(static_cast<int64_t>(op.getKind())), b.site()});
  Value value = b.bitcast(word, valueType);
  Type type = op.getRes().getType();
  if (type == valueType)
    return b.replaceOp(value);
  Value valid = b.toBool(b.call("varlen_sim_shfl_pred", b.i32, {}));
  return b.replaceOp(b.pair(type, value, valid));
}

static Lowered lower(NVVM::VoteSyncOp op, CallBuilder &b) {
  Value result =
      b.call("varlen_sim_vote", b.i32,
             {op.getMask(), b.toInteger(op.getPred(), 32),
              b.i32Constant(static_cast<int64_t>(op.getKind())), b.site()});
  bool isMask = op.getKind() == NVVM::VoteSyncKind::ballot;
  return b.replaceOp(isMask ? result : b.toBool(result));
}

static Lowered lower(NVVM::MatchSyncOp op, CallBuilder &b) {
  Value mask =
      b.call("varlen_sim_match", b.i32,
             {op.getThreadMask(), b.toInteger(op.getVal(), 64),
              b.i32Constant(static_cast<int64_t>(op.getKind())), b.site()});
  Type type = op.getRes().getType();
  if (type == b.i32)
    return b.replaceOp(mask);
  return b.replaceOp(b.pair(type, mask, b.toBool(mask)));
}

static Lowered lower(NVVM::ReduxOp op, CallBuilder &b) {
  if (op.getAbs() || op.getNan())
    return b.refuse("abs and nan");
  Value word =
      b.call("varlen_sim_redux", b.i32,
             {op.getMaskAndClamp(), b.bitcast(op.getVal(), b.i32),
              b.i32Constant(static_cast<int64_t>(op.getKind())), b.site()});
  return b.replaceOp(b.bitcast(word, op.getRes().getType()));
}

/// Whether these are tiles of 8x8 elements of 16 bits.
static bool is8x8x16(NVVM::LdStMatrixShapeAttr shape,
                     NVVM::LdStMatrixEltType type) {
  return shape.getM() == 8 && shape.getN() == 8 &&
         type == NVVM::LdStMatrixEltType::B16;
}

bool executor::hasMatrixShape(NVVM::LdMatrixOp op) {
  return is8x8x16(op.getShape(), op.getEltType());
}

static Lowered lower(NVVM::LdMatrixOp op, CallBuilder &b) {
  if (!hasMatrixShape(op))
    return b.refuse("a shape other than 8x8 of 16 bits");
  Value registers = b.sharedStackSlot(b.i32, 4);
  bool transposed = op.getLayout() == NVVM::MMALayout::col;
  b.call("varlen_sim_ldmatrix",
         {b.flat(op.getPtr()), b.i32Constant(op.getNum()),
          b.i32Constant(transposed), registers, b.site()});
  return b.replaceOp(b.loadWords(registers, op.getRes().getType()));
}

static Lowered lower(NVVM::StMatrixOp op, CallBuilder &b) {
  if (!is8x8x16(op.getShape(), op.getEltType()))
    return b.refuse("a shape other than 8x8 of 16 bits");
  Value registers = b.storeWords(op.getSources());
  bool transposed = op.getLayout() == NVVM::MMALayout::col;
  return b.replaceWithCall("varlen_sim_stmatrix",
                           {b.flat(op.getPtr()),
                            b.i32Constant(op.getSources().size()),
                            b.i32Constant(transposed), registers});
}

std::optional<MmaKind> executor::getMmaKind(NVVM::MmaOp op) {
  NVVM::MMAShapeAttr shape = op.getShape();
  NVVM::MMATypes type =
      op.getMultiplicandAPtxType().value_or(NVVM::MMATypes::f64);
  bool isHalf = type == NVVM::MMATypes::f16 || type == NVVM::MMATypes::bf16;
  bool fits = isHalf ? shape.getK() == 8 || shape.getK() == 16
                     : type == NVVM::MMATypes::tf32 &&
                           (shape.getK() == 4 || shape.getK() == 8);
  if (!fits || shape.getM() != 16 || shape.getN() != 8 ||
      op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col)
    return std::nullopt;
  Type element = cast<LLVM::LLVMStructType>(op.getRes().getType()).getBody()[0];
  NVVM::MMATypes accumulator =
      element.isF32() ? NVVM::MMATypes::f32 : NVVM::MMATypes::f16;
  return MmaKind{static_cast<int64_t>(type), shape.getK(),
                 static_cast<int64_t>(accumulator)};
}

static Lowered lower(NVVM::MmaOp op, CallBuilder &b) {
  std::optional<MmaKind> kind = getMmaKind(op);
  if (!kind) {
    NVVM::MMAShapeAttr shape = op.getShape();
    NVVM::MMATypes type =
        op.getMultiplicandAPtxType().value_or(NVVM::MMATypes::f64);
    return b.refuse("shape m" + Twine(shape.getM()) + "n" +
                    Twine(shape.getN()) + "k" + Twine(shape.getK()) + " of " +
                    stringifyEnum(type));
  }
  Value operands = b.storeWords(SmallVector<Value>(op->getOperands()));
  Value result = b.stackSlot(b.i32, 4);
  b.call("varlen_sim_mma",
         {operands, result, b.i32Constant(kind->type), b.i32Constant(kind->k),
          b.i32Constant(kind->accumulator), b.site()});
  return b.replaceOp(b.loadWords(result, op.getRes().getType()));
}

Lowered executor::lowerWarp(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case<NVVM::ShflOp, NVVM::VoteSyncOp, NVVM::MatchSyncOp, NVVM::ReduxOp,
            NVVM::LdMatrixOp, NVVM::StMatrixOp, NVVM::MmaOp>(
          [&](auto op) { return lower(op, b); })
      .Case([&](NVVM::ElectSyncOp elect) {
        Value mask = elect.getMembermask();
        return b.replaceOp(
            b.toBool(b.call("varlen_sim_elect", b.i32,
                            {mask ? mask : b.i32Constant(-1), b.site()})));
      })
      .Default([](Operation *) { return Lowered::No; });
}
