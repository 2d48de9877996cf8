//===- LinalgKernel.h - A kernel of one linalg operation --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-launch-linalg. Elements of results have owners: a thread, or a
// warp where the operation reduces along contiguous memory. An owner computes
// all of its element, so no sum depends on what another thread does when.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_LINALGTOKERNEL_LINALGKERNEL_H
#define VARLEN_LIB_CONVERSION_LINALGTOKERNEL_LINALGKERNEL_H

#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// A launch of a kernel called `name` in which each multi-index within
/// `extents` has `threads` threads of its own, 1 or a warp: `body` gets the
/// indices and the number of the thread among them. Any extents will do, 0 too.
void emitOwners(ImplicitLocOpBuilder &b, const Twine &name, ValueRange extents,
                int64_t threads,
                function_ref<void(ValueRange at, Value lane)> body);

/// The multi-index of a linear one, the last of `extents` running fastest.
SmallVector<Value> emitDelinearize(IndexBuilder &index, Value linear,
                                   ValueRange extents);

/// Emits the kernel of a linalg operation on memrefs.
class LinalgKernel {
public:
  /// Results whose `starts` is not null begin as that number instead of what
  /// they hold.
  LinalgKernel(linalg::LinalgOp op, SmallVector<Value> starts);

  /// The launch, in front of the operation.
  void emit(const Twine &name);

private:
  void findOwned();
  /// Finds the loop that a warp shares; its place in `inner`, last.
  void findLanes();

  void emitElement(Value lane);
  SmallVector<Value> emitLoops(ValueRange sums, ArrayRef<unsigned> loops,
                               Value lane);
  SmallVector<Value> emitPoint(ValueRange sums);
  Value emitCombined(unsigned result, Value lhs, Value rhs);
  SmallVector<Value> getIndices(OpOperand &operand);
  Value emitStart(unsigned result);

  linalg::LinalgOp op;
  SmallVector<Value> starts;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
  /// The loops that owners share, the one of contiguous results last, and those
  /// that an owner runs through.
  SmallVector<unsigned> owned, inner;
  /// For each result, whether an owner has one element of it, which it keeps in
  /// a register.
  SmallVector<bool> isSum;
  /// The last inner loop runs on the lanes of a warp. Then, of each result,
  /// what combines two values, and what changes none.
  bool hasLanes = false;
  SmallVector<Operation *> combiners;
  SmallVector<TypedAttr> neutrals;
  /// Extents of all loops, and their indices.
  SmallVector<Value> extents, ivs;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_LINALGTOKERNEL_LINALGKERNEL_H
