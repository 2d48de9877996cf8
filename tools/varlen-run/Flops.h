//===- Flops.h - The useful work of a run -----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_FLOPS_H
#define VARLEN_TOOLS_RUN_FLOPS_H

#include "Tensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace varlen_run {

/// Floating-point operations that the results of a run need.
struct Work {
  /// Those that are counted; none if nothing could be.
  std::optional<double> flops;
  /// How many operations with arithmetic on floats are not in `flops`, by name.
  std::map<std::string, int64_t> notCounted;
};

/// Counts what function `entry` of `module` has to do on `inputs`, which are
/// valid: for each query head and each key that a query sees 2 (D + Dv), for
/// gradients 2 (3 D + 2 Dv), and 2 for each term of linalg's contractions; as
/// often as loops run and functions are called. Not counted are other
/// operations, and those of which it cannot be seen before the run how large
/// they are or how often they run.
Work countUsefulWork(mlir::ModuleOp module, llvm::StringRef entry,
                     llvm::ArrayRef<Tensor> inputs);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_FLOPS_H
