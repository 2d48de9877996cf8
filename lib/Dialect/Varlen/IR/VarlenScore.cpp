//===- VarlenScore.cpp - Score regions ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "TotalScore.h"
#include "varlen/Interfaces/JVPInterface.h"
#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::setScoreArgumentNames(Region &region,
                                   OpAsmSetValueNameFn setName) {
  constexpr StringLiteral names[] = {"score", "query", "key"};
  for (BlockArgument argument : region.getArguments()) {
    StringRef name = isa<TableType>(argument.getType()) ? "table" : "capture";
    if (argument.getArgNumber() < Captures)
      name = names[argument.getArgNumber()];
    setName(argument, name);
  }
}

bool varlen::readsPositions(Block *score) {
  return score && !(score->getArgument(QueryPosition).use_empty() &&
                    score->getArgument(KeyPosition).use_empty());
}

bool varlen::changesScores(Block *score) {
  return score &&
         score->getTerminator()->getOperand(0) != score->getArgument(Score);
}

/// What the region yields behind the score that is a flag, or that is none.
static Value getYielded(Block *score, bool isFlag) {
  if (!score)
    return {};
  for (Value value : score->getTerminator()->getOperands().drop_front())
    if (value.getType().isInteger(1) == isFlag)
      return value;
  return {};
}

Value varlen::getVisible(Block *score) {
  return getYielded(score, /*isFlag=*/true);
}

Value varlen::getFactor(Block *score) {
  return getYielded(score, /*isFlag=*/false);
}

bool varlen::isTable(Block *score, unsigned capture) {
  return score && Captures + capture < score->getNumArguments() &&
         isa<TableType>(score->getArgument(Captures + capture).getType());
}

bool varlen::isOfKeys(BlockArgument table) {
  return cast<TableType>(table.getType()).getOfKeys();
}

bool varlen::isKeyTable(Block *score, unsigned capture) {
  return isTable(score, capture) &&
         isOfKeys(score->getArgument(Captures + capture));
}

static SmallVector<BlockArgument> getCaptureArguments(Block *score,
                                                      bool areTables) {
  SmallVector<BlockArgument> arguments;
  if (score)
    llvm::copy_if(score->getArguments().drop_front(Captures),
                  std::back_inserter(arguments), [&](BlockArgument argument) {
                    return isa<TableType>(argument.getType()) == areTables;
                  });
  return arguments;
}

SmallVector<BlockArgument> varlen::getNumberArguments(Block *score) {
  return getCaptureArguments(score, /*areTables=*/false);
}

SmallVector<BlockArgument> varlen::getTableArguments(Block *score) {
  return getCaptureArguments(score, /*areTables=*/true);
}

SetVector<Value> varlen::getSources(Value value) {
  SetVector<Value> reached;
  if (value)
    reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    if (Operation *op = reached[i].getDefiningOp())
      reached.insert_range(op->getOperands());
  return reached;
}

bool varlen::dependsOn(Value value, Value source) {
  return getSources(value).contains(source);
}

/// Whether a lookup is of the number that a key has.
static bool isOfKey(LookupOp lookup, Block *score) {
  return isOfKeys(cast<BlockArgument>(lookup.getTable())) &&
         lookup.getIndex() == score->getArgument(KeyPosition);
}

int64_t varlen::countVisibleKinds(Block *score) {
  Value visible = getVisible(score);
  if (!visible)
    return 0;
  bool reads =
      llvm::any_of(getNumberArguments(score),
                   [&](Value number) { return dependsOn(visible, number); }) ||
      llvm::any_of(score->getOps<LookupOp>(), [&](LookupOp lookup) {
        return dependsOn(visible, lookup) && !isOfKey(lookup, score);
      });
  return dependsOn(visible, score->getArgument(QueryPosition)) + reads;
}

bool varlen::looksUpOtherKeys(Block *score) {
  return score && llvm::any_of(score->getOps<LookupOp>(), [&](LookupOp lookup) {
           return isOfKeys(cast<BlockArgument>(lookup.getTable())) &&
                  !isOfKey(lookup, score);
         });
}

bool varlen::isApproximate(Operation *op) {
  auto tanh = dyn_cast<math::TanhOp>(op);
  return tanh &&
         bitEnumContainsAll(tanh.getFastmath(), arith::FastMathFlags::afn);
}

bool varlen::computesFunctions(Block *body) {
  return body && llvm::any_of(*body, [](Operation &op) {
           return isa<math::MathDialect>(op.getDialect()) &&
                  !isApproximate(&op) &&
                  !isa<math::Exp2Op, math::Log2Op, math::FmaOp, math::AbsFOp,
                       math::CeilOp>(op);
         });
}

SmallVector<LookupOp> varlen::getScoreLookups(Block *score, unsigned capture) {
  Value table = score->getArgument(Captures + capture);
  Value newScore = score->getTerminator()->getOperand(0);
  SmallVector<LookupOp> lookups;
  for (auto lookup : score->getOps<LookupOp>())
    if (lookup.getTable() == table && dependsOn(newScore, lookup))
      lookups.push_back(lookup);
  return lookups;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// That the region has one block with the arguments it is called with, and ends
/// with a score.
static LogicalResult verifySignature(Operation *op, Block *score,
                                     FloatType compute, unsigned captures) {
  auto i32 = IntegerType::get(op->getContext(), 32);
  SmallVector<Type> wanted = {compute, i32, i32};
  auto table = [&](bool ofKeys) {
    return TableType::get(op->getContext(), compute, ofKeys);
  };
  for (unsigned capture = 0; capture < captures; ++capture)
    wanted.push_back(isTable(score, capture)
                         ? Type(table(isKeyTable(score, capture)))
                         : Type(compute));
  if (score->getArgumentTypes() != TypeRange(wanted))
    return op->emitOpError("expected a score region of ")
           << wanted
           << ": the score, the positions of query and key, and a number of "
              "each capture, or a row of it as "
           << table(/*ofKeys=*/false) << ", got " << score->getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(score->back());
  Type i1 = IntegerType::get(op->getContext(), 1);
  auto yields = [&](ArrayRef<Type> types) {
    return yield && yield->getOperandTypes() == TypeRange(types);
  };
  if (!yields({compute}) && !yields({compute, i1}) &&
      !yields({compute, compute}) && !yields({compute, i1, compute})) {
    auto error = op->emitOpError("expected the score region to end with "
                                 "varlen.yield of one ")
                 << compute
                 << ", the score, of 'i1' too if it hides keys, and of "
                 << compute << " if it has a factor of probabilities, got ";
    if (yield)
      return error << yield->getOperandTypes();
    return error << "'" << score->back().getName() << "'";
  }
  if (dependsOn(getVisible(score), score->getArgument(Score)))
    return op->emitOpError("expected positions and captures to say whether a "
                           "key is visible, got what depends on the score");
  if (dependsOn(getFactor(score), score->getArgument(Score)))
    return op->emitOpError("expected positions and captures to say what a "
                           "probability is multiplied by, got what depends on "
                           "the score");
  return success();
}

LogicalResult varlen::verifyScore(Operation *op, Block *score,
                                  FloatType compute, unsigned captures) {
  if (op->getNumRegions() > 1)
    return op->emitOpError("expected one score region at most, got ")
           << op->getNumRegions();
  if (!score) {
    if (captures == 0)
      return success();
    return op->emitOpError("expected a score region beside captures");
  }
  if (failed(verifySignature(op, score, compute, captures)))
    return failure();
  for (Operation &inner : score->without_terminator())
    if (failed(verifyScoreOperation(inner)))
      return failure();
  return success();
}

LogicalResult varlen::verifyCaptureNumbers(Operation *op,
                                           ArrayRef<int64_t> numbers,
                                           int64_t captures, StringRef name) {
  int64_t next = 0;
  for (int64_t number : numbers) {
    if (number < next || number >= captures)
      return op->emitOpError("expected ")
             << name << " to be ascending numbers of the " << captures
             << " captures, got " << number;
    next = number + 1;
  }
  return success();
}

LogicalResult varlen::verifyKeyLookups(Block *score,
                                       ArrayRef<int64_t> captures) {
  for (int64_t capture : captures) {
    if (!isKeyTable(score, capture))
      continue;
    for (LookupOp lookup : getScoreLookups(score, capture))
      if (lookup.getIndex() != score->getArgument(KeyPosition))
        return lookup.emitOpError("expected the position of the key for an "
                                  "index in a table of keys whose gradient is "
                                  "computed in tiles");
  }
  return success();
}

/// Whether a value of a score region, if it is not null, has a derivative by
/// `source`: from operation to operation by floats.
static bool isSmoothIn(Value value, Value source) {
  SetVector<Value> reached;
  if (value)
    reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    if (Operation *op = reached[i].getDefiningOp())
      for (Value operand : op->getOperands())
        if (isa<FloatType, TableType>(operand.getType()))
          reached.insert(operand);
  return reached.contains(source);
}

LogicalResult varlen::verifyFactorCaptures(Operation *op, Block *score,
                                           ArrayRef<int64_t> captures) {
  for (int64_t capture : captures)
    if (isSmoothIn(getFactor(score), score->getArgument(Captures + capture)))
      return op->emitOpError("expected a factor of probabilities without a "
                             "derivative by a capture whose gradient is "
                             "wanted, got one with that by capture ")
             << capture;
  return success();
}

LogicalResult varlen::verifyScoreRules(Block *score) {
  if (!score)
    return success();
  for (Operation &inner : score->without_terminator()) {
    auto isFloat = [](Type type) { return isa<FloatType>(type); };
    bool isSmooth = llvm::any_of(inner.getOperandTypes(), isFloat) &&
                    llvm::any_of(inner.getResultTypes(), isFloat);
    // A sine and a cosine have a rule each.
    bool hasRules = isa<VJPOpInterface>(inner) && isa<JVPOpInterface>(inner);
    if (isSmooth && !hasRules && !isa<math::SincosOp>(inner))
      return inner.emitError() << "'" << inner.getName()
                               << "' has no rule of differentiation, but is "
                                  "part of the score of an attention that is "
                                  "differentiated";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

SmallVector<Value> varlen::cloneScoreBody(OpBuilder &builder, Block *score,
                                          ValueRange arguments) {
  IRMapping mapping;
  mapping.map(score->getArguments(), arguments);
  for (Operation &inner : score->without_terminator())
    cloneTotal(builder, inner, mapping);
  return llvm::map_to_vector(
      score->getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Writes a body out at a point: all of it, or, if it is not null, what
/// `wanted` is computed from. Returns the copies of operations, without
/// lookups.
static SmallVector<Operation *> emitBody(OpBuilder &builder, Block *score,
                                         const ScorePoint &point,
                                         IRMapping &mapping,
                                         Value wanted = {}) {
  SetVector<Value> sources = getSources(wanted);
  auto isSource = [&](Value value) { return sources.contains(value); };
  mapping.map(score->getArguments(), point.arguments);
  SmallVector<Operation *> copies;
  for (Operation &inner : score->without_terminator()) {
    if (wanted && llvm::none_of(inner.getResults(), isSource))
      continue;
    auto lookup = dyn_cast<LookupOp>(inner);
    if (!lookup) {
      copies.push_back(builder.clone(inner, mapping));
      continue;
    }
    auto table = cast<BlockArgument>(lookup.getTable());
    mapping.map(lookup.getEntry(),
                point.lookup(builder, lookup.getLoc(),
                             table.getArgNumber() - Captures,
                             mapping.lookupOrDefault(lookup.getIndex())));
  }
  return copies;
}

static Value emitValue(OpBuilder &builder, Block *score,
                       const ScorePoint &point, Value wanted) {
  IRMapping mapping;
  emitBody(builder, score, point, mapping, wanted);
  return mapping.lookupOrDefault(wanted);
}

Value varlen::emitScore(OpBuilder &builder, Block *score,
                        const ScorePoint &point) {
  return emitValue(builder, score, point,
                   score->getTerminator()->getOperand(0));
}

Value varlen::emitVisible(OpBuilder &builder, Block *score,
                          const ScorePoint &point) {
  Value visible = getVisible(score);
  return visible ? emitValue(builder, score, point, visible) : Value();
}

Value varlen::emitFactor(OpBuilder &builder, Block *score,
                         const ScorePoint &point) {
  Value factor = getFactor(score);
  return factor ? emitValue(builder, score, point, factor) : Value();
}

Value varlen::emitIndex(OpBuilder &builder, const ScorePoint &point,
                        LookupOp lookup) {
  return emitValue(builder, lookup->getBlock(), point, lookup.getIndex());
}

/// The cotangents of `sources`, of a body whose copy `copies` and `mapping`
/// are.
static SmallVector<Value> pullBackBody(VJPBuilder &vjp, Block *score,
                                       const IRMapping &mapping,
                                       ArrayRef<Operation *> copies,
                                       Value cotangent, ValueRange sources) {
  SmallVector<Value> copiesOfSources = llvm::map_to_vector(
      sources, [&](Value source) { return mapping.lookupOrDefault(source); });
  vjp.markVaried(copiesOfSources, copies);
  vjp.accumulate(mapping.lookupOrDefault(score->getTerminator()->getOperand(0)),
                 cotangent);
  LogicalResult pulled = vjp.pullBack(copies);
  assert(succeeded(pulled) && "verifyScoreRules has looked for rules");
  (void)pulled;
  return llvm::map_to_vector(copiesOfSources, [&](Value source) {
    return vjp.getCotangentOrZero(source);
  });
}

/// The tangents of `wanted`, which `ops` compute.
static SmallVector<Value> pushBodyForward(JVPBuilder &jvp, ValueRange sources,
                                          ArrayRef<Operation *> ops,
                                          ValueRange wanted) {
  jvp.markVaried(sources, ops);
  LogicalResult pushed = jvp.pushForward(ops, wanted);
  assert(succeeded(pushed) && "verifyScoreRules has looked for rules");
  (void)pushed;
  return llvm::map_to_vector(
      wanted, [&](Value value) { return jvp.getTangentOrZero(value); });
}

/// Writes a body out as emitBody does, with the tangents of its arguments and
/// of lookups, which are `sources` then.
static SmallVector<Operation *>
emitBodyWithTangents(JVPBuilder &jvp, Block *score, const ScorePoint &point,
                     const ScorePoint &tangents, IRMapping &mapping,
                     SmallVectorImpl<Value> &sources) {
  auto addSource = [&](Value value, Value tangent) {
    if (!tangent)
      return;
    sources.push_back(value);
    jvp.setTangent(value, tangent);
  };
  for (auto [argument, tangent] :
       llvm::zip_equal(point.arguments, tangents.arguments))
    addSource(argument, tangent);
  // A tangent comes before what is computed of it.
  auto lookup = [&](OpBuilder &b, Location at, unsigned capture, Value index) {
    Value entry = point.lookup(b, at, capture, index);
    addSource(entry, tangents.lookup(b, at, capture, index));
    return entry;
  };
  return emitBody(jvp, score, {point.arguments, lookup}, mapping);
}

SmallVector<Value> varlen::emitScoreVJP(OpBuilder &builder, Location loc,
                                        Block *score, const ScorePoint &point,
                                        Value cotangent, ValueRange sources) {
  VJPBuilder vjp(loc, builder);
  IRMapping mapping;
  SmallVector<Operation *> copies = emitBody(vjp, score, point, mapping);
  return pullBackBody(vjp, score, mapping, copies, cotangent, sources);
}

Value varlen::emitScoreJVP(OpBuilder &builder, Location loc, Block *score,
                           const ScorePoint &point,
                           const ScorePoint &tangents) {
  JVPBuilder jvp(loc, builder);
  IRMapping mapping;
  SmallVector<Value> sources;
  SmallVector<Operation *> copies =
      emitBodyWithTangents(jvp, score, point, tangents, mapping, sources);
  Value newScore =
      mapping.lookupOrDefault(score->getTerminator()->getOperand(0));
  return pushBodyForward(jvp, sources, copies, newScore).front();
}

SmallVector<Value> varlen::emitScoreVJPTangents(OpBuilder &builder,
                                                Location loc, Block *score,
                                                const ScorePoint &point,
                                                const ScorePoint &tangents,
                                                const CotangentPair &cotangent,
                                                ValueRange sources) {
  JVPBuilder jvp(loc, builder);
  IRMapping mapping;
  SmallVector<Value> varied = {cotangent.own};
  jvp.setTangent(cotangent.own, cotangent.tangent);
  SmallVector<Operation *> ops =
      emitBodyWithTangents(jvp, score, point, tangents, mapping, varied);
  // The reverse is straight-line code like the body, and differentiated with
  // it: what is behind the body now.
  Block *block = jvp.getInsertionBlock();
  Block::iterator end = jvp.getInsertionPoint();
  bool isFirst = end == block->begin();
  Block::iterator last = isFirst ? end : std::prev(end);
  VJPBuilder vjp(loc, jvp);
  SmallVector<Value> cotangents =
      pullBackBody(vjp, score, mapping, ops, cotangent.own, sources);
  for (Operation &op :
       llvm::make_range(isFirst ? block->begin() : std::next(last), end))
    ops.push_back(&op);
  return pushBodyForward(jvp, varied, ops, cotangents);
}
