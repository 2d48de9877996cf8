//===- ExtentChecks.cpp - Rules about extents at run time -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExtentChecks.h"

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

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
      .Case("dsink", VARLEN_TENSOR_DSINK);
}

namespace {
class ExtentChecker {
public:
  ExtentChecker(ImplicitLocOpBuilder &b, AttentionOpInterface op)
      : b(b), index{b}, op(op) {}

  SmallVector<ExtentCheck> emit();

private:
  Value dim(Value memref, int64_t dim) {
    return b.createOrFold<memref::DimOp>(memref, index.constant(dim));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
  }
  /// Dimension `dim` of `value` is dimension `from.dim` of q, k or v.
  void requireSame(NamedValue value, unsigned dim, const ExtentOf &from);
  void requireHeads();
  void requireShape(const ShapedByInputs &value);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  AttentionOpInterface op;
  SmallVector<ExtentCheck> checks;
};
} // namespace

/// Whether both are the same extent of the same buffer.
static bool isSameExtent(Value a, Value b) {
  if (a == b)
    return true;
  auto x = a.getDefiningOp<memref::DimOp>(),
       y = b.getDefiningOp<memref::DimOp>();
  return x && y && x.getSource() == y.getSource() && x.getConstantIndex() &&
         x.getConstantIndex() == y.getConstantIndex();
}

void ExtentChecker::requireSame(NamedValue value, unsigned dim,
                                const ExtentOf &from) {
  // The verifier has compared static ones.
  if (ShapedType::isStatic(value.extent(dim)) &&
      ShapedType::isStatic(from.source.extent(from.dim)))
    return;
  Value actual = this->dim(value.value, dim);
  Value expected = this->dim(from.source.value, from.dim);
  if (isSameExtent(actual, expected))
    return;
  checks.push_back(
      {compare(arith::CmpIPredicate::ne, actual, expected),
       VARLEN_EXTENT_RULE(numberOf(value.name), static_cast<int64_t>(from.dim),
                          numberOf(from.source.name)),
       actual, expected});
}

void ExtentChecker::requireHeads() {
  if (ShapedType::isStatic(
          cast<ShapedType>(op.getQ().getType()).getDimSize(1)) &&
      ShapedType::isStatic(cast<ShapedType>(op.getK().getType()).getDimSize(1)))
    return;
  Value heads = dim(op.getQ(), 1), kvHeads = dim(op.getK(), 1);
  Value one = index.constant(1);
  Value rest = index.rem(heads, index.max(kvHeads, one));
  Value wrong = compare(arith::CmpIPredicate::ne, rest, index.constant(0));
  for (Value count : {heads, kvHeads})
    wrong = b.createOrFold<arith::OrIOp>(wrong, index.less(count, one));
  checks.push_back({wrong,
                    VARLEN_EXTENT_RULE(VARLEN_TENSOR_Q, VARLEN_EXTENT_HEADS,
                                       VARLEN_TENSOR_K),
                    heads, kvHeads});
}

void ExtentChecker::requireShape(const ShapedByInputs &value) {
  for (const auto &[dim, from] : llvm::enumerate(value.extents))
    requireSame(value, dim, from);
}

SmallVector<ExtentCheck> ExtentChecker::emit() {
  NamedValue q{"q", op.getQ()}, k{"k", op.getK()}, v{"v", op.getV()};
  requireSame(v, 0, {k, 0});
  requireSame(v, 1, {k, 1});
  requireSame(k, 2, {q, 2});
  requireHeads();
  if (Value sink = op.getSink())
    requireSame({"sink", sink}, 0, {q, 1});
  for (const ShapedByInputs &input : op.getShapedInputs())
    requireShape(input);
  for (const ShapedByInputs &out : op.getShapedResults())
    requireShape(out);
  return std::move(checks);
}

SmallVector<ExtentCheck> varlen::emitExtentChecks(ImplicitLocOpBuilder &b,
                                                  AttentionOpInterface op) {
  return ExtentChecker(b, op).emit();
}

ExtentFault varlen::emitExtentFault(ImplicitLocOpBuilder &b,
                                    AttentionOpInterface op) {
  IndexBuilder index{b};
  SmallVector<ExtentCheck> checks = emitExtentChecks(b, op);
  if (checks.empty())
    return {};
  Value zero = index.constant(0);
  ExtentFault fault{zero, zero, zero};
  for (const ExtentCheck &check : llvm::reverse(checks)) {
    fault.rule =
        index.select(check.wrong, index.constant(check.rule), fault.rule);
    fault.value = index.select(check.wrong, check.value, fault.value);
    fault.bound = index.select(check.wrong, check.bound, fault.bound);
  }
  return fault;
}

FailureOr<Value> varlen::emitReportedChecks(ImplicitLocOpBuilder &b,
                                            AttentionOpInterface op) {
  IndexBuilder index{b};
  ExtentFault fault = emitExtentFault(b, op);
  if (!fault.rule)
    return Value();
  SmallVector<Type> types(3, b.getI64Type());
  FailureOr<func::FuncOp> report =
      getRuntimeFunction(op->getParentOfType<ModuleOp>(), op,
                         "varlen_extent_error", b.getFunctionType(types, {}));
  if (failed(report))
    return failure();
  Value wrong = index.less(index.constant(0), fault.rule);
  scf::IfOp::create(b, wrong, [&](OpBuilder &nested, Location loc) {
    SmallVector<Value> arguments;
    for (Value argument : {fault.rule, fault.value, fault.bound})
      arguments.push_back(arith::IndexCastOp::create(
          nested, loc, nested.getI64Type(), argument));
    func::CallOp::create(nested, loc, *report, arguments);
    scf::YieldOp::create(nested, loc);
  });
  return wrong;
}
