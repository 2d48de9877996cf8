//===- VarlenImportTorch.cpp - Attention of torch-mlir's modules ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations are looked at by their names and attributes, and types by their
// text, so that torch-mlir need not be linked, nor its dialects registered.
//
//===----------------------------------------------------------------------===//

#include "ImportedAttention.h"
#include "varlen/Conversion/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENIMPORTTORCH
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

static constexpr StringLiteral forwardName = "torch.torch_attn._varlen_attn";
static constexpr StringLiteral backwardName =
    "torch.torch_attn._varlen_attn_backward";
static constexpr StringLiteral toBuiltin = "torch_c.to_builtin_tensor";
static constexpr StringLiteral fromBuiltin = "torch_c.from_builtin_tensor";

/// Parameters of the operators in PyTorch's order. Those with a name of the
/// attention are its operands, "" are not looked at: hints for kernels of
/// FlashAttention, checks for Python, and what dropout would need.
static constexpr StringLiteral forwardParameters[] = {
    "q", "k",         "v",           "cu_q",  "cu_k",
    "",  "",          "is_causal",   "scale", "window_size",
    "",  "seqused_k", "block_table", ""};
static constexpr StringLiteral backwardParameters[] = {
    "dout", "q", "k", "v",         "out", "lse",   "cu_q",
    "cu_k", "",  "",  "is_causal", "",    "scale", "window_size"};

/// The operator that is called, or "".
static StringRef getOperator(Operation *op) {
  if (op->getName().getStringRef() != "torch.operator")
    return "";
  auto name = op->getAttrOfType<StringAttr>("name");
  if (!name)
    return "";
  StringRef text = name.getValue();
  text.consume_back(".default");
  return text;
}

/// What produces a value of a type that says less: `torch.derefine` of it.
static Value skipDerefine(Value value) {
  for (Operation *op = value.getDefiningOp();
       op && op->getName().getStringRef() == "torch.derefine" &&
       op->getNumOperands() == 1;
       op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

static bool isMadeBy(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  return op && op->getName().getStringRef() == name;
}

static bool isNone(Value value) {
  return isMadeBy(skipDerefine(value), "torch.constant.none");
}

/// The `value` of a `torch.constant.*`, or null.
static Attribute getConstant(Value value) {
  Operation *op = skipDerefine(value).getDefiningOp();
  if (!op || !op->getName().getStringRef().starts_with("torch.constant."))
    return nullptr;
  return op->getAttr("value");
}

/// `!torch.vtensor<[?,4,64],bf16>` as a builtin type, whose integers have no
/// sign; null if sizes or an element type are not there.
static RankedTensorType getBuiltinType(Type type) {
  std::string storage;
  llvm::raw_string_ostream(storage) << type;
  StringRef text = storage;
  if (!text.consume_front("!torch.vtensor<[") || !text.consume_back(">"))
    return nullptr;
  auto [extents, element] = text.split("],");
  SmallVector<int64_t> shape;
  SmallVector<StringRef> parts;
  extents.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t extent = ShapedType::kDynamic;
    if (part != "?" && (part.getAsInteger(10, extent) || extent < 0))
      return nullptr;
    shape.push_back(extent);
  }
  // What is no type of MLIR is no concern of the user's.
  ScopedDiagnosticHandler quiet(type.getContext(),
                                [](Diagnostic &) { return success(); });
  Type parsed = parseType(element, type.getContext());
  if (auto integer = dyn_cast_or_null<IntegerType>(parsed))
    parsed = IntegerType::get(type.getContext(), integer.getWidth());
  if (!parsed || !parsed.isIntOrFloat())
    return nullptr;
  return RankedTensorType::get(shape, parsed);
}

namespace {

/// Makes an attention of one operator.
class TorchImporter {
public:
  TorchImporter(Operation *op, bool isGradient)
      : op(op), b(op), attention(isGradient),
        parameters(isGradient ? ArrayRef<StringLiteral>(backwardParameters)
                              : ArrayRef<StringLiteral>(forwardParameters)) {}

  /// Makes the attention, which takes the place of the operator's results but
  /// rng_state.
  LogicalResult import();
  /// Erases the operator, when those that took its rng_state are gone.
  LogicalResult finish();

private:
  LogicalResult readOperand(StringRef name, Value value);
  LogicalResult readTensor(StringRef name, Value value);
  LogicalResult readWindow(Value value);
  InFlightDiagnostic wanted(StringRef name, const Twine &what, Value value);
  Value toTorch(Value tensor, Type type);

  Operation *op;
  OpBuilder b;
  ImportedAttention attention;
  ArrayRef<StringLiteral> parameters;
};

} // namespace

InFlightDiagnostic TorchImporter::wanted(StringRef name, const Twine &what,
                                         Value value) {
  InFlightDiagnostic error = op->emitError("expected ")
                             << name << " to be " << what << ", got ";
  if (Attribute constant = getConstant(value))
    error << constant;
  else
    error << value.getType();
  return error;
}

LogicalResult TorchImporter::readTensor(StringRef name, Value value) {
  RankedTensorType type = getBuiltinType(value.getType());
  if (!type)
    return wanted(name, "a value tensor with sizes and a dtype", value);
  if (isMadeBy(value, fromBuiltin) &&
      value.getDefiningOp()->getOperand(0).getType() == type) {
    attention[name] = value.getDefiningOp()->getOperand(0);
    return success();
  }
  OperationState state(op->getLoc(), toBuiltin, value, TypeRange(type));
  attention[name] = b.create(state)->getResult(0);
  return success();
}

LogicalResult TorchImporter::readWindow(Value value) {
  value = skipDerefine(value);
  SmallVector<int64_t> bounds;
  if (isMadeBy(value, "torch.prim.ListConstruct"))
    for (Value element : value.getDefiningOp()->getOperands())
      if (auto bound = dyn_cast_or_null<IntegerAttr>(getConstant(element)))
        bounds.push_back(bound.getInt());
  if (bounds.size() != 2 || value.getDefiningOp()->getNumOperands() != 2)
    return wanted("window_size", "none or a list of two constants", value);
  // Below -1 is as open as -1, as in FlashAttention; causal closes the right.
  attention.left = std::max<int64_t>(bounds[0], -1);
  attention.right = std::max<int64_t>(bounds[1], -1);
  return success();
}

LogicalResult TorchImporter::readOperand(StringRef name, Value value) {
  if (name == "is_causal") {
    auto flag = dyn_cast_or_null<IntegerAttr>(getConstant(value));
    if (!flag || !flag.getType().isInteger(1))
      return wanted(name, "a constant bool", value);
    attention.isCausal = !flag.getValue().isZero();
    return success();
  }
  if (name == "scale") {
    Attribute constant = getConstant(value);
    if (auto number = dyn_cast_or_null<FloatAttr>(constant))
      attention.scale = number.getValueAsDouble();
    else if (auto number = dyn_cast_or_null<IntegerAttr>(constant))
      attention.scale = number.getInt();
    else
      return wanted(name, "none or a constant", value);
    return success();
  }
  if (name == "window_size")
    return readWindow(value);
  if (name == "block_table")
    return wanted(name, "none: there are no paged keys and values", value);
  return readTensor(name, value);
}

Value TorchImporter::toTorch(Value tensor, Type type) {
  OperationState state(op->getLoc(), fromBuiltin, tensor, TypeRange(type));
  return b.create(state)->getResult(0);
}

LogicalResult TorchImporter::import() {
  bool isGradient = attention.isGradient;
  if (op->getNumOperands() < parameters.size())
    return op->emitError("expected ")
           << parameters.size() << " operands of " << getOperator(op)
           << ", got " << op->getNumOperands();
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    if (i >= parameters.size()) {
      // A parameter of a newer PyTorch than this knows.
      if (isNone(value))
        continue;
      return op->emitError("expected operands after the first ")
             << parameters.size() << " to be none, got " << value.getType();
    }
    StringRef name = parameters[i];
    if (name.empty())
      continue;
    ArrayRef<StringLiteral> required =
        attention.getNames().take_front(attention.getNumRequired());
    if (isNone(value) && !llvm::is_contained(required, name) &&
        name != "is_causal")
      continue;
    if (failed(readOperand(name, value)))
      return failure();
  }
  if (attention.isCausal)
    attention.right = 0;

  // Forward: out, lse, rng_state. Backward: dq, dk, dv.
  if (op->getNumResults() != 3)
    return op->emitError("expected 3 results of ")
           << getOperator(op) << ", got " << op->getNumResults();
  SmallVector<Type> types;
  for (Type type : op->getResultTypes()) {
    types.push_back(getBuiltinType(type));
    if (!types.back())
      return op->emitError("expected results that are value tensors with sizes "
                           "and a dtype, got ")
             << type;
  }
  FailureOr<Operation *> made = attention.create(
      b, op, ArrayRef<Type>(types).take_front(isGradient ? 3 : 2));
  if (failed(made))
    return failure();
  for (auto [result, value] :
       llvm::zip(op->getResults(), (*made)->getResults()))
    if (!result.use_empty())
      result.replaceAllUsesWith(toTorch(value, result.getType()));
  return success();
}

LogicalResult TorchImporter::finish() {
  // What is left: rng_state, zeros where nothing is dropped.
  if (!attention.isGradient && !op->getResult(2).use_empty()) {
    Type type = op->getResult(2).getType();
    RankedTensorType state = getBuiltinType(type);
    if (!state.hasStaticShape())
      return op->emitError("expected rng_state of a known size, got ") << type;
    Value zeros = arith::ConstantOp::create(
        b, op->getLoc(), cast<TypedAttr>(b.getZeroAttr(state)));
    op->getResult(2).replaceAllUsesWith(toTorch(zeros, type));
  }
  op->erase();
  return success();
}

namespace {

struct VarlenImportTorch
    : varlen::impl::VarlenImportTorchBase<VarlenImportTorch> {
  void runOnOperation() override {
    SmallVector<TorchImporter> importers;
    getOperation()->walk([&](Operation *op) {
      StringRef name = getOperator(op);
      if (name == forwardName || name == backwardName)
        importers.emplace_back(op, /*isGradient=*/name == backwardName);
    });
    for (TorchImporter &importer : importers)
      if (failed(importer.import()))
        return signalPassFailure();
    for (TorchImporter &importer : llvm::reverse(importers))
      if (failed(importer.finish()))
        return signalPassFailure();
    numImported += importers.size();
  }
};

} // namespace
