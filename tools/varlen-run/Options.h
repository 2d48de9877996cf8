//===- Options.h - The command line of varlen-run ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_OPTIONS_H
#define VARLEN_TOOLS_RUN_OPTIONS_H

#include "Device.h"
#include "Simulation.h"

#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace varlen_run {

struct Options {
  std::string module; // the MLIR file, - is stdin
  /// safetensors. The function is compiled once and runs on each input; outputs
  /// are as many or none.
  std::vector<std::string> inputs, outputs;
  std::string weights; // safetensors, for each of the inputs; empty: none
  std::string entry;   // empty: the only public function
  std::string target = "host";
  std::string pipeline; // empty: that of the device
  std::string json;     // empty: none
  int64_t threads = 0;  // 0: as many as there are
  int64_t repeat = 0;   // 0: one run, timed; K: K timed runs after one
  std::optional<uint64_t> random;
  std::optional<std::vector<int64_t>> lengths, lengthsK;
  std::optional<int64_t> cuPad;
  /// By argument and dimension.
  std::map<std::pair<std::string, int64_t>, int64_t> extents;
  Device device;
  SimulationOptions simulation;
  bool deviceChecks = false;
  bool peak = false;
  bool help = false;
  bool version = false;
};

llvm::Expected<Options> parseOptions(int argc, char **argv);

std::string getHelp();

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_OPTIONS_H
