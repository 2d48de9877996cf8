//===- AttnIsolator.cpp - Attentions in a module of their own -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttnIsolator.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Layouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class AttnIsolator {
public:
  AttnIsolator(ModuleOp module, bool denseTensors)
      : module(module), symbols(module), denseTensors(denseTensors) {}

  FailureOr<int64_t> lower(function_ref<LogicalResult(ModuleOp)> runPasses);

private:
  /// Makes the call of an attention, and the function.
  LogicalResult isolate(AttentionOpInterface op);
  /// The operands as memrefs; for tensors operations that make some of them.
  FailureOr<SmallVector<Value>> getInputs(AttentionOpInterface op,
                                          OpBuilder &b);
  FailureOr<SmallVector<Value>> getOutputs(AttentionOpInterface op,
                                           OpBuilder &b);
  func::FuncOp makeFunction(AttentionOpInterface op, StringRef name,
                            ArrayRef<Value> inputs, ArrayRef<Value> outputs);
  /// Moves what is in the module of the functions to the one outside.
  LogicalResult merge();

  ModuleOp module;
  SymbolTable symbols;
  /// The module of the functions.
  OwningOpRef<ModuleOp> inner;
  bool denseTensors;
};
} // namespace

static LogicalResult checkLayout(AttentionOpInterface op, NamedValue operand) {
  if (failed(verifyLayout(op, operand)))
    return failure();
  auto type = cast<MemRefType>(operand.value.getType());
  // Attention on tensors knows no memory space.
  if (type.getMemorySpace())
    return op.emitOpError("expected ")
           << operand.name << " to be in the default memory space, got "
           << type;
  return success();
}

FailureOr<SmallVector<Value>> AttnIsolator::getInputs(AttentionOpInterface op,
                                                      OpBuilder &b) {
  for (NamedValue input : op.getInputs())
    if (isa<MemRefType>(input.value.getType()) &&
        failed(checkLayout(op, input)))
      return failure();
  SmallVector<Value> inputs = op.getInputSlots();
  llvm::append_range(inputs, op.getCaptures());
  for (Value &input : inputs) {
    auto tensor = input ? dyn_cast<RankedTensorType>(input.getType()) : nullptr;
    if (!tensor)
      continue;
    if (denseTensors) {
      input = bufferization::ToBufferOp::create(
          b, op.getLoc(),
          MemRefType::get(tensor.getShape(), tensor.getElementType()), input,
          /*read_only=*/true);
      continue;
    }
    // Any buffer of the host's bufferization is this, without a copy. That its
    // last stride is 1 is then assumed.
    SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
    auto getType = [&] {
      return MemRefType::get(tensor.getShape(), tensor.getElementType(),
                             StridedLayoutAttr::get(tensor.getContext(),
                                                    ShapedType::kDynamic,
                                                    strides));
    };
    Value buffer = bufferization::ToBufferOp::create(b, op.getLoc(), getType(),
                                                     input, /*read_only=*/true);
    strides.back() = 1;
    input = memref::CastOp::create(b, op.getLoc(), getType(), buffer);
  }
  return inputs;
}

FailureOr<SmallVector<Value>> AttnIsolator::getOutputs(AttentionOpInterface op,
                                                       OpBuilder &b) {
  SmallVector<Value> outputs;
  if (op.isBufferized()) {
    for (const ShapedByInputs &output : op.getShapedDestinations()) {
      if (!output.value)
        continue;
      if (failed(checkLayout(op, output)))
        return failure();
      outputs.push_back(output.value);
    }
    return outputs;
  }
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, op, shapes)))
    return op.emitOpError("expected results whose extents are known");
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
    auto tensor = cast<RankedTensorType>(result.getType());
    SmallVector<Value> extents;
    for (auto [d, extent] : llvm::enumerate(shape))
      if (tensor.isDynamicDim(d))
        extents.push_back(
            getValueOrCreateConstantIndexOp(b, op.getLoc(), extent));
    outputs.push_back(memref::AllocOp::create(
        b, op.getLoc(),
        MemRefType::get(tensor.getShape(), tensor.getElementType()), extents));
  }
  return outputs;
}

func::FuncOp AttnIsolator::makeFunction(AttentionOpInterface op, StringRef name,
                                        ArrayRef<Value> inputs,
                                        ArrayRef<Value> outputs) {
  SmallVector<Value> arguments;
  for (Value input : inputs)
    if (input)
      arguments.push_back(input);
  llvm::append_range(arguments, outputs);
  OpBuilder b = OpBuilder::atBlockEnd(inner->getBody());
  Location loc = op.getLoc();
  auto function = func::FuncOp::create(
      b, loc, name,
      b.getFunctionType(TypeRange(ValueRange(arguments)), TypeRange()));
  function.setPrivate();
  Block *body = function.addEntryBlock();
  b.setInsertionPointToEnd(body);
  unsigned next = 0;
  SmallVector<Value> tensors;
  for (Value input : inputs) {
    Value tensor;
    if (input)
      tensor = bufferization::ToTensorOp::create(
          b, loc, memref::getTensorTypeFromMemRefType(input.getType()),
          body->getArgument(next++), /*restrict=*/true);
    tensors.push_back(tensor);
  }
  SmallVector<Type> results;
  for (Value output : outputs)
    results.push_back(memref::getTensorTypeFromMemRefType(output.getType()));
  // The captures come last.
  size_t slots = tensors.size() - op.getCaptures().size();
  AttentionOpInterface copy = varlen::detail::createAttention(
      b, op, results, ArrayRef(tensors).take_front(slots),
      ArrayRef(tensors).drop_front(slots), /*destinations=*/{});
  for (Value result : copy->getResults())
    bufferization::MaterializeInDestinationOp::create(
        b, loc, /*result=*/Type(), result, body->getArgument(next++),
        /*restrict=*/true, /*writable=*/true);
  func::ReturnOp::create(b, loc);
  return function;
}

LogicalResult AttnIsolator::isolate(AttentionOpInterface op) {
  setUnusedStrides(op);
  IRRewriter b(op.getContext());
  b.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> inputs = getInputs(op, b);
  if (failed(inputs))
    return failure();
  FailureOr<SmallVector<Value>> outputs = getOutputs(op, b);
  if (failed(outputs))
    return failure();
  auto parent = op->getParentOfType<func::FuncOp>();
  StringRef kind = getNameOnTensors(op).split('.').second;
  std::string base =
      ((parent ? parent.getName() : "varlen") + "_" + kind).str();
  unsigned counter = 0;
  std::string name = base;
  while (symbols.lookup(name) || inner->lookupSymbol(name))
    name = base + "_" + std::to_string(counter++);
  func::FuncOp function = makeFunction(op, name, *inputs, *outputs);
  SmallVector<Value> operands;
  for (Value input : *inputs)
    if (input)
      operands.push_back(input);
  llvm::append_range(operands, *outputs);
  func::CallOp::create(b, op.getLoc(), function, operands);
  SmallVector<Value> results;
  for (OpResult result : op->getResults())
    results.push_back(bufferization::ToTensorOp::create(
        b, op.getLoc(), result.getType(), (*outputs)[result.getResultNumber()],
        /*restrict=*/true, /*writable=*/true));
  b.replaceOp(op, results);
  return success();
}

FailureOr<int64_t>
AttnIsolator::lower(function_ref<LogicalResult(ModuleOp)> runPasses) {
  SmallVector<AttentionOpInterface> attentions;
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    // Symbols of others, which are not ours to call.
    if (op != module && op->hasTrait<OpTrait::SymbolTable>())
      return WalkResult::skip();
    auto attention = dyn_cast<AttentionOpInterface>(op);
    if (!attention)
      return WalkResult::advance();
    if (op->getParentOfType<gpu::LaunchOp>()) {
      attention.emitOpError(
          "is in a kernel, which cannot call what it becomes: "
          "expected attention in host code");
      return WalkResult::interrupt();
    }
    attentions.push_back(attention);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  int64_t count = attentions.size();
  if (count == 0)
    return count;
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  inner = ModuleOp::create(b, module.getLoc());
  for (AttentionOpInterface attention : attentions)
    if (failed(isolate(attention)))
      return failure();
  if (failed(runPasses(*inner)) || failed(merge()))
    return failure();
  return count;
}

/// A function of the runtime: declared by both, it is one.
static bool isDeclaration(Operation *op) {
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  return symbol && symbol.isDeclaration();
}

LogicalResult AttnIsolator::merge() {
  SymbolTable innerSymbols(*inner);
  for (Operation &op : llvm::make_early_inc_range(*inner->getBody())) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    Operation *other = symbols.lookup(name);
    if (!other)
      continue;
    if (!isDeclaration(&op)) {
      if (failed(innerSymbols.renameToUnique(&op, {&symbols})))
        return op.emitError("a symbol has a name of this module's, and cannot "
                            "have another");
      continue;
    }
    if (other->getName() != op.getName() ||
        other->getAttr("function_type") != op.getAttr("function_type")) {
      InFlightDiagnostic diagnostic =
          other->emitError("expected '")
          << name.getValue() << "' to be the runtime's function of type "
          << op.getAttr("function_type");
      return diagnostic;
    }
    op.erase();
  }
  for (Operation &op : llvm::make_early_inc_range(*inner->getBody()))
    op.moveBefore(*inner);
  return success();
}

FailureOr<int64_t>
varlen::lowerIsolated(ModuleOp module, bool denseTensors,
                      function_ref<LogicalResult(ModuleOp)> runPasses) {
  return AttnIsolator(module, denseTensors).lower(runPasses);
}
