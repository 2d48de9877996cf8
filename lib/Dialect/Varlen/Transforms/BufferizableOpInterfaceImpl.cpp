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
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::varlen;

namespace {

/// An attention reads its inputs and writes its destinations, or new buffers
/// where it has none: `outs` of the memref form may overlap no other operand.
template <typename OpTy>
struct AttentionBufferization
    : BufferizableOpInterface::ExternalModel<AttentionBufferization<OpTy>,
                                             OpTy> {
  bool bufferizesToAllocation(Operation *op, Value) const {
    return !isa<DestinationStyleOpInterface>(op);
  }

  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !isDestination(op, operand);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return isDestination(op, operand);
  }

  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (!isDestination(op, operand))
      return {};
    auto into = cast<DestinationStyleOpInterface>(op);
    return {{into.getTiedOpResult(&operand), BufferRelation::Equivalent}};
  }

  FailureOr<BufferLikeType>
  getBufferType(Operation *op, Value value, const BufferizationOptions &options,
                const BufferizationState &state,
                SmallVector<Value> &invocationStack) const {
    if (auto into = dyn_cast<DestinationStyleOpInterface>(op)) {
      Value destination = into.getTiedOpOperand(cast<OpResult>(value))->get();
      return bufferization::getBufferType(destination, options, state,
                                          invocationStack);
    }
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
    auto attn = cast<AttentionOpInterface>(op);
    llvm::SmallDenseMap<Value, Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers[operand] = *buffer;
    }

    SmallVector<Value> results;
    for (Value destination : attn.getDestinations())
      results.push_back(buffers.lookup(destination));
    if (results.empty() &&
        failed(allocate(attn, rewriter, options, state, buffers, results)))
      return failure();

    SmallVector<Value> inputs =
        llvm::map_to_vector(attn.getInputSlots(), [&](Value input) {
          return input ? buffers.lookup(input) : Value();
        });
    SmallVector<Value> captures =
        llvm::map_to_vector(attn.getCaptures(), [&](Value capture) {
          return buffers.lookup(capture);
        });
    varlen::detail::createAttention(rewriter, attn, TypeRange(), inputs,
                                    captures, results);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }

private:
  static bool isDestination(Operation *op, OpOperand &operand) {
    auto into = dyn_cast<DestinationStyleOpInterface>(op);
    return into && into.isDpsInit(&operand);
  }

  /// Appends a new buffer for each result.
  static LogicalResult
  allocate(AttentionOpInterface attn, RewriterBase &rewriter,
           const BufferizationOptions &options, BufferizationState &state,
           const llvm::SmallDenseMap<Value, Value> &buffers,
           SmallVector<Value> &results) {
    Location loc = attn.getLoc();
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
              memref::getMixedSize(
                  rewriter, loc, buffers.lookup(from.source.value), from.dim)));
      FailureOr<Value> allocated =
          options.createAlloc(rewriter, loc, memref, extents);
      if (failed(allocated))
        return failure();
      results.push_back(*allocated);
    }
    return success();
  }
};

/// An append reads its caches, whose other rows stay.
struct AppendBufferization
    : DstBufferizableOpInterfaceExternalModel<AppendBufferization, AppendOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    Operation *onBuffers =
        clone(rewriter, op, /*newResultTypes=*/TypeRange(), buffers);
    replaceOpWithBufferizedValues(rewriter, op,
                                  cast<AppendOp>(onBuffers).getDpsInits());
    return success();
  }
};

} // namespace

template <typename... OpTys>
static void attachBufferization(MLIRContext &context) {
  (OpTys::template attachInterface<AttentionBufferization<OpTys>>(context),
   ...);
}

void varlen::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    attachBufferization<AttnOp, AttnIntoOp, AttnGradOp, AttnGradIntoOp,
                        AttnJVPOp, AttnJVPIntoOp, AttnJVPGradOp,
                        AttnJVPGradIntoOp>(*context);
    AppendOp::attachInterface<AppendBufferization>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
