//===- SCFRules.cpp - Rules of the scf dialect ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// scf.for
//===----------------------------------------------------------------------===//

namespace {

/// The reverse mode of a loop whose derivative needs no value that it carries:
/// one that fills in parts of tensors, or adds to them. The reverse runs from
/// the last iteration to the first and computes what else it needs of an
/// iteration again.
class ForRule {
public:
  ForRule(scf::ForOp op, VJPBuilder &b) : op(op), b(b) {}
  LogicalResult run();

private:
  /// An iteration of the reverse; `carried` are the cotangents of what the loop
  /// carries, then those of what it captures.
  LogicalResult buildIteration(VJPBuilder &inner, Value induction,
                               ValueRange carried,
                               SmallVectorImpl<Value> &next);
  LogicalResult removeUses(scf::ForOp reverse);

  scf::ForOp op;
  VJPBuilder &b;
  /// The carried values that have cotangents, by number.
  SmallVector<unsigned> numbers;
  /// What the body captures and is differentiated by.
  SmallVector<Value> captured;
};

} // namespace

LogicalResult ForRule::buildIteration(VJPBuilder &inner, Value induction,
                                      ValueRange carried,
                                      SmallVectorImpl<Value> &next) {
  // The carried values stay those of the loop, which are not there in the
  // reverse, until removeUses.
  IRMapping mapping;
  mapping.map(op.getInductionVar(), induction);
  SmallVector<Operation *> ops;
  for (Operation &operation : op.getBody()->without_terminator())
    ops.push_back(inner.clone(operation, mapping));

  SmallVector<Value> sources;
  for (unsigned number : numbers)
    sources.push_back(op.getRegionIterArg(number));
  llvm::append_range(sources, captured);
  inner.markVaried(sources, ops);
  for (auto [value, cotangent] :
       llvm::zip_equal(captured, carried.drop_front(numbers.size())))
    inner.accumulate(value, cotangent);
  for (auto [number, cotangent] :
       llvm::zip(numbers, carried.take_front(numbers.size())))
    inner.accumulate(mapping.lookupOrDefault(op.getYieldedValues()[number]),
                     cotangent);
  if (failed(inner.pullBack(ops)))
    return failure();
  for (Value source : sources)
    next.push_back(inner.getCotangentOrZero(source));
  return success();
}

/// Leaves nothing in the reverse that reads carried values but for their shape,
/// which is that of the initial ones.
LogicalResult ForRule::removeUses(scf::ForOp reverse) {
  eraseDeadOps(*reverse.getBody());
  for (auto [argument, init] :
       llvm::zip_equal(op.getRegionIterArgs(), op.getInitArgs()))
    for (OpOperand &use : llvm::make_early_inc_range(argument.getUses())) {
      if (!reverse->isAncestor(use.getOwner()))
        continue;
      if (!isa<tensor::DimOp>(use.getOwner()))
        return op.emitError()
               << "expected a loop whose derivative needs none of the values "
                  "that it carries, got one that needs #"
               << argument.getArgNumber() - op.getNumInductionVars();
      use.set(init);
    }
  return success();
}

LogicalResult ForRule::run() {
  for (auto [number, argument] : llvm::enumerate(op.getRegionIterArgs())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && !type.hasStaticShape() && !getEarlierOfSameShape(argument))
      return op.emitError() << "expected a loop that keeps the shapes of what "
                               "it carries, cannot tell for #"
                            << number;
  }
  SmallVector<Value> inits;
  for (auto [number, result] : llvm::enumerate(op.getResults()))
    if (b.isVaried(result)) {
      numbers.push_back(number);
      inits.push_back(b.getCotangentOrZero(result));
    }
  for (Value value : getCaptured(op))
    if (b.isVaried(value)) {
      captured.push_back(value);
      inits.push_back(b.getCotangentOrZero(value));
    }

  Type type = op.getInductionVar().getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  Value distance =
      arith::SubIOp::create(b, op.getUpperBound(), op.getLowerBound());
  Value count =
      op.getUnsignedCmp()
          ? arith::CeilDivUIOp::create(b, distance, op.getStep()).getResult()
          : arith::CeilDivSIOp::create(b, distance, op.getStep()).getResult();
  auto reverse = scf::ForOp::create(b, constant(0), count, constant(1), inits);
  // Without values to carry it comes with a terminator.
  if (!reverse.getBody()->empty())
    reverse.getBody()->back().erase();
  VJPBuilder inner(op.getLoc(), OpBuilder::atBlockEnd(reverse.getBody()));
  Value one = arith::ConstantOp::create(inner, inner.getIntegerAttr(type, 1));
  Value last = arith::SubIOp::create(inner, count, one);
  Value number = arith::SubIOp::create(inner, last, reverse.getInductionVar());
  Value offset = arith::MulIOp::create(inner, number, op.getStep());
  Value induction = arith::AddIOp::create(inner, op.getLowerBound(), offset);
  SmallVector<Value> next;
  if (failed(
          buildIteration(inner, induction, reverse.getRegionIterArgs(), next)))
    return failure();
  scf::YieldOp::create(inner, next);
  if (failed(removeUses(reverse)))
    return failure();

  ResultRange results = reverse.getResults();
  // What is captured first: its cotangent so far went into the loop.
  for (auto [value, cotangent] :
       llvm::zip_equal(captured, results.drop_front(numbers.size())))
    b.accumulateInto(value,
                     [cotangent = cotangent](Value) { return cotangent; });
  for (auto [number, cotangent] :
       llvm::zip(numbers, results.take_front(numbers.size())))
    b.accumulate(op.getInitArgs()[number], cotangent);
  return success();
}

static LogicalResult pullBack(scf::ForOp op, VJPBuilder &b) {
  return ForRule(op, b).run();
}

//===----------------------------------------------------------------------===//
// scf.if
//===----------------------------------------------------------------------===//

/// The same branch: it computes again what it needs, and what the branches
/// capture gets a cotangent in each.
static LogicalResult pullBack(scf::IfOp op, VJPBuilder &b) {
  SmallVector<Value> captured, before;
  SmallVector<Type> types;
  for (Value value : getCaptured(op)) {
    if (!b.isVaried(value))
      continue;
    captured.push_back(value);
    types.push_back(value.getType());
    // A branch may add to a part of a tensor, and pass on the rest. Numbers
    // begin in the branches, with the first term.
    before.push_back(isa<RankedTensorType>(value.getType())
                         ? b.getCotangentOrZero(value)
                         : b.getCotangent(value));
  }
  auto reverse = scf::IfOp::create(b, types, op.getCondition(),
                                   /*withElseRegion=*/true);
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), reverse->getRegions())) {
    Block &block = from.front();
    VJPBuilder inner(op.getLoc(), OpBuilder::atBlockEnd(&to.front()));
    IRMapping mapping;
    SmallVector<Operation *> ops;
    for (Operation &operation : block.without_terminator())
      ops.push_back(inner.clone(operation, mapping));
    inner.markVaried(captured, ops);
    for (auto [value, cotangent] : llvm::zip_equal(captured, before))
      inner.accumulate(value, cotangent);
    for (auto [yielded, result] :
         llvm::zip_equal(block.getTerminator()->getOperands(), op.getResults()))
      inner.accumulate(mapping.lookupOrDefault(yielded),
                       b.getCotangent(result));
    if (failed(inner.pullBack(ops)))
      return failure();
    SmallVector<Value> cotangents;
    for (Value value : captured)
      cotangents.push_back(inner.getCotangentOrZero(value));
    scf::YieldOp::create(inner, cotangents);
    eraseDeadOps(to.front());
  }
  for (auto [value, cotangent] :
       llvm::zip_equal(captured, reverse.getResults()))
    b.accumulateInto(value,
                     [cotangent = cotangent](Value) { return cotangent; });
  return success();
}

//===----------------------------------------------------------------------===//
// The forward mode
//===----------------------------------------------------------------------===//

namespace {
/// A region that computes tangents beside values: its block yields those of
/// the region that it is made of, and then the tangents of the ones of
/// `numbers`.
class TangentRegion {
public:
  TangentRegion(Operation *op, JVPBuilder &b) : op(op), b(b) {
    for (Value value : getCaptured(op))
      if (b.getTangent(value))
        captured.push_back(value);
  }

  /// Which values that `from` yields vary with what has tangents; `inits` are
  /// what its last arguments start from, if it is the body of a loop.
  void findVaried(Block &from, ValueRange inits);
  ArrayRef<unsigned> getNumbers() const { return numbers.getArrayRef(); }

  /// Fills in `to`; `arguments` stand for those of `from`, and `tangents` are
  /// those of the last ones, by `numbers`.
  LogicalResult fill(Block &from, Block &to, ValueRange arguments,
                     ValueRange tangents);

  /// Puts the results of `replacement`, values and then tangents, in the place
  /// of those of the operation.
  void replace(Operation *replacement);

private:
  static SmallVector<Operation *> getOps(Block &block) {
    return llvm::to_vector(
        llvm::make_pointer_range(block.without_terminator()));
  }

  Operation *op;
  JVPBuilder &b;
  SmallVector<Value> captured;
  llvm::SmallSetVector<unsigned, 4> numbers;
};
} // namespace

void TangentRegion::findVaried(Block &from, ValueRange inits) {
  JVPBuilder analysis(op->getLoc(), b);
  SmallVector<Value> sources(captured);
  ValueRange carried = from.getArguments().take_back(inits.size());
  for (auto [init, argument] : llvm::zip_equal(inits, carried))
    if (b.getTangent(init))
      sources.push_back(argument);
  ValueRange yielded = from.getTerminator()->getOperands();
  analysis.markCarried(sources, carried, yielded.take_front(inits.size()),
                       getOps(from));
  for (auto [number, value] : llvm::enumerate(yielded)) {
    bool isCarried = number < carried.size();
    if (analysis.isVaried(value) ||
        (isCarried && analysis.isVaried(carried[number])))
      numbers.insert(number);
  }
}

LogicalResult TangentRegion::fill(Block &from, Block &to, ValueRange arguments,
                                  ValueRange tangents) {
  JVPBuilder inner(op->getLoc(), OpBuilder::atBlockEnd(&to));
  IRMapping mapping;
  mapping.map(from.getArguments(), arguments);
  for (Operation &operation : from)
    inner.clone(operation, mapping);
  SmallVector<Value> sources(captured);
  for (Value value : captured)
    inner.setTangent(value, b.getTangent(value));
  if (!tangents.empty()) {
    ValueRange carried =
        arguments.take_back(from.getTerminator()->getNumOperands());
    for (auto [number, tangent] : llvm::zip_equal(numbers, tangents)) {
      inner.setTangent(carried[number], tangent);
      sources.push_back(carried[number]);
    }
  }
  // It keeps what it yields where that is replaced.
  Operation *yield = to.getTerminator();
  SmallVector<Operation *> ops = getOps(to);
  inner.markVaried(sources, ops);
  inner.setInsertionPoint(yield);
  if (failed(inner.pushForward(ops, yield->getOperands())))
    return failure();
  SmallVector<Value> yielded;
  for (unsigned number : numbers)
    yielded.push_back(inner.getTangentOrZero(yield->getOperand(number)));
  yield->insertOperands(yield->getNumOperands(), yielded);
  eraseDeadOps(to);
  return success();
}

void TangentRegion::replace(Operation *replacement) {
  unsigned count = op->getNumResults();
  op->replaceAllUsesWith(replacement->getResults().take_front(count));
  for (auto [number, tangent] :
       llvm::zip_equal(numbers, replacement->getResults().drop_front(count)))
    b.setTangent(replacement->getResult(number), tangent);
}

/// A loop that carries tangents beside values.
static LogicalResult pushForward(scf::ForOp op, JVPBuilder &b) {
  TangentRegion region(op, b);
  region.findVaried(*op.getBody(), op.getInitArgs());
  if (region.getNumbers().empty())
    return success();
  SmallVector<Value> inits(op.getInitArgs());
  for (unsigned number : region.getNumbers())
    inits.push_back(b.getTangentOrZero(op.getInitArgs()[number]));
  auto loop = scf::ForOp::create(b, op.getLowerBound(), op.getUpperBound(),
                                 op.getStep(), inits);
  loop->setAttrs(op->getAttrs());
  unsigned count = op.getBody()->getNumArguments();
  ValueRange arguments = loop.getBody()->getArguments();
  if (failed(region.fill(*op.getBody(), *loop.getBody(),
                         arguments.take_front(count),
                         arguments.drop_front(count))))
    return failure();
  region.replace(loop);
  return success();
}

/// A branch that returns tangents beside values.
static LogicalResult pushForward(scf::IfOp op, JVPBuilder &b) {
  TangentRegion region(op, b);
  for (Region &branch : op->getRegions())
    region.findVaried(branch.front(), /*inits=*/{});
  SmallVector<Type> types(op->getResultTypes());
  for (unsigned number : region.getNumbers())
    types.push_back(op.getResult(number).getType());
  auto both =
      scf::IfOp::create(b, types, op.getCondition(), /*withElseRegion=*/true);
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), both->getRegions()))
    if (failed(region.fill(from.front(), to.front(), /*arguments=*/{},
                           /*tangents=*/{})))
      return failure();
  region.replace(both);
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerSCFDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    // What the rules are written in.
    context->loadDialect<arith::ArithDialect, tensor::TensorDialect>();
    attach<PullBackModel, scf::ForOp, scf::IfOp>(*context);
    attach<PushForwardModel, scf::ForOp, scf::IfOp>(*context);
  });
}
