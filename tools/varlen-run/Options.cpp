//===- Options.cpp - The command line of varlen-run -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "Tensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cinttypes>
#include <functional>

using namespace varlen_run;
using llvm::Error;
using llvm::StringRef;

namespace {
/// One option: how it is written, what it means, what it does.
struct Option {
  StringRef name;
  /// Placeholder of the value; empty: the option takes none.
  StringRef value;
  StringRef help;
  std::function<Error(Options &, StringRef)> apply;
};
} // namespace

/// The bound of an option's value; wider than any sensible one, so that sums of
/// a few thousand do not overflow.
static constexpr int64_t maxInteger = int64_t(1) << 48;

/// Of threads; the runtime's pool has no more.
static constexpr int64_t maxThreads = 1024;

static Error parseInteger(StringRef option, StringRef text, int64_t minimum,
                          int64_t &value, int64_t maximum = maxInteger) {
  if (text.getAsInteger(10, value) || value < minimum || value > maximum)
    return makeError(
        "--%s: expected an integer from %" PRId64 " to %" PRId64 ", got %s",
        option.str().c_str(), minimum, maximum, quote(text).c_str());
  return Error::success();
}

static Error parseLengths(StringRef option, StringRef text,
                          std::optional<std::vector<int64_t>> &values) {
  llvm::SmallVector<StringRef> parts;
  // No text, no sequence.
  if (!text.empty())
    text.split(parts, ',');
  values.emplace();
  for (StringRef part : parts)
    if (Error error = parseInteger(option, part, 0, values->emplace_back()))
      return error;
  return Error::success();
}

/// NAME:DIM=VALUE
static Error parseExtent(Options &options, StringRef text) {
  auto [key, value] = text.rsplit('=');
  auto [name, dim] = key.rsplit(':');
  int64_t d = 0, extent = 0;
  if (name.empty() || dim.getAsInteger(10, d) || d < 0 ||
      value.getAsInteger(10, extent) || extent < 0 || extent > maxInteger)
    return makeError("--extent: expected NAME:DIMENSION=SIZE, got " +
                     quote(text));
  if (!options.extents.try_emplace({name.str(), d}, extent).second)
    return makeError("--extent: dimension %" PRId64 " of %s is given twice", d,
                     quote(name).c_str());
  return Error::success();
}

/// Stores the option's value in `field`.
static std::function<Error(Options &, StringRef)>
string(std::string Options::*field) {
  return [field](Options &options, StringRef value) {
    options.*field = value.str();
    return Error::success();
  };
}
static std::function<Error(Options &, StringRef)> flag(bool Options::*field) {
  return [field](Options &options, StringRef) {
    options.*field = true;
    return Error::success();
  };
}

/// Whether the option may be given more than once.
static bool isRepeatable(StringRef option) {
  return option == "o" || option == "extent";
}

/// Whether an empty value means something.
static bool mayBeEmpty(StringRef option) {
  return option.starts_with("lengths");
}

/// Whether the option says how the executor runs.
static bool isForExecutor(StringRef option) {
  return option.starts_with("sim-") || option == "trace";
}

static const std::vector<Option> &getTable() {
  static const std::vector<Option> table = {
      {"o", "FILE",
       "write the results to this safetensors file; once for each input",
       [](Options &options, StringRef value) {
         options.outputs.push_back(value.str());
         return Error::success();
       }},
      {"weights", "FILE",
       "take tensors that an input does not have from this safetensors file",
       string(&Options::weights)},
      {"entry", "NAME", "function to run; default: the only public one",
       string(&Options::entry)},
      {"threads", "N", "threads to use; default: all of the machine's",
       [](Options &options, StringRef value) {
         return parseInteger("threads", value, 1, options.threads, maxThreads);
       }},
      {"repeat", "K", "time K runs, after one that is not timed",
       [](Options &options, StringRef value) {
         return parseInteger("repeat", value, 1, options.repeat);
       }},
      {"device", "DEVICE",
       "cpu, cuda (or cuda:CHIP), or sim:CHIP, the executor; default: cpu",
       [](Options &options, StringRef value) -> Error {
         llvm::Expected<Device> device = parseDevice(value);
         if (!device)
           return device.takeError();
         options.device = *device;
         return Error::success();
       }},
      {"target", "NAME", "CPU to make code for; default: host",
       string(&Options::target)},
      {"pipeline", "PASSES",
       "passes to the llvm dialect; default: those of the device",
       string(&Options::pipeline)},
      {"random", "SEED", "fill tensors that no file has with N(0, 1)",
       [](Options &options, StringRef value) {
         int64_t seed = 0;
         Error error = parseInteger("random", value, 0, seed);
         options.random = static_cast<uint64_t>(seed);
         return error;
       }},
      {"lengths", "L,L,...",
       "with --random: query rows of each sequence, and key rows too",
       [](Options &options, StringRef value) {
         return parseLengths("lengths", value, options.lengths);
       }},
      {"lengths-k", "L,L,...", "with --random: key rows of each sequence",
       [](Options &options, StringRef value) {
         return parseLengths("lengths-k", value, options.lengthsK);
       }},
      {"cu-pad", "M",
       "with --random: M entries in cu_seqlens, with empty sequences",
       [](Options &options, StringRef value) {
         return parseInteger("cu-pad", value, 1, options.cuPad.emplace());
       }},
      {"extent", "NAME:DIM=SIZE",
       "with --random: a dynamic extent that the lengths do not give",
       parseExtent},
      {"device-checks", "",
       "leave the checks of cu_seqlens and seqused to the kernels",
       flag(&Options::deviceChecks)},
      {"sim-seed", "SEED", "where the executor's choices start; default: 1",
       [](Options &options, StringRef value) {
         int64_t seed = 0;
         Error error = parseInteger("sim-seed", value, 0, seed);
         options.simulation.seed = static_cast<uint64_t>(seed);
         return error;
       }},
      {"sim-schedule", "NAME",
       "which warp runs next: round-robin, random or priority",
       [](Options &options, StringRef value) -> Error {
         llvm::Expected<int32_t> scheduler = parseScheduler(value);
         if (!scheduler)
           return scheduler.takeError();
         options.simulation.scheduler = *scheduler;
         return Error::success();
       }},
      {"sim-async", "NAME", "when copies are done: early, late or random",
       [](Options &options, StringRef value) -> Error {
         llvm::Expected<int32_t> async = parseAsync(value);
         if (!async)
           return async.takeError();
         options.simulation.async = *async;
         return Error::success();
       }},
      {"sim-detector", "on|off", "look for races; default: on",
       [](Options &options, StringRef value) -> Error {
         options.simulation.detector = value == "on";
         if (value == "on" || value == "off")
           return Error::success();
         return makeError("--sim-detector: expected on or off, got " +
                          quote(value));
       }},
      {"sim-runs", "N",
       "run N times, each with another seed, schedule and timing of copies",
       [](Options &options, StringRef value) {
         return parseInteger("sim-runs", value, 1, options.simulation.runs);
       }},
      {"sim-co-resident", "N",
       "blocks of a grid that run together, 0 for all; default: 1",
       [](Options &options, StringRef value) {
         return parseInteger("sim-co-resident", value, 0,
                             options.simulation.coResident, UINT32_MAX);
       }},
      {"sim-mutant", "N",
       "put fault N of varlen-mutate-kernels into the kernels; list: name them",
       [](Options &options, StringRef value) -> Error {
         int64_t &mutant = options.simulation.mutant.emplace(-1);
         if (value == "list")
           return Error::success();
         return parseInteger("sim-mutant", value, 0, mutant);
       }},
      {"trace", "FILE",
       "write a timeline of the first block as Chrome trace JSON, or as a "
       "picture for browsers where FILE ends with .svg",
       [](Options &options, StringRef value) {
         options.simulation.trace = value.str();
         return Error::success();
       }},
      {"peak", "",
       "also measure the machine's multiply-add peak, between the runs",
       flag(&Options::peak)},
      {"json", "FILE", "write the figures as JSON to this file",
       string(&Options::json)},
      {"version", "", "print the versions of Varlen and of LLVM",
       flag(&Options::version)},
      {"help", "", "print this", flag(&Options::help)},
  };
  return table;
}

std::string varlen_run::getHelp() {
  std::string text =
      "usage: varlen-run FILE.mlir [IN.safetensors...] [option...]\n\n"
      "Compiles a function on tensors, runs it on this machine, on each input "
      "in turn,\nand writes its results. Tensors are matched by the attribute "
      "varlen.name of an "
      "argument or result, else\nby arg0, arg1, ... and result0, result1, "
      "...\n\n";
  for (const Option &option : getTable()) {
    std::string left = (option.name.size() == 1 ? "  -" : "  --");
    left += option.name.str();
    if (!option.value.empty())
      left += (option.name.size() == 1 ? " " : "=") + option.value.str();
    left.resize(std::max<size_t>(left.size() + 2, 26), ' ');
    text += left + option.help.str() + "\n";
  }
  return text;
}

llvm::Expected<Options> varlen_run::parseOptions(int argc, char **argv) {
  Options options;
  StringRef executorOption;
  llvm::StringSet<> given;
  for (int i = 1; i < argc; ++i) {
    StringRef text = argv[i];
    if (!text.starts_with("-") || text == "-") {
      if (text.empty())
        return makeError("expected the name of a file, got ''");
      if (options.module.empty())
        options.module = text.str();
      else
        options.inputs.push_back(text.str());
      continue;
    }
    auto [name, value] =
        text.drop_while([](char c) { return c == '-'; }).split('=');
    const auto &table = getTable();
    auto option = llvm::find_if(table, [name = name](const Option &option) {
      return option.name == name;
    });
    if (option == table.end())
      return makeError("unknown option " + quote(text) + ": see --help");
    bool hasValue = text.contains('=');
    if (option->value.empty() && hasValue)
      return makeError("--%s takes no value", name.str().c_str());
    if (!option->value.empty() && !hasValue) {
      if (++i == argc)
        return makeError("%s needs a value: %s", argv[i - 1],
                         option->value.str().c_str());
      value = argv[i];
    }
    std::string written = (name.size() == 1 ? "-" : "--") + name.str();
    if (!option->value.empty() && value.empty() && !mayBeEmpty(name))
      return makeError(written + " needs a value: " + option->value.str());
    if (!given.insert(name).second && !isRepeatable(name))
      return makeError(written + " is given twice");
    if (Error error = option->apply(options, value))
      return error;
    if (isForExecutor(name))
      executorOption = name;
  }
  if (options.help || options.version)
    return options;
  if (options.module.empty())
    return makeError("no MLIR file: see --help");
  size_t numRuns = std::max<size_t>(options.inputs.size(), 1);
  if (!options.outputs.empty() && options.outputs.size() != numRuns)
    return makeError("expected -o once for each input, %zu times, got it %zu "
                     "times",
                     numRuns, options.outputs.size());
  if (numRuns > 1 &&
      (!options.json.empty() || !options.simulation.trace.empty()))
    return makeError("--json and --trace write about one run: expected one "
                     "input, got %zu",
                     numRuns);
  if (!executorOption.empty() && options.device.kind != Device::Kind::Executor)
    return makeError("--%s says how the executor runs: expected "
                     "--device=sim:CHIP",
                     executorOption.str().c_str());
  if (options.peak && options.device.isGPU())
    return makeError("--peak measures the CPU: expected --device=cpu");
  if (options.deviceChecks && !options.device.isGPU())
    return makeError("--device-checks is about kernels: expected "
                     "--device=sim:CHIP or --device=cuda");
  if (options.repeat && options.device.kind == Device::Kind::Executor)
    return makeError("--repeat times a machine: expected another device, or "
                     "--sim-runs for the executor");
  if (!options.random && (options.lengths || options.lengthsK ||
                          options.cuPad || !options.extents.empty()))
    return makeError("--lengths, --lengths-k, --cu-pad and --extent say what "
                     "--random makes: expected --random=SEED");
  if ((options.lengthsK || options.cuPad) && !options.lengths)
    return makeError("--lengths-k and --cu-pad need --lengths");
  if (options.lengthsK && options.lengthsK->size() != options.lengths->size())
    return makeError("--lengths-k has %zu lengths and --lengths %zu: expected "
                     "one of each for a sequence",
                     options.lengthsK->size(), options.lengths->size());
  return options;
}
