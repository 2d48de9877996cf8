//===- Attention.cpp - Attentions on the entry's arguments ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace varlen_run;
using namespace mlir;

std::optional<int64_t>
Attention::getExtent(Extent extent, llvm::ArrayRef<Tensor> inputs) const {
  const ExtentSource &source = (*this)[extent];
  if (source.known || source.dims.empty())
    return source.known;
  auto [argument, dim] = source.dims.front();
  return inputs[argument].shape[dim];
}

namespace {
/// Call chains and casts are short; the bound is for recursive functions.
constexpr int maxCallSteps = 64;

class Reader {
public:
  Reader(func::FuncOp entry, varlen::AttentionOpInterface op)
      : entry(entry), op(op) {}
  Attention read();

private:
  bool isArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &entry.front();
  }
  int64_t readList(Value list);
  void readExtent(Extent extent, Value value, int64_t dim);
  void readExtents(Value value, ArrayRef<Extent> extents);
  void readShape(const varlen::ShapedByInputs &shaped);

  func::FuncOp entry;
  varlen::AttentionOpInterface op;
  Attention attention = {};
};
} // namespace

Value varlen_run::getCastSource(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_present<tensor::CastOp, bufferization::ToTensorOp,
                         bufferization::ToBufferOp>(op)
             ? op->getOperand(0)
             : Value();
}

/// The value that `value` is the same as: what is cast, or what the one call of
/// its function passes. Null if there is none.
static Value getSource(Value value) {
  if (value.getDefiningOp())
    return getCastSource(value);
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !argument.getOwner()->isEntryBlock())
    return {};
  std::optional<SymbolTable::UseRange> uses =
      function.getSymbolUses(function->getParentOp());
  if (!uses || !llvm::hasSingleElement(*uses))
    return {};
  auto call = dyn_cast<func::CallOp>(uses->begin()->getUser());
  return call ? call.getOperand(argument.getArgNumber()) : Value();
}

std::pair<Value, int64_t> varlen_run::getShapeSource(Value value, int64_t dim) {
  if (auto op = value.getDefiningOp<varlen::AttentionOpInterface>())
    for (const varlen::ShapedByInputs &result : op.getShapedResults())
      if (result.value == value)
        return {result.extents[dim].source.value, result.extents[dim].dim};
  return {};
}

/// What the dimensions of q, k and v count; of k and v in pages, too.
static ArrayRef<Extent> getExtents(varlen::NamedValue operand) {
  static constexpr Extent q[] = {Extent::QueryRows, Extent::QueryHeads,
                                 Extent::HeadDim};
  static constexpr Extent k[] = {Extent::KeyRows, Extent::KvHeads,
                                 Extent::HeadDim};
  static constexpr Extent v[] = {Extent::KeyRows, Extent::KvHeads,
                                 Extent::ValueHeadDim};
  static constexpr Extent pagedK[] = {Extent::Pages, Extent::PageRows,
                                      Extent::KvHeads, Extent::HeadDim};
  static constexpr Extent pagedV[] = {Extent::Pages, Extent::PageRows,
                                      Extent::KvHeads, Extent::ValueHeadDim};
  if (operand.type().getRank() == 4)
    return operand.name == "k" ? ArrayRef(pagedK) : ArrayRef(pagedV);
  return llvm::StringSwitch<ArrayRef<Extent>>(operand.name)
      .Case("q", q)
      .Case("k", k)
      .Case("v", v);
}

int64_t Reader::readList(Value list) {
  if (!list)
    return Attention::Absent;
  for (int step = 0; list && step < maxCallSteps; ++step) {
    if (isArgument(list))
      return cast<BlockArgument>(list).getArgNumber();
    list = getSource(list);
  }
  attention.isKnown = false;
  return Attention::Computed;
}

void Reader::readExtent(Extent extent, Value value, int64_t dim) {
  Attention::ExtentSource &source =
      attention.extents[static_cast<size_t>(extent)];
  bool isKnown = false;
  for (int step = 0; value && step < maxCallSteps; ++step) {
    if (int64_t known = cast<ShapedType>(value.getType()).getDimSize(dim);
        ShapedType::isStatic(known)) {
      isKnown = true;
      // Types behind casts may disagree: the code has to see that.
      attention.isKnown &= source.known.value_or(known) == known;
      source.known = known;
    }
    if (isArgument(value)) {
      source.dims.push_back({cast<BlockArgument>(value).getArgNumber(), dim});
      return;
    }
    if (Value same = getSource(value))
      value = same;
    else
      std::tie(value, dim) = getShapeSource(value, dim);
  }
  attention.isKnown &= isKnown;
}

void Reader::readExtents(Value value, ArrayRef<Extent> extents) {
  for (auto [dim, extent] : llvm::enumerate(extents))
    readExtent(extent, value, dim);
}

void Reader::readShape(const varlen::ShapedByInputs &shaped) {
  // How many entries a table has, follows from nothing else.
  SmallVector<Extent> extents;
  for (const varlen::ExtentOf &from : shaped.extents)
    if (from.source.name != "capture")
      extents.push_back(getExtents(from.source)[from.dim]);
  readExtents(shaped.value, extents);
}

Attention Reader::read() {
  attention.isKnown = true;
  attention.cuQ = readList(op.getCuQ());
  attention.cuK = readList(op.getCuK());
  attention.usedQ = readList(op.getSequsedQ());
  attention.usedK = readList(op.getSequsedK());
  attention.offset = readList(op.getQOffset());
  // Entries of a table are checked where the operation runs.
  attention.isKnown &= !op.isPaged();
  for (varlen::NamedValue operand :
       {varlen::NamedValue{"q", op.getQ()}, varlen::NamedValue{"k", op.getK()},
        varlen::NamedValue{"v", op.getV()}})
    readExtents(operand.value, getExtents(operand));
  if (op.getSink())
    readExtents(op.getSink(), Extent::QueryHeads);
  for (const varlen::ShapedByInputs &input : op.getShapedInputs())
    readShape(input);
  for (const varlen::ShapedByInputs &destination : op.getShapedDestinations())
    readShape(destination);
  return attention;
}

Attention varlen_run::readAttention(func::FuncOp entry,
                                    varlen::AttentionOpInterface op) {
  return Reader(entry, op).read();
}
