//===- Memory.cpp - Every access is checked -------------------------------===//
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

#include "NVVMToExecutor.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/NVPTXAddrSpace.h"

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
      space == llvm::NVPTXAS::ADDRESS_SPACE_PARAM)
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

/// Calls the check of an access of the type; gives the address to use. `kind`
/// is load or store.
static Value checkAccess(CallBuilder &b, StringRef kind, Value address,
                         Type type, std::optional<uint64_t> alignment,
                         bool isFlag) {
  uint64_t size = b.getSize(type);
  // A vector that may lie at any of its elements is several accesses; none is
  // wider than 16 bytes.
  bool isSplit = alignment && *alignment < std::min<uint64_t>(size, 16) &&
                 llvm::isPowerOf2_64(size);
  std::string function = ("varlen_sim_" + kind + "_").str();
  Value length = b.i32Constant(static_cast<int64_t>(size));
  if (isFlag) {
    function += "flag";
  } else if (isSplit || size > 64) {
    function += "range";
    length = b.toInteger(length, 64);
  } else {
    function += getSpaceName(address);
  }
  Value checked =
      b.call(function, b.pointer, {b.flat(address), length, b.site()});
  return b.castTo(address.getType(), checked);
}

/// Whether the load or store is of what threads order others by.
template <typename Op> static bool isOfFlag(Op op) {
  return op.getVolatile_() ||
         op.getOrdering() != LLVM::AtomicOrdering::not_atomic;
}

static int64_t getOrder(LLVM::AtomicOrdering order);

/// What the access orders between CTAs, unless it is to their own memory.
template <typename Op>
static void orderBy(CallBuilder &b, StringRef function, Op op) {
  if (getSpaceName(op.getAddr()) != "shared")
    b.call(function, {b.flat(op.getAddr()),
                      b.i32Constant(getOrder(op.getOrdering())), b.site()});
}

static Lowered lower(LLVM::LoadOp op, CallBuilder &b) {
  if (isPrivate(op.getAddr()))
    return Lowered::Yes;
  bool isFlag = isOfFlag(op);
  op.getAddrMutable().assign(checkAccess(b, "load", op.getAddr(), op.getType(),
                                         op.getAlignment(), isFlag));
  if (!isFlag)
    return Lowered::Yes;
  b.call("varlen_sim_poll", {b.site()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(op);
  orderBy(b, "varlen_sim_acquire", op);
  return Lowered::Yes;
}

static Lowered lower(LLVM::StoreOp op, CallBuilder &b) {
  if (isPrivate(op.getAddr()))
    return Lowered::Yes;
  bool isFlag = isOfFlag(op);
  op.getAddrMutable().assign(checkAccess(b, "store", op.getAddr(),
                                         op.getValue().getType(),
                                         op.getAlignment(), isFlag));
  if (isFlag)
    orderBy(b, "varlen_sim_release", op);
  return Lowered::Yes;
}

/// Whether the operation orders accesses of several CTAs to global memory.
static bool ordersGlobal(Operation *op) {
  auto orders = [](LLVM::AtomicOrdering order, Value address) {
    return order != LLVM::AtomicOrdering::not_atomic &&
           order != LLVM::AtomicOrdering::monotonic &&
           getSpaceName(address) != "shared";
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](LLVM::LoadOp load) {
        return orders(load.getOrdering(), load.getAddr());
      })
      .Case([&](LLVM::StoreOp store) {
        // One of the whole system may be for the host.
        return store.getSyncscope() == "device" &&
               orders(store.getOrdering(), store.getAddr());
      })
      .Case([&](LLVM::AtomicRMWOp update) {
        return orders(update.getOrdering(), update.getPtr());
      })
      .Case([&](LLVM::AtomicCmpXchgOp update) {
        return orders(update.getSuccessOrdering(), update.getPtr());
      })
      .Case<LLVM::FenceOp>([](auto) { return true; })
      .Case([](NVVM::MembarOp fence) {
        return fence.getScope() == NVVM::MemScopeKind::GPU ||
               fence.getScope() == NVVM::MemScopeKind::SYS;
      })
      .Default(false);
}

bool executor::hasGlobalOrder(LLVM::LLVMFuncOp function) {
  return function
      ->walk([](Operation *op) {
        return ordersGlobal(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getAtomicOp(LLVM::AtomicBinOp op) {
  switch (op) {
  case LLVM::AtomicBinOp::xchg:
    return VARLEN_SIM_EXCH;
  case LLVM::AtomicBinOp::add:
  case LLVM::AtomicBinOp::fadd:
    return VARLEN_SIM_ADD;
  case LLVM::AtomicBinOp::sub:
    return VARLEN_SIM_SUB;
  case LLVM::AtomicBinOp::_and:
    return VARLEN_SIM_AND;
  case LLVM::AtomicBinOp::_or:
    return VARLEN_SIM_OR;
  case LLVM::AtomicBinOp::_xor:
    return VARLEN_SIM_XOR;
  case LLVM::AtomicBinOp::max:
  case LLVM::AtomicBinOp::fmax:
    return VARLEN_SIM_MAX;
  case LLVM::AtomicBinOp::min:
  case LLVM::AtomicBinOp::fmin:
    return VARLEN_SIM_MIN;
  case LLVM::AtomicBinOp::umax:
    return VARLEN_SIM_UMAX;
  case LLVM::AtomicBinOp::umin:
    return VARLEN_SIM_UMIN;
  case LLVM::AtomicBinOp::uinc_wrap:
    return VARLEN_SIM_INC;
  case LLVM::AtomicBinOp::udec_wrap:
    return VARLEN_SIM_DEC;
  default:
    return std::nullopt;
  }
}

static std::optional<int64_t> getAtomicType(Type type) {
  if (type.isInteger(32))
    return VARLEN_SIM_I32;
  if (type.isInteger(64))
    return VARLEN_SIM_I64;
  if (type.isF16())
    return VARLEN_SIM_F16;
  if (type.isBF16())
    return VARLEN_SIM_BF16;
  if (type.isF32())
    return VARLEN_SIM_F32;
  if (type.isF64())
    return VARLEN_SIM_F64;
  if (type.isInteger(16))
    return VARLEN_SIM_I16;
  if (auto vector = dyn_cast<VectorType>(type);
      vector && vector.getNumElements() == 2) {
    if (vector.getElementType().isF16())
      return VARLEN_SIM_F16X2;
    if (vector.getElementType().isBF16())
      return VARLEN_SIM_BF16X2;
  }
  return std::nullopt;
}

static int64_t getOrder(LLVM::AtomicOrdering order) {
  switch (order) {
  case LLVM::AtomicOrdering::acquire:
    return VARLEN_SIM_ACQUIRE;
  case LLVM::AtomicOrdering::release:
    return VARLEN_SIM_RELEASE;
  case LLVM::AtomicOrdering::acq_rel:
    return VARLEN_SIM_ACQ_REL;
  case LLVM::AtomicOrdering::seq_cst:
    return VARLEN_SIM_SC;
  default:
    return VARLEN_SIM_RELAXED;
  }
}

static Lowered lower(LLVM::AtomicRMWOp op, CallBuilder &b) {
  std::optional<int64_t> kind = getAtomicOp(op.getBinOp());
  if (!kind)
    return b.refuse(stringifyEnum(op.getBinOp()));
  std::optional<int64_t> type = getAtomicType(op.getVal().getType());
  if (!type)
    return b.refuse("a type of this width");
  Value old = b.call("varlen_sim_atomic", b.i64,
                     {b.flat(op.getPtr()), b.i32Constant(*kind),
                      b.i32Constant(*type), b.toInteger(op.getVal(), 64),
                      b.i32Constant(getOrder(op.getOrdering())), b.site()});
  return b.replaceOp(b.fromInteger(old, op.getVal().getType()));
}

static Lowered lower(LLVM::AtomicCmpXchgOp op, CallBuilder &b) {
  Type valueType = op.getVal().getType();
  std::optional<int64_t> type = getAtomicType(valueType);
  if (!type)
    return b.refuse("a type of this width");
  Value compare = b.toInteger(op.getCmp(), 64);
  Value old =
      b.call("varlen_sim_atomic_cas", b.i64,
             {b.flat(op.getPtr()), b.i32Constant(*type), compare,
              b.toInteger(op.getVal(), 64),
              b.i32Constant(getOrder(op.getSuccessOrdering())), b.site()});
  Value isSame = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, old, compare);
  return b.replaceOp(
      b.pair(op.getRes().getType(), b.fromInteger(old, valueType), isSame));
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
