//===- VarlenImportStableHLO.cpp - Attention of StableHLO modules ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations are looked at by their names and attributes, so that StableHLO
// need not be linked, nor registered.
//
//===----------------------------------------------------------------------===//

#include "ImportedAttention.h"
#include "varlen/Conversion/Passes.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENIMPORTSTABLEHLO
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// What a call or a composite is the name of, or null.
static StringAttr getTarget(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name == "stablehlo.custom_call")
    return op->getAttrOfType<StringAttr>("call_target_name");
  if (name == "stablehlo.composite")
    return op->getAttrOfType<StringAttr>("name");
  return nullptr;
}

namespace {

/// Makes an attention of one operation.
class Importer {
public:
  explicit Importer(Operation *op, bool isGradient)
      : op(op), attention(isGradient) {}

  LogicalResult import();

private:
  LogicalResult readConfiguration();
  LogicalResult readEntry(NamedAttribute entry);
  LogicalResult readNames(Attribute value);
  LogicalResult readOperands();
  LogicalResult checkLayouts(StringRef name, TypeRange types);

  Operation *op;
  ImportedAttention attention;
  SmallVector<StringRef> optional;
};

} // namespace

static ArrayRef<StringLiteral>
getOptionalNames(const ImportedAttention &attention) {
  return attention.getNames().drop_front(attention.getNumRequired());
}

/// An array of names, or a text with commas between them: XLA has no arrays of
/// texts for handlers.
LogicalResult Importer::readNames(Attribute value) {
  if (auto text = dyn_cast<StringAttr>(value)) {
    text.getValue().split(optional, ',');
  } else if (auto array = dyn_cast<ArrayAttr>(value)) {
    for (Attribute element : array) {
      auto text = dyn_cast<StringAttr>(element);
      if (!text)
        return failure();
      optional.push_back(text.getValue());
    }
  } else {
    return failure();
  }
  return success(llvm::all_of(optional, [&](StringRef name) {
    return llvm::is_contained(getOptionalNames(attention), name);
  }));
}

LogicalResult Importer::readEntry(NamedAttribute entry) {
  StringRef name = entry.getName();
  Attribute value = entry.getValue();
  auto wanted = [&](StringRef what) {
    return op->emitError("expected ")
           << name << " to be " << what << ", got " << value;
  };
  if (name == "causal" || name == "top_left") {
    auto flag = dyn_cast<BoolAttr>(value);
    if (!flag)
      return wanted("a bool");
    if (name == "causal")
      attention.isCausal = flag.getValue();
    else if (flag.getValue())
      attention.alignment = Alignment::TopLeft;
    return success();
  }
  if (name == "window_left" || name == "window_right" || name == "chunk") {
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number || !number.getValue().isSignedIntN(64))
      return wanted("an integer");
    int64_t &slot = name == "chunk"         ? attention.chunk
                    : name == "window_left" ? attention.left
                                            : attention.right;
    slot = number.getValue().getSExtValue();
    if (name == "chunk" && slot < 1)
      return wanted("at least 1");
    return success();
  }
  if (name == "scale") {
    auto scale = dyn_cast<FloatAttr>(value);
    if (!scale)
      return wanted("a float");
    attention.scale = scale.getValueAsDouble();
    return success();
  }
  if (name == "operands") {
    if (succeeded(readNames(value)))
      return success();
    return wanted("names of optional operands (" +
                  llvm::join(getOptionalNames(attention), ", ") + ")");
  }
  // What a handler at run time goes by says the same.
  if (name == "source")
    return success();
  return op->emitError("expected causal, top_left, window_left, window_right, "
                       "chunk, scale, operands and source as configuration, "
                       "got ")
         << name;
}

LogicalResult Importer::readConfiguration() {
  for (StringRef name :
       {"backend_config", "mhlo.backend_config", "composite_attributes"}) {
    Attribute attribute = op->getAttr(name);
    auto text = dyn_cast_or_null<StringAttr>(attribute);
    if (!attribute || (text && text.empty()))
      continue;
    auto configuration = dyn_cast<DictionaryAttr>(attribute);
    if (!configuration)
      return op->emitError("expected ")
             << name << " to be a dictionary, got " << attribute;
    return success(llvm::all_of(configuration, [&](NamedAttribute entry) {
      return succeeded(readEntry(entry));
    }));
  }
  return success();
}

/// The operands of an operation, without those that say what the dynamic
/// extents of its results are: the op has a rule for these.
static SmallVector<Value> getDataOperands(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  if (auto indices =
          op->getAttrOfType<DenseIntElementsAttr>("indices_of_shape_operands"))
    for (const APInt &index : indices)
      if (index.ult(operands.size()))
        operands[index.getZExtValue()] = nullptr;
  llvm::erase(operands, nullptr);
  return operands;
}

LogicalResult Importer::readOperands() {
  ArrayRef<StringLiteral> names = attention.getNames();
  unsigned numRequired = attention.getNumRequired();
  SmallVector<Value> given = getDataOperands(op);
  if (given.size() != numRequired + optional.size())
    return op->emitError("expected ")
           << numRequired << " operands ("
           << llvm::join(names.take_front(numRequired), ", ") << ") and "
           << optional.size() << " that are named by its configuration, got "
           << given.size();
  for (auto [i, value] : llvm::enumerate(given)) {
    if (!isa<RankedTensorType>(value.getType()))
      return op->emitError("expected operands that are ranked tensors, got ")
             << value.getType();
    StringRef name =
        i < numRequired ? StringRef(names[i]) : optional[i - numRequired];
    Value &slot = attention[name];
    if (slot)
      return op->emitError("expected each operand once, got ")
             << name << " again";
    slot = value;
  }
  return success();
}

/// A call may say how its tensors lie in memory, from the fastest dimension to
/// the slowest.
LogicalResult Importer::checkLayouts(StringRef name, TypeRange types) {
  auto layouts = op->getAttrOfType<ArrayAttr>(name);
  if (!layouts)
    return success();
  if (layouts.size() != types.size())
    return op->emitError("expected ")
           << types.size() << " " << name << ", got " << layouts.size();
  for (auto [layout, type] : llvm::zip_equal(layouts, types)) {
    auto shaped = dyn_cast<RankedTensorType>(type);
    auto order = dyn_cast<DenseIntElementsAttr>(layout);
    if (shaped && order && order.getNumElements() == shaped.getRank() &&
        llvm::all_of(llvm::enumerate(order.getValues<APInt>()),
                     [&](const auto &it) {
                       return it.value() == shaped.getRank() - 1 - it.index();
                     }))
      continue;
    return op->emitError("expected ")
           << name << " to be row-major, got " << layout << " of " << type;
  }
  return success();
}

LogicalResult Importer::import() {
  if (failed(readConfiguration()) || failed(readOperands()) ||
      failed(checkLayouts("operand_layouts", op->getOperandTypes())) ||
      failed(checkLayouts("result_layouts", op->getResultTypes())))
    return failure();
  IRRewriter b(op->getContext());
  FailureOr<Operation *> made = attention.create(b, op, op->getResultTypes());
  if (failed(made))
    return failure();
  b.replaceOp(op, (*made)->getResults());
  return success();
}

namespace {

struct VarlenImportStableHLO
    : varlen::impl::VarlenImportStableHLOBase<VarlenImportStableHLO> {
  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      StringAttr target = getTarget(op);
      if (target && (target == AttnOp::getOperationName() ||
                     target == AttnGradOp::getOperationName()))
        found.push_back(op);
    });
    for (Operation *op : found) {
      bool isGradient = getTarget(op) == AttnGradOp::getOperationName();
      if (failed(Importer(op, isGradient).import()))
        return signalPassFailure();
      ++numImported;
    }
  }
};

} // namespace
