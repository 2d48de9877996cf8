//===- Program.cpp - What can be called of a module -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Status.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Pipelines/SourceName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace varlen_capi;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

void Parameter::finish() {
  view = {};
  view.name = name.c_str();
  view.code = code;
  view.bits = bits;
  view.isScalar = isScalar;
  view.isWritten = isWritten;
  view.rank = static_cast<int32_t>(getRank());
  view.shape = shape.data();
  view.strides = isDense ? nullptr : strides.data();
}

/// The DLPack type of elements.
static LogicalResult readElement(Type type, Parameter &parameter) {
  parameter.code = VARLEN_INT;
  if (isa<Float16Type, Float32Type, Float64Type>(type))
    parameter.code = VARLEN_FLOAT;
  else if (type.isBF16())
    parameter.code = VARLEN_BFLOAT;
  else if (isa<Float8E4M3FNType>(type))
    parameter.code = VARLEN_FLOAT8_E4M3FN;
  else if (type.isInteger(1))
    parameter.code = VARLEN_BOOL;
  else if (!type.isIndex() && !type.isInteger(8) && !type.isInteger(16) &&
           !type.isInteger(32) && !type.isInteger(64))
    return failure();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  parameter.bits = std::max(bits, 8u);
  parameter.elementBytes = parameter.bits / 8;
  return success();
}

static int64_t readExtent(int64_t extent) {
  return ShapedType::isDynamic(extent) ? VARLEN_DYNAMIC : extent;
}

/// Reads one argument or result of `function`.
static LogicalResult readParameter(func::FuncOp function, Type type,
                                   Attribute name, const Twine &defaultName,
                                   bool stridedTensors, Parameter &parameter) {
  parameter.name = defaultName.str();
  if (auto text = dyn_cast_or_null<StringAttr>(name))
    parameter.name = text.str();
  auto shaped = dyn_cast<ShapedType>(type);
  auto memref = dyn_cast<MemRefType>(type);
  if (shaped && !isa<RankedTensorType, MemRefType>(type))
    return function.emitOpError("expected scalars, ranked tensors and memrefs, "
                                "got ")
           << type << " for '" << parameter.name << "'";
  if (failed(readElement(shaped ? shaped.getElementType() : type, parameter)))
    return function.emitOpError(
               "expected elements of f16, bf16, f32, f64, "
               "f8E4M3FN, index or an integer of 1, 8, 16, 32 or 64 "
               "bits, got ")
           << type << " for '" << parameter.name << "'";
  parameter.isScalar = !shaped;
  parameter.isWritten = false;
  if (!shaped)
    return success();
  for (int64_t extent : shaped.getShape())
    parameter.shape.push_back(readExtent(extent));
  if (memref && !memref.getLayout().isIdentity()) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(memref.getStridesAndOffset(strides, offset)) ||
        (offset != 0 && !ShapedType::isDynamic(offset)))
      return function.emitOpError("expected memrefs with strides and an offset "
                                  "that is 0 or dynamic, got ")
             << type << " for '" << parameter.name << "'";
    parameter.isDense = false;
    for (int64_t stride : strides)
      parameter.strides.push_back(readExtent(stride));
  } else if (!memref && stridedTensors && shaped.getRank() > 0) {
    parameter.isDense = false;
    parameter.strides.assign(shaped.getRank(), VARLEN_DYNAMIC);
    parameter.strides.back() = 1;
  }
  return success();
}

/// Whether an operation may write to memory, which it has as an operand, or
/// keep it for others to: unless it says that it reads it, or asks for extents.
static bool mayWrite(Operation *op, Value memory) {
  if (isa<ShapedDimOpInterface>(op))
    return false;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return true;
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  bool reads = false;
  for (const MemoryEffects::EffectInstance &effect : effects) {
    bool isRead = isa<MemoryEffects::Read>(effect.getEffect());
    if (effect.getValue() == memory)
      reads |= isRead;
    if (!isRead && (!effect.getValue() || effect.getValue() == memory))
      return true;
  }
  return !reads;
}

/// Whether memory, or a view of it, may be written to.
static bool mayBeWritten(Value memory) {
  return llvm::any_of(memory.getUses(), [](OpOperand &use) {
    auto view = dyn_cast<ViewLikeOpInterface>(use.getOwner());
    if (view && view.getViewSource() == use.get())
      return llvm::any_of(view->getResults(), [](Value result) {
        return isa<BaseMemRefType>(result.getType()) && mayBeWritten(result);
      });
    return mayWrite(use.getOwner(), use.get());
  });
}

static LogicalResult readFunction(func::FuncOp op, bool stridedTensors,
                                  Function &function) {
  function.name = op.getName().str();
  FunctionType type = op.getFunctionType();
  function.arguments.resize(type.getNumInputs());
  function.results.resize(type.getNumResults());
  for (auto [i, argument] : llvm::enumerate(function.arguments)) {
    if (failed(readParameter(op, type.getInput(i),
                             op.getArgAttr(i, varlen::kNameAttrName),
                             "arg" + Twine(i), stridedTensors, argument)))
      return failure();
    op.removeArgAttr(i, varlen::kNameAttrName);
    argument.isWritten =
        isa<MemRefType>(type.getInput(i)) && mayBeWritten(op.getArgument(i));
    argument.finish();
  }
  for (auto [i, result] : llvm::enumerate(function.results)) {
    if (failed(readParameter(op, type.getResult(i),
                             op.getResultAttr(i, varlen::kNameAttrName),
                             "result" + Twine(i), stridedTensors, result)))
      return failure();
    op.removeResultAttr(
        i, StringAttr::get(op.getContext(), varlen::kNameAttrName));
    // In memory of the caller.
    result.isScalar = false;
    result.isWritten = true;
    result.isResult = true;
    result.finish();
    function.numExtents += result.getRank();
  }
  return success();
}

LogicalResult
varlen_capi::readFunctions(ModuleOp module, bool stridedTensors,
                           std::vector<std::unique_ptr<Function>> &functions) {
  for (auto op : module.getOps<func::FuncOp>()) {
    if (!op.isPublic() || op.isExternal())
      continue;
    functions.push_back(std::make_unique<Function>());
    if (failed(readFunction(op, stridedTensors, *functions.back())))
      return failure();
  }
  if (functions.empty())
    return module.emitOpError("expected a public function with a body");
  return success();
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

void varlen_capi::findWorkspaces(
    ModuleOp module, std::vector<std::unique_ptr<Function>> &functions) {
  llvm::StringMap<func::FuncOp> found;
  for (auto op : module.getOps<func::FuncOp>())
    found[varlen::getSourceName(op)] = op;
  for (std::unique_ptr<Function> &function : functions) {
    func::FuncOp op = found.lookup(function->name);
    auto dependsOn = dyn_cast_or_null<StringAttr>(
        op->removeAttr(varlen::kMemoryDependsOnAttrName));
    if (dependsOn) {
      function->workspaceDependsOn = dependsOn.str();
      continue;
    }
    // What work allocates for itself is not measured.
    op.walk([&](func::ConstantOp work) {
      auto callee = module.lookupSymbol<func::FuncOp>(work.getValue());
      callee.walk([&](memref::AllocOp alloc) {
        function->workspaceDependsOn = alloc->getName().getStringRef().str();
      });
    });
  }
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

VarlenStatus varlen_capi::load(Program &program) {
  auto failWith = [](llvm::Error error) {
    return fail(VARLEN_COMPILE_ERROR, "%s",
                llvm::toString(std::move(error)).c_str());
  };
  auto code =
      varlen::LoadedObjects::create(program.objects, Invocation::forEachSymbol);
  if (!code)
    return failWith(code.takeError());
  program.code = std::move(*code);
  auto find = [&](const std::string &name,
                  Invocation::Entry &entry) -> llvm::Error {
    auto found = program.code->lookup(name);
    if (!found)
      return found.takeError();
    entry = *found;
    return llvm::Error::success();
  };
  for (std::unique_ptr<Function> &function : program.functions) {
    if (llvm::Error error = find(function->getEntryName(), function->entry))
      return failWith(std::move(error));
    if (function->numExtents > 0)
      if (llvm::Error error = find(function->getShapesName(), function->shapes))
        return failWith(std::move(error));
  }
  return VARLEN_OK;
}
