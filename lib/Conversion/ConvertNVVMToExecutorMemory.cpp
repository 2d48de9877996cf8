//===- ConvertNVVMToExecutorMemory.cpp - Every access is checked ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads and stores stay what they are, but for their address: a call in front
// gives one that may be accessed, after it has looked at bounds, alignment and
// races. Atomics become calls.
//
//===----------------------------------------------------------------------===//

#include "ConvertNVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

static unsigned getAddressSpace(Value address) {
  return cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
}

/// Whether the address is on the thread's own stack, or a kernel's argument.
static bool isPrivate(Value address) {
  unsigned space = getAddressSpace(address);
  if (space == static_cast<unsigned>(NVVM::NVVMMemorySpace::Local) ||
      space == 101 /*kernel parameters*/)
    return true;
  while (Operation *op = address.getDefiningOp()) {
    if (isa<LLVM::AllocaOp>(op))
      return true;
    if (auto gep = dyn_cast<LLVM::GEPOp>(op))
      address = gep.getBase();
    else if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op))
      address = cast.getArg();
    else
      return false;
  }
  return false;
}

/// How the executor calls the address space.
static StringRef getSpaceName(Value address) {
  switch (static_cast<NVVM::NVVMMemorySpace>(getAddressSpace(address))) {
  case NVVM::NVVMMemorySpace::Shared:
  case NVVM::NVVMMemorySpace::SharedCluster:
    return "shared";
  case NVVM::NVVMMemorySpace::Global:
  case NVVM::NVVMMemorySpace::Constant:
    return "global";
  default:
    return "generic";
  }
}

Value executor::checkAccess(CallBuilder &b, StringRef kind, Value address,
                            Type type, std::optional<uint64_t> alignment) {
  uint64_t size = b.getSize(type);
  // A vector that may lie at any of its elements is several accesses; none is
  // wider than 16 bytes.
  bool isSplit = alignment && *alignment < std::min<uint64_t>(size, 16) &&
                 llvm::isPowerOf2_64(size);
  std::string function = ("varlen_sim_" + kind + "_").str();
  Value length = b.i32Constant(static_cast<int64_t>(size));
  if (isSplit || size > 64) {
    function += "range";
    length = b.toInteger(length, 64);
  } else {
    function += getSpaceName(address);
  }
  Value checked =
      b.call(function, b.pointer, {b.flat(address), length, b.site()});
  return b.castTo(address.getType(), checked);
}

static bool isPolling(LLVM::LoadOp op) {
  return op.getVolatile_() ||
         op.getOrdering() != LLVM::AtomicOrdering::not_atomic;
}

static Lowered lower(LLVM::LoadOp op, CallBuilder &b) {
  if (isPrivate(op.getAddr()))
    return Lowered::Yes;
  op.getAddrMutable().assign(
      checkAccess(b, "load", op.getAddr(), op.getType(), op.getAlignment()));
  if (isPolling(op))
    b.call("varlen_sim_poll", {b.site()});
  return Lowered::Yes;
}

static Lowered lower(LLVM::StoreOp op, CallBuilder &b) {
  if (isPrivate(op.getAddr()))
    return Lowered::Yes;
  op.getAddrMutable().assign(checkAccess(
      b, "store", op.getAddr(), op.getValue().getType(), op.getAlignment()));
  return Lowered::Yes;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static std::optional<AtomicOp> getAtomicOp(LLVM::AtomicBinOp op) {
  switch (op) {
  case LLVM::AtomicBinOp::xchg:
    return AtomicOp::Exchange;
  case LLVM::AtomicBinOp::add:
  case LLVM::AtomicBinOp::fadd:
    return AtomicOp::Add;
  case LLVM::AtomicBinOp::sub:
    return AtomicOp::Sub;
  case LLVM::AtomicBinOp::_and:
    return AtomicOp::And;
  case LLVM::AtomicBinOp::_or:
    return AtomicOp::Or;
  case LLVM::AtomicBinOp::_xor:
    return AtomicOp::Xor;
  case LLVM::AtomicBinOp::max:
  case LLVM::AtomicBinOp::fmax:
    return AtomicOp::Max;
  case LLVM::AtomicBinOp::min:
  case LLVM::AtomicBinOp::fmin:
    return AtomicOp::Min;
  case LLVM::AtomicBinOp::umax:
    return AtomicOp::UMax;
  case LLVM::AtomicBinOp::umin:
    return AtomicOp::UMin;
  case LLVM::AtomicBinOp::uinc_wrap:
    return AtomicOp::Inc;
  case LLVM::AtomicBinOp::udec_wrap:
    return AtomicOp::Dec;
  default:
    return std::nullopt;
  }
}

static std::optional<AtomicType> getAtomicType(Type type) {
  if (type.isInteger(32))
    return AtomicType::I32;
  if (type.isInteger(64))
    return AtomicType::I64;
  if (type.isF16())
    return AtomicType::F16;
  if (type.isBF16())
    return AtomicType::BF16;
  if (type.isF32())
    return AtomicType::F32;
  if (type.isF64())
    return AtomicType::F64;
  if (type.isInteger(16))
    return AtomicType::I16;
  if (auto vector = dyn_cast<VectorType>(type);
      vector && vector.getNumElements() == 2) {
    if (vector.getElementType().isF16())
      return AtomicType::F16x2;
    if (vector.getElementType().isBF16())
      return AtomicType::BF16x2;
  }
  return std::nullopt;
}

/// The number of an order in Device.h, which is NVVM's MemOrderKind.
static int64_t getOrder(LLVM::AtomicOrdering order) {
  switch (order) {
  case LLVM::AtomicOrdering::acquire:
    return 2;
  case LLVM::AtomicOrdering::release:
    return 3;
  case LLVM::AtomicOrdering::acq_rel:
    return 4;
  case LLVM::AtomicOrdering::seq_cst:
    return 5;
  default:
    return 1;
  }
}

Value executor::callAtomic(CallBuilder &b, AtomicOp op, AtomicType type,
                           Value address, Value value, int64_t order) {
  Value old = b.call("varlen_sim_atomic", b.i64,
                     {b.flat(address), b.i32Constant(static_cast<int64_t>(op)),
                      b.i32Constant(static_cast<int64_t>(type)),
                      b.toInteger(value, 64), b.i32Constant(order), b.site()});
  return b.fromInteger(old, value.getType());
}

static Lowered lower(LLVM::AtomicRMWOp op, CallBuilder &b) {
  std::optional<AtomicOp> kind = getAtomicOp(op.getBinOp());
  if (!kind)
    return b.refuse(stringifyEnum(op.getBinOp()));
  std::optional<AtomicType> type = getAtomicType(op.getVal().getType());
  if (!type)
    return b.refuse("a type of this width");
  return b.replaceOp(callAtomic(b, *kind, *type, op.getPtr(), op.getVal(),
                                getOrder(op.getOrdering())));
}

static Lowered lower(LLVM::AtomicCmpXchgOp op, CallBuilder &b) {
  Type valueType = op.getVal().getType();
  std::optional<AtomicType> type = getAtomicType(valueType);
  if (!type)
    return b.refuse("a type of this width");
  Value compare = b.toInteger(op.getCmp(), 64);
  Value old =
      b.call("varlen_sim_atomic_cas", b.i64,
             {b.flat(op.getPtr()), b.i32Constant(static_cast<int64_t>(*type)),
              compare, b.toInteger(op.getVal(), 64),
              b.i32Constant(getOrder(op.getSuccessOrdering())), b.site()});
  Value isSame = LLVM::ICmpOp::create(b.get(), b.getLoc(),
                                      LLVM::ICmpPredicate::eq, old, compare);
  Value pair =
      LLVM::PoisonOp::create(b.get(), b.getLoc(), op.getRes().getType());
  pair = LLVM::InsertValueOp::create(b.get(), b.getLoc(), pair,
                                     b.fromInteger(old, valueType),
                                     ArrayRef<int64_t>{0});
  return b.replaceOp(LLVM::InsertValueOp::create(b.get(), b.getLoc(), pair,
                                                 isSame, ArrayRef<int64_t>{1}));
}

//===----------------------------------------------------------------------===//
// Blocks of memory
//===----------------------------------------------------------------------===//

static Value checkRange(CallBuilder &b, StringRef kind, Value address,
                        Value length) {
  if (isPrivate(address))
    return address;
  Value checked = b.call(("varlen_sim_" + kind + "_range").str(), b.pointer,
                         {b.flat(address), b.toInteger(length, 64), b.site()});
  return b.castTo(address.getType(), checked);
}

template <typename CopyOp>
static Lowered lowerCopyOf(CopyOp op, CallBuilder &b) {
  op.getDstMutable().assign(checkRange(b, "store", op.getDst(), op.getLen()));
  op.getSrcMutable().assign(checkRange(b, "load", op.getSrc(), op.getLen()));
  return Lowered::Yes;
}

static Lowered lower(LLVM::MemsetOp op, CallBuilder &b) {
  op.getDstMutable().assign(checkRange(b, "store", op.getDst(), op.getLen()));
  return Lowered::Yes;
}

Lowered executor::lowerMemory(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp,
            LLVM::AtomicCmpXchgOp, LLVM::MemsetOp>(
          [&](auto op) { return lower(op, b); })
      .Case<LLVM::MemcpyOp, LLVM::MemmoveOp>(
          [&](auto op) { return lowerCopyOf(op, b); })
      .Default([](Operation *) { return Lowered::No; });
}
