//===- VarlenDifferentiate.cpp - Functions that differentiate functions ---===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Interfaces/JVPInterface.h"
#include "varlen/Interfaces/VJPInterface.h"
#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENDIFFERENTIATE
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// The choice of arguments and results
//===----------------------------------------------------------------------===//

/// The numbers of the arguments (or results) that `texts` name. `kind` is for
/// messages.
static FailureOr<SmallVector<unsigned>>
choose(func::FuncOp function, ArrayRef<std::string> texts, StringRef kind,
       TypeRange types, llvm::function_ref<Attribute(unsigned)> getName) {
  SmallVector<unsigned> numbers;
  if (texts.empty())
    for (auto [i, type] : llvm::enumerate(types))
      if (hasCotangent(type))
        numbers.push_back(i);
  for (StringRef text : texts) {
    unsigned number = types.size();
    for (unsigned i = 0; i < types.size(); ++i)
      if (auto name = dyn_cast_or_null<StringAttr>(getName(i));
          name && name.getValue() == text)
        number = i;
    if (number == types.size() && text.getAsInteger(10, number))
      return function.emitError()
             << "has no " << kind << " with the name '" << text << "'";
    if (number >= types.size())
      return function.emitError()
             << "expected the number of one of " << types.size() << " " << kind
             << "s, got " << number;
    if (!hasCotangent(types[number]))
      return function.emitError()
             << "expected " << kind << " #" << number
             << " to be a float, or a ranked tensor or vector of floats, got "
             << types[number];
    if (llvm::is_contained(numbers, number))
      return function.emitError()
             << kind << " #" << number << " is named twice";
    numbers.push_back(number);
  }
  if (numbers.empty())
    return function.emitError() << "has no " << kind << " of floats";
  return numbers;
}

//===----------------------------------------------------------------------===//
// Functions in the making
//===----------------------------------------------------------------------===//

namespace {
/// An argument or result of a function to be.
struct Slot {
  Type type;
  DictionaryAttr attrs;
};
} // namespace

static SmallVector<Slot> getArguments(func::FuncOp function) {
  SmallVector<Slot> slots;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    slots.push_back({type, function.getArgAttrDict(i)});
  return slots;
}

static SmallVector<Slot> getResults(func::FuncOp function) {
  SmallVector<Slot> slots;
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    slots.push_back({type, function.getResultAttrDict(i)});
  return slots;
}

static DictionaryAttr makeName(MLIRContext *context, const Twine &name) {
  auto value = StringAttr::get(context, name);
  return DictionaryAttr::get(context, NamedAttribute(kNameAttrName, value));
}

/// The slot of a cotangent, with the prefix `d`, or of a tangent, with `t`.
static Slot getDerivativeSlot(MLIRContext *context, const Slot &slot,
                              StringRef prefix) {
  auto name =
      slot.attrs ? slot.attrs.getAs<StringAttr>(kNameAttrName) : nullptr;
  return {slot.type, name ? makeName(context, prefix + name.getValue())
                          : DictionaryAttr()};
}

/// A function with an entry block.
static OwningOpRef<func::FuncOp> makeFunction(Location loc, const Twine &name,
                                              ArrayRef<Slot> arguments,
                                              ArrayRef<Slot> results) {
  auto getType = [](const Slot &slot) { return slot.type; };
  auto type = FunctionType::get(loc.getContext(),
                                llvm::map_to_vector(arguments, getType),
                                llvm::map_to_vector(results, getType));
  auto function = func::FuncOp::create(loc, name.str(), type);
  for (auto [i, slot] : llvm::enumerate(arguments))
    function.setArgAttrs(i, slot.attrs);
  for (auto [i, slot] : llvm::enumerate(results))
    function.setResultAttrs(i, slot.attrs);
  function.addEntryBlock();
  return OwningOpRef<func::FuncOp>(function);
}

//===----------------------------------------------------------------------===//
// What both modes do
//===----------------------------------------------------------------------===//

static SmallVector<Operation *> getOps(Block &block) {
  return llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
}

/// Operations without a rule that can be written as simpler ones are, if a
/// derivative may have to pass them.
template <typename Interface, typename Builder>
static LogicalResult decompose(Block &block, ValueRange sources) {
  Builder analysis(block.getParentOp()->getLoc(),
                   OpBuilder(&block, block.begin()));
  analysis.markVaried(sources, getOps(block));
  SmallVector<linalg::AggregatedOpInterface> found;
  for (Operation *op : getOps(block)) {
    if (llvm::none_of(op->getResults(),
                      [&](Value value) { return analysis.isVaried(value); }))
      continue;
    op->walk([&](linalg::AggregatedOpInterface inner) {
      if (!isa<Interface>(*inner))
        found.push_back(inner);
    });
  }
  IRRewriter rewriter(block.getParentOp()->getContext());
  for (linalg::AggregatedOpInterface op : found) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return op->emitError()
             << "'" << op->getName()
             << "' has no rule of differentiation and cannot be decomposed";
    rewriter.replaceOp(op, *values);
  }
  return success();
}

/// Folds, resolves shapes by those of what is there anyway, removes what is
/// there twice or for nothing.
static void simplify(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
  scf::ForOp::getCanonicalizationPatterns(patterns, context);
  tensor::CastOp::getCanonicalizationPatterns(patterns, context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  // Not to reach an end of folding is no error.
  (void)applyPatternsGreedily(function, std::move(patterns));
  IRRewriter rewriter(context);
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

//===----------------------------------------------------------------------===//
// Residuals
//===----------------------------------------------------------------------===//

namespace {
/// Cuts a function that computes results and cotangents into one that computes
/// the results and one that computes the cotangents.
class Splitter {
public:
  Splitter(func::FuncOp whole, unsigned numInputs, unsigned numResults)
      : whole(whole), body(whole.getBody().front()), numInputs(numInputs),
        numResults(numResults) {
    findLate();
    for (Value value : getGradients())
      findResiduals(value);
    // In the order in which they are computed.
    llvm::sort(residuals, [](Value lhs, Value rhs) {
      Operation *left = lhs.getDefiningOp(), *right = rhs.getDefiningOp();
      if (left != right)
        return left->isBeforeInBlock(right);
      return cast<OpResult>(lhs).getResultNumber() <
             cast<OpResult>(rhs).getResultNumber();
    });
  }

  ArrayRef<Value> getResiduals() const { return residuals; }
  OwningOpRef<func::FuncOp> makeForward(const Twine &name);
  OwningOpRef<func::FuncOp> makeBackward(const Twine &name);

private:
  ValueRange getReturned() { return body.getTerminator()->getOperands(); }
  ValueRange getGradients() { return getReturned().drop_front(numResults); }
  void findLate();
  bool isCheap(Value value);
  void findResiduals(Value value);
  SmallVector<Slot> getResidualSlots();
  /// Clones what `values` need and returns them.
  void cloneFor(ValueRange values, IRMapping &mapping, func::FuncOp function);

  func::FuncOp whole;
  Block &body;
  unsigned numInputs, numResults;
  /// What the cotangents of results have to be there for.
  llvm::DenseSet<Value> late;
  llvm::DenseSet<Value> visited;
  llvm::DenseMap<Value, bool> cheap;
  SmallVector<Value> residuals;
};
} // namespace

void Splitter::findLate() {
  late.insert_range(body.getArguments().drop_front(numInputs));
  for (Operation &op : body)
    if (llvm::any_of(getDependencies(&op),
                     [&](Value value) { return late.contains(value); }))
      late.insert_range(op.getResults());
}

/// Whether to compute `value` again costs no more than to keep it: shapes,
/// constants, and views of arguments.
bool Splitter::isCheap(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (auto found = cheap.find(value); found != cheap.end())
    return found->second;
  auto isScalarInteger = [](Type type) { return type.isIntOrIndex(); };
  bool isCheapItself = op->hasTrait<OpTrait::ConstantLike>() ||
                       isa<tensor::EmptyOp, linalg::FillOp, tensor::CastOp,
                           tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                           tensor::ExtractSliceOp>(op) ||
                       (isMemoryEffectFree(op) &&
                        llvm::all_of(op->getResultTypes(), isScalarInteger));
  bool result = isCheapItself &&
                llvm::all_of(getDependencies(op),
                             [&](Value operand) { return isCheap(operand); });
  cheap[value] = result;
  return result;
}

void Splitter::findResiduals(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !visited.insert(value).second)
    return;
  if (!late.contains(value) && !isCheap(value)) {
    residuals.push_back(value);
    return;
  }
  for (Value operand : getDependencies(op))
    if (operand.getParentBlock() == &body)
      findResiduals(operand);
}

SmallVector<Slot> Splitter::getResidualSlots() {
  SmallVector<Slot> slots;
  for (auto [i, value] : llvm::enumerate(residuals))
    slots.push_back(
        {value.getType(), makeName(whole.getContext(), "residual" + Twine(i))});
  return slots;
}

void Splitter::cloneFor(ValueRange values, IRMapping &mapping,
                        func::FuncOp function) {
  llvm::DenseSet<Operation *> needed;
  SmallVector<Value> worklist(values);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !mapping.contains(value) && needed.insert(op).second)
      llvm::append_range(worklist, getDependencies(op));
  }
  OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
  for (Operation &op : body.without_terminator())
    if (needed.contains(&op) || !isMemoryEffectFree(&op))
      builder.clone(op, mapping);
  auto returned = llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, whole.getLoc(), returned);
}

OwningOpRef<func::FuncOp> Splitter::makeForward(const Twine &name) {
  SmallVector<Slot> arguments = getArguments(whole);
  arguments.truncate(numInputs);
  SmallVector<Slot> results = getResults(whole);
  results.truncate(numResults);
  llvm::append_range(results, getResidualSlots());
  auto function = makeFunction(whole.getLoc(), name, arguments, results);
  IRMapping mapping;
  mapping.map(body.getArguments().take_front(numInputs),
              function->getArguments());
  SmallVector<Value> returned(getReturned().take_front(numResults));
  llvm::append_range(returned, residuals);
  cloneFor(returned, mapping, *function);
  return function;
}

OwningOpRef<func::FuncOp> Splitter::makeBackward(const Twine &name) {
  SmallVector<Slot> arguments = getArguments(whole), slots = getResidualSlots();
  arguments.insert(arguments.begin() + numInputs, slots.begin(), slots.end());
  SmallVector<Slot> results = getResults(whole);
  auto function = makeFunction(whole.getLoc(), name, arguments,
                               ArrayRef(results).drop_front(numResults));
  IRMapping mapping;
  ValueRange values = function->getArguments();
  mapping.map(body.getArguments().take_front(numInputs),
              values.take_front(numInputs));
  mapping.map(residuals, values.slice(numInputs, residuals.size()));
  mapping.map(body.getArguments().drop_front(numInputs),
              values.drop_front(numInputs + residuals.size()));
  cloneFor(getGradients(), mapping, *function);
  return function;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct VarlenDifferentiate
    : varlen::impl::VarlenDifferentiateBase<VarlenDifferentiate> {
  using VarlenDifferentiateBase::VarlenDifferentiateBase;

  void runOnOperation() override {
    if (failed(differentiate()))
      signalPassFailure();
  }

  LogicalResult differentiate();
  FailureOr<func::FuncOp> find();
  /// What `wrt` and `results` choose of `f`, by number.
  struct Choice {
    SmallVector<unsigned> arguments, results;
  };
  FailureOr<Choice> choose(func::FuncOp f);
  /// A function that does what `f` does, with more arguments and, of its type,
  /// more results, which its return does not have yet.
  FailureOr<OwningOpRef<func::FuncOp>> copy(func::FuncOp f, const Twine &name,
                                            ArrayRef<Slot> moreArguments,
                                            ArrayRef<Slot> moreResults);
  /// A function in the making, whose return lacks the derivatives: the
  /// operations of `f`, of which those without a rule are decomposed.
  struct Draft {
    OwningOpRef<func::FuncOp> function;
    SmallVector<Operation *> ops;
    Operation *terminator;
    /// The arguments of `wrt`, and the numbers of `results`.
    SmallVector<Value> sources;
    SmallVector<unsigned> results;
    /// The arguments that are cotangents of results, or tangents of sources.
    ValueRange given;
  };
  template <typename Interface, typename Builder>
  FailureOr<Draft> begin(func::FuncOp f);
  /// A function that returns the results of `f` and then the cotangents.
  FailureOr<OwningOpRef<func::FuncOp>> buildReverse(func::FuncOp f);
  /// The same with the tangents.
  FailureOr<OwningOpRef<func::FuncOp>> buildForward(func::FuncOp f);
  /// Puts a function into the module, next to `f` or for a declaration.
  LogicalResult insert(OwningOpRef<func::FuncOp> owned, func::FuncOp f);
};
} // namespace

FailureOr<func::FuncOp> VarlenDifferentiate::find() {
  ModuleOp module = getOperation();
  auto f = module.lookupSymbol<func::FuncOp>(function);
  if (!f) {
    // By the location: with the operation all of the module would be printed.
    InFlightDiagnostic error = emitError(module.getLoc())
                               << "expected the name of a function to "
                                  "differentiate, got '"
                               << function << "'";
    std::string names;
    llvm::raw_string_ostream os(names);
    llvm::interleaveComma(module.getOps<func::FuncOp>(), os,
                          [&](func::FuncOp other) { os << other.getName(); });
    if (!names.empty())
      error << ": the module has " << names;
    return error;
  }
  if (!f.getBody().hasOneBlock())
    return f.emitError() << "expected one block to differentiate, got "
                         << f.getBody().getBlocks().size();
  if (mode == DifferentiationMode::Forward &&
      (withResults || residuals == Residuals::Save))
    return f.emitError()
           << (withResults ? "with-results" : "residuals=save")
           << ": expected mode=reverse; a function of the forward mode returns "
              "the results, and has no residuals";
  if (withResults && residuals == Residuals::Save)
    return f.emitError("with-results: expected residuals=recompute; a forward "
                       "function returns the results itself");
  return f;
}

FailureOr<VarlenDifferentiate::Choice>
VarlenDifferentiate::choose(func::FuncOp f) {
  FailureOr<SmallVector<unsigned>> chosenArguments =
      ::choose(f, wrt, "argument", f.getArgumentTypes(),
               [&](unsigned i) { return f.getArgAttr(i, kNameAttrName); });
  FailureOr<SmallVector<unsigned>> chosenResults =
      ::choose(f, results, "result", f.getResultTypes(),
               [&](unsigned i) { return f.getResultAttr(i, kNameAttrName); });
  if (failed(chosenArguments) || failed(chosenResults))
    return failure();
  return Choice{*chosenArguments, *chosenResults};
}

FailureOr<OwningOpRef<func::FuncOp>>
VarlenDifferentiate::copy(func::FuncOp f, const Twine &name,
                          ArrayRef<Slot> moreArguments,
                          ArrayRef<Slot> moreResults) {
  SmallVector<Slot> arguments = getArguments(f), returned = getResults(f);
  llvm::append_range(arguments, moreArguments);
  llvm::append_range(returned, moreResults);
  OwningOpRef<func::FuncOp> made =
      makeFunction(f.getLoc(), name, arguments, returned);
  made->setVisibility(f.getVisibility());
  Block &body = made->getBody().front();
  IRMapping mapping;
  mapping.map(f.getArguments(),
              body.getArguments().take_front(f.getNumArguments()));
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  for (Operation &op : f.getBody().front())
    builder.clone(op, mapping);
  if (!isa<func::ReturnOp>(body.getTerminator()))
    return f.emitError("expected a function that returns");
  return made;
}

template <typename Interface, typename Builder>
FailureOr<VarlenDifferentiate::Draft>
VarlenDifferentiate::begin(func::FuncOp f) {
  constexpr bool isForward = std::is_same_v<Interface, JVPOpInterface>;
  FailureOr<Choice> chosen = choose(f);
  if (failed(chosen))
    return failure();
  auto getSlots = [&](ArrayRef<Slot> slots, ArrayRef<unsigned> numbers) {
    return llvm::map_to_vector(numbers, [&](unsigned number) {
      return getDerivativeSlot(f.getContext(), slots[number],
                               isForward ? "t" : "d");
    });
  };
  SmallVector<Slot> given = getSlots(getArguments(f), chosen->arguments),
                    made = getSlots(getResults(f), chosen->results);
  // Cotangents go the other way.
  if (!isForward)
    std::swap(given, made);
  FailureOr<OwningOpRef<func::FuncOp>> function =
      copy(f, f.getName() + (isForward ? "_jvp" : "_vjp"), given, made);
  if (failed(function))
    return failure();
  Block &body = (*function)->getBody().front();
  ValueRange values = body.getArguments();
  Draft draft;
  for (unsigned number : chosen->arguments)
    draft.sources.push_back(values[number]);
  if (failed(decompose<Interface, Builder>(body, draft.sources)))
    return failure();
  draft.function = std::move(*function);
  draft.results = std::move(chosen->results);
  draft.ops = getOps(body);
  draft.terminator = body.getTerminator();
  draft.given = values.drop_front(f.getNumArguments());
  return draft;
}

FailureOr<OwningOpRef<func::FuncOp>>
VarlenDifferentiate::buildReverse(func::FuncOp f) {
  FailureOr<Draft> draft = begin<VJPOpInterface, VJPBuilder>(f);
  if (failed(draft))
    return failure();
  Operation *terminator = draft->terminator;
  VJPBuilder reverse(f.getLoc(), OpBuilder(terminator));
  reverse.markVaried(draft->sources, draft->ops);
  for (auto [number, cotangent] : llvm::zip_equal(draft->results, draft->given))
    reverse.accumulate(terminator->getOperand(number), cotangent);
  if (failed(reverse.pullBack(draft->ops)))
    return failure();
  reverse.setLoc(f.getLoc());
  SmallVector<Value> gradients;
  for (Value source : draft->sources)
    gradients.push_back(reverse.getCotangentOrZero(source));
  terminator->insertOperands(terminator->getNumOperands(), gradients);
  return std::move(draft->function);
}

FailureOr<OwningOpRef<func::FuncOp>>
VarlenDifferentiate::buildForward(func::FuncOp f) {
  FailureOr<Draft> draft = begin<JVPOpInterface, JVPBuilder>(f);
  if (failed(draft))
    return failure();
  Operation *terminator = draft->terminator;
  JVPBuilder forward(f.getLoc(), OpBuilder(terminator));
  for (auto [source, tangent] : llvm::zip_equal(draft->sources, draft->given))
    forward.setTangent(source, tangent);
  forward.markVaried(draft->sources, draft->ops);
  SmallVector<Value> wanted, tangents;
  for (unsigned number : draft->results)
    wanted.push_back(terminator->getOperand(number));
  if (failed(forward.pushForward(draft->ops, wanted)))
    return failure();
  forward.setLoc(f.getLoc());
  // Rules replace what they compute together with its tangent.
  for (unsigned number : draft->results)
    tangents.push_back(
        forward.getTangentOrZero(terminator->getOperand(number)));
  terminator->insertOperands(terminator->getNumOperands(), tangents);
  return std::move(draft->function);
}

LogicalResult VarlenDifferentiate::insert(OwningOpRef<func::FuncOp> owned,
                                          func::FuncOp f) {
  func::FuncOp function = *owned;
  Operation *there = getOperation().lookupSymbol(function.getName());
  if (!there) {
    f->getBlock()->getOperations().insert(std::next(f->getIterator()),
                                          owned.release());
    return success();
  }
  auto declared = dyn_cast<func::FuncOp>(there);
  if (!declared || !declared.isExternal())
    return there->emitError() << "'" << function.getName()
                              << "' is what varlen-differentiate makes; "
                                 "expected at most a declaration of it";
  if (declared.getFunctionType() != function.getFunctionType())
    return declared.emitError()
           << "expected the type " << function.getFunctionType() << ", got "
           << declared.getFunctionType();
  function.setVisibility(declared.getVisibility());
  declared->getBlock()->getOperations().insert(declared->getIterator(),
                                               owned.release());
  declared.erase();
  return success();
}

LogicalResult VarlenDifferentiate::differentiate() {
  FailureOr<func::FuncOp> f = find();
  if (failed(f))
    return failure();
  bool isForward = mode == DifferentiationMode::Forward;
  FailureOr<OwningOpRef<func::FuncOp>> whole =
      isForward ? buildForward(*f) : buildReverse(*f);
  if (failed(whole))
    return failure();
  func::FuncOp function = **whole;
  if (isForward || withResults) {
    simplify(function);
    return insert(std::move(*whole), *f);
  }
  unsigned numResults = f->getNumResults();
  if (residuals == Residuals::Recompute) {
    Operation *terminator = function.getBody().front().getTerminator();
    terminator->eraseOperands(0, numResults);
    (void)function.eraseResults(
        llvm::BitVector(function.getNumResults()).set(0, numResults));
    simplify(function);
    return insert(std::move(*whole), *f);
  }
  simplify(function);
  Splitter splitter(function, f->getNumArguments(), numResults);
  numResiduals += splitter.getResiduals().size();
  auto forward = splitter.makeForward(f->getName() + "_fwd");
  auto backward = splitter.makeBackward(f->getName() + "_vjp");
  forward->setVisibility(f->getVisibility());
  backward->setVisibility(f->getVisibility());
  // The one that is put next to `f` last stands first.
  if (failed(insert(std::move(backward), *f)))
    return failure();
  return insert(std::move(forward), *f);
}
