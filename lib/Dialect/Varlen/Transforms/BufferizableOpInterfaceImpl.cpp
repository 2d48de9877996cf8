//===- BufferizableOpInterfaceImpl.cpp - attention from tensors to memrefs ==//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/BufferizableOpInterfaceImpl.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::varlen;

using Buffers = llvm::function_ref<Value(Value)>;

/// The op on buffers; `buffer` is that of an operand, null for null.
static Operation *createOnBuffers(RewriterBase &rewriter, AttnOp op,
                                  Buffers buffer, ArrayRef<Value> outs) {
  return AttnOp::create(rewriter, op.getLoc(), TypeRange(), buffer(op.getQ()),
                        buffer(op.getK()), buffer(op.getV()),
                        buffer(op.getCuQ()), buffer(op.getCuK()),
                        buffer(op.getSequsedQ()), buffer(op.getSequsedK()),
                        buffer(op.getQOffset()), buffer(op.getSink()), outs[0],
                        outs[1], op.getMaskAttr(), op.getScaleAttr());
}
static Operation *createOnBuffers(RewriterBase &rewriter, AttnGradOp op,
                                  Buffers buffer, ArrayRef<Value> outs) {
  return AttnGradOp::create(
      rewriter, op.getLoc(), TypeRange(), buffer(op.getDout()),
      buffer(op.getQ()), buffer(op.getK()), buffer(op.getV()),
      buffer(op.getOut()), buffer(op.getLse()), buffer(op.getCuQ()),
      buffer(op.getCuK()), buffer(op.getDlse()), buffer(op.getSequsedQ()),
      buffer(op.getSequsedK()), buffer(op.getQOffset()), buffer(op.getSink()),
      outs, op.getMaskAttr(), op.getScaleAttr());
}

namespace {

/// An attention reads its operands and writes new buffers: `outs` of the memref
/// form may overlap no operand.
template <typename OpTy>
struct AttentionBufferization
    : BufferizableOpInterface::ExternalModel<AttentionBufferization<OpTy>,
                                             OpTy> {
  bool bufferizesToAllocation(Operation *, Value) const { return true; }

  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }

  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }

  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }

  FailureOr<BufferLikeType> getBufferType(Operation *op, Value value,
                                          const BufferizationOptions &options,
                                          const BufferizationState &,
                                          SmallVector<Value> &) const {
    auto type = cast<RankedTensorType>(value.getType());
    std::optional<Attribute> space = options.defaultMemorySpaceFn(type);
    if (!space)
      return op->emitOpError("expected a memory space for its results, got "
                             "none from the bufferization options");
    return cast<BufferLikeType>(
        Type(getMemRefTypeWithStaticIdentityLayout(type, *space)));
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto attn = cast<OpTy>(op);
    Location loc = attn.getLoc();
    llvm::SmallDenseMap<Value, Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers[operand] = *buffer;
    }
    auto buffer = [&](Value operand) { return buffers.lookup(operand); };

    SmallVector<Value> results;
    for (const ShapedByInputs &result : attn.getShapedResults()) {
      FailureOr<BufferLikeType> type =
          bufferization::getBufferType(result.value, options, state);
      if (failed(type))
        return failure();
      auto memref = cast<MemRefType>(*type);
      SmallVector<Value> extents;
      for (const auto &[dim, from] : llvm::enumerate(result.extents))
        if (memref.isDynamicDim(dim))
          extents.push_back(getValueOrCreateConstantIndexOp(
              rewriter, loc,
              memref::getMixedSize(rewriter, loc, buffer(from.source.value),
                                   from.dim)));
      FailureOr<Value> allocated =
          options.createAlloc(rewriter, loc, memref, extents);
      if (failed(allocated))
        return failure();
      results.push_back(*allocated);
    }

    Operation *memrefs = createOnBuffers(rewriter, attn, buffer, results);
    memrefs->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void varlen::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    AttnOp::attachInterface<AttentionBufferization<AttnOp>>(*context);
    AttnGradOp::attachInterface<AttentionBufferization<AttnGradOp>>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
