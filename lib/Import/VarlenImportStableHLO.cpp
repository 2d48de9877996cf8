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
#include "ImportedScore.h"
#include "varlen/Import/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENIMPORTSTABLEHLO
#include "varlen/Import/Passes.h.inc"
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
  Importer(Operation *op, ImportedKind kind) : op(op), attention(kind) {}

  LogicalResult import();

private:
  LogicalResult checkAttributes();
  LogicalResult readConfiguration();
  LogicalResult readEntry(NamedAttribute entry);
  LogicalResult readNames(Attribute value);
  LogicalResult readOperands();
  LogicalResult readScore();
  FailureOr<unsigned> checkNames();
  LogicalResult compareWithSource(AttentionOpInterface made);
  LogicalResult checkLayouts(StringRef name, TypeRange types);

  Operation *op;
  ImportedAttention attention;
  /// Names of operands after the required ones, those of captures last, and
  /// then those of their tangents.
  SmallVector<StringRef> optional;
  StringAttr source, score, chip;
  FailureOr<ParsedAttention> ofSource = failure(), ofScore = failure();
};

} // namespace

static ArrayRef<StringLiteral>
getOptionalNames(const ImportedAttention &attention) {
  return attention.getNames().drop_front(attention.getNumRequired());
}

/// Where an operation has its configuration.
static constexpr StringLiteral configurations[] = {
    "backend_config", "mhlo.backend_config", "composite_attributes"};

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
  return success();
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
    return succeeded(readNames(value)) ? success() : wanted("names");
  }
  if (name == "score" || name == "source" || name == "chip") {
    auto text = dyn_cast<StringAttr>(value);
    if (!text)
      return wanted("a text");
    (name == "score" ? score : name == "source" ? source : chip) = text;
    return success();
  }
  return op->emitError("expected causal, top_left, window_left, window_right, "
                       "chunk, scale, operands, score, source and chip as "
                       "configuration, got ")
         << name;
}

LogicalResult Importer::readConfiguration() {
  StringRef found;
  for (StringRef name : configurations) {
    Attribute attribute = op->getAttr(name);
    auto text = dyn_cast_or_null<StringAttr>(attribute);
    if (!attribute || (text && text.empty()))
      continue;
    auto configuration = dyn_cast<DictionaryAttr>(attribute);
    if (!configuration)
      return op->emitError("expected ")
             << name << " to be a dictionary, got " << attribute;
    if (!found.empty() && !configuration.empty())
      return op->emitError("expected one configuration, got ")
             << found << " and " << name;
    if (!configuration.empty())
      found = name;
    for (NamedAttribute entry : configuration)
      if (failed(readEntry(entry)))
        return failure();
  }
  return success();
}

/// Attributes of both operations that say nothing of what is computed: how the
/// call is made, what it may do besides, and how tensors lie in memory, which
/// is checked where it says something. Discardable attributes have a prefix.
static constexpr StringLiteral otherAttributes[] = {
    "call_target_name", "name",
    "api_version",      "has_side_effect",
    "operand_layouts",  "result_layouts",
    "decomposition",    "indices_of_shape_operands"};

/// That nothing which may say what is computed is left unread: aliases of
/// operands, computations, regions, versions of a composite.
LogicalResult Importer::checkAttributes() {
  SmallVector<NamedAttribute> attributes(op->getAttrs());
  // An operation that is not registered has a dictionary of properties.
  if (!op->isRegistered())
    if (auto properties =
            dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
      llvm::append_range(attributes, properties);
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName();
    if (llvm::is_contained(configurations, name) ||
        llvm::is_contained(otherAttributes, name) || name.contains('.'))
      continue;
    auto array = dyn_cast<ArrayAttr>(attribute.getValue());
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if ((array && array.empty()) ||
        (name == "version" && number && number.getValue().isZero()))
      continue;
    return op->emitError("expected no attribute ")
           << name << ", got " << attribute.getValue();
  }
  if (llvm::any_of(op->getRegions(),
                   [](Region &region) { return !region.empty(); }))
    return op->emitError("expected no regions");
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
  for (Value value : given)
    if (!isa<RankedTensorType>(value.getType()))
      return op->emitError("expected operands that are ranked tensors, got ")
             << value.getType();
  for (auto [name, value] : llvm::zip(names.take_front(numRequired), given))
    attention[name] = value;
  // The text of a score needs the type of q.
  FailureOr<unsigned> numCaptures = failure();
  if (given.size() >= numRequired &&
      (failed(readScore()) || failed(numCaptures = checkNames())))
    return failure();
  if (given.size() != numRequired + optional.size())
    return op->emitError("expected ")
           << numRequired << " operands ("
           << llvm::join(names.take_front(numRequired), ", ") << ") and "
           << optional.size() << " that are named by its configuration, got "
           << given.size();
  ArrayRef<Value> values = ArrayRef(given).drop_front(numRequired);
  unsigned numTangents = attention.varied.size();
  llvm::append_range(attention.tcaptures, values.take_back(numTangents));
  values = values.drop_back(numTangents);
  llvm::append_range(attention.captures, values.take_back(*numCaptures));
  for (auto [name, value] :
       llvm::zip_equal(ArrayRef(optional).drop_back(numTangents + *numCaptures),
                       values.drop_back(*numCaptures))) {
    Value &slot = attention[name];
    if (slot)
      return op->emitError("expected each operand once, got ")
             << name << " again";
    slot = value;
  }
  return success();
}

/// The text of a score, or that in the text of the whole function.
LogicalResult Importer::readScore() {
  if (source && failed(ofSource = parseAttention(op, "source", source)))
    return failure();
  if (score && failed(ofScore = parseScore(op, "score", score,
                                           attention.getComputeType())))
    return failure();
  if (succeeded(ofScore))
    attention.score = ofScore->attention;
  else if (succeeded(ofSource) && ofSource->attention.getScoreBody())
    attention.score = ofSource->attention;
  return success();
}

/// That names are of optional operands, then of all captures, as the score has
/// them, and of tangents of captures, in their order. Returns how many captures
/// there are, and notes which have a tangent.
FailureOr<unsigned> Importer::checkNames() {
  ArrayRef<StringLiteral> known = getOptionalNames(attention);
  SmallVector<StringRef> captures;
  if (attention.score)
    captures = (succeeded(ofScore) ? ofScore : ofSource)->getCaptureNames();
  ArrayRef<StringRef> names = optional;
  if (attention.hasTangents()) {
    for (int64_t i = captures.size() - 1; i >= 0; --i) {
      if (names.empty() || names.back() != ("t" + captures[i]).str())
        continue;
      names = names.drop_back();
      attention.varied.insert(attention.varied.begin(), i);
    }
  }
  if (names.size() >= captures.size() &&
      names.take_back(captures.size()) == ArrayRef(captures) &&
      llvm::all_of(names.drop_back(captures.size()), [&](StringRef name) {
        return llvm::is_contained(known, name);
      }))
    return captures.size();
  InFlightDiagnostic error =
      op->emitError("expected operands to be names of optional operands (")
      << llvm::join(known, ", ") << ")";
  if (!captures.empty())
    error << " and then the captures " << llvm::join(captures, ", ");
  if (!captures.empty() && attention.hasTangents())
    error << " and tangents of some, t" << llvm::join(captures, ", t");
  return error << ", got " << llvm::join(optional, ", ");
}

/// What runs the call goes by `source`: it says the same.
LogicalResult Importer::compareWithSource(AttentionOpInterface made) {
  AttentionOpInterface like = ofSource->attention;
  auto differs = [&](const Twine &what) {
    return op->emitError("expected source to say what the configuration does, "
                         "got another ")
           << what;
  };
  if (made->getName() != like->getName())
    return differs("operation");
  if (made.getMask() != like.getMask())
    return differs("mask: ") << like.getMask() << " and " << made.getMask();
  if (made.getScaleAttr() != like.getScaleAttr())
    return differs("scale: ")
           << like.getScaleAttr() << " and " << made.getScaleAttr();
  if (made.getWrtCaptures() != like.getWrtCaptures())
    return differs("choice of gradients of captures");
  // Arguments of the function are the operands.
  SmallVector<Value> given = getDataOperands(op);
  SmallVector<Value> mapped;
  if (ofSource->function.getNumArguments() == given.size())
    for (Value operand : like->getOperands())
      mapped.push_back(given[cast<BlockArgument>(operand).getArgNumber()]);
  if (like->getAttr(AttnOp::getOperandSegmentSizeAttr()) !=
          made->getAttr(AttnOp::getOperandSegmentSizeAttr()) ||
      !llvm::equal(mapped, made->getOperands()))
    return differs("use of operands");
  for (auto [of, other] :
       llvm::zip_equal(like->getOperandTypes(), made->getOperandTypes()))
    if (failed(verifyCompatibleShape(of, other)) ||
        getElementTypeOrSelf(of) != getElementTypeOrSelf(other))
      return differs("type of an operand: ") << of << " and " << other;
  if (!like.getScoreBody() != !made.getScoreBody() ||
      (like.getScoreBody() &&
       !OperationEquivalence::isRegionEquivalentTo(
           like.getScoreBody()->getParent(), made.getScoreBody()->getParent(),
           OperationEquivalence::IgnoreLocations)))
    return differs("score");
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
  if (failed(checkAttributes()) || failed(readConfiguration()) ||
      failed(readOperands()) ||
      failed(checkLayouts("operand_layouts", op->getOperandTypes())) ||
      failed(checkLayouts("result_layouts", op->getResultTypes())))
    return failure();
  // Kernels of a chip write into a workspace, the last result.
  unsigned numResults = op->getNumResults();
  if (chip) {
    if (numResults == 0 || !op->getResults().back().use_empty())
      return op->emitError("expected a workspace as the last result, which "
                           "nothing reads, of a call for ")
             << chip;
    --numResults;
  }
  OpBuilder b(op->getContext());
  FailureOr<Operation *> made = attention.create(
      b, op, op->getResults().take_front(numResults).getTypes());
  if (failed(made))
    return failure();
  if (source && failed(compareWithSource(cast<AttentionOpInterface>(*made)))) {
    (*made)->erase();
    return failure();
  }
  for (auto [result, value] :
       llvm::zip(op->getResults(), (*made)->getResults()))
    result.replaceAllUsesWith(value);
  op->erase();
  return success();
}

namespace {

struct VarlenImportStableHLO
    : varlen::impl::VarlenImportStableHLOBase<VarlenImportStableHLO> {
  void runOnOperation() override {
    SmallVector<std::pair<Operation *, ImportedKind>> found;
    getOperation()->walk([&](Operation *op) {
      if (StringAttr target = getTarget(op))
        if (std::optional<ImportedKind> kind =
                ImportedAttention::findKind(target))
          found.push_back({op, *kind});
    });
    for (auto [op, kind] : found) {
      if (failed(Importer(op, kind).import()))
        return signalPassFailure();
      ++numImported;
    }
  }
};

} // namespace
