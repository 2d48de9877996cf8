//===- Peak.h - The machine's multiply-add peak -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_PEAK_H
#define VARLEN_TOOLS_RUN_PEAK_H

#include "Compiler.h"
#include "Tensor.h"

namespace varlen_run {

/// Loops of independent multiply-adds on registers, on all threads: nothing the
/// machine does with these instructions is faster.
class Peak {
public:
  /// Multiply-adds of f64 for f64, dot products of bf16 pairs for bf16 where
  /// the target has them, else multiply-adds of f32.
  static llvm::Expected<Peak> create(mlir::MLIRContext *context,
                                     const mlir::varlen::CPUTarget &target,
                                     DType dtype);

  /// "f32 multiply-add", ...
  llvm::StringRef getKind() const { return kind; }
  /// Floating-point operations per second, measured over some 20 ms.
  double measure();

private:
  static void run(void *context, int64_t lo, int64_t hi, void *);

  std::unique_ptr<mlir::varlen::LoadedObjects> code;
  void (*entry)(void **) = nullptr;
  llvm::StringRef kind;
  double flopsPerTurn = 0;
  /// Iterations of the loop in one item; some 1 ms.
  int64_t turns = 0;
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_PEAK_H
