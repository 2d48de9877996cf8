//===- AttnRules.cpp - Rules of attention and its derivatives -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With the Jacobian J of an attention varlen.attn_grad is J^T y for cotangents
// y, and varlen.attn_jvp is J t for tangents t. Both come from <y, J t>: what
// that has for a gradient by the operands of the attention is the gradient of
// the tangents, varlen.attn_jvp_grad, in which every rule of the second order
// ends. Its own derivatives have no rule: it is decomposed.
//
//===----------------------------------------------------------------------===//

#include "AttnRules.h"

#include "Models.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Operands that have derivatives
//===----------------------------------------------------------------------===//

namespace {
/// Values of q, k, v, sink and some captures of an attention: these themselves,
/// or gradients or tangents. A sink may be null.
struct OfInputs {
  Value q, k, v, sink;
  SmallVector<Value> captures;
};
} // namespace

static OfInputs getInputs(AttentionOpInterface op, ArrayRef<int64_t> captures) {
  return {op.getQ(), op.getK(), op.getV(), op.getSink(),
          llvm::map_to_vector(captures, [&](int64_t number) -> Value {
            return op.getCaptures()[number];
          })};
}

/// The results of varlen.attn_grad or varlen.attn_jvp_grad.
static OfInputs getGradients(AttentionOpInterface gradient) {
  SmallVector<Value> results(gradient->getResults());
  size_t ofCaptures = gradient.getWrtCaptures().size();
  return {results[0], results[1], results[2],
          gradient.getSink() ? results[3] : Value(),
          SmallVector<Value>(ArrayRef(results).take_back(ofCaptures))};
}

/// What `function` makes of each of them.
static OfInputs map(OfInputs values,
                    llvm::function_ref<Value(Value)> function) {
  for (Value *value : {&values.q, &values.k, &values.v, &values.sink})
    *value = *value ? function(*value) : Value();
  for (Value &capture : values.captures)
    capture = function(capture);
  return values;
}

/// Calls `function` with each of the ones and its counterpart of the others,
/// which may have a sink more.
static void forEachPair(const OfInputs &ones, const OfInputs &others,
                        llvm::function_ref<void(Value, Value)> function) {
  function(ones.q, others.q);
  function(ones.k, others.k);
  function(ones.v, others.v);
  if (ones.sink)
    function(ones.sink, others.sink);
  for (auto [one, other] : llvm::zip_equal(ones.captures, others.captures))
    function(one, other);
}

/// The captures, by number, of which that holds.
static SmallVector<int64_t>
filterCaptures(AttentionOpInterface op,
               llvm::function_ref<bool(int64_t, Value)> holds) {
  SmallVector<int64_t> numbers;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (holds(number, capture))
      numbers.push_back(number);
  return numbers;
}

static bool isInputVaried(AttentionOpInterface op, DerivativeBuilder &b) {
  SmallVector<Value> inputs = {op.getQ(), op.getK(), op.getV()};
  if (op.getSink())
    inputs.push_back(op.getSink());
  llvm::append_range(inputs, op.getCaptures());
  return llvm::any_of(inputs, [&](Value input) { return b.isVaried(input); });
}

/// `values`, which are of captures `numbers`, at captures `wanted`; null for
/// those without one.
static SmallVector<Value> findOfCaptures(ArrayRef<int64_t> wanted,
                                         ArrayRef<int64_t> numbers,
                                         ArrayRef<Value> values) {
  return llvm::map_to_vector(wanted, [&](int64_t number) {
    const int64_t *found = llvm::find(numbers, number);
    return found == numbers.end() ? Value() : values[found - numbers.begin()];
  });
}

/// `value` as one of the type of `like`, which may know more or fewer extents,
/// or zeros for null.
static Value getLike(DerivativeBuilder &b, Value value, Value like) {
  if (!value)
    return b.zerosLike(like);
  if (value.getType() == like.getType())
    return value;
  return tensor::CastOp::create(b, like.getType(), value);
}

/// That `op` can be differentiated with respect to those captures; it has no
/// `kind` where keys are in pages, or quantised.
static LogicalResult verifyDerivative(AttentionOpInterface op, StringRef kind,
                                      ArrayRef<int64_t> captures) {
  if (op.isBufferized())
    return op->emitError("expected tensors to differentiate, got memrefs");
  if (op.isPaged())
    return op->emitError("expected keys without a block_table to "
                         "differentiate: pages have no ")
           << kind;
  if (op.isQuantised())
    return op->emitError("expected k and v of the type of q to differentiate: "
                         "quantised ones have no ")
           << kind;
  if (failed(verifyScoreRules(op.getScoreBody())))
    return failure();
  return verifyFactorCaptures(op, op.getScoreBody(), captures);
}

/// Adds to the cotangents of `operands` the results of `gradient`.
static void accumulate(VJPBuilder &b, const OfInputs &operands,
                       AttentionOpInterface gradient) {
  // Where operands are tangents, there may be none of the sink.
  forEachPair(operands, getGradients(gradient),
              [&](Value operand, Value cotangent) {
                b.accumulate(operand, getLike(b, cotangent, operand));
              });
}

/// Each of `values`, or zeros for null, as one of the type of its counterpart.
static SmallVector<Value> getAllLike(DerivativeBuilder &b,
                                     ArrayRef<Value> values,
                                     ArrayRef<Value> likes) {
  return llvm::map_to_vector(llvm::zip_equal(values, likes), [&](auto pair) {
    return getLike(b, std::get<0>(pair), std::get<1>(pair));
  });
}

/// The attention of `op` with its tangents along `tangents`, zeros in place of
/// null.
static AttnJVPOp createJVP(AttentionOpInterface op, DerivativeBuilder &b,
                           const OfInputs &tangents,
                           ArrayRef<int64_t> captures) {
  OfInputs operands = getInputs(op, captures);
  SmallVector<Value> ofCaptures =
      getAllLike(b, tangents.captures, operands.captures);
  return AttnJVPOp::create(b, op, getLike(b, tangents.q, operands.q),
                           getLike(b, tangents.k, operands.k),
                           getLike(b, tangents.v, operands.v), tangents.sink,
                           ofCaptures, captures);
}

static OfInputs getTangents(AttentionOpInterface op, JVPBuilder &b,
                            ArrayRef<int64_t> captures) {
  return map(getInputs(op, captures),
             [&](Value operand) { return b.getTangent(operand); });
}

namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// varlen.attn, varlen.attn_into
//===----------------------------------------------------------------------===//

/// Destinations are not read: their cotangents are zero.
static LogicalResult pullBackAttention(AttentionOpInterface op, VJPBuilder &b) {
  SmallVector<int64_t> captures = filterCaptures(
      op, [&](int64_t, Value capture) { return b.isVaried(capture); });
  if (failed(verifyDerivative(op, "gradient", captures)))
    return failure();
  auto gradient =
      AttnGradOp::create(b, op, b.getCotangentOrZero(op->getResult(0)),
                         b.getCotangent(op->getResult(1)), captures);
  accumulate(b, getInputs(op, captures), gradient);
  return success();
}

/// One operation computes out, lse and their tangents.
static LogicalResult pushAttentionForward(AttentionOpInterface op,
                                          JVPBuilder &b) {
  SmallVector<int64_t> captures = filterCaptures(
      op, [&](int64_t, Value capture) { return b.hasTangent(capture); });
  if (failed(verifyDerivative(op, "tangent", captures)))
    return failure();
  AttnJVPOp jvp = createJVP(op, b, getTangents(op, b, captures), captures);
  op->replaceAllUsesWith(jvp.getResults().take_front(2));
  b.setTangent(jvp.getOut(), jvp.getTout());
  b.setTangent(jvp.getLse(), jvp.getTlse());
  return success();
}

//===----------------------------------------------------------------------===//
// varlen.attn_grad, varlen.attn_grad_into
//===----------------------------------------------------------------------===//

// A gradient is a function of the cotangents and of what the attention is of:
// out and lse follow from that, so what varies with them is part of what varies
// with q, k and v, and they have no cotangents of their own.

/// For cotangents t of the gradients <t, J^T y> = <y, J t>: that of y is J t,
/// and those of the operands are the gradients of the tangents.
template <typename GradOp>
static LogicalResult pullBackGradient(GradOp op, VJPBuilder &b) {
  auto attn = cast<AttentionOpInterface>(op.getOperation());
  OfInputs t = map(getGradients(attn),
                   [&](Value gradient) { return b.getCotangent(gradient); });
  SmallVector<int64_t> captures =
      filterCaptures(attn, [&](int64_t number, Value capture) {
        return b.isVaried(capture) ||
               findOfCaptures(number, op.getWrtCaptures(), t.captures).front();
      });
  if (failed(verifyDerivative(attn, "gradient", captures)))
    return failure();
  t.captures = findOfCaptures(captures, op.getWrtCaptures(), t.captures);
  AttnJVPOp jvp = createJVP(attn, b, t, captures);
  b.accumulate(op.getDout(), getLike(b, jvp.getTout(), op.getDout()));
  if (op.getDlse())
    b.accumulate(op.getDlse(), getLike(b, jvp.getTlse(), op.getDlse()));
  if (isInputVaried(attn, b))
    accumulate(b, getInputs(attn, captures),
               AttnJVPGradOp::create(b, jvp, op.getDout(), op.getDlse(),
                                     /*dout=*/Value(), /*dlse=*/Value(),
                                     jvp.getTcaptures(), captures));
  return success();
}

/// The tangents of J^T y along t and ty are the gradients of <y, J t>, as
/// second derivatives are symmetric, and J^T ty: gradients of the tangents for
/// cotangents y of these, and ty of out and lse.
template <typename GradOp>
static LogicalResult pushGradientForward(GradOp op, JVPBuilder &b) {
  auto attn = cast<AttentionOpInterface>(op.getOperation());
  SmallVector<int64_t> captures =
      filterCaptures(attn, [&](int64_t number, Value capture) {
        return b.hasTangent(capture) ||
               llvm::is_contained(op.getWrtCaptures(), number);
      });
  if (failed(verifyDerivative(attn, "tangent", captures)))
    return failure();
  Value tdout = b.getTangent(op.getDout());
  Value tdlse = op.getDlse() ? b.getTangent(op.getDlse()) : Value();
  AttentionOpInterface gradient;
  if (isInputVaried(attn, b)) {
    AttnJVPOp jvp =
        createJVP(attn, b, getTangents(attn, b, captures), captures);
    gradient = AttnJVPGradOp::create(b, jvp, op.getDout(), op.getDlse(), tdout,
                                     tdlse, jvp.getTcaptures(), captures);
  } else {
    // Linear in the cotangents.
    auto copy = cast<GradOp>(b.clone(*op.getOperation()));
    copy.getDoutMutable().set(getLike(b, tdout, op.getDout()));
    copy.getDlseMutable().assign(tdlse ? ValueRange(tdlse) : ValueRange());
    gradient = cast<AttentionOpInterface>(copy.getOperation());
  }
  OfInputs tangents = getGradients(gradient);
  tangents.captures = findOfCaptures(
      op.getWrtCaptures(), gradient.getWrtCaptures(), tangents.captures);
  forEachPair(getGradients(attn), tangents, [&](Value result, Value tangent) {
    b.setTangent(result, getLike(b, tangent, result));
  });
  return success();
}

//===----------------------------------------------------------------------===//
// varlen.attn_jvp, varlen.attn_jvp_into
//===----------------------------------------------------------------------===//

/// J t is linear in t, whose cotangents are gradients of the attention itself
/// for the cotangents of J t.
static LogicalResult pullBackTangents(AttentionOpInterface op, VJPBuilder &b) {
  Value dout = b.getCotangent(op->getResult(0)),
        dlse = b.getCotangent(op->getResult(1)),
        dtout = b.getCotangent(op->getResult(2)),
        dtlse = b.getCotangent(op->getResult(3));
  ArrayRef<int64_t> withTangent = op.getWrtCaptures();
  SmallVector<int64_t> captures =
      filterCaptures(op, [&](int64_t number, Value capture) {
        return b.isVaried(capture) || llvm::is_contained(withTangent, number);
      });
  if (failed(verifyDerivative(op, "gradient", captures)))
    return failure();
  AttnTangents t = op.getTangents();
  OfInputs tangents = {t.q, t.k, t.v, t.sink, SmallVector<Value>(t.captures)};
  OfInputs operands = getInputs(op, captures);
  bool areTangentsUsed = dtout || dtlse;
  if (areTangentsUsed) {
    dtout = getLike(b, dtout, op->getResult(2));
    accumulate(b, tangents,
               AttnGradOp::create(b, op, dtout, dtlse, withTangent));
  }
  if (!isInputVaried(op, b))
    return success();
  if (!areTangentsUsed) {
    accumulate(b, operands,
               AttnGradOp::create(b, op, getLike(b, dout, op->getResult(0)),
                                  dlse, captures));
    return success();
  }
  accumulate(
      b, operands,
      AttnJVPGradOp::create(
          b, op, dtout, dtlse, dout, dlse,
          getAllLike(b,
                     findOfCaptures(captures, withTangent, tangents.captures),
                     operands.captures),
          captures));
  return success();
}

//===----------------------------------------------------------------------===//
// Where Models.h looks for rules
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(AttentionOpInterface op, VJPBuilder &b) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<AttnGradOp, AttnGradIntoOp>(
          [&](auto gradient) { return pullBackGradient(gradient, b); })
      .Case<AttnJVPOp, AttnJVPIntoOp>(
          [&](auto) { return pullBackTangents(op, b); })
      .Default([&](Operation *) { return pullBackAttention(op, b); });
}

static LogicalResult pushForward(AttentionOpInterface op, JVPBuilder &b) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<AttnGradOp, AttnGradIntoOp>(
          [&](auto gradient) { return pushGradientForward(gradient, b); })
      .Default([&](Operation *) { return pushAttentionForward(op, b); });
}

void attachAttnRules(MLIRContext &context) {
  attach<PullBackModel, AttnOp, AttnIntoOp, AttnGradOp, AttnGradIntoOp,
         AttnJVPOp, AttnJVPIntoOp>(context);
  // What has no rule of the forward mode is decomposed.
  attach<PushForwardModel, AttnOp, AttnIntoOp, AttnGradOp, AttnGradIntoOp>(
      context);
}

} // namespace mlir::varlen
