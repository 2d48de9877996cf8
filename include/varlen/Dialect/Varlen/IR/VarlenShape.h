//===- VarlenShape.h - Shape functions of the varlen dialect ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Free functions from operand shapes to result shapes, for verifiers, builders
// and the C API alike.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H
#define VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// varlen.attn and varlen.attn_grad
//===----------------------------------------------------------------------===//

/// The types of out (Tq x Hq x Dv) and lse (Hq x Tq) in the tensor form, from q
/// (Tq x Hq x D) and v (Tk x Hkv x Dv, or in pages).
RankedTensorType inferOutType(ShapedType q, ShapedType v);
RankedTensorType inferLseType(ShapedType q);

/// The types of dq, dk, dv and, with a sink, dsink in the tensor form: those of
/// q, k and v, and Hq of the compute type; then those of the captures that
/// `wrtCaptures` numbers. A number that the verifier refuses has no type.
SmallVector<Type> inferGradientTypes(ShapedType q, ShapedType k, ShapedType v,
                                     bool hasSink, ValueRange captures,
                                     ArrayRef<int64_t> wrtCaptures);

/// Whether only quantised keys and values are of that element type.
inline bool isQuantisedElement(Type type) {
  return type.isInteger(8) || isa<Float8E4M3FNType>(type);
}
/// The largest magnitude that a row is quantised to: integers are symmetric.
inline double getLargestQuantised(Type type) {
  if (auto f8 = dyn_cast<FloatType>(type))
    return APFloat::getLargest(f8.getFloatSemantics()).convertToDouble();
  return 127;
}

/// The type of products, sums and lse for element type `type`: f64 for f64,
/// else f32.
FloatType getComputeType(Type type);

//===----------------------------------------------------------------------===//
// varlen.online_attn, varlen.online_attn_grad
//===----------------------------------------------------------------------===//

/// The dimension of the state and of statistics that counts queries.
inline unsigned getQueriesDim(Orientation orientation) {
  return orientation == Orientation::QK ? 0 : 1;
}

/// The shape of acc.
SmallVector<int64_t> getAccTileShape(Orientation, int64_t queries,
                                     int64_t valueHeadDim);
/// A statistic, one number for each query: m, l, lse, delta and the limits.
SmallVector<int64_t> getRowStatShape(Orientation, int64_t queries);

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

inline ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

/// Of rows, T x H x D, or in pages P x page x H x D, the dimensions that are
/// heads and columns.
inline unsigned getHeadsDim(Value rows) { return shaped(rows).getRank() - 2; }
inline unsigned getColumnsDim(Value rows) { return shaped(rows).getRank() - 1; }

/// The integers of a constant of rank 1; none if the value is not one.
std::optional<SmallVector<int64_t>> getConstantIntegers(Value value);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_VARLENSHAPE_H
