//===- Launcher.h - Launches of a function's kernels ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the steps of a launch plan, as the C launcher and readers of a manifest
// do (docs/kernel-abi.md), over the backend of the GPU runtime.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_LAUNCHER_H
#define VARLEN_LIB_CAPI_LAUNCHER_H

#include "Binding.h"
#include "varlen/Launch/LaunchPlan.h"
#include "varlen/Runtime/GPU.h"

#include "llvm/ADT/DenseMap.h"

#include <mutex>

namespace varlen_capi {

/// Workspaces begin at a multiple of these bytes, with the status of kernels.
inline constexpr uint64_t workspaceAlignment = 256;

/// Kernels in one context.
struct LoadedKernels {
  void *module = nullptr;
  std::vector<void *> functions;
  int64_t multiprocessors = 1;
};

struct Launcher {
  mlir::varlen::LaunchPlan plan;
  /// Arguments, then results.
  Function function;
  mlir::varlen::PlanFacts facts;

  std::mutex mutex; // of what follows
  std::string image;
  /// By the number of the context.
  llvm::DenseMap<uint64_t, std::unique_ptr<LoadedKernels>> loaded;
};

/// Checks the plan of a launcher whose other members are there.
VarlenStatus finish(Launcher &launcher);

/// One launch, or the size of its workspace.
class LaunchRun {
public:
  LaunchRun(const Launcher &launcher, const Binding &binding)
      : launcher(launcher), binding(binding), values(launcher.facts.numValues) {
  }

  /// Stores the bytes of the workspace. False, with the runtime's error set, if
  /// the plan comes to no end.
  bool measure(uint64_t &bytes);
  /// Kernels report to the record at `report`. False, with the runtime's error
  /// set, if something has failed.
  bool launch(const LoadedKernels &code, uint64_t workspace, uint64_t report,
              void *workStream);

private:
  int64_t read(const mlir::varlen::PlanOperand &operand) const;
  bool fillResults();
  bool take(const std::vector<mlir::varlen::PlanStep> &steps);
  bool take(const mlir::varlen::PlanStep &step);
  bool takeLoop(const mlir::varlen::PlanLoop &loop);
  void compute(const mlir::varlen::PlanStep &step);
  void addScratch(const mlir::varlen::PlanStep &step);
  bool launch(const mlir::varlen::PlanStep &step);

  const varlen_gpu_backend *backend = varlen_gpu_get_backend();
  const Launcher &launcher;
  const Binding &binding;
  std::vector<int64_t> values;
  llvm::SmallVector<uint64_t, 8> scratch;
  uint64_t base = 0, used = 0, status = 0;
  /// How many turns loops have taken so far.
  int64_t turns = 0;
  const LoadedKernels *kernels = nullptr; ///< null: measured only
  void *stream = nullptr;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_LAUNCHER_H
