//===- VarlenSeparateResults.cpp - No result in memory of another one -----===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ABI/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENSEPARATERESULTS
#include "varlen/ABI/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

/// What may be in the memory of a tensor: all that operations may compute where
/// it is.
static llvm::SetVector<Value>
getTensorsIn(Value memory, const bufferization::AnalysisState &state) {
  llvm::SetVector<Value> tensors;
  for (Operation *user : memory.getUsers())
    if (auto tensor = dyn_cast<bufferization::ToTensorOp>(user))
      tensors.insert(tensor.getResult());
  for (size_t i = 0; i < tensors.size(); ++i)
    for (OpOperand &use : tensors[i].getUses())
      for (const bufferization::AliasingValue &other :
           state.getAliasingValues(use))
        tensors.insert(other.value);
  return tensors;
}

namespace {

struct VarlenSeparateResults
    : varlen::impl::VarlenSeparateResultsBase<VarlenSeparateResults> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      separate(block);
  }

private:
  void separate(Block &block);
};

} // namespace

void VarlenSeparateResults::separate(Block &block) {
  SmallVector<bufferization::MaterializeInDestinationOp> writes;
  for (auto op : block.getOps<bufferization::MaterializeInDestinationOp>())
    if (isa<BaseMemRefType>(op.getDest().getType()))
      writes.push_back(op);
  if (writes.size() < 2)
    return;
  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state(options);
  SmallVector<llvm::SetVector<Value>> tensorsIn;
  for (auto [number, op] : llvm::enumerate(writes)) {
    Value source = op.getSource();
    Operation *definition = source.getDefiningOp();
    for (auto [write, overwritten] :
         llvm::zip_equal(ArrayRef(writes).take_front(number), tensorsIn)) {
      // What is computed behind a write is not overwritten by it.
      if (!overwritten.contains(source) ||
          (definition && definition->getBlock() == &block &&
           write->isBeforeInBlock(definition)))
        continue;
      OpBuilder b(write);
      auto copy = bufferization::AllocTensorOp::create(
          b, op.getLoc(), cast<RankedTensorType>(source.getType()),
          /*dynamicSizes=*/ValueRange(), source);
      op.getSourceMutable().assign(copy.getResult());
      ++numCopied;
      break;
    }
    tensorsIn.push_back(getTensorsIn(op.getDest(), state));
  }
}
