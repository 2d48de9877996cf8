//===- Report.h - The figures of a run --------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_REPORT_H
#define VARLEN_TOOLS_RUN_REPORT_H

#include "Flops.h"
#include "varlen/Executor/Executor.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace varlen_run {

struct Figures {
  std::string entry, target;
  int64_t threads = 0;
  double compileMs = 0;
  /// From the start of the process to the end of the first call.
  double firstResultMs = 0;
  /// The timed calls, and the peaks measured between them (empty: not asked
  /// for), in floating-point operations per second.
  std::vector<double> ms, peaks;
  std::string peakKind;
  Work work;
  int64_t inputBytes = 0, outputBytes = 0;
  /// Memory of the function beside its inputs and outputs.
  int64_t workspaceBytes = 0;
  /// The peak of the whole process.
  int64_t peakMemoryBytes = 0;
  /// What the executor has counted in so many runs.
  std::optional<varlen_sim_stats> simulated;
  int64_t simulatedRuns = 0;
  std::vector<std::string> hazards;
};

/// The largest resident size that the process has had.
int64_t getPeakMemoryBytes();

/// Prints a few lines for people.
void printReport(const Figures &figures, llvm::raw_ostream &os);
/// Prints one JSON object; what is not known is null.
void printJSON(const Figures &figures, llvm::raw_ostream &os);

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_REPORT_H
