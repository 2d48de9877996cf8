//===- Harness.h - Kernels written as C++ functions -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TEST_EXECUTOR_HARNESS_H
#define VARLEN_TEST_EXECUTOR_HARNESS_H

#include "../../../test/Expect.h"
#include "varlen/Executor/Executor.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

/// The site of a device call: its line.
#define AT __LINE__

struct Shape {
  uint32_t threads = 32;
  uint32_t grid = 1;
  uint32_t cluster = 1;
  uint32_t shared = 4096;
  uint32_t registers = 0;
  bool waitsForGrids = false;
};

struct Outcome {
  std::vector<std::string> reports;
  varlen_sim_stats stats;
  bool deadlock;
  std::string all() const {
    std::string text;
    for (const std::string &report : reports)
      text += "\n  " + report;
    return text.empty() ? " nothing" : text;
  }
  bool has(const std::string &part) const {
    for (const std::string &report : reports)
      if (report.find(part) != std::string::npos)
        return true;
    return false;
  }
};

inline varlen_sim_config configOf(uint64_t seed, int scheduler, int async,
                                  bool detector = true) {
  varlen_sim_config config;
  varlen_sim_config_init(&config);
  config.seed = seed;
  config.scheduler = scheduler;
  config.async = async;
  config.detector = detector;
  return config;
}

using Body = std::function<void()>;

inline void runBody(void **arguments) {
  (*static_cast<const Body *>(arguments[0]))();
}

struct Launcher {
  std::vector<std::string> names;
  varlen_sim_module *module;
  varlen_sim_kernel *kernel;

  explicit Launcher(const Shape &shape) {
    std::vector<const char *> sites;
    for (int line = 0; line < 2000; ++line)
      names.push_back("line " + std::to_string(line));
    for (const std::string &name : names)
      sites.push_back(name.c_str());
    module = varlen_sim_module_create(sites.data(),
                                      static_cast<uint32_t>(sites.size()));
    varlen_sim_kernel_info info = {};
    info.name = "kernel";
    info.entry = runBody;
    info.static_shared_bytes = shape.shared;
    info.registers = shape.registers;
    info.waits_for_grids = shape.waitsForGrids;
    kernel = varlen_sim_module_add_kernel(module, &info);
  }
  ~Launcher() { varlen_sim_module_destroy(module); }
  Launcher(const Launcher &) = delete;
  Launcher &operator=(const Launcher &) = delete;

  varlen_sim_result *launch(const Shape &shape, const varlen_sim_config &config,
                            const Body &body) {
    void *arguments[] = {const_cast<Body *>(&body)};
    varlen_sim_launch_params params = {};
    for (int i = 0; i < 3; ++i)
      params.grid[i] = params.block[i] = params.cluster[i] = 1;
    params.grid[0] = shape.grid;
    params.block[0] = shape.threads;
    params.cluster[0] = shape.cluster;
    params.arguments = arguments;
    return varlen_sim_launch(kernel, &params, &config);
  }
};

inline Outcome run(const Shape &shape, const varlen_sim_config &config,
                   const Body &body) {
  Launcher launcher(shape);
  varlen_sim_result *result = launcher.launch(shape, config, body);
  Outcome outcome;
  for (uint32_t i = 0; i < varlen_sim_result_num_reports(result); ++i)
    outcome.reports.emplace_back(varlen_sim_result_report(result, i).text);
  outcome.stats = *varlen_sim_result_stats(result);
  outcome.deadlock = varlen_sim_result_deadlock(result);
  varlen_sim_result_destroy(result);
  return outcome;
}

/// All schedulers and policies with some seeds; function(config).
template <typename Function>
void forAllConfigs(Function function, uint64_t seeds = 3) {
  for (int scheduler :
       {VARLEN_SIM_ROUND_ROBIN, VARLEN_SIM_RANDOM, VARLEN_SIM_PRIORITY})
    for (int async :
         {VARLEN_SIM_EARLY, VARLEN_SIM_LATE, VARLEN_SIM_RANDOM_TIME})
      for (uint64_t seed = 1; seed <= seeds; ++seed)
        function(configOf(seed, scheduler, async));
}

/// No report in any configuration.
inline void expectClean(const char *what, const Shape &shape,
                        const Body &body) {
  forAllConfigs([&](const varlen_sim_config &config) {
    Outcome outcome = run(shape, config, body);
    EXPECT(outcome.reports.empty(),
           "%s: no report with seed %d, scheduler %d, async %d, got:%s", what,
           static_cast<int>(config.seed), config.scheduler, config.async,
           outcome.all().c_str());
  });
}

/// A report that contains `part`, in every configuration.
inline void expectReport(const char *what, const std::string &part,
                         const Shape &shape, const Body &body) {
  forAllConfigs([&](const varlen_sim_config &config) {
    Outcome outcome = run(shape, config, body);
    EXPECT(outcome.has(part),
           "%s: '%s' with seed %d, scheduler %d, async %d, got:%s", what,
           part.c_str(), static_cast<int>(config.seed), config.scheduler,
           config.async, outcome.all().c_str());
  });
}

/// A report in at least one configuration: some faults show only in some.
inline void expectReportSometimes(const char *what, const std::string &part,
                                  const Shape &shape, const Body &body) {
  bool seen = false;
  std::string last;
  forAllConfigs([&](const varlen_sim_config &config) {
    Outcome outcome = run(shape, config, body);
    seen |= outcome.has(part);
    last = outcome.all();
  });
  EXPECT(seen, "%s: '%s' in one configuration, got:%s", what, part.c_str(),
         last.c_str());
}

// Short forms of device calls.
inline uint32_t tid() { return varlen_sim_sreg(VARLEN_SIM_TID_X); }
inline uint32_t cta() { return varlen_sim_sreg(VARLEN_SIM_CTAID_X); }

inline void *smem(uint32_t offset) { return varlen_sim_smem(offset); }

template <typename T> T load(uint32_t offset, uint32_t site) {
  T value;
  memcpy(&value,
         varlen_sim_load_shared(varlen_sim_smem(offset), sizeof(T), site),
         sizeof(T));
  return value;
}
template <typename T> void store(uint32_t offset, T value, uint32_t site) {
  memcpy(varlen_sim_store_shared(varlen_sim_smem(offset), sizeof(T), site),
         &value, sizeof(T));
}

#endif // VARLEN_TEST_EXECUTOR_HARNESS_H
