//===- TensorRules.cpp - Rules of the tensor dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// Parts of a tensor
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(tensor::ExtractSliceOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  bool isFirst = !b.getCotangent(op.getSource());
  b.accumulateInto(op.getSource(), [&](Value sum) -> Value {
    Value part = dy;
    if (!isFirst)
      part = b.add(tensor::ExtractSliceOp::create(
                       b, op.getType(), sum, op.getMixedOffsets(),
                       op.getMixedSizes(), op.getMixedStrides()),
                   dy);
    return tensor::InsertSliceOp::create(b, part, sum, op.getMixedOffsets(),
                                         op.getMixedSizes(),
                                         op.getMixedStrides());
  });
  return success();
}

static LogicalResult pullBack(tensor::InsertSliceOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getSource(),
               tensor::ExtractSliceOp::create(
                   b, op.getSourceType(), dy, op.getMixedOffsets(),
                   op.getMixedSizes(), op.getMixedStrides()));
  if (b.isVaried(op.getDest()))
    b.accumulate(op.getDest(),
                 tensor::InsertSliceOp::create(
                     b, b.zerosLike(op.getSource()), dy, op.getMixedOffsets(),
                     op.getMixedSizes(), op.getMixedStrides()));
  return success();
}

static LogicalResult pullBack(tensor::ExtractOp op, VJPBuilder &b) {
  b.accumulateInto(op.getTensor(), [&](Value sum) -> Value {
    Value old = tensor::ExtractOp::create(b, sum, op.getIndices());
    return tensor::InsertOp::create(b, b.add(old, b.getCotangent(op)), sum,
                                    op.getIndices());
  });
  return success();
}

static LogicalResult pullBack(tensor::InsertOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getScalar(),
               tensor::ExtractOp::create(b, dy, op.getIndices()));
  b.accumulate(op.getDest(),
               tensor::InsertOp::create(b, b.zerosLike(op.getScalar()), dy,
                                        op.getIndices()));
  return success();
}

/// The padding has a cotangent too, where it is no constant.
static LogicalResult pullBack(tensor::PadOp op, VJPBuilder &b) {
  for (Value value : getCaptured(op))
    if (b.isVaried(value))
      return op.emitError("expected padding that does not depend on what it is "
                          "differentiated by");
  SmallVector<OpFoldResult> ones(op.getSourceType().getRank(),
                                 b.getIndexAttr(1));
  b.accumulate(op.getSource(),
               tensor::ExtractSliceOp::create(
                   b, op.getSourceType(), b.getCotangent(op),
                   op.getMixedLowPad(), b.getSizes(op.getSource()), ones));
  return success();
}

/// With the tangent of the padding.
static LogicalResult pushForward(tensor::PadOp op, JVPBuilder &b) {
  auto tangent = cast<tensor::PadOp>(b.clone(*op));
  tangent.getSourceMutable().assign(b.getTangentOrZero(op.getSource()));
  Block &block = tangent.getRegion().front();
  JVPBuilder inner(op.getLoc(), OpBuilder(block.getTerminator()));
  SmallVector<Value> sources;
  for (Value value : getCaptured(op))
    if (b.getTangent(value)) {
      inner.setTangent(value, b.getTangent(value));
      sources.push_back(value);
    }
  SmallVector<Operation *> ops =
      llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  inner.markVaried(sources, ops);
  OpOperand &padding = block.getTerminator()->getOpOperand(0);
  if (failed(inner.pushForward(ops, padding.get())))
    return failure();
  padding.set(inner.getTangentOrZero(padding.get()));
  eraseDeadOps(block);
  b.setTangent(op, tangent);
  return success();
}

static LogicalResult pullBack(tensor::ConcatOp op, VJPBuilder &b) {
  int64_t rank = op.getResultType().getRank();
  SmallVector<OpFoldResult> ones(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  OpFoldResult &offset = offsets[op.getDim()];
  for (Value input : op.getInputs()) {
    SmallVector<OpFoldResult> sizes = b.getSizes(input);
    b.accumulate(input, tensor::ExtractSliceOp::create(
                            b, cast<RankedTensorType>(input.getType()),
                            b.getCotangent(op), offsets, sizes, ones));
    auto toValue = [&](OpFoldResult size) {
      return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
    };
    offset = getAsOpFoldResult(b.createOrFold<arith::AddIOp>(
        toValue(offset), toValue(sizes[op.getDim()])));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors from scalars
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(tensor::FromElementsOp op, VJPBuilder &b) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  for (auto [i, element] : llvm::enumerate(op.getElements())) {
    SmallVector<Value> indices(shape.size());
    int64_t position = i;
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      indices[d] = arith::ConstantIndexOp::create(b, position % shape[d]);
      position /= shape[d];
    }
    b.accumulate(element,
                 tensor::ExtractOp::create(b, b.getCotangent(op), indices));
  }
  return success();
}

static LogicalResult pullBack(tensor::SplatOp op, VJPBuilder &b) {
  auto scalar = RankedTensorType::get({}, op.getType().getElementType());
  Value empty = tensor::EmptyOp::create(b, scalar, ValueRange());
  Value zero = b.zerosLike(empty);
  auto all = llvm::to_vector(llvm::seq<int64_t>(op.getType().getRank()));
  auto build = [](OpBuilder &builder, Location loc, ValueRange args) {
    Value sum = arith::AddFOp::create(builder, loc, args[1], args[0]);
    linalg::YieldOp::create(builder, loc, sum);
  };
  Value sum = linalg::ReduceOp::create(b, b.getCotangent(op), zero, all, build)
                  .getResult(0);
  b.accumulate(op.getInput(), tensor::ExtractOp::create(b, sum));
  return success();
}

//===----------------------------------------------------------------------===//
// Other shapes
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(tensor::CastOp op, VJPBuilder &b) {
  b.accumulate(
      op.getSource(),
      tensor::CastOp::create(b, op.getSource().getType(), b.getCotangent(op)));
  return success();
}

static LogicalResult pullBack(tensor::ExpandShapeOp op, VJPBuilder &b) {
  b.accumulate(op.getSrc(), tensor::CollapseShapeOp::create(
                                b, op.getSrcType(), b.getCotangent(op),
                                op.getReassociationIndices()));
  return success();
}

static LogicalResult pullBack(tensor::CollapseShapeOp op, VJPBuilder &b) {
  b.accumulate(op.getSrc(),
               tensor::ExpandShapeOp::create(
                   b, op.getSrcType(), b.getCotangent(op),
                   op.getReassociationIndices(), b.getSizes(op.getSrc())));
  return success();
}

static LogicalResult pullBack(tensor::ReshapeOp op, VJPBuilder &b) {
  auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
  if (!source)
    return op.emitError("expected a ranked tensor to differentiate by");
  SmallVector<Value> sizes = getValueOrCreateConstantIndexOp(
      b, b.getLoc(), b.getSizes(op.getSource()));
  Value shape = tensor::FromElementsOp::create(
      b, RankedTensorType::get({source.getRank()}, b.getIndexType()), sizes);
  b.accumulate(op.getSource(),
               tensor::ReshapeOp::create(b, source, b.getCotangent(op), shape));
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerTensorDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    // What the rules are written in.
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect>();
    attach<PullBackModel, tensor::ExtractSliceOp, tensor::InsertSliceOp,
           tensor::ExtractOp, tensor::InsertOp, tensor::PadOp, tensor::ConcatOp,
           tensor::FromElementsOp, tensor::SplatOp, tensor::CastOp,
           tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp>(
        *context);
    attach<LinearModel, tensor::ExtractSliceOp, tensor::InsertSliceOp,
           tensor::ExtractOp, tensor::InsertOp, tensor::ConcatOp,
           tensor::FromElementsOp, tensor::SplatOp, tensor::CastOp,
           tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp>(
        *context);
    attach<PushForwardModel, tensor::PadOp>(*context);
  });
}
