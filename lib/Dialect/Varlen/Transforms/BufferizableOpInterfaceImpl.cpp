//===- BufferizableOpInterfaceImpl.cpp - varlen.attn from tensors to memrefs =//
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

namespace {

/// varlen.attn reads its operands and writes two new buffers: `outs` of the
/// memref form may overlap no operand.
struct AttnBufferization
    : BufferizableOpInterface::ExternalModel<AttnBufferization, AttnOp> {
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
    auto attn = cast<AttnOp>(op);
    Location loc = attn.getLoc();
    bool known = true;
    auto buffer = [&](Value operand) -> Value {
      if (!operand)
        return {};
      FailureOr<Value> found = getBuffer(rewriter, operand, options, state);
      known &= succeeded(found);
      return succeeded(found) ? *found : Value();
    };
    Value q = buffer(attn.getQ()), k = buffer(attn.getK());
    Value v = buffer(attn.getV());
    Value cuQ = buffer(attn.getCuQ()), cuK = buffer(attn.getCuK());
    Value sequsedQ = buffer(attn.getSequsedQ());
    Value sequsedK = buffer(attn.getSequsedK());
    Value qOffset = buffer(attn.getQOffset()), sink = buffer(attn.getSink());
    if (!known)
      return failure();

    // The results' extents: rows, heads and elements.
    OpFoldResult rows = memref::getMixedSize(rewriter, loc, q, 0);
    OpFoldResult heads = memref::getMixedSize(rewriter, loc, q, 1);
    OpFoldResult width = memref::getMixedSize(rewriter, loc, v, 2);
    SmallVector<Value> results;
    for (auto [result, shape] : {
             std::pair(attn.getOut(), SmallVector{rows, heads, width}),
             std::pair(attn.getLse(), SmallVector{heads, rows}),
         }) {
      FailureOr<BufferLikeType> type =
          bufferization::getBufferType(result, options, state);
      if (failed(type))
        return failure();
      auto memref = cast<MemRefType>(*type);
      SmallVector<Value> extents;
      for (auto [dim, extent] : llvm::enumerate(shape))
        if (memref.isDynamicDim(dim))
          extents.push_back(
              getValueOrCreateConstantIndexOp(rewriter, loc, extent));
      FailureOr<Value> buffer =
          options.createAlloc(rewriter, loc, memref, extents);
      if (failed(buffer))
        return failure();
      results.push_back(*buffer);
    }

    auto memrefs =
        AttnOp::create(rewriter, loc, TypeRange(), q, k, v, cuQ, cuK, sequsedQ,
                       sequsedK, qOffset, sink, results[0], results[1],
                       attn.getMaskAttr(), attn.getScaleAttr());
    memrefs->setDiscardableAttrs(attn->getDiscardableAttrDictionary());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void varlen::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    AttnOp::attachInterface<AttnBufferization>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
