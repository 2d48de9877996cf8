//===- Peak.cpp - The machine's multiply-add peak -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peak.h"

#include "varlen/Runtime/Runtime.h"

#include "mlir/Parser/Parser.h"

#include <chrono>

using namespace varlen_run;
using llvm::Error;
using llvm::Expected;
using Clock = std::chrono::steady_clock;

/// Accumulators: enough to hide the latency of any CPU's multiply-add (8 would
/// do on those known), and with the two factors within its registers.
static constexpr int64_t numAccumulators = 12;
/// Times that the loop's body goes over the accumulators.
static constexpr int64_t unroll = 4;
/// Items for each thread: they even out what else the machine does.
static constexpr int64_t itemsPerThread = 20;

/// func @peak(%turns: index) -> T, a loop over `operation`, which has the
/// placeholder $ for the accumulator.
static std::string makeKernel(llvm::StringRef scalar, llvm::StringRef factor,
                              llvm::StringRef accumulator,
                              llvm::StringRef operation) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto list = [&](auto print) {
    for (int64_t i = 0; i < numAccumulators; ++i) {
      if (i)
        os << ", ";
      print(i);
    }
  };
  os << "func.func @peak(%turns: index) -> " << scalar << " {\n"
     << "  %zero = arith.constant 0 : index\n"
     << "  %one = arith.constant 1 : index\n"
     << "  %a = arith.constant dense<1.0> : " << factor << "\n"
     << "  %b = arith.constant dense<0.5> : " << factor << "\n";
  // Different values, or the accumulators would be one.
  for (int64_t i = 0; i < numAccumulators; ++i)
    os << "  %init" << i << " = arith.constant dense<" << i + 1
       << ".0> : " << accumulator << "\n";
  os << "  %sums:" << numAccumulators
     << " = scf.for %i = %zero to %turns step %one iter_args(";
  list([&](int64_t i) { os << "%x0_" << i << " = %init" << i; });
  os << ") -> (";
  list([&](int64_t) { os << accumulator; });
  os << ") {\n";
  for (int64_t u = 0; u < unroll; ++u)
    for (int64_t i = 0; i < numAccumulators; ++i) {
      auto [before, after] = operation.split('$');
      os << "    %x" << u + 1 << "_" << i << " = " << before << "%x" << u << "_"
         << i << after << "\n";
    }
  os << "    scf.yield ";
  list([&](int64_t i) { os << "%x" << unroll << "_" << i; });
  os << " : ";
  list([&](int64_t) { os << accumulator; });
  os << "\n  }\n";
  // All accumulators are used, or their chains would go.
  os << "  %t0 = vector.extract %sums#0[0] : " << scalar << " from "
     << accumulator << "\n";
  for (int64_t i = 1; i < numAccumulators; ++i)
    os << "  %e" << i << " = vector.extract %sums#" << i << "[0] : " << scalar
       << " from " << accumulator << "\n  %t" << i << " = arith.addf %t"
       << i - 1 << ", %e" << i << " : " << scalar << "\n";
  os << "  return %t" << numAccumulators - 1 << " : " << scalar << "\n}\n";
  return text;
}

static std::string vectorOf(int64_t lanes, llvm::StringRef element) {
  return ("vector<" + llvm::Twine(lanes) + "x" + element + ">").str();
}

Expected<Peak> Peak::create(mlir::MLIRContext *context,
                            const mlir::varlen::CPUTarget &target,
                            DType dtype) {
  Peak peak;
  std::string text;
  int64_t multiplyAdds = 0;
  if (dtype == DType::BF16 && target.hasBF16Dot) {
    peak.kind = "bf16 dot product";
    multiplyAdds = target.getLanes(2);
    std::string factor = vectorOf(multiplyAdds, "bf16");
    std::string sum = vectorOf(multiplyAdds / 2, "f32");
    text =
        makeKernel("f32", factor, sum,
                   "x86vector.avx512.dot $, %a, %b : " + factor + " -> " + sum);
  } else {
    bool isF64 = dtype == DType::F64;
    peak.kind = isF64 ? "f64 multiply-add" : "f32 multiply-add";
    llvm::StringRef scalar = isF64 ? "f64" : "f32";
    multiplyAdds = target.getLanes(isF64 ? 8 : 4);
    std::string vector = vectorOf(multiplyAdds, scalar);
    // Without the instruction a fused one would be a call.
    text = makeKernel(scalar, vector, vector,
                      target.hasFMA ? "vector.fma %a, %b, $ : " + vector
                                    : "arith.addf %a, $ : " + vector);
    if (!target.hasFMA)
      peak.kind = isF64 ? "f64 addition" : "f32 addition";
  }
  double flops = target.hasFMA ? 2 : 1;
  peak.flopsPerTurn =
      flops * static_cast<double>(unroll * numAccumulators * multiplyAdds);

  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text, context);
  if (!module)
    return llvm::make_error<PrintedError>();
  if (Error error = runPipeline(
          *module, ("varlen-lower-to-llvm{target=" + target.name + "}").str(),
          /*verify=*/false))
    return error;
  auto code = compile(*module, target, "peak");
  if (!code)
    return code.takeError();
  peak.code = std::move(*code);
  auto entry = peak.code->lookup("peak");
  if (!entry)
    return entry.takeError();
  peak.entry = *entry;

  // As many turns as take 1 ms on one thread.
  peak.turns = 1000;
  for (;;) {
    Clock::time_point start = Clock::now();
    run(&peak, 0, 1, nullptr);
    std::chrono::duration<double> time = Clock::now() - start;
    if (time.count() >= 0.5e-3) {
      peak.turns = static_cast<int64_t>(static_cast<double>(peak.turns) * 1e-3 /
                                        time.count());
      break;
    }
    peak.turns *= 2;
  }
  return peak;
}

void Peak::run(void *context, int64_t lo, int64_t hi, void *) {
  auto *peak = static_cast<Peak *>(context);
  for (int64_t i = lo; i < hi; ++i) {
    double result = 0; // room for either scalar
    void *arguments[] = {&peak->turns, &result};
    peak->entry(arguments);
  }
}

double Peak::measure() {
  int64_t items = itemsPerThread * varlen_get_num_threads();
  Clock::time_point start = Clock::now();
  varlen_parallel_for(items, 0, run, this);
  std::chrono::duration<double> time = Clock::now() - start;
  return flopsPerTurn * static_cast<double>(turns * items) / time.count();
}
