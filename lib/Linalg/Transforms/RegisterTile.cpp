//===- RegisterTile.cpp - Operations on a tile in registers ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterTile.h"

#include "ContractionPairs.h"
#include "LoopVectorizer.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

static Value getRoot(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return memory;
}

namespace {
/// Where memory comes from, whichever is chosen.
struct Origins {
  SmallPtrSet<Operation *, 4> allocs;
  bool isFromCaller = false;

  /// Whether all of them are known.
  bool collect(Value memory) {
    memory = getRoot(memory);
    if (auto argument = dyn_cast<BlockArgument>(memory)) {
      isFromCaller = true;
      return isa<func::FuncOp>(argument.getOwner()->getParentOp());
    }
    Operation *op = memory.getDefiningOp();
    if (auto choice = dyn_cast<arith::SelectOp>(op))
      return collect(choice.getTrueValue()) && collect(choice.getFalseValue());
    allocs.insert(op);
    return isa<memref::AllocOp>(op);
  }
  bool isDisjoint(const Origins &other) const {
    return !(isFromCaller && other.isFromCaller) &&
           llvm::none_of(allocs, [&](Operation *op) {
             return other.allocs.contains(op);
           });
  }
};
} // namespace

/// The vectors of the tile that `part` is: all of them, or a slice.
std::optional<RegisterTile::Columns> RegisterTile::getColumns(Value part) {
  if (part == memory)
    return Columns{0, numVectors};
  auto view = part.getDefiningOp<memref::SubViewOp>();
  if (!view || view.getSource() != memory || view.getType().getRank() != 2 ||
      !view.hasUnitStride() ||
      ShapedType::isDynamicShape(view.getStaticOffsets()) ||
      !view.getType().hasStaticShape())
    return std::nullopt;
  int64_t first = view.getStaticOffsets()[1],
          count = view.getType().getDimSize(1);
  if (view.getStaticOffsets()[0] != 0 ||
      view.getType().getDimSize(0) != type.getDimSize(0) ||
      first % lanes != 0 || count % lanes != 0)
    return std::nullopt;
  return Columns{first / lanes, count / lanes};
}

RegisterTile::Emitter RegisterTile::planContraction(linalg::LinalgOp op) {
  FailureOr<ContractionForm> form = getContractionForm(op);
  if (failed(form))
    return {};
  std::unique_ptr<ContractionVectorizer> vectorizer =
      createContractionVectorizer(*builder, op, *form, *target);
  std::optional<Columns> columns = getColumns(op.getDpsInits()[0]);
  if (!vectorizer || !vectorizer->isOneTile() || !columns ||
      llvm::any_of(op.getDpsInputs(), [&](Value input) {
        return getRoot(input) == getRoot(memory);
      }))
    return {};
  return [columns = *columns, numVectors = numVectors,
          vectorizer =
              std::move(vectorizer)](MutableArrayRef<Value> registers) {
    SmallVector<MutableArrayRef<Value>> parts;
    Values sums;
    for (; !registers.empty(); registers = registers.drop_front(numVectors)) {
      parts.push_back(registers.slice(columns.first, columns.count));
      llvm::append_range(sums, parts.back());
    }
    vectorizer->emitOn(sums);
    for (auto [i, part] : llvm::enumerate(parts))
      llvm::copy(ArrayRef(sums).slice(i * columns.count, columns.count),
                 part.begin());
  };
}

RegisterTile::Emitter RegisterTile::planElementwise(linalg::LinalgOp op) {
  bool isUsed = false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (operand.get() != memory) {
      if (!isApart(operand.get()))
        return {};
      continue;
    }
    if (!op.getMatchingIndexingMap(&operand).isIdentity())
      return {};
    isUsed = true;
  }
  std::string reason;
  auto vectorizer = std::make_unique<LoopVectorizer>(*builder, op, *target);
  if (!isUsed || failed(vectorizer->plan(reason)) ||
      !vectorizer->isOnTile(type.getShape()))
    return {};
  return [memory = memory, lanes = lanes, vectorizer = std::move(vectorizer)](
             MutableArrayRef<Value> registers) {
    vectorizer->emitOn(memory, lanes, registers);
  };
}

bool RegisterTile::add(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics())
    return false;
  if (isa<linalg::FillOp>(op)) {
    if (!ops.empty() || op.getDpsInits()[0] != memory)
      return false;
    ops.push_back(op);
    return true;
  }
  bool isContraction = !isa<linalg::GenericOp>(op);
  Emitter emitter = isContraction ? planContraction(op) : planElementwise(op);
  if (!emitter)
    return false;
  hasContraction |= isContraction;
  emitters.push_back(std::move(emitter));
  ops.push_back(op);
  return true;
}

/// Whether a value is no memory of the tile under another name.
bool RegisterTile::isApart(Value value) {
  if (!isa<BaseMemRefType>(value.getType()))
    return true;
  Origins origins, own;
  return origins.collect(value) && own.collect(memory) &&
         own.isDisjoint(origins);
}

/// Whether what happens between the operations has nothing to do with the tile.
bool RegisterTile::canRunBetween(Operation *op) {
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return isApart(fill.getOutputs()[0]);
  return isMemoryEffectFree(op) || isa<memref::AllocOp>(op);
}

bool RegisterTile::find(linalg::LinalgOp first) {
  if (first.getNumDpsInits() != 1)
    return false;
  memory = first.getDpsInits()[0];
  type = dyn_cast<MemRefType>(memory.getType());
  if (!type || type.getRank() != 2 || !type.hasStaticShape() ||
      !type.isLastDimUnitStride() || !isa<FloatType>(type.getElementType()) ||
      type.getElementTypeBitWidth() < 32)
    return false;
  lanes = target->getLanes(type.getElementTypeBitWidth() / 8);
  numVectors = type.getDimSize(1) / lanes;
  if (type.getDimSize(1) % lanes != 0 ||
      type.getDimSize(0) * numVectors > target->vectorRegisters)
    return false;
  for (Operation *op = first; op && !op->hasTrait<OpTrait::IsTerminator>();
       op = op->getNextNode()) {
    auto next = dyn_cast<linalg::LinalgOp>(op);
    if (!(next && add(next)) && !canRunBetween(op))
      break;
  }
  return hasContraction && emitters.size() > 1;
}

/// Whether the tile has no other reader.
bool RegisterTile::isDead() {
  if (!memory.getDefiningOp<memref::AllocOp>())
    return false;
  SmallVector<Value> names = {memory};
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (isa<ViewLikeOpInterface>(user))
        names.push_back(user->getResult(0));
      else if (!llvm::is_contained(ops, user))
        return false;
    }
  return true;
}

void RegisterTile::emit() {
  ImplicitLocOpBuilder b(ops.front().getLoc(), *builder);
  IndexBuilder index{b};
  auto vector = VectorType::get({lanes}, type.getElementType());
  Values registers(type.getDimSize(0) * numVectors);
  auto forEach = [&](function_ref<void(Value &, ValueRange)> visit) {
    for (int64_t i = 0; i < type.getDimSize(0); ++i)
      for (int64_t j = 0; j < numVectors; ++j)
        visit(registers[i * numVectors + j],
              {index.constant(i), index.constant(j * lanes)});
  };
  b.setInsertionPoint(ops.front());
  if (auto fill = dyn_cast<linalg::FillOp>(ops.front().getOperation())) {
    Value value =
        vector::BroadcastOp::create(b, vector, fill.getInputs().front());
    llvm::fill(registers, value);
  } else {
    forEach([&](Value &value, ValueRange at) {
      value = vector::LoadOp::create(b, vector, memory, at);
    });
  }
  bool isDead = this->isDead();
  for (Emitter &emit : emitters)
    emit(registers);
  if (isDead)
    return;
  b.setInsertionPoint(ops.back());
  forEach([&](Value &value, ValueRange at) {
    vector::StoreOp::create(b, value, memory, at);
  });
}
