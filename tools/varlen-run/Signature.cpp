//===- Signature.cpp - What the entry function takes and gives ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace varlen_run;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

static constexpr StringRef nameAttr = "varlen.name";

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static Expected<func::FuncOp> findEntry(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> candidates;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && function.isPublic())
      candidates.push_back(function);
  std::string names = llvm::join(
      llvm::map_range(candidates, [](func::FuncOp f) { return f.getName(); }),
      ", ");
  if (candidates.empty())
    return makeError("the module has no public function with a body");
  if (name.empty()) {
    if (candidates.size() == 1)
      return candidates.front();
    return makeError("the module has several public functions: choose one with "
                     "--entry (" +
                     names + ")");
  }
  auto *it = llvm::find_if(candidates,
                           [&](func::FuncOp f) { return f.getName() == name; });
  if (it == candidates.end())
    return makeError("no public function '" + name.str() +
                     "' in the module: expected one of " + names);
  return *it;
}

/// Reads one argument or result. `kind` and `index` are for messages and for
/// the name it has without an attribute.
static Expected<Slot> readSlot(Type type, Attribute name, StringRef prefix,
                               unsigned index) {
  Slot slot;
  slot.name = (prefix + Twine(index)).str();
  // The dialect's verifier has seen that it is a string and not empty.
  if (name)
    slot.name = cast<StringAttr>(name).str();
  auto fail = [&](StringRef why) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "'" << slot.name << "' has type " << type << ": " << why;
    return makeError(text);
  };
  auto shaped = dyn_cast<ShapedType>(type);
  slot.isScalar = !shaped;
  slot.isMemRef = isa<MemRefType>(type);
  Type element = type;
  if (shaped) {
    if (!isa<RankedTensorType, MemRefType>(type))
      return fail("expected a scalar, a ranked tensor or a memref");
    if (auto memref = dyn_cast<MemRefType>(type);
        memref && !memref.getLayout().isIdentity())
      return fail("expected a memref with the identity layout");
    slot.shape = llvm::to_vector(shaped.getShape());
    element = shaped.getElementType();
  }
  std::optional<DType> dtype = getDType(element);
  if (!dtype)
    return fail(
        "expected elements of f16, bf16, f32, f64, f8E4M3FN, index or an "
        "integer of 1, 8, 16, 32 or 64 bits");
  slot.dtype = *dtype;
  return slot;
}

static Error checkNames(ArrayRef<Slot> slots, StringRef kind) {
  llvm::StringSet<> names;
  for (const Slot &slot : slots)
    if (!names.insert(slot.name).second)
      return makeError("two " + kind.str() + " have the name '" + slot.name +
                       "'");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// prepareEntry
//===----------------------------------------------------------------------===//

/// Removes what `entry` does not need: other functions are no part of the run,
/// neither to be compiled nor to be counted.
static LogicalResult removeOthers(ModuleOp module, func::FuncOp entry) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function != entry)
      function.setPrivate();
  PassManager manager(module->getName());
  manager.addPass(createSymbolDCEPass());
  return manager.run(module);
}

Expected<Signature> varlen_run::prepareEntry(ModuleOp module,
                                             StringRef entryName) {
  Expected<func::FuncOp> found = findEntry(module, entryName);
  if (!found)
    return found.takeError();
  func::FuncOp entry = *found;
  if (failed(removeOthers(module, entry)))
    return makeError("the functions that '" + entry.getName().str() +
                     "' does not need cannot be removed");
  Signature signature;
  signature.entry = entry.getName().str();
  FunctionType type = entry.getFunctionType();
  for (auto [i, argument] : llvm::enumerate(type.getInputs())) {
    Expected<Slot> slot =
        readSlot(argument, entry.getArgAttr(i, nameAttr), "arg", i);
    if (!slot)
      return slot.takeError();
    signature.arguments.push_back(std::move(*slot));
  }
  for (auto [i, result] : llvm::enumerate(type.getResults())) {
    Expected<Slot> slot =
        readSlot(result, entry.getResultAttr(i, nameAttr), "result", i);
    if (!slot)
      return slot.takeError();
    signature.results.push_back(std::move(*slot));
  }
  SmallVector<Slot> outputs = signature.results;
  llvm::append_range(outputs, llvm::make_filter_range(signature.arguments,
                                                      [](const Slot &slot) {
                                                        return slot.isMemRef;
                                                      }));
  if (Error error = checkNames(signature.arguments, "arguments"))
    return error;
  if (Error error = checkNames(outputs, "results"))
    return error;

  module.walk([&](Operation *op) {
    auto attention = dyn_cast<varlen::AttentionOpInterface>(op);
    if (!attention) {
      signature.isCheckedByInputs &= !isa<RuntimeVerifiableOpInterface>(op);
      return;
    }
    signature.attentions.push_back(readAttention(entry, attention));
    signature.isCheckedByInputs &= signature.attentions.back().isKnown;
    if (!signature.floatType)
      signature.floatType = getDType(attention.getElementType());
  });
  for (const Slot &slot : signature.arguments)
    if (!signature.floatType && slot.dtype >= DType::F16)
      signature.floatType = slot.dtype;

  entry->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                 UnitAttr::get(module.getContext()));
  for (auto [i, argument] : llvm::enumerate(type.getInputs())) {
    entry.removeArgAttr(i, nameAttr);
    if (isa<TensorType>(argument))
      entry.setArgAttr(i,
                       bufferization::BufferizationDialect::kWritableAttrName,
                       BoolAttr::get(module.getContext(), false));
  }
  for (unsigned i = 0; i < type.getNumResults(); ++i)
    entry.removeResultAttr(i, nameAttr);
  return signature;
}
