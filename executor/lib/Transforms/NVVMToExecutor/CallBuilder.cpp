//===- CallBuilder.cpp - Calls of the executor ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

CallBuilder::CallBuilder(ModuleOp module)
    : ImplicitLocOpBuilder(module.getLoc(), module.getContext()),
      module(module), layout(module) {
  i32 = getI32Type();
  i64 = getI64Type();
  f32 = getF32Type();
  pointer = LLVM::LLVMPointerType::get(module.getContext());
}

void CallBuilder::setOp(Operation *newOp) {
  op = newOp;
  setLoc(op->getLoc());
  setInsertionPoint(op);
  refusal.clear();
}

Value CallBuilder::call(StringRef function, Type result, ValueRange arguments,
                        bool isPure) {
  LLVM::LLVMFuncOp &callee = functions[function];
  // Another module's kernels may have called it.
  if (!callee)
    callee = module.lookupSymbol<LLVM::LLVMFuncOp>(function);
  if (!callee)
    callee = *LLVM::lookupOrCreateFn(
        *this, module, function, SmallVector<Type>(arguments.getTypes()),
        result ? result : LLVM::LLVMVoidType::get(getContext()));
  auto call = LLVM::CallOp::create(*this, callee, arguments);
  if (isPure) {
    LLVM::ModRefInfo none = LLVM::ModRefInfo::NoModRef;
    call.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
        getContext(), {none, none, none, none, none, none}));
    call.setNoUnwind(true);
    call.setWillReturn(true);
  }
  return result ? call.getResult() : Value();
}

int64_t CallBuilder::siteIndex() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto file = getLoc()->findInstanceOf<FileLineColRange>())
    stream << file.getFilename().getValue() << ':' << file.getStartLine() << ':'
           << file.getStartColumn();
  else
    stream << '?';
  stream << " (" << op->getName() << ')';
  // Calls that stand for one operation share its site.
  if (sites.empty() || sites.back() != text)
    sites.push_back(text);
  return static_cast<int64_t>(sites.size()) - 1;
}

Value CallBuilder::i32Constant(int64_t value) {
  return LLVM::ConstantOp::create(*this, i32, static_cast<int32_t>(value));
}

Value CallBuilder::flat(Value address) { return castTo(pointer, address); }

Value CallBuilder::castTo(Type type, Value address) {
  if (address.getType() == type)
    return address;
  return LLVM::AddrSpaceCastOp::create(*this, type, address);
}

Value CallBuilder::stackSlot(Type element, int64_t count) {
  InsertionGuard guard(*this);
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(*this, pointer, element, i32Constant(count),
                                /*alignment=*/16);
}

Value CallBuilder::sharedStackSlot(Type element, int64_t count) {
  Operation *function = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &slot = sharedSlots[{function, element, count}];
  if (!slot)
    slot = stackSlot(element, count);
  return slot;
}

Value CallBuilder::constantWords(ArrayRef<int32_t> words) {
  // Another module's kernels may have words of the same name.
  std::string name;
  do
    name = ("varlen_sim.words." + Twine(numWords++)).str();
  while (module.lookupSymbol(name));
  auto type = LLVM::LLVMArrayType::get(i32, words.size());
  {
    InsertionGuard guard(*this);
    setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(*this, module.getLoc(), type, /*isConstant=*/true,
                           LLVM::Linkage::Internal, name,
                           getI32TensorAttr(words));
  }
  return LLVM::AddressOfOp::create(*this, pointer, name);
}

Value CallBuilder::element(Value base, Type type, int64_t i) {
  return LLVM::GEPOp::create(*this, pointer, type, base,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
}

Value CallBuilder::storeWords(ValueRange values) {
  Value slot = stackSlot(i32, static_cast<int64_t>(values.size()));
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(*this, value, element(slot, i32, i));
  return slot;
}

Value CallBuilder::loadWords(Value base, Type type) {
  auto structType = dyn_cast<LLVM::LLVMStructType>(type);
  if (!structType)
    return LLVM::LoadOp::create(*this, type, base);
  Value result = LLVM::PoisonOp::create(*this, type);
  for (auto [i, member] : llvm::enumerate(structType.getBody()))
    result = setMember(
        result, LLVM::LoadOp::create(*this, member, element(base, i32, i)), i);
  return result;
}

Value CallBuilder::setMember(Value aggregate, Value member, int64_t i) {
  return LLVM::InsertValueOp::create(*this, aggregate, member,
                                     ArrayRef<int64_t>{i});
}

Value CallBuilder::pair(Type type, Value first, Value second) {
  Value result = LLVM::PoisonOp::create(*this, type);
  return setMember(setMember(result, first, 0), second, 1);
}

Value CallBuilder::bitcast(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return LLVM::BitcastOp::create(*this, type, value);
}

/// Bits of an integer, a float or a vector of them.
static unsigned getBitWidth(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth();
  return type.getIntOrFloatBitWidth();
}

Value CallBuilder::toInteger(Value value, unsigned width) {
  unsigned bits = getBitWidth(value.getType());
  value = bitcast(value, getIntegerType(bits));
  Type type = getIntegerType(width);
  if (bits < width)
    return LLVM::ZExtOp::create(*this, type, value);
  if (bits > width)
    return LLVM::TruncOp::create(*this, type, value);
  return value;
}

Value CallBuilder::fromInteger(Value value, Type type) {
  return bitcast(toInteger(value, getBitWidth(type)), type);
}

Value CallBuilder::toBool(Value value) {
  return LLVM::ICmpOp::create(*this, LLVM::ICmpPredicate::ne, value,
                              i32Constant(0));
}

Lowered CallBuilder::replaceOp(Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  return eraseOp();
}

Lowered CallBuilder::eraseOp() {
  op->erase();
  op = nullptr;
  return Lowered::Yes;
}

Lowered CallBuilder::replaceWithCall(StringRef function, ValueRange arguments) {
  SmallVector<Value> all(arguments);
  all.push_back(site());
  call(function, all);
  return eraseOp();
}

Lowered CallBuilder::refuse(const Twine &what) {
  refusal = what.str();
  return Lowered::No;
}
