//===- ExtentChecks.cpp - Rules about extents at run time -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExtentChecks.h"

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Runtime/Runtime.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

RowExtent varlen::getRowExtent(const ExtentOf &of) {
  constexpr RowExtent packed[] = {RowExtent::Rows, RowExtent::Heads,
                                  RowExtent::HeadDim};
  constexpr RowExtent paged[] = {RowExtent::Pages, RowExtent::PageRows,
                                 RowExtent::Heads, RowExtent::HeadDim};
  return of.source.type().getRank() == 4 ? paged[of.dim] : packed[of.dim];
}

SmallVector<ExtentRule> varlen::getExtentRules(AttentionOpInterface op) {
  NamedValue q{"q", op.getQ()}, k{"k", op.getK()}, v{"v", op.getV()};
  SmallVector<ExtentRule> rules;
  // The verifier has seen to static extents.
  auto isStatic = [](const ExtentOf &of) {
    return ShapedType::isStatic(of.source.extent(of.dim));
  };
  auto add = [&](ExtentRule::Kind kind, ExtentOf extent, ExtentOf bound) {
    if (!isStatic(extent) || !isStatic(bound))
      rules.push_back({kind, extent, bound});
  };
  ExtentOf kvHeads{k, getHeadsDim(k.value)}, headDim{k, getColumnsDim(k.value)},
      valueDim{v, getColumnsDim(v.value)};
  // Rows and heads, of keys in pages pages, rows of a page and heads.
  for (unsigned dim = 0; dim <= kvHeads.dim; ++dim)
    add(ExtentRule::Same, {v, dim}, {k, dim});
  add(ExtentRule::Same, headDim, {q, 2});
  if (op.isPaged())
    add(ExtentRule::Positive, {k, 1}, {k, 1});
  for (const ExtentOf &extent :
       {ExtentOf{q, 1}, ExtentOf{q, 2}, kvHeads, valueDim})
    add(ExtentRule::Positive, extent, extent);
  add(ExtentRule::Multiple, {q, 1}, kvHeads);
  if (Value sink = op.getSink())
    add(ExtentRule::Same, {{"sink", sink}, 0}, {q, 1});
  auto addShape = [&](const ShapedByInputs &value, bool isResult) {
    for (auto [dim, from] : llvm::enumerate(value.extents)) {
      ExtentOf extent{value, static_cast<unsigned>(dim)};
      // How many entries a table has, it says itself.
      if (from.source.name == value.name && from.source.value == value.value) {
        add(ExtentRule::Positive, extent, extent);
        continue;
      }
      // What a type leaves open of a result is what the inputs say.
      if (!isResult || isStatic(extent))
        add(ExtentRule::Same, extent, from);
    }
  };
  for (const ShapedByInputs &input : op.getShapedInputs())
    addShape(input, /*isResult=*/false);
  SmallVector<ShapedByInputs> destinations = op.getShapedDestinations();
  bool isResult = destinations.empty();
  for (const ShapedByInputs &out :
       isResult ? op.getShapedResults() : destinations)
    addShape(out, isResult);
  return rules;
}

static Value emitExtent(ImplicitLocOpBuilder &b, const ExtentOf &of) {
  IndexBuilder index{b};
  Value shaped = of.source.value;
  // Also of a result, before it is there.
  int64_t extent = of.source.extent(of.dim);
  if (ShapedType::isStatic(extent))
    return index.constant(extent);
  return linalg::createOrFoldDimOp(b, b.getLoc(), shaped, of.dim);
}

ExtentCheck varlen::emitExtents(ImplicitLocOpBuilder &b,
                                const ExtentRule &rule) {
  return {emitExtent(b, rule.extent), emitExtent(b, rule.bound)};
}

Value ExtentCheck::emitHolds(ImplicitLocOpBuilder &b,
                             ExtentRule::Kind kind) const {
  IndexBuilder index{b};
  switch (kind) {
  case ExtentRule::Same:
    return index.equal(extent, bound);
  case ExtentRule::Positive:
    return index.less(0, extent);
  case ExtentRule::Multiple:
    break;
  }
  // Nothing divides by 0, also where an earlier rule is broken.
  Value divisor = index.max(bound, 1);
  return index.equal(index.rem(extent, divisor), 0);
}

//===----------------------------------------------------------------------===//
// Reports to the runtime
//===----------------------------------------------------------------------===//

/// How the runtime numbers what messages call `name`.
static int64_t numberOf(StringRef name) {
  return llvm::StringSwitch<int64_t>(name)
      .Case("q", VARLEN_TENSOR_Q)
      .Case("k", VARLEN_TENSOR_K)
      .Case("v", VARLEN_TENSOR_V)
      .Case("sink", VARLEN_TENSOR_SINK)
      .Case("out", VARLEN_TENSOR_OUT)
      .Case("lse", VARLEN_TENSOR_LSE)
      .Case("dout", VARLEN_TENSOR_DOUT)
      .Case("dlse", VARLEN_TENSOR_DLSE)
      .Case("dq", VARLEN_TENSOR_DQ)
      .Case("dk", VARLEN_TENSOR_DK)
      .Case("dv", VARLEN_TENSOR_DV)
      .Case("dsink", VARLEN_TENSOR_DSINK)
      .Case("capture", VARLEN_TENSOR_CAPTURE)
      .Case("dcapture", VARLEN_TENSOR_DCAPTURE)
      .Case("tq", VARLEN_TENSOR_TQ)
      .Case("tk", VARLEN_TENSOR_TK)
      .Case("tv", VARLEN_TENSOR_TV)
      .Case("tsink", VARLEN_TENSOR_TSINK)
      .Case("tout", VARLEN_TENSOR_TOUT)
      .Case("tlse", VARLEN_TENSOR_TLSE)
      .Case("tcapture", VARLEN_TENSOR_TCAPTURE)
      .Case("dtout", VARLEN_TENSOR_DTOUT)
      .Case("dtlse", VARLEN_TENSOR_DTLSE)
      .Case("k_scale", VARLEN_TENSOR_K_SCALE)
      .Case("v_scale", VARLEN_TENSOR_V_SCALE);
}

/// How the runtime numbers a rule about those extents.
static int64_t numberOf(const ExtentRule &rule) {
  StringRef name = rule.extent.source.name, of = rule.bound.source.name;
  auto number = [](int64_t tensor, int64_t extent, int64_t source) -> int64_t {
    return VARLEN_EXTENT_RULE(tensor, extent, source);
  };
  // Tables have entries as what they follow from has a head_dim.
  if (of == "capture")
    return number(numberOf(name), VARLEN_EXTENT_HEAD_DIM, numberOf(of));
  auto pageOf = [](StringRef name) -> int64_t {
    if (name == "k")
      return VARLEN_TENSOR_K_PAGE;
    return name == "v" ? VARLEN_TENSOR_V_PAGE : numberOf(name);
  };
  switch (getRowExtent(rule.bound)) {
  case RowExtent::Rows:
    return number(numberOf(name), VARLEN_EXTENT_ROWS, numberOf(of));
  case RowExtent::Heads:
    return number(numberOf(name), VARLEN_EXTENT_HEADS, numberOf(of));
  case RowExtent::HeadDim:
    return number(numberOf(name), VARLEN_EXTENT_HEAD_DIM, numberOf(of));
  case RowExtent::Pages:
    return number(numberOf(name), VARLEN_EXTENT_PAGES, numberOf(of));
  case RowExtent::PageRows:
    return number(pageOf(name), VARLEN_EXTENT_ROWS, pageOf(of));
  }
  llvm_unreachable("unknown extent");
}

/// Whether both are the same extent of the same value.
static bool isSameExtent(Value a, Value b) {
  if (a == b)
    return true;
  auto x = a.getDefiningOp<ShapedDimOpInterface>(),
       y = b.getDefiningOp<ShapedDimOpInterface>();
  if (!x || !y || x.getShapedValue() != y.getShapedValue())
    return false;
  std::optional<int64_t> dim = getConstantIntValue(x.getDimension());
  return dim && dim == getConstantIntValue(y.getDimension());
}

ExtentFault varlen::emitExtentFault(ImplicitLocOpBuilder &b,
                                    AttentionOpInterface op) {
  IndexBuilder index{b};
  // One message stands for all rules about numbers of heads.
  ExtentRule heads{ExtentRule::Multiple,
                   {{"q", op.getQ()}, 1},
                   {{"k", op.getK()}, getHeadsDim(op.getK())}};
  struct Check {
    Value holds;
    int64_t rule;
    ExtentCheck reported;
  };
  SmallVector<Check> checks;
  for (const ExtentRule &rule : getExtentRules(op)) {
    ExtentCheck check = emitExtents(b, rule);
    if (rule.kind == ExtentRule::Same &&
        isSameExtent(check.extent, check.bound))
      continue;
    bool isOfEntries = rule.bound.source.name == "capture";
    bool isOfHeads = rule.kind != ExtentRule::Same && !isOfEntries &&
                     getRowExtent(rule.extent) == RowExtent::Heads;
    checks.push_back({check.emitHolds(b, rule.kind),
                      numberOf(isOfHeads ? heads : rule),
                      isOfHeads ? emitExtents(b, heads) : check});
  }
  if (checks.empty())
    return {};
  Value zero = index.constant(0);
  ExtentFault fault{zero, zero, zero};
  for (const Check &check : llvm::reverse(checks)) {
    fault.rule =
        index.select(check.holds, fault.rule, index.constant(check.rule));
    fault.value = index.select(check.holds, fault.value, check.reported.extent);
    fault.bound = index.select(check.holds, fault.bound, check.reported.bound);
  }
  return fault;
}

FailureOr<Value> varlen::emitExtentReport(ImplicitLocOpBuilder &b,
                                          Operation *user, Value rule,
                                          Value value, Value bound) {
  IndexBuilder index{b};
  SmallVector<Type> types(3, b.getI64Type());
  FailureOr<func::FuncOp> report =
      getRuntimeFunction(user->getParentOfType<ModuleOp>(), user,
                         "varlen_extent_error", b.getFunctionType(types, {}));
  if (failed(report))
    return failure();
  Value wrong = index.less(0, rule);
  scf::IfOp::create(b, wrong, [&](OpBuilder &nested, Location loc) {
    SmallVector<Value> arguments;
    for (Value argument : {rule, value, bound})
      arguments.push_back(arith::IndexCastOp::create(
          nested, loc, nested.getI64Type(), argument));
    func::CallOp::create(nested, loc, *report, arguments);
    scf::YieldOp::create(nested, loc);
  });
  return wrong;
}

KeyExtents varlen::emitKeyExtents(ImplicitLocOpBuilder &b,
                                  AttentionOpInterface op) {
  IndexBuilder index{b};
  auto dim = [&](Value value, int64_t number) {
    return linalg::createOrFoldDimOp(b, b.getLoc(), value, number);
  };
  Value first = dim(op.getK(), 0);
  if (!op.isPaged())
    return {first, Value(), Value()};
  Value pageRows = dim(op.getK(), 1);
  return {index.mul(dim(op.getBlockTable(), 1), pageRows), first, pageRows};
}

FailureOr<Value> varlen::emitReportedChecks(ImplicitLocOpBuilder &b,
                                            AttentionOpInterface op) {
  ExtentFault fault = emitExtentFault(b, op);
  if (!fault.rule)
    return Value();
  return emitExtentReport(b, op, fault.rule, fault.value, fault.bound);
}
