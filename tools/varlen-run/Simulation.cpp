//===- Simulation.cpp - Runs in the executor ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"

#include "Tensor.h"
#include "varlen/Runtime/GPUExecutor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace varlen_run;
using llvm::Expected;
using llvm::StringRef;

/// In the order of their numbers in Executor.h.
static constexpr llvm::StringLiteral schedulers[] = {"round-robin", "random",
                                                     "priority"};
static constexpr llvm::StringLiteral asyncs[] = {"early", "late", "random"};

static Expected<int32_t> parseName(StringRef option, StringRef text,
                                   llvm::ArrayRef<llvm::StringLiteral> names) {
  const auto *it = llvm::find(names, text);
  if (it != names.end())
    return static_cast<int32_t>(it - names.begin());
  return makeError("--" + option.str() + ": expected one of " +
                   llvm::join(names, ", ") + ", got '" + text.str() + "'");
}

Expected<int32_t> varlen_run::parseScheduler(StringRef text) {
  return parseName("sim-schedule", text, schedulers);
}

Expected<int32_t> varlen_run::parseAsync(StringRef text) {
  return parseName("sim-async", text, asyncs);
}

/// Bytes of shared memory that a CTA may have.
static uint32_t getSharedBytes(StringRef chip) {
  return llvm::StringSwitch<uint32_t>(chip)
      .Cases({"sm_80", "sm_87"}, 163 * 1024)
      .Cases({"sm_86", "sm_89", "sm_120", "sm_120a"}, 99 * 1024)
      .Default(227 * 1024);
}

Simulation::Simulation(const SimulationOptions &options, StringRef chip,
                       int64_t threads)
    : options(options) {
  varlen_sim_config_init(&config);
  config.max_shared_bytes = getSharedBytes(chip);
  config.detector = options.detector;
  // One replays exactly.
  config.host_threads = static_cast<uint32_t>(std::max<int64_t>(threads, 1));
  config.co_resident_ctas = static_cast<uint32_t>(options.coResident);
  if (!options.trace.empty()) {
    config.trace_cta = 0;
    traceDescriptor = memfd_create("trace", MFD_CLOEXEC);
  }
  varlen_gpu_executor_observe(observe, this);
}

Simulation::~Simulation() {
  varlen_gpu_executor_observe(nullptr, nullptr);
  if (traceDescriptor >= 0)
    close(traceDescriptor);
}

void Simulation::configure(int64_t i) {
  config.seed = options.seed + i;
  // One run has the defaults; several go through all combinations.
  bool isOne = options.runs == 1;
  config.scheduler = options.scheduler.value_or(
      isOne ? VARLEN_SIM_RANDOM : static_cast<int32_t>(i % 3));
  config.async = options.async.value_or(
      isOne ? VARLEN_SIM_LATE : static_cast<int32_t>(i / 3 % 3));
  varlen_gpu_executor_configure(&config);
}

std::string Simulation::describe() const {
  return "--sim-seed=" + std::to_string(config.seed) +
         " --sim-schedule=" + schedulers[config.scheduler].str() +
         " --sim-async=" + asyncs[config.async].str();
}

void Simulation::observe(const char *kernel, const varlen_sim_result *result,
                         void *context) {
  static_cast<Simulation *>(context)->observe(kernel, result);
}

void Simulation::observe(StringRef kernel, const varlen_sim_result *result) {
  uint32_t numReports = varlen_sim_result_num_reports(result);
  for (uint32_t i = 0; i < numReports; ++i) {
    varlen_sim_report report = varlen_sim_result_report(result, i);
    if (!known.insert(std::string(report.kind) + ' ' + report.site).second)
      continue;
    hazards.emplace_back(report.text);
    pending.emplace_back(report.text);
  }
  const varlen_sim_stats &found = *varlen_sim_result_stats(result);
  stats.switches += found.switches;
  stats.collectives += found.collectives;
  stats.mma += found.mma;
  stats.wgmma += found.wgmma;
  stats.tma += found.tma;
  stats.cp_async += found.cp_async;
  stats.barriers += found.barriers;
  stats.accesses += found.accesses;
  stats.matrix_phases += found.matrix_phases;
  stats.matrix_conflicts += found.matrix_conflicts;
  stats.shared_accesses += found.shared_accesses;
  stats.shared_phases += found.shared_phases;
  stats.shared_conflicts += found.shared_conflicts;
  // The kernel that has a hazard, or does the work, of those that a function
  // launches.
  if (options.trace.empty() || isTraceOfHazard ||
      (numReports == 0 && found.accesses < tracedAccesses))
    return;
  isTraceOfHazard = numReports != 0;
  tracedAccesses = found.accesses;
  std::string path = "/proc/self/fd/" + std::to_string(traceDescriptor);
  if (varlen_sim_result_write_trace(result, path.c_str()))
    traceError = strerror(errno);
}

Expected<std::string> Simulation::readTrace() const {
  if (!traceError.empty())
    return makeError("no trace can be made: " + traceError);
  if (tracedAccesses == 0)
    return makeError("no trace can be made: no kernel has touched memory");
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> text =
      llvm::MemoryBuffer::getOpenFile(traceDescriptor, "trace", -1);
  if (!text)
    return makeError("no trace can be made: " + text.getError().message());
  return (*text)->getBuffer().str();
}

void Simulation::reportRun() {
  // One fault shows in many places.
  static constexpr int64_t maxPrinted = 10;
  if (pending.empty() || numPrinted == maxPrinted)
    return;
  for (const std::string &line : pending) {
    if (numPrinted == maxPrinted) {
      llvm::errs() << "note: there are more\n";
      break;
    }
    ++numPrinted;
    // In one piece: progress is printed by another thread.
    llvm::errs() << "hazard: " + line + "\n";
  }
  pending.clear();
  llvm::errs() << "note: replay with " + describe() + "\n";
}
