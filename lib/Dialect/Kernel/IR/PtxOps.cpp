//===- PtxOps.cpp - Instructions of Hopper --------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

using AsmValues = SmallVectorImpl<std::pair<Value, NVVM::PTXRegisterMod>>;

/// "{%0, %1, ...}" from `first`.
static std::string getPlaceholders(int64_t first, int64_t count) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '{';
  llvm::interleaveComma(llvm::seq(first, first + count), os,
                        [&](int64_t i) { os << '%' << i; });
  os << '}';
  return text;
}

/// Adds an operand that has to be in a register: upstream makes an immediate of
/// a constant.
static void addRegister(OpBuilder &b, AsmValues &values, Value value) {
  if (value.getDefiningOp<LLVM::ConstantOp>())
    value = LLVM::FreezeOp::create(b, value.getLoc(), value);
  values.emplace_back(value, NVVM::PTXRegisterMod::Read);
}

//===----------------------------------------------------------------------===//
// WgmmaOp
//===----------------------------------------------------------------------===//

LogicalResult WgmmaOp::verify() {
  TypeRange a = getA().getTypes();
  bool isDescriptor = a.size() == 1 && a.front().isInteger(64);
  bool isRegisters = a.size() == 4 && llvm::all_of(a, [](Type type) {
                       return type.isInteger(32);
                     });
  if (!isDescriptor && !isRegisters)
    return emitOpError("expected A to be a descriptor (i64) or four registers "
                       "(i32), got ")
           << a;
  if (isRegisters && getAT())
    return emitOpError("expected a_t with A in shared memory only");
  return success();
}

int64_t WgmmaOp::getNumRegisters() {
  return cast<LLVM::LLVMStructType>(getResult().getType()).getBody().size();
}

std::string WgmmaOp::getPtx() {
  int64_t count = getNumRegisters(), next = getAcc() ? 2 * count : count;
  std::string element = getElement().isF16() ? "f16" : "bf16", text;
  llvm::raw_string_ostream os(text);
  os << "wgmma.mma_async.sync.aligned.m64n" << getNumColumns() << "k16.f32."
     << element << '.' << element << ' ' << getPlaceholders(0, count) << ", ";
  if (isAInRegisters())
    os << getPlaceholders(next, 4);
  else
    os << '%' << next;
  // Whether there is a sum to add to, and the signs of A and B.
  os << ", %" << next + getA().size() << ", " << !!getAcc() << ", 1, 1";
  if (!isAInRegisters())
    os << ", " << getAT();
  os << ", " << getBT() << ';';
  return text;
}

bool WgmmaOp::getAsmValues(RewriterBase &rewriter, AsmValues &values) {
  values.emplace_back(getResult(), NVVM::PTXRegisterMod::Write);
  if (Value acc = getAcc())
    values.emplace_back(acc, NVVM::PTXRegisterMod::ReadWrite);
  for (Value value : getA())
    addRegister(rewriter, values, value);
  addRegister(rewriter, values, getB());
  return true;
}

//===----------------------------------------------------------------------===//
// WgmmaWaitOp
//===----------------------------------------------------------------------===//

std::string WgmmaWaitOp::getPtx() {
  return "wgmma.wait_group.sync.aligned " + std::to_string(getYounger()) + ";";
}

bool WgmmaWaitOp::getAsmValues(RewriterBase &, AsmValues &values) {
  values.emplace_back(getResult(), NVVM::PTXRegisterMod::Write);
  values.emplace_back(getAcc(), NVVM::PTXRegisterMod::ReadWrite);
  return true;
}

//===----------------------------------------------------------------------===//
// PublishMapOp
//===----------------------------------------------------------------------===//

std::string PublishMapOp::getPtx() {
  return "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
         "release.gpu.sync.aligned [%0], [%1], 128;";
}

bool PublishMapOp::getAsmValues(RewriterBase &, AsmValues &values) {
  values.emplace_back(getGlobal(), NVVM::PTXRegisterMod::Read);
  values.emplace_back(getShared(), NVVM::PTXRegisterMod::Read);
  return true;
}
