//===- MergeOp.cpp - The merge of two partial attentions ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "AttnDecomposer.h"
#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// The extents of both parts, rows, heads and value head_dim, each from the
/// first operand whose type knows it; `from` says which that is.
static SmallVector<int64_t> getExtents(Value out0, Value lse0, Value out1,
                                       Value lse1,
                                       SmallVectorImpl<ExtentOf> *from = {}) {
  NamedValue out[] = {{"out0", out0}, {"out1", out1}};
  NamedValue lse[] = {{"lse0", lse0}, {"lse1", lse1}};
  SmallVector<int64_t> extents;
  for (unsigned dim : {0u, 1u, 2u}) {
    SmallVector<ExtentOf> sources = {{out[0], dim}, {out[1], dim}};
    // lse is heads x rows.
    if (dim < 2)
      sources.append({{lse[0], 1 - dim}, {lse[1], 1 - dim}});
    const auto *known = llvm::find_if(sources, [](const ExtentOf &of) {
      return ShapedType::isStatic(of.source.extent(of.dim));
    });
    const ExtentOf &source = known == sources.end() ? sources.front() : *known;
    extents.push_back(source.source.extent(source.dim));
    if (from)
      from->push_back(source);
  }
  return extents;
}

LogicalResult MergeOp::verify() {
  if (failed(varlen::detail::verifyKnownAttributes(*this)))
    return failure();
  Type element = getElementTypeOrSelf(getOut0());
  Type compute = varlen::getComputeType(element);
  SmallVector<int64_t> extents =
      getExtents(getOut0(), getLse0(), getOut1(), getLse1());
  SmallVector<int64_t> perRow = {extents[1], extents[0]};
  for (auto [value, shape, type] :
       {std::tuple(NamedValue{"out0", getOut0()}, ArrayRef(extents), element),
        std::tuple(NamedValue{"lse0", getLse0()}, ArrayRef(perRow), compute),
        std::tuple(NamedValue{"out1", getOut1()}, ArrayRef(extents), element),
        std::tuple(NamedValue{"lse1", getLse1()}, ArrayRef(perRow), compute)})
    if (value.type().getElementType() != type ||
        failed(verifyCompatibleShape(value.type().getShape(), shape)))
      return emitOpError("expected ")
             << value.name << " compatible with "
             << RankedTensorType::get(shape, type) << ", got " << value.type();
  return success();
}

LogicalResult MergeOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        MergeOp::Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> extents =
      getExtents(adaptor.getOut0(), adaptor.getLse0(), adaptor.getOut1(),
                 adaptor.getLse1());
  types.push_back(
      RankedTensorType::get(extents, getElementTypeOrSelf(adaptor.getOut0())));
  types.push_back(RankedTensorType::get(
      {extents[1], extents[0]}, getElementTypeOrSelf(adaptor.getLse0())));
  return success();
}

bool MergeOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

LogicalResult MergeOp::reifyResultShapes(OpBuilder &builder,
                                         ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<ExtentOf> from;
  getExtents(getOut0(), getLse0(), getOut1(), getLse1(), &from);
  shapes.push_back(varlen::detail::reifyShape(builder, getOut(), from));
  shapes.push_back(
      varlen::detail::reifyShape(builder, getLse(), {from[1], from[0]}));
  return success();
}

void MergeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOut(), "out");
  setName(getLse(), "lse");
}

//===----------------------------------------------------------------------===//
// AggregatedOpInterface
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> MergeOp::decomposeOperation(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(builder, shapes)))
    return failure();
  FloatType compute = varlen::getComputeType(getElementTypeOrSelf(getOut0()));
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
  };
  Value zero = constant(0);
  Value lowest = constant(-std::numeric_limits<double>::infinity());
  auto isZero = [&](ImplicitLocOpBuilder &b, Value value) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, zero);
  };

  // lse = top + log(e0 + e1) and the weights e / (e0 + e1), with e =
  // exp(lse - top). Of two parts without a key top is 0, for -inf must not be
  // subtracted from -inf, and no weight is a quotient of zeros.
  AffineMap perRow = b.getMultiDimIdentityMap(2);
  SmallVector<Value> rowInits;
  for (int number = 0; number < 3; ++number)
    rowInits.push_back(tensor::EmptyOp::create(b, shapes[1], compute));
  auto weigh = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    Value top = arith::MaximumFOp::create(b, args[0], args[1]);
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, top, lowest);
    top = arith::SelectOp::create(b, none, zero, top);
    SmallVector<Value> e;
    for (Value lse : args.take_front(2))
      e.push_back(math::ExpOp::create(b, arith::SubFOp::create(b, lse, top)));
    Value sum = arith::AddFOp::create(b, e[0], e[1]);
    SmallVector<Value> results = {
        arith::AddFOp::create(b, top, math::LogOp::create(b, sum))};
    for (Value part : e)
      results.push_back(arith::SelectOp::create(
          b, isZero(b, part), zero, arith::DivFOp::create(b, part, sum)));
    linalg::YieldOp::create(b, results);
  };
  auto rows = linalg::GenericOp::create(
      b, TypeRange(ValueRange(rowInits)), ValueRange{getLse0(), getLse1()},
      rowInits, SmallVector<AffineMap>(5, perRow),
      SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
      weigh);

  // out = w0 * out0 + w1 * out1. A part without weight is left out, not
  // weighted with 0: the other one's row is taken as it is.
  AffineMap packed = b.getMultiDimIdentityMap(3);
  AffineMap weight =
      AffineMap::getMultiDimMapWithTargets(3, {1, 0}, b.getContext());
  Value outInit =
      tensor::EmptyOp::create(b, shapes[0], getElementTypeOrSelf(getOut0()));
  auto mix = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, nested);
    Value without[2], term[2];
    for (unsigned part : {0u, 1u}) {
      Value weight = args[2 + part];
      Value value = convertScalarToDtype(b, loc, args[part], compute,
                                         /*isUnsignedCast=*/false);
      without[part] = isZero(b, weight);
      term[part] = arith::SelectOp::create(
          b, without[part], zero, arith::MulFOp::create(b, weight, value));
    }
    Value sum = arith::AddFOp::create(b, term[0], term[1]);
    sum = arith::SelectOp::create(b, without[1], term[0], sum);
    sum = arith::SelectOp::create(b, without[0], term[1], sum);
    linalg::YieldOp::create(
        b, convertScalarToDtype(b, loc, sum, getElementTypeOrSelf(getOut0()),
                                /*isUnsignedCast=*/false));
  };
  auto out = linalg::GenericOp::create(
      b, outInit.getType(),
      ValueRange{getOut0(), getOut1(), rows.getResult(1), rows.getResult(2)},
      outInit, ArrayRef<AffineMap>{packed, packed, weight, weight, packed},
      SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel), mix);
  return castToResultTypes(b, *this, {out.getResult(0), rows.getResult(0)});
}

//===----------------------------------------------------------------------===//
// TilingInterface
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> MergeOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(NumOutLoops,
                                          utils::IteratorType::parallel);
}

SmallVector<Range> MergeOp::getIterationDomain(OpBuilder &b) {
  return getDomain(b, getLoc(), {{getLse0(), 0}, {getLse0(), 1}});
}

FailureOr<TilingResult>
MergeOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets,
                                ArrayRef<OpFoldResult> sizes) {
  TilingResult tiled;
  SmallVector<Value> operands;
  for (auto [number, operand] : llvm::enumerate(getOperands())) {
    // A part has the shapes of the results.
    FailureOr<Value> slice = sliceAsResult(
        *this, b, number % 2, operand, offsets, sizes, tiled.generatedSlices);
    if (failed(slice))
      return failure();
    operands.push_back(*slice);
  }
  auto tile = MergeOp::create(b, getLoc(), operands[0], operands[1],
                              operands[2], operands[3]);
  tile->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  tiled.tiledOps.push_back(tile);
  llvm::append_range(tiled.tiledValues, tile->getResults());
  return tiled;
}

LogicalResult MergeOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  getOutTile(b, getLoc(), getOut0(), resultNumber, offsets, sizes,
             resultOffsets, resultSizes);
  return success();
}

LogicalResult MergeOp::getIterationDomainTileFromResultTile(
    OpBuilder &, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &iterDomainOffsets,
    SmallVectorImpl<OpFoldResult> &iterDomainSizes) {
  return getOutDomainTile(getOut0(), resultNumber, offsets, sizes,
                          iterDomainOffsets, iterDomainSizes);
}

FailureOr<TilingResult>
MergeOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes) {
  return tileResult(*this, b, resultNumber, offsets, sizes);
}
