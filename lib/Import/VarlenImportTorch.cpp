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
#include "ImportedScore.h"
#include "varlen/Import/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENIMPORTTORCH
#include "varlen/Import/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

static constexpr StringLiteral toBuiltin = "torch_c.to_builtin_tensor";
static constexpr StringLiteral fromBuiltin = "torch_c.from_builtin_tensor";

/// Parameters of PyTorch's operators in their order. Those with a name of the
/// attention are its operands, "" are not looked at: hints for kernels of
/// FlashAttention, checks for Python, and what dropout would need.
static constexpr StringLiteral pytorchForward[] = {
    "q", "k",         "v",           "cu_q",  "cu_k",
    "",  "",          "is_causal",   "scale", "window_size",
    "",  "seqused_k", "block_table", ""};
static constexpr StringLiteral pytorchBackward[] = {
    "dout", "q", "k", "v",         "out", "lse",   "cu_q",
    "cu_k", "",  "",  "is_causal", "",    "scale", "window_size"};
/// Parameters of the operators of varlen.torch, in the order of their schemas,
/// which test/PyTorch/importers.py imports.
static constexpr StringLiteral varlenForward[] = {
    "q",         "k",        "v",     "cu_q",       "cu_k",  "seqused_k",
    "sink",      "left",     "right", "scale",      "score", "captures",
    "seqused_q", "q_offset", "chunk", "block_table"};
static constexpr StringLiteral varlenBackward[] = {
    "dout",  "dlse",     "q",         "k",        "v",    "out",   "lse",
    "cu_q",  "cu_k",     "seqused_k", "sink",     "left", "right", "scale",
    "score", "captures", "seqused_q", "q_offset", "chunk"};

namespace {
/// An operator that is an attention.
struct TorchOperator {
  StringLiteral name;
  ArrayRef<StringLiteral> parameters;
  /// How many of them a call has at least.
  unsigned numRequired;
  unsigned numResults;
  bool isGradient;
};
} // namespace

static const TorchOperator operators[] = {
    {"torch.torch_attn._varlen_attn", pytorchForward, 14, 3, false},
    {"torch.torch_attn._varlen_attn_backward", pytorchBackward, 14, 3, true},
    {"torch.varlen.attn", varlenForward, 5, 2, false},
    {"torch.varlen.attn_backward", varlenBackward, 9, 5, true},
};
/// Of both namespaces others, which write into an operand, are no attention of
/// values.
static constexpr StringLiteral namespaces[] = {"torch.torch_attn.",
                                               "torch.varlen."};

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

/// The type of elements of that name in a type of torch-mlir; null if attention
/// has none of them.
static Type getBuiltinElement(StringRef name, MLIRContext *context) {
  if (auto type = llvm::StringSwitch<Type>(name)
                      .Case("f16", Float16Type::get(context))
                      .Case("bf16", BFloat16Type::get(context))
                      .Case("f32", Float32Type::get(context))
                      .Case("f64", Float64Type::get(context))
                      .Default(Type()))
    return type;
  unsigned width = 0;
  if (!name.consume_front("si"))
    name.consume_front(name.starts_with("ui") ? "ui" : "i");
  if (name.getAsInteger(10, width) || width == 0 ||
      width > IntegerType::kMaxWidth)
    return nullptr;
  return IntegerType::get(context, width);
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
  Type parsed = getBuiltinElement(element, type.getContext());
  return parsed ? RankedTensorType::get(shape, parsed) : nullptr;
}

namespace {

/// Makes an attention of one operator.
class TorchImporter {
public:
  TorchImporter(Operation *op, const TorchOperator &kind)
      : op(op), b(op), kind(kind),
        attention(kind.isGradient ? ImportedKind::Grad : ImportedKind::Attn) {}

  /// Makes the attention, which takes the place of the operator's results but
  /// those that nothing is in.
  LogicalResult import();
  /// Erases the operator, when those that took its other results are gone.
  LogicalResult finish();

private:
  /// Whether there is a block_table.
  bool hasPages();
  LogicalResult readOperand(StringRef name, Value value);
  LogicalResult readTensor(StringRef name, Value value);
  FailureOr<Value> toBuiltinTensor(StringRef name, Value value);
  LogicalResult readWindow(Value value);
  LogicalResult readInteger(StringRef name, Value value);
  LogicalResult readCaptures(Value value);
  LogicalResult readScore();
  FailureOr<SmallVector<Value>> findResults();
  InFlightDiagnostic wanted(StringRef name, const Twine &what, Value value);
  Value toTorch(Value tensor, Type type);

  Operation *op;
  OpBuilder b;
  const TorchOperator &kind;
  ImportedAttention attention;
  StringAttr score;
  FailureOr<ParsedAttention> parsedScore = failure();
  /// Lists of gradients of captures that are taken apart.
  SmallVector<Operation *> unpacked;
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

FailureOr<Value> TorchImporter::toBuiltinTensor(StringRef name, Value value) {
  RankedTensorType type = getBuiltinType(value.getType());
  if (!type)
    return wanted(name, "a value tensor with sizes and a dtype", value);
  if (isMadeBy(value, fromBuiltin) &&
      value.getDefiningOp()->getOperand(0).getType() == type)
    return value.getDefiningOp()->getOperand(0);
  OperationState state(op->getLoc(), toBuiltin, value, TypeRange(type));
  return b.create(state)->getResult(0);
}

LogicalResult TorchImporter::readTensor(StringRef name, Value value) {
  FailureOr<Value> tensor = toBuiltinTensor(name, skipDerefine(value));
  if (failed(tensor))
    return failure();
  (name == "block_table" ? attention.blockTable : attention[name]) = *tensor;
  return success();
}

LogicalResult TorchImporter::readInteger(StringRef name, Value value) {
  auto number = dyn_cast_or_null<IntegerAttr>(getConstant(value));
  if (!number || number.getType().isInteger(1) ||
      !number.getValue().isSignedIntN(64))
    return wanted(name, "a constant integer", value);
  int64_t &slot = name == "chunk"  ? attention.chunk
                  : name == "left" ? attention.left
                                   : attention.right;
  slot = number.getInt();
  if (name == "chunk" && slot < 1)
    return wanted(name, "none or at least 1", value);
  return success();
}

LogicalResult TorchImporter::readCaptures(Value value) {
  value = skipDerefine(value);
  if (!isMadeBy(value, "torch.prim.ListConstruct"))
    return wanted("captures", "none or a list of tensors", value);
  for (Value element : value.getDefiningOp()->getOperands()) {
    FailureOr<Value> capture = toBuiltinTensor("captures", element);
    if (failed(capture))
      return failure();
    attention.captures.push_back(*capture);
  }
  return success();
}

/// When the types of operands are known.
LogicalResult TorchImporter::readScore() {
  if (!score || score.empty())
    return success();
  parsedScore = parseScore(op, "score", score, attention.getComputeType());
  if (failed(parsedScore))
    return failure();
  attention.score = parsedScore->attention;
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

bool TorchImporter::hasPages() {
  return llvm::any_of(llvm::zip(kind.parameters, op->getOperands()),
                      [](auto pair) {
                        auto [name, value] = pair;
                        return name == "block_table" && !isNone(value);
                      });
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
  if (name == "left" || name == "right" || name == "chunk")
    return readInteger(name, value);
  if (name == "captures")
    return readCaptures(value);
  if (name == "score") {
    score = dyn_cast_or_null<StringAttr>(getConstant(value));
    return score ? success() : wanted(name, "a constant text", value);
  }
  return readTensor(name, value);
}

Value TorchImporter::toTorch(Value tensor, Type type) {
  OperationState state(op->getLoc(), fromBuiltin, tensor, TypeRange(type));
  return b.create(state)->getResult(0);
}

/// The results that are gradients, or out and lse, in the op's order; null for
/// one that nothing reads.
FailureOr<SmallVector<Value>> TorchImporter::findResults() {
  if (op->getNumResults() != kind.numResults)
    return op->emitError("expected ")
           << kind.numResults << " results of " << kind.name << ", got "
           << op->getNumResults();
  SmallVector<Value> results(
      op->getResults().take_front(kind.isGradient ? 3 : 2));
  if (kind.numResults != 5)
    return results;
  // A sink that is none is an empty tensor, then a list.
  if (attention["sink"])
    results.push_back(op->getResult(3));
  else if (!op->getResult(3).use_empty())
    return op->emitError("expected no use of the gradient of a sink that is "
                         "none");
  for (Operation *user : op->getResult(4).getUsers()) {
    if (user->getName().getStringRef() != "torch.prim.ListUnpack" ||
        user->getNumResults() != attention.captures.size() || !unpacked.empty())
      return op->emitError("expected one torch.prim.ListUnpack of the "
                           "gradients of ")
             << attention.captures.size() << " captures, got "
             << user->getName();
    unpacked.push_back(user);
    llvm::append_range(results, user->getResults());
  }
  return results;
}

LogicalResult TorchImporter::import() {
  ArrayRef<StringLiteral> parameters = kind.parameters;
  if (op->getNumOperands() < kind.numRequired)
    return op->emitError("expected ")
           << kind.numRequired << " operands of " << kind.name << ", got "
           << op->getNumOperands();
  bool isPaged = hasPages();
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    if (i >= parameters.size()) {
      // A parameter of a newer version than this knows.
      if (isNone(value))
        continue;
      return op->emitError("expected operands after the first ")
             << parameters.size() << " to be none, got " << value.getType();
    }
    StringRef name = parameters[i];
    // Keys in pages have no cu_k; PyTorch does not read one beside a table.
    if (name.empty() ||
        (name == "cu_k" && isPaged &&
         (isNone(value) || kind.parameters.data() == pytorchForward)))
      continue;
    ArrayRef<StringLiteral> required =
        attention.getNames().take_front(attention.getNumRequired());
    if (isNone(value) && !llvm::is_contained(required, name) &&
        name != "is_causal" && name != "left" && name != "right")
      continue;
    if (failed(readOperand(name, value)))
      return failure();
  }
  if (attention.isCausal)
    attention.right = 0;
  if (failed(readScore()))
    return failure();

  FailureOr<SmallVector<Value>> results = findResults();
  if (failed(results))
    return failure();
  SmallVector<Type> types;
  for (Value result : *results) {
    types.push_back(getBuiltinType(result.getType()));
    if (!types.back())
      return op->emitError("expected results that are value tensors with sizes "
                           "and a dtype, got ")
             << result.getType();
  }
  FailureOr<Operation *> made = attention.create(b, op, types);
  if (failed(made))
    return failure();
  for (auto [result, value] : llvm::zip(*results, (*made)->getResults()))
    if (!result.use_empty())
      result.replaceAllUsesWith(toTorch(value, result.getType()));
  return success();
}

LogicalResult TorchImporter::finish() {
  // What is left of PyTorch's: rng_state, zeros where nothing is dropped.
  if (kind.numResults == 3 && !kind.isGradient &&
      !op->getResult(2).use_empty()) {
    Type type = op->getResult(2).getType();
    RankedTensorType state = getBuiltinType(type);
    if (!state || !state.hasStaticShape())
      return op->emitError("expected rng_state of a known size, got ") << type;
    Value zeros = arith::ConstantOp::create(
        b, op->getLoc(), cast<TypedAttr>(b.getZeroAttr(state)));
    op->getResult(2).replaceAllUsesWith(toTorch(zeros, type));
  }
  for (Operation *list : unpacked)
    list->erase();
  op->erase();
  return success();
}

namespace {

struct VarlenImportTorch
    : varlen::impl::VarlenImportTorchBase<VarlenImportTorch> {
  void runOnOperation() override {
    SmallVector<TorchImporter, 0> importers;
    WalkResult walked = getOperation()->walk([&](Operation *op) {
      StringRef name = getOperator(op);
      const TorchOperator *kind = llvm::find_if(
          operators, [&](const TorchOperator &x) { return x.name == name; });
      if (kind != std::end(operators)) {
        importers.emplace_back(op, *kind);
        return WalkResult::advance();
      }
      if (llvm::none_of(namespaces, [&](StringRef prefix) {
            return name.starts_with(prefix);
          }))
        return WalkResult::advance();
      op->emitError("expected one of the attentions ")
          << llvm::join(llvm::map_range(operators,
                                        [](const TorchOperator &x) {
                                          return StringRef(x.name);
                                        }),
                        ", ")
          << ", got " << name;
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
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
