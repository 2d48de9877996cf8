//===- Simulation.h - Runs in the executor ----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_SIMULATION_H
#define VARLEN_TOOLS_RUN_SIMULATION_H

#include "varlen/Executor/Executor.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace varlen_run {

/// The --sim-... options.
struct SimulationOptions {
  uint64_t seed = 1;
  /// All of them in turn if none is given.
  std::optional<int32_t> scheduler, async;
  bool detector = true;
  int64_t runs = 1;
  int64_t coResident = 1;
  std::string trace; // a JSON file; empty: none
  /// A fault of varlen-mutate-kernels; -1 lists them.
  std::optional<int64_t> mutant;
};

llvm::Expected<int32_t> parseScheduler(llvm::StringRef text);
llvm::Expected<int32_t> parseAsync(llvm::StringRef text);

/// What the executor has found in all runs.
class Simulation {
public:
  Simulation(const SimulationOptions &options, llvm::StringRef chip,
             int64_t threads);
  ~Simulation();

  /// Sets up configuration i.
  void configure(int64_t i);
  /// Prints what the run has found on stderr, with the options that replay it:
  /// each kind of hazard once for a place in the source.
  void reportRun();
  int64_t getNumHazards() const { return hazards.size(); }
  /// What was found, each kind of hazard once for a place in the source.
  llvm::ArrayRef<std::string> getHazards() const { return hazards; }
  /// "seed 3, schedule random, async late"
  std::string describe() const;

  /// Counts of all runs.
  const varlen_sim_stats &getStats() const { return stats; }
  /// The timeline for --trace: of the first kernel with a hazard, else of the
  /// kernel that does the work.
  llvm::Expected<std::string> readTrace() const;

private:
  static void observe(const char *kernel, const varlen_sim_result *result,
                      void *context);
  void observe(llvm::StringRef kernel, const varlen_sim_result *result);

  SimulationOptions options;
  varlen_sim_config config;
  varlen_sim_stats stats = {};
  /// Kind and site of all, and the lines that are not yet printed.
  llvm::StringSet<> known;
  std::vector<std::string> hazards;
  std::vector<std::string> pending;
  int64_t numPrinted = 0;
  /// A file in memory: of a run that fails nothing is written but for hazards.
  int traceDescriptor = -1;
  uint64_t tracedAccesses = 0;
  bool isTraceOfHazard = false;
  std::string traceError;
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_SIMULATION_H
