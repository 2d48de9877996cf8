//===- Report.cpp - The figures of a run ----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Tensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

using namespace varlen_run;

int64_t varlen_run::getPeakMemoryBytes() {
  int64_t kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "re");
  if (!file)
    return 0;
  char line[256];
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %" SCNd64, &kilobytes) == 1)
      break;
  fclose(file);
  return kilobytes * 1024;
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

namespace {
/// What follows from the figures.
struct Derived {
  double msMedian, msMin;
  std::optional<double> gflops, peakGflops, fraction;

  explicit Derived(const Figures &figures)
      : msMedian(median(figures.ms)), msMin(*llvm::min_element(figures.ms)) {
    if (figures.work.flops)
      gflops = *figures.work.flops / msMedian / 1e6;
    if (!figures.peaks.empty())
      peakGflops = median(figures.peaks) / 1e9;
    if (gflops && peakGflops)
      fraction = *gflops / *peakGflops;
  }
};
} // namespace

static std::string formatBytes(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (bytes < 1 << 20)
    os << llvm::format("%.1f KiB", static_cast<double>(bytes) / 1024);
  else
    os << llvm::format("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

void varlen_run::printReport(const Figures &figures, llvm::raw_ostream &os) {
  Derived derived(figures);
  os << "function  " << figures.entry << ", " << figures.target << ", "
     << figures.threads << (figures.threads == 1 ? " thread\n" : " threads\n");
  os << llvm::format("compile   %.1f ms, first result after %.1f ms\n",
                     figures.compileMs, figures.firstResultMs);
  os << llvm::format("run       %.3f ms", derived.msMedian);
  if (figures.ms.size() > 1)
    os << llvm::format(" (median of %zu, fastest %.3f ms)", figures.ms.size(),
                       derived.msMin);
  os << "\n";
  if (derived.gflops)
    os << llvm::format("work      %.2f GFLOP/s useful", *derived.gflops);
  else if (derived.peakGflops || !figures.work.notCounted.empty())
    os << "work      not known";
  if (derived.peakGflops) {
    if (derived.fraction)
      os << llvm::format(", %.3f of the peak", *derived.fraction);
    os << llvm::format(" (%.2f GFLOP/s, ", *derived.peakGflops)
       << figures.peakKind << ")";
  }
  if (derived.gflops || derived.peakGflops || !figures.work.notCounted.empty())
    os << "\n";
  if (!figures.work.notCounted.empty()) {
    os << "          not counted: ";
    llvm::interleaveComma(figures.work.notCounted, os, [&](const auto &entry) {
      os << entry.second << " " << entry.first;
    });
    os << "\n";
  }
  if (const auto &simulated = figures.simulated) {
    os << "executor  " << figures.simulatedRuns
       << (figures.simulatedRuns == 1 ? " run" : " runs") << ", no hazard; "
       << simulated->mma << " mma, " << simulated->wgmma << " wgmma, "
       << simulated->cp_async << " cp.async, " << simulated->tma
       << " bulk copies, " << simulated->barriers << " barriers\n";
    os << "banks     " << simulated->matrix_conflicts << " conflicts in "
       << simulated->matrix_phases << " phases of ldmatrix and stmatrix, "
       << simulated->shared_conflicts << " in " << simulated->shared_phases
       << " of loads and stores\n";
  }
  os << "memory    inputs " << formatBytes(figures.inputBytes) << ", outputs "
     << formatBytes(figures.outputBytes) << ", workspace "
     << formatBytes(figures.workspaceBytes) << ", process "
     << formatBytes(figures.peakMemoryBytes) << "\n";
}

static llvm::json::Value toJSON(const varlen_sim_stats &stats, int64_t runs,
                                llvm::ArrayRef<std::string> hazards) {
  auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  return llvm::json::Object{
      {"runs", runs},
      {"hazards", llvm::json::Array(hazards)},
      {"switches", number(stats.switches)},
      {"collectives", number(stats.collectives)},
      {"mma", number(stats.mma)},
      {"wgmma", number(stats.wgmma)},
      {"tma", number(stats.tma)},
      {"cp_async", number(stats.cp_async)},
      {"barriers", number(stats.barriers)},
      {"accesses", number(stats.accesses)},
      {"matrix_phases", number(stats.matrix_phases)},
      {"matrix_conflicts", number(stats.matrix_conflicts)},
      {"shared_accesses", number(stats.shared_accesses)},
      {"shared_phases", number(stats.shared_phases)},
      {"shared_conflicts", number(stats.shared_conflicts)}};
}

void varlen_run::printJSON(const Figures &figures, llvm::raw_ostream &os) {
  Derived derived(figures);
  auto orNull = [](std::optional<double> value) {
    return value ? llvm::json::Value(*value) : llvm::json::Value(nullptr);
  };
  llvm::json::Object notCounted;
  for (const auto &[name, number] : figures.work.notCounted)
    notCounted[name] = number;
  llvm::json::Object object{{"entry", figures.entry},
                            {"target", figures.target},
                            {"threads", figures.threads},
                            {"compile_ms", figures.compileMs},
                            {"first_result_ms", figures.firstResultMs},
                            {"ms_median", derived.msMedian},
                            {"ms_min", derived.msMin},
                            {"ms_all", llvm::json::Array(figures.ms)},
                            {"useful_flops", orNull(figures.work.flops)},
                            {"not_counted", std::move(notCounted)},
                            {"gflops", orNull(derived.gflops)},
                            {"peak_gflops", orNull(derived.peakGflops)},
                            {"peak_kind", figures.peaks.empty()
                                              ? llvm::json::Value(nullptr)
                                              : figures.peakKind},
                            {"fraction", orNull(derived.fraction)},
                            {"input_bytes", figures.inputBytes},
                            {"output_bytes", figures.outputBytes},
                            {"workspace_bytes", figures.workspaceBytes},
                            {"peak_memory_bytes", figures.peakMemoryBytes}};
  if (figures.simulated)
    object["executor"] =
        toJSON(*figures.simulated, figures.simulatedRuns, figures.hazards);
  os << llvm::json::Value(std::move(object)) << "\n";
}
