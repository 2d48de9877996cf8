//===- Signature.h - What the entry function takes and gives ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_SIGNATURE_H
#define VARLEN_TOOLS_RUN_SIGNATURE_H

#include "Attention.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

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

struct Signature {
  std::string entry;
  llvm::SmallVector<Slot> arguments, results;
  std::vector<Attention> attentions;
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
