//===- Signature.h - What the entry function takes and gives ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_SIGNATURE_H
#define VARLEN_TOOLS_RUN_SIGNATURE_H

#include "Tensor.h"

#include "mlir/IR/BuiltinOps.h"

namespace varlen_run {

/// An argument or a result.
struct Slot {
  std::string name;
  DType dtype;
  /// Extents, ShapedType::kDynamic where the type leaves one open.
  llvm::SmallVector<int64_t> shape;
  /// Passed by value, not as a buffer; of rank 0.
  bool isScalar;
  /// A memref: its contents after the run are a result too.
  bool isMemRef;
};

/// One varlen.attn that runs on arguments of the entry function, as far as that
/// can be seen. Operands are indices of arguments; extents are
/// ShapedType::kDynamic if open.
struct Attention {
  enum : int64_t { Absent = -1, Computed = -2 };
  int64_t q, k, v, cuQ, cuK, usedQ, usedK, offset, sink;
  int64_t queryHeads, headDim, valueHeadDim;
  int64_t left, right;
  bool bottomRight;
};

struct Signature {
  std::string entry;
  llvm::SmallVector<Slot> arguments, results;
  llvm::SmallVector<Attention> attentions;
  /// Whether all checks that need values are those of `checkInputs`. Otherwise
  /// compiled code has to check, too.
  bool isCheckedByInputs = true;
  /// Element type of the first attention, else of the first float argument.
  std::optional<DType> floatType;
};

/// Reads the signature of function `entry` (empty: the only public one), and
/// prepares the function to be compiled and called: the C interface asked for,
/// tensor arguments not to be overwritten, names removed.
llvm::Expected<Signature> prepareEntry(mlir::ModuleOp module,
                                       llvm::StringRef entry);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_SIGNATURE_H
