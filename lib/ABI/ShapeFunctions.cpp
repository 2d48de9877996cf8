//===- ShapeFunctions.cpp - Functions of the extents of results -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy of the function stores the extents of what it would return; upstream
// makes those of operations' results into computations on extents of operands,
// until the arguments are reached and nothing else is used any more.
//
//===----------------------------------------------------------------------===//

#include "ShapeFunctions.h"

#include "varlen/Interfaces/DerivativeBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::varlen;

/// How many extents all tensor results have together.
static int64_t countExtents(func::FuncOp function) {
  int64_t count = 0;
  for (Type type : function.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      count += tensor.getRank();
  return count;
}

/// Stores the extents of the operands of a return, which gets none.
static void storeExtents(func::ReturnOp op, Value extents) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t index = 0;
  for (Value value : op.getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t i = 0, rank = type ? type.getRank() : 0; i < rank; ++i) {
      Value extent =
          type.isDynamicDim(i)
              ? arith::IndexCastOp::create(b, b.getI64Type(),
                                           tensor::DimOp::create(b, value, i))
                    .getResult()
              : arith::ConstantIntOp::create(b, type.getDimSize(i), 64);
      memref::StoreOp::create(
          b, extent, extents,
          ValueRange{arith::ConstantIndexOp::create(b, index++)});
    }
  }
  op->setOperands({});
}

/// The first operation that extents should not need: one that takes a tensor
/// for more than the extents of an argument, or that reads memory. Null if
/// there is none.
static Operation *findOther(func::FuncOp function) {
  Operation *found = nullptr;
  function.walk([&](Operation *op) {
    if (op == function || isa<func::ReturnOp>(op))
      return WalkResult::advance();
    if (auto store = dyn_cast<memref::StoreOp>(op);
        store && store.getMemRef() == function.getArguments().back())
      return WalkResult::advance();
    if (auto dim = dyn_cast<tensor::DimOp>(op);
        dim && isa<BlockArgument>(dim.getSource()))
      return WalkResult::advance();
    bool takesTensor = llvm::any_of(
        op->getOperandTypes(), [](Type type) { return isa<TensorType>(type); });
    bool hasEffects = !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
                      !isMemoryEffectFree(op);
    if (!takesTensor && !hasEffects)
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// The extents of what a loop carries are those that it begins with. Upstream's
/// -scf-for-loop-canonicalization knows that of tensor.insert_slice alone.
static LogicalResult takeDimOfSameShape(tensor::DimOp op,
                                        PatternRewriter &rewriter) {
  Value earlier = getEarlierOfSameShape(op.getSource());
  if (!earlier)
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getSourceMutable().assign(earlier); });
  return success();
}

bool varlen::hasExtents(func::FuncOp function) {
  return countExtents(function) > 0;
}

/// Elementwise operations as operations that know how their extents follow.
static OpPassManager makePasses() {
  OpPassManager passes(func::FuncOp::getOperationName());
  passes.addPass(createConvertElementwiseToLinalgPass());
  return passes;
}

static OpPassManager makeCleanups() {
  OpPassManager passes(func::FuncOp::getOperationName());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  return passes;
}

void varlen::addShapeFunctionDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect,
                  memref::MemRefDialect, tensor::TensorDialect>();
  makePasses().getDependentDialects(registry);
}

LogicalResult varlen::addShapeFunction(
    func::FuncOp function, SymbolTable &symbols,
    function_ref<LogicalResult(OpPassManager &, Operation *)> run) {
  std::string name = (function.getName() + "_shapes").str();
  if (Operation *other = symbols.lookup(name)) {
    InFlightDiagnostic diagnostic =
        function.emitOpError("expected no symbol '")
        << name << "', which the function of its extents is called";
    diagnostic.attachNote(other->getLoc()) << "it is here";
    return diagnostic;
  }
  func::FuncOp shapes = function.clone();
  shapes.setName(name);
  symbols.insert(shapes, std::next(Block::iterator(function)));
  Builder b(function.getContext());
  auto type = MemRefType::get({countExtents(function)}, b.getI64Type());
  if (failed(shapes.insertArgument(shapes.getNumArguments(), type,
                                   /*argAttrs=*/{}, shapes.getLoc())))
    return failure();
  shapes.walk([&](func::ReturnOp op) {
    storeExtents(op, shapes.getArguments().back());
  });
  // What is asserted is checked by the function itself.
  shapes.walk([](cf::AssertOp op) { op.erase(); });
  shapes.removeResAttrsAttr();
  shapes.setType(
      FunctionType::get(b.getContext(), shapes.getArgumentTypes(), {}));
  OpPassManager passes = makePasses(), cleanups = makeCleanups();
  RewritePatternSet patterns(b.getContext());
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  patterns.add(takeDimOfSameShape);
  if (failed(run(passes, shapes)) ||
      failed(applyPatternsGreedily(shapes, std::move(patterns))) ||
      failed(run(cleanups, shapes)))
    return failure();
  if (Operation *other = findOther(shapes)) {
    InFlightDiagnostic diagnostic =
        function.emitOpError("expected results whose extents follow from "
                             "those of the arguments");
    diagnostic.attachNote(other->getLoc())
        << "they need more of '" << other->getName() << "' than extents";
    return diagnostic;
  }
  return success();
}
