//===- VarlenAddResultArguments.cpp - Results into memory of the caller ---===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShapeFunctions.h"
#include "varlen/ABI/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENADDRESULTARGUMENTS
#include "varlen/ABI/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

struct VarlenAddResultArguments
    : varlen::impl::VarlenAddResultArgumentsBase<VarlenAddResultArguments> {
  using VarlenAddResultArgumentsBase::VarlenAddResultArgumentsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    if (failed(addShapeFunctions(symbols)))
      return signalPassFailure();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!function.isPublic() || function.isExternal())
        continue;
      if (failed(check(function)))
        return signalPassFailure();
      keepForCallsWithin(function, symbols);
      if (strided)
        makeArgumentsStrided(function);
      makeResultsArguments(function);
    }
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    VarlenAddResultArgumentsBase::getDependentDialects(registry);
    addShapeFunctionDialects(registry);
  }

private:
  /// Where they are asked for, while functions have results.
  LogicalResult addShapeFunctions(SymbolTable &symbols);
  static LogicalResult check(func::FuncOp function);
  /// Calls within the module get a copy, which still has results.
  void keepForCallsWithin(func::FuncOp function, SymbolTable &symbols);
  /// The memref that a caller passes for a tensor.
  MemRefType getMemRefType(RankedTensorType type);
  void makeArgumentsStrided(func::FuncOp function);
  void makeResultsArguments(func::FuncOp function);
};

} // namespace

LogicalResult
VarlenAddResultArguments::addShapeFunctions(SymbolTable &symbols) {
  if (!shapes)
    return success();
  auto run = [&](OpPassManager &passes, Operation *op) {
    return runPipeline(passes, op);
  };
  for (auto function :
       llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
    if (!function.isPublic() || function.isExternal() || !hasExtents(function))
      continue;
    if (failed(addShapeFunction(function, symbols, run)))
      return failure();
    ++numShapeFunctions;
  }
  return success();
}

LogicalResult VarlenAddResultArguments::check(func::FuncOp function) {
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!isa<RankedTensorType>(type) && !type.isIntOrIndexOrFloat())
      return function.emitOpError("expected results that are ranked tensors or "
                                  "scalars, got ")
             << type << " for result #" << i;
  return success();
}

void VarlenAddResultArguments::keepForCallsWithin(func::FuncOp function,
                                                  SymbolTable &symbols) {
  if (SymbolTable::symbolKnownUseEmpty(function, getOperation()))
    return;
  func::FuncOp copy = function.clone();
  copy.setPrivate();
  StringAttr name = symbols.insert(copy);
  // Failure is for regions of unknown meaning, which this module has none of:
  // their uses have just been found.
  (void)SymbolTable::replaceAllSymbolUses(function, name, getOperation());
}

MemRefType VarlenAddResultArguments::getMemRefType(RankedTensorType type) {
  MemRefLayoutAttrInterface layout;
  if (strided && type.getRank() > 0) {
    SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
    strides.back() = 1;
    layout = StridedLayoutAttr::get(&getContext(), /*offset=*/0, strides);
  }
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

void VarlenAddResultArguments::makeArgumentsStrided(func::FuncOp function) {
  OpBuilder b(&function.getBody().front(), function.getBody().front().begin());
  SmallVector<Type> types(function.getArgumentTypes());
  for (auto [argument, type] : llvm::zip(function.getArguments(), types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0)
      continue;
    type = getMemRefType(tensor);
    argument.setType(type);
    auto value = bufferization::ToTensorOp::create(b, argument.getLoc(), tensor,
                                                   argument, /*restrict=*/true);
    argument.replaceAllUsesExcept(value, value);
  }
  function.setType(function.getFunctionType().clone(
      types, function.getFunctionType().getResults()));
}

void VarlenAddResultArguments::makeResultsArguments(func::FuncOp function) {
  unsigned first = function.getNumArguments();
  SmallVector<Type> results(function.getResultTypes());
  for (auto [i, type] : llvm::enumerate(results)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    MemRefType memref = tensor ? getMemRefType(tensor)
                               : MemRefType::get(ArrayRef<int64_t>(), type);
    // What a result is called, its memref is.
    if (failed(function.insertArgument(first + i, memref,
                                       function.getResultAttrDict(i),
                                       function.getLoc())))
      return signalPassFailure();
    ++numAdded;
  }
  function.walk([&](func::ReturnOp op) {
    OpBuilder b(op);
    for (auto [i, value] : llvm::enumerate(op.getOperands())) {
      BlockArgument memref = function.getArgument(first + i);
      if (isa<RankedTensorType>(value.getType()))
        bufferization::MaterializeInDestinationOp::create(
            b, op.getLoc(), /*result=*/Type(), value, memref,
            /*restrict=*/true, /*writable=*/true);
      else
        memref::StoreOp::create(b, op.getLoc(), value, memref);
    }
    op->setOperands({});
  });
  function.removeResAttrsAttr();
  function.setType(FunctionType::get(
      &getContext(), function.getFunctionType().getInputs(), {}));
}
