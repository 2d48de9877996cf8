//===- TensorCores.h - Contractions in instructions -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KERNEL_TRANSFORMS_TENSORCORES_H
#define LIB_DIALECT_KERNEL_TRANSFORMS_TENSORCORES_H

#include "FragmentLayout.h"

#include <memory>

namespace mlir::varlen::kernel {

/// acc + A B: the operands of kernel.contract and kernel.start.
struct Contraction {
  Value a, b, acc;
  int64_t k;
  bool aT, bT;
};

/// The tensor cores of sm_80 and all later GPUs: mma.sync m16n8k16, fed by
/// ldmatrix. Everything above fragments and shared tiles is the same for other
/// families of instructions; what differs, these override.
class TensorCores {
public:
  explicit TensorCores(int64_t warps) : warps(warps) {}
  virtual ~TensorCores() = default;

  /// Complains, as `op`, about what the instructions cannot do.
  LogicalResult check(Operation *op, const Contraction &contraction) const;
  /// The sum of several contractions of equal shapes, small terms first, that
  /// starts from the first one's accumulator, plus `addend` if there is one.
  /// The terms of f32 take their order from registers that are read between two
  /// products, as only mma.sync lets them be.
  Value contractAll(ThreadBuilder &b, ArrayRef<Contraction> contractions,
                    Value addend) const;

  /// The type of an accumulator in flight.
  virtual Type getPendingType(VectorType fragment) const { return fragment; }
  /// Issues contractions, each of which adds to the sum of those before it, the
  /// first to its accumulator; returns the accumulator in flight.
  virtual Value start(ThreadBuilder &b,
                      ArrayRef<Contraction> contractions) const;
  /// Waits until at most `younger` later contractions are in flight; returns
  /// the accumulator as a fragment. mma.sync completes before its result is
  /// used: nothing to wait for.
  virtual Value wait(ThreadBuilder & /*b*/, Value pending,
                     VectorType /*fragment*/, int64_t /*younger*/) const {
    return pending;
  }

protected:
  int64_t warps;
};

/// The four registers, i32, that a fragment is in as operand A of a step of k.
SmallVector<Value, 4> getFactorRegisters(ThreadBuilder &b, Value fragment,
                                         int64_t mTile, int64_t step);

/// wgmma m64nNk16, which reads shared memory by descriptors: sm_90a only. The
/// terms of f32 are multiplied by mma.sync. Contractions have to fit.
std::unique_ptr<TensorCores> createWgmma(int64_t warps);

/// Whether wgmma has the contraction: 16 rows for each warp of whole
/// warpgroups, and the columns of one instruction.
bool fitsWgmma(const Contraction &contraction, int64_t warps);

} // namespace mlir::varlen::kernel

#endif // LIB_DIALECT_KERNEL_TRANSFORMS_TENSORCORES_H
