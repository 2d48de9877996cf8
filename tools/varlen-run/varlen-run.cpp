//===- varlen-run.cpp - Compiles a function and runs it -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/OutputFile.h"
#include "Checks.h"
#include "Compiler.h"
#include "Flops.h"
#include "Function.h"
#include "Host.h"
#include "Inputs.h"
#include "Options.h"
#include "Peak.h"
#include "Progress.h"
#include "Report.h"
#include "Signature.h"
#include "Timeline.h"
#include "varlen/ExecutionEngine/CompileThreads.h"
#include "varlen/InitAll.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>
#include <utility>

using namespace varlen_run;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using Clock = std::chrono::steady_clock;

static double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

/// When the process started, but for what it has waited since.
static Clock::time_point getProcessStart() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Clock::now() - std::chrono::seconds(used.tv_sec) -
         std::chrono::nanoseconds(used.tv_nsec);
}

static Expected<const mlir::varlen::CPUTarget *>
findTarget(const std::string &name) {
  const mlir::varlen::CPUTarget *target = mlir::varlen::lookupCPUTarget(name);
  if (!target)
    return makeError("unknown target '" + name + "': expected one of " +
                     mlir::varlen::getCPUTargetNames());
  std::string missing;
  if (!mlir::varlen::hostSupports(*target, &missing))
    return makeError("this machine cannot run code for target '" + name +
                     "': it lacks " + missing);
  return target;
}

/// Runs the function as often as asked, and measures.
static Error runAndMeasure(Function &function, const Options &options,
                           std::optional<Peak> &peak, Progress &progress,
                           Clock::time_point start, Figures &figures) {
  progress.setPhase("running");
  Clock::time_point begin = Clock::now();
  if (Error error = function.call())
    return error;
  double firstMs = msSince(begin);
  figures.firstResultMs = msSince(start);
  for (int64_t i = 0; i < options.repeat; ++i) {
    progress.setPhase("run " + std::to_string(i + 1) + " of " +
                      std::to_string(options.repeat));
    if (peak)
      figures.peaks.push_back(peak->measure());
    begin = Clock::now();
    if (Error error = function.call())
      return error;
    figures.ms.push_back(msSince(begin));
  }
  if (options.repeat == 0)
    figures.ms.push_back(firstMs);
  if (peak)
    figures.peaks.push_back(peak->measure());
  return Error::success();
}

/// Runs the function in all configurations of the executor. Results must be the
/// same in all of them, and no hazard may be seen.
static Error runAndSimulate(Function &function, const Options &options,
                            Simulation &simulation, Progress &progress,
                            Clock::time_point start, Figures &figures) {
  std::vector<std::string> first;
  int64_t runs = options.simulation.runs;
  for (int64_t i = 0; i < runs; ++i) {
    progress.setPhase("run " + std::to_string(i + 1) + " of " +
                      std::to_string(runs));
    simulation.configure(i);
    if (i > 0)
      if (Error error = function.resetInputs())
        return error;
    Clock::time_point begin = Clock::now();
    Error error = function.call();
    figures.ms.push_back(msSince(begin));
    if (i == 0)
      figures.firstResultMs = msSince(start);
    simulation.reportRun();
    if (error)
      return error;
    // A kernel with a hazard may write anything.
    if (int64_t hazards = simulation.getNumHazards())
      return makeError(std::to_string(hazards) +
                       (hazards == 1 ? " hazard" : " hazards") + " in run " +
                       std::to_string(i + 1) + " of " + std::to_string(runs));
    Expected<std::vector<NamedTensor>> results = function.getResults();
    if (!results)
      return results.takeError();
    for (auto [k, result] : llvm::enumerate(*results)) {
      llvm::StringRef bytes(result.data, *getNumElements(result.shape) *
                                             getBytes(result.dtype));
      if (i == 0)
        first.push_back(bytes.str());
      else if (bytes != first[k])
        return makeError("'" + result.name + "' is not the same in run " +
                         std::to_string(i + 1) +
                         " as in the first: replay with " +
                         simulation.describe());
    }
  }
  return Error::success();
}

/// Prints on stdout, or says why it cannot.
static Error printOut(llvm::function_ref<void(llvm::raw_ostream &)> print) {
  llvm::raw_fd_ostream &stream = llvm::outs();
  print(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (error)
    return makeError("stdout: cannot be written: " + error.message());
  return Error::success();
}

/// Writes all files of a run, or none of them, and the report, but for one with
/// hazards.
static Error writeOutputs(const Options &options, const std::string &output,
                          ArrayRef<NamedTensor> results, const Figures &figures,
                          const Simulation *simulation) {
  std::vector<varlen_tools::OutputFile> files;
  auto write = [&](const std::string &path, auto print) -> Error {
    if (path.empty())
      return Error::success();
    Expected<varlen_tools::OutputFile> file =
        varlen_tools::OutputFile::write(path, print);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
    return Error::success();
  };
  if (Error error = write(output, [&](llvm::raw_ostream &os) {
        printSafetensors(results, os);
      }))
    return error;
  if (Error error = write(
          options.json, [&](llvm::raw_ostream &os) { printJSON(figures, os); }))
    return error;
  if (simulation && !options.simulation.trace.empty()) {
    Expected<std::string> trace = simulation->readTrace();
    if (trace && llvm::StringRef(options.simulation.trace).ends_with(".svg"))
      trace = drawTimeline(*trace);
    if (!trace)
      return trace.takeError();
    if (Error error = write(options.simulation.trace,
                            [&](llvm::raw_ostream &os) { os << *trace; }))
      return error;
  }
  // Times of a run with hazards say nothing.
  if (figures.hazards.empty())
    if (Error error =
            printOut([&](llvm::raw_ostream &os) { printReport(figures, os); }))
      return error;
  for (varlen_tools::OutputFile &file : files)
    if (Error error = file.keep())
      return error;
  return Error::success();
}

namespace {
/// The function, compiled when the first of its inputs has been found good.
class Program {
public:
  Program(const Options &options, Clock::time_point start)
      : options(options), start(start), device(options.device),
        // With threads of the runtime library instead of others.
        context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED),
        diagnostics(&context) {
    context.setThreadPool(threads);
  }

  Error load();
  /// Runs it on the tensors of one file (empty: none), reports, and writes the
  /// results to the other (empty: none).
  Error run(const std::string &input, const std::string &output);

private:
  Error compile();

  const Options &options;
  Clock::time_point start;
  Device device;
  Progress progress;
  mlir::varlen::CompileThreads threads;
  mlir::MLIRContext context;
  DiagnosticPrinter diagnostics;
  const mlir::varlen::CPUTarget *target = nullptr;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// What `module` was before it was compiled.
  mlir::OwningOpRef<mlir::ModuleOp> source;
  Signature signature;
  std::unique_ptr<mlir::varlen::LoadedObjects> code;
  std::optional<Peak> peak;
  double compileMs = 0;
};
} // namespace

Error Program::load() {
  Expected<const mlir::varlen::CPUTarget *> found = findTarget(options.target);
  if (!found)
    return found.takeError();
  target = *found;
  varlen_set_num_threads(options.threads);
  if (Error error = openDevice(device))
    return error;

  progress.setPhase("compiling");
  Clock::time_point begin = Clock::now();
  module = mlir::parseSourceFile<mlir::ModuleOp>(options.module, &context);
  if (!module)
    return llvm::make_error<PrintedError>();
  Expected<Signature> read = prepareEntry(*module, options.entry);
  if (!read)
    return read.takeError();
  signature = std::move(*read);
  source = module->clone();
  compileMs = msSince(begin);
  return Error::success();
}

Error Program::compile() {
  progress.setPhase("compiling");
  Clock::time_point begin = Clock::now();
  // Our own pipelines are tested with the verifier; here it would be a third of
  // the passes' time.
  bool isDefault = options.pipeline.empty();
  std::string pipeline = isDefault ? getPipeline(*module, options, device.chip,
                                                 signature.isCheckedByInputs)
                                   : options.pipeline;
  if (Error error = runPipeline(*module, pipeline, /*verify=*/!isDefault,
                                isDefault ? "" : signature.entry))
    return error;
  auto compiled =
      varlen_run::compile(*module, *target, Function::getSymbol(signature));
  if (!compiled)
    return compiled.takeError();
  code = std::move(*compiled);
  compileMs += msSince(begin);

  if (!options.peak)
    return Error::success();
  Expected<Peak> created =
      Peak::create(&context, *target, signature.floatType.value_or(DType::F32));
  if (!created)
    return created.takeError();
  peak.emplace(std::move(*created));
  return Error::success();
}

Error Program::run(const std::string &input, const std::string &output) {
  // What is compiled already is no part of this result.
  if (code)
    start = Clock::now();
  restartPeakBytes();
  progress.setPhase("reading the inputs");
  std::vector<std::unique_ptr<SafetensorsFile>> opened;
  std::vector<const SafetensorsFile *> files;
  for (const std::string &path : {input, options.weights}) {
    if (path.empty())
      continue;
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      return file.takeError();
    opened.push_back(std::make_unique<SafetensorsFile>(std::move(*file)));
    files.push_back(opened.back().get());
  }
  Expected<std::vector<Tensor>> inputs = makeInputs(signature, options, files);
  if (!inputs)
    return inputs.takeError();
  if (Error error = checkInputs(signature, *inputs, options.deviceChecks))
    return error;
  if (!code)
    if (Error error = compile())
      return error;

  std::optional<Simulation> simulation;
  if (device.kind == Device::Kind::Executor)
    simulation.emplace(options.simulation, device.chip, options.threads);
  Expected<Function> function =
      Function::bind(*code, signature, *inputs, device);
  if (!function)
    return function.takeError();
  Figures figures;
  figures.compileMs = std::exchange(compileMs, 0);
  Error failure = simulation ? runAndSimulate(*function, options, *simulation,
                                              progress, start, figures)
                             : runAndMeasure(*function, options, peak, progress,
                                             start, figures);
  // Results of a run with hazards may be anything; its timeline and its figures
  // are what shows them.
  bool hasHazards = simulation && simulation->getNumHazards() != 0;
  if (failure && !hasHazards)
    return failure;
  std::vector<NamedTensor> results;
  if (!failure) {
    Expected<std::vector<NamedTensor>> got = function->getResults();
    if (!got)
      return got.takeError();
    results = std::move(*got);
  }
  figures.entry = signature.entry;
  figures.target = device.isGPU() ? device.chip : target->name.str();
  figures.threads = varlen_get_num_threads();
  if (simulation) {
    figures.threads = std::max<int64_t>(options.threads, 1);
    figures.simulated = simulation->getStats();
    figures.simulatedRuns = figures.ms.size();
    figures.hazards = simulation->getHazards().vec();
  }
  figures.work = countUsefulWork(*source, signature.entry, *inputs);
  if (peak)
    figures.peakKind = peak->getKind().str();
  for (const Tensor &tensor : *inputs)
    figures.inputBytes += tensor.getNumBytes();
  for (const NamedTensor &result : results)
    figures.outputBytes +=
        *getNumElements(result.shape) * getBytes(result.dtype);
  // What is still held are the results.
  figures.workspaceBytes = getPeakBytes() - getLiveBytes();
  figures.peakMemoryBytes = getPeakMemoryBytes();

  progress.setPhase("writing the results");
  if (failure)
    return joinErrors(
        std::move(failure),
        writeOutputs(options, /*output=*/"", {}, figures, &*simulation));
  return writeOutputs(options, output, results, figures,
                      simulation ? &*simulation : nullptr);
}

/// That the run replaces no file that it reads, and writes none twice.
static Error checkOutputFiles(const Options &options) {
  std::vector<varlen_tools::NamedFile> inputs = {{"the module",
                                                  options.module}},
                                       outputs;
  for (const std::string &path : options.inputs)
    inputs.push_back({"an input", path});
  if (!options.weights.empty())
    inputs.push_back({"--weights", options.weights});
  for (const std::string &path : options.outputs)
    outputs.push_back({"-o", path});
  if (!options.json.empty())
    outputs.push_back({"--json", options.json});
  if (!options.simulation.trace.empty())
    outputs.push_back({"--trace", options.simulation.trace});
  return varlen_tools::checkOutputs(inputs, outputs);
}

static Error run(const Options &options, Clock::time_point start) {
  if (options.help)
    return printOut([](llvm::raw_ostream &os) { os << getHelp(); });
  if (options.version)
    return printOut(mlir::varlen::printVersion);
  if (Error error = checkOutputFiles(options))
    return error;
  Program program(options, start);
  if (Error error = program.load())
    return error;
  if (options.inputs.size() <= 1)
    return program.run(options.inputs.empty() ? "" : options.inputs[0],
                       options.outputs.empty() ? "" : options.outputs[0]);
  // What is wrong with one input does not keep the others from theirs.
  Error errors = Error::success();
  for (auto [i, input] : llvm::enumerate(options.inputs)) {
    Error error =
        program.run(input, options.outputs.empty() ? "" : options.outputs[i]);
    if (error.isA<PrintedError>())
      return joinErrors(std::move(errors), std::move(error));
    if (!error)
      continue;
    std::string message = toString(std::move(error));
    // What is wrong with a file says already which.
    if (!llvm::StringRef(message).starts_with(input + ": "))
      message = input + ": " + message;
    errors = joinErrors(std::move(errors), makeError(message));
  }
  return errors;
}

/// Makes what can go wrong with a stream an error of writing to it.
static Error prepareStreams() {
  varlen_tools::ignoreStreamSignals();
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0)
    return makeError("stdout: cannot be written: %s", strerror(errno));
  // The next file that is opened must not become stdin or stderr.
  if (std::error_code error =
          llvm::sys::Process::FixupStandardFileDescriptors())
    return makeError("stdin or stderr cannot be opened: " + error.message());
  return Error::success();
}

int main(int argc, char **argv) {
  Clock::time_point start = getProcessStart();
  // Results of the next run go where those of the last were: pages that are
  // given back to the system come back as new, slow ones.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  Error error = prepareStreams();
  if (!error) {
    Expected<Options> options = parseOptions(argc, argv);
    error = options ? run(*options, start) : options.takeError();
  }
  int status = 0;
  handleAllErrors(
      std::move(error), [&](const PrintedError &) { status = 1; },
      [&](const llvm::ErrorInfoBase &info) {
        llvm::errs() << "error: " + info.message() + "\n";
        status = 1;
      });
  return status;
}
