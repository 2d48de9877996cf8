//===- TransposeVectors.cpp - Squares of vectors --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposeVectors.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

SmallVector<Value> varlen::transposeVectors(ImplicitLocOpBuilder &b,
                                            SmallVector<Value> rows) {
  int64_t lanes = rows.size();
  for (int64_t block = 1; block < lanes; block *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t within = lane % (2 * block);
      // First halves of both, or second halves of both, side by side.
      low.push_back(within < block ? lane : lanes + lane - block);
      high.push_back(within < block ? lane + block : lanes + lane);
    }
    SmallVector<Value> next(lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & block)
        continue;
      next[i] = vector::ShuffleOp::create(b, rows[i], rows[i + block], low);
      next[i + block] =
          vector::ShuffleOp::create(b, rows[i], rows[i + block], high);
    }
    rows = std::move(next);
  }
  return rows;
}
