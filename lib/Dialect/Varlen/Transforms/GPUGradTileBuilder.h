//===- GPUGradTileBuilder.h - What gradients' kernels share -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUGRADTILEBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUGRADTILEBUILDER_H

#include "GPUTileBuilder.h"
#include "ScoreReference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::varlen {

/// What the kernels of one attn_grad share.
class GPUGradTileBuilder : protected GPUTileBuilder {
public:
  GPUGradTileBuilder(ImplicitLocOpBuilder &b, AttnGradOp op,
                     GPUScheduleAttr schedule, const GPUBatch &batch,
                     Value statistics)
      : GPUTileBuilder(b, op, schedule, batch), grad(op),
        statistics(statistics), isNatural(element == compute),
        reference(compute, isNatural) {}

protected:
  std::string kernelName(StringRef suffix) {
    return (grad->getParentOfType<func::FuncOp>().getName() + suffix).str();
  }

  AttnGradOp grad;
  /// Hq x T x (lse, delta), as steps want them.
  Value statistics;
  /// The units of lse there.
  bool isNatural;
  RecomputedReference reference;
};

/// The kernels without tensor cores.
class GPUGradRows : GPUGradTileBuilder {
public:
  using GPUGradTileBuilder::GPUGradTileBuilder;

  LogicalResult emitStatistics(const GPUWorkTiles &work);
  void emitSinkGradient(const GPUWorkTiles &work);

private:
  void emitPairs(const QueryTile &tile, Value thread);
  /// sum_d dout[d] * out[d], in every lane of those that share the row.
  Value dot(Value row, Value head, Value lane, int64_t lanes, int64_t width);
  Value sumOfLanes(Value value, int64_t lanes);
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUGRADTILEBUILDER_H
