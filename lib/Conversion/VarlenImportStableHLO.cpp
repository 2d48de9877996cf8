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

#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENIMPORTSTABLEHLO
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

static constexpr StringLiteral attnOperands[] = {
    "q",         "k",         "v",        "cu_q", "cu_k",
    "seqused_q", "seqused_k", "q_offset", "sink"};
static constexpr unsigned numAttnRequired = 5;

static constexpr StringLiteral gradOperands[] = {
    "dout", "q",    "k",         "v",         "out",      "lse", "cu_q",
    "cu_k", "dlse", "seqused_q", "seqused_k", "q_offset", "sink"};
static constexpr unsigned numGradRequired = 8;

/// What a call or a composite is the name of, or null.
static StringAttr getTarget(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name == "stablehlo.custom_call")
    return op->getAttrOfType<StringAttr>("call_target_name");
  if (name == "stablehlo.composite")
    return op->getAttrOfType<StringAttr>("name");
  return nullptr;
}

/// Its configuration; null if it has none.
static FailureOr<DictionaryAttr> getConfiguration(Operation *op) {
  for (StringRef name :
       {"backend_config", "mhlo.backend_config", "composite_attributes"}) {
    Attribute attribute = op->getAttr(name);
    auto text = dyn_cast_or_null<StringAttr>(attribute);
    if (!attribute || (text && text.empty()))
      continue;
    if (auto dictionary = dyn_cast<DictionaryAttr>(attribute))
      return dictionary;
    op->emitError("expected ")
        << name << " to be a dictionary, got " << attribute;
    return failure();
  }
  return DictionaryAttr();
}

namespace {

/// Makes an attention of one operation.
class Importer {
public:
  explicit Importer(Operation *op, bool isGradient)
      : op(op), names(isGradient ? ArrayRef<StringLiteral>(gradOperands)
                                 : ArrayRef<StringLiteral>(attnOperands)),
        numRequired(isGradient ? numGradRequired : numAttnRequired),
        isGradient(isGradient) {}

  LogicalResult import();

private:
  LogicalResult readConfiguration();
  LogicalResult readEntry(NamedAttribute entry);
  FailureOr<SmallVector<Value>> getOperands();

  Operation *op;
  ArrayRef<StringLiteral> names;
  unsigned numRequired;
  bool isGradient;
  int64_t left = -1, right = -1;
  bool isCausal = false;
  Alignment alignment = Alignment::BottomRight;
  FloatAttr scale;
  SmallVector<StringRef> optional;
};

} // namespace

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
      isCausal = flag.getValue();
    else if (flag.getValue())
      alignment = Alignment::TopLeft;
    return success();
  }
  if (name == "window_left" || name == "window_right") {
    auto bound = dyn_cast<IntegerAttr>(value);
    if (!bound || !bound.getValue().isSignedIntN(64))
      return wanted("an integer");
    (name == "window_left" ? left : right) = bound.getValue().getSExtValue();
    return success();
  }
  if (name == "scale") {
    scale = dyn_cast<FloatAttr>(value);
    return scale ? success() : wanted("a float");
  }
  if (name == "operands") {
    auto array = dyn_cast<ArrayAttr>(value);
    for (Attribute element : array ? array.getValue() : ArrayRef<Attribute>()) {
      auto text = dyn_cast<StringAttr>(element);
      if (!text ||
          !llvm::is_contained(names.drop_front(numRequired), text.getValue()))
        return wanted("names of optional operands (" +
                      llvm::join(names.drop_front(numRequired), ", ") + ")");
      optional.push_back(text.getValue());
    }
    return array ? success() : wanted("an array of names");
  }
  return op->emitError("expected causal, top_left, window_left, window_right, "
                       "scale and operands as configuration, got ")
         << name;
}

LogicalResult Importer::readConfiguration() {
  FailureOr<DictionaryAttr> found = getConfiguration(op);
  if (failed(found))
    return failure();
  if (DictionaryAttr configuration = *found)
    for (NamedAttribute entry : configuration)
      if (failed(readEntry(entry)))
        return failure();
  if (!isCausal)
    return success();
  if (right != -1 && right != 0)
    return op->emitError(
               "expected no window_right of a causal mask but 0, got ")
           << right;
  right = 0;
  return success();
}

/// The operands in the order of `names`, null where one is absent.
FailureOr<SmallVector<Value>> Importer::getOperands() {
  if (op->getNumOperands() != numRequired + optional.size())
    return op->emitError("expected ")
           << numRequired << " operands ("
           << llvm::join(names.take_front(numRequired), ", ") << ") and "
           << optional.size() << " that are named by its configuration, got "
           << op->getNumOperands();
  SmallVector<Value> operands(names.size());
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    if (!isa<RankedTensorType>(value.getType()))
      return op->emitError("expected operands that are ranked tensors, got ")
             << value.getType();
    StringRef name =
        i < numRequired ? StringRef(names[i]) : optional[i - numRequired];
    Value &slot = operands[llvm::find(names, name) - names.begin()];
    if (slot)
      return op->emitError("expected each operand once, got ")
             << name << " again";
    slot = value;
  }
  return operands;
}

LogicalResult Importer::import() {
  if (failed(readConfiguration()))
    return failure();
  FailureOr<SmallVector<Value>> operands = getOperands();
  if (failed(operands))
    return failure();
  if (left < -1 || right < -1)
    return op->emitError("expected window bounds >= -1 (-1 is open), got (")
           << left << ", " << right << ")";
  IRRewriter b(op->getContext());
  b.setInsertionPoint(op);
  OperationState state(op->getLoc(), isGradient ? AttnGradOp::getOperationName()
                                                : AttnOp::getOperationName());
  SmallVector<int32_t> segments;
  for (Value operand : *operands) {
    segments.push_back(operand ? 1 : 0);
    if (operand)
      state.addOperands(operand);
  }
  // No destinations: one segment for all gradients, one each for out and lse.
  // Nor captures.
  segments.append(isGradient ? 2 : 3, 0);
  state.addTypes(op->getResultTypes());
  state.addAttribute(AttnOp::getOperandSegmentSizeAttr(),
                     b.getDenseI32ArrayAttr(segments));
  state.addAttribute("mask",
                     MaskAttr::get(b.getContext(), left, right, alignment));
  if (scale) {
    // JAX writes f64.
    auto q = cast<RankedTensorType>((*operands)[isGradient ? 1 : 0].getType());
    Type type = q.getElementType().isF64() ? Type(b.getF64Type())
                                           : Type(b.getF32Type());
    state.addAttribute("scale", b.getFloatAttr(type, scale.getValueAsDouble()));
  }
  Operation *attention = b.create(state);
  if (failed(verify(attention))) {
    attention->erase();
    return failure();
  }
  b.replaceOp(op, attention->getResults());
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
