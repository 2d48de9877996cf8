//===- LaunchRun.cpp - The steps of a launch ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launcher.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace varlen_capi;
using namespace mlir;
using namespace mlir::varlen;
using Kind = PlanOperand::Kind;

/// A pointer into the device's memory.
static void *toPointer(uint64_t address) {
  return reinterpret_cast<void *>(address);
}

int64_t LaunchRun::read(const PlanOperand &operand) const {
  switch (operand.kind) {
  case Kind::Constant:
    return operand.number;
  case Kind::Value:
    return values[operand.number];
  case Kind::Tensor:
    return binding.getAddress(operand.number);
  case Kind::Size:
    return binding.getSize(operand.number, operand.dim);
  case Kind::Stride:
    return binding.getStride(operand.number, operand.dim);
  case Kind::Multiprocessors:
    return kernels ? kernels->multiprocessors : 1;
  case Kind::Scratch:
    return static_cast<int64_t>(scratch[operand.number]);
  case Kind::Status:
    return static_cast<int64_t>(status);
  }
  llvm_unreachable("unknown kind of operand");
}

void LaunchRun::compute(const PlanStep &step) {
  ArrayRef<PlanOperand> operands = step.operands;
  values[step.number] = step.op->evaluate(read(operands.front()),
                                          read(operands[operands.size() - 2]),
                                          read(operands.back()));
}

void LaunchRun::addScratch(const PlanStep &step) {
  scratch.push_back(base + used);
  uint64_t bytes = step.unit;
  for (const PlanOperand &operand : step.operands)
    bytes = llvm::SaturatingMultiply(bytes, uint64_t(read(operand)));
  bytes = llvm::alignTo(std::min(bytes, UINT64_MAX - workspaceAlignment),
                        workspaceAlignment);
  used = llvm::SaturatingAdd(used, bytes);
}

/// No thread waits until the kernels have reported an error: results
/// that they have not written are NaN.
bool LaunchRun::fillResults() {
  for (auto [i, parameter] : llvm::enumerate(launcher.function.arguments)) {
    if (!parameter.isResult)
      continue;
    int64_t elements = 1;
    bool isDense = true;
    for (int64_t d = parameter.getRank() - 1; d >= 0; --d) {
      isDense &= binding.getStride(i, d) == elements;
      elements *= binding.getSize(i, d);
    }
    if (!isDense || elements == 0)
      continue;
    if (backend->fill(toPointer(binding.getAddress(i)), 0xFF, 1,
                      elements * parameter.elementBytes, stream))
      return false;
  }
  return true;
}

bool LaunchRun::measure(uint64_t &bytes) {
  used = workspaceAlignment; // The status.
  bool isTaken = take(launcher.plan.steps);
  bytes = used;
  return isTaken;
}

bool LaunchRun::launch(const LoadedKernels &code, uint64_t workspace,
                       uint64_t report, void *workStream) {
  kernels = &code;
  base = workspace;
  status = report;
  stream = workStream;
  used = workspaceAlignment; // The status.
  scratch.clear();
  return fillResults() && take(launcher.plan.steps);
}

bool LaunchRun::launch(const PlanStep &step) {
  const PlanKernel &kernel = launcher.plan.kernels[step.kernel];
  varlen_gpu_launch what = {};
  for (int d = 0; d < 3; ++d) {
    int64_t blocks = read(step.grid[d]);
    // Drivers refuse a grid without blocks.
    if (blocks == 0)
      return true;
    if (!llvm::isInt<32>(blocks) || blocks < 0) {
      varlen_gpu_fail("kernel '%s': a grid of %lld blocks cannot be launched",
                      kernel.name.c_str(), static_cast<long long>(blocks));
      return false;
    }
    what.grid[d] = static_cast<uint32_t>(blocks);
    what.block[d] = static_cast<uint32_t>(kernel.block[d]);
    what.cluster[d] = 1;
  }
  what.shared_bytes = static_cast<uint32_t>(kernel.sharedBytes);
  // A parameter of 32 bits is the low half of its number.
  llvm::SmallVector<int64_t, 32> numbers(llvm::map_range(
      step.operands, [&](const PlanOperand &o) { return read(o); }));
  llvm::SmallVector<void *, 32> parameters(llvm::map_range(
      numbers, [](int64_t &number) -> void * { return &number; }));
  return backend->launch(kernels->functions[step.kernel], &what, stream,
                         parameters.data()) == 0;
}

bool LaunchRun::takeLoop(const PlanLoop &loop) {
  // Each turn launches something; a plan from elsewhere may have no end.
  constexpr int64_t maxTurns = 1 << 16;
  for (const auto &[number, operand] : loop.state)
    values[number] = read(operand);
  for (;;) {
    if (!take(loop.head))
      return false;
    for (const auto &[number, operand] : loop.values)
      values[number] = read(operand);
    if (!read(loop.condition))
      return true;
    if (++turns > maxTurns) {
      varlen_gpu_fail("expected a launch with at most %lld turns of loops",
                      static_cast<long long>(maxTurns));
      return false;
    }
    if (!take(loop.body))
      return false;
    // At once: a value may be the next of another.
    llvm::SmallVector<int64_t> next(llvm::map_range(
        loop.next, [&](const PlanOperand &o) { return read(o); }));
    for (auto [binding, value] : llvm::zip_equal(loop.state, next))
      values[binding.first] = value;
  }
}

bool LaunchRun::take(const PlanStep &step) {
  switch (step.kind) {
  case PlanStep::Kind::Compute:
    compute(step);
    return true;
  case PlanStep::Kind::Scratch:
    addScratch(step);
    return true;
  case PlanStep::Kind::Launch:
    return !kernels || launch(step);
  case PlanStep::Kind::Loop:
    return takeLoop(step.loop.front());
  }
  llvm_unreachable("unknown kind of step");
}

bool LaunchRun::take(const std::vector<PlanStep> &steps) {
  return llvm::all_of(steps, [&](const PlanStep &step) { return take(step); });
}
