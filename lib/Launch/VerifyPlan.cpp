//===- VerifyPlan.cpp - Plans whose steps can be taken --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Launch/LaunchPlan.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;

static bool isBelow(int64_t number, uint64_t size) {
  return static_cast<uint64_t>(number) < size;
}

namespace {

class Verifier {
public:
  Verifier(const LaunchPlan &plan, ArrayRef<unsigned> ranks)
      : plan(plan), ranks(ranks) {}
  llvm::Expected<PlanFacts> run();

private:
  using Kind = PlanOperand::Kind;

  bool verify(const PlanKernel &kernel);
  bool verify(const PlanOperand &operand);
  bool verifyAll(ArrayRef<PlanOperand> operands) {
    return llvm::all_of(operands,
                        [&](const PlanOperand &o) { return verify(o); });
  }
  bool verify(const std::vector<PlanStep> &steps);
  bool verify(const PlanStep &step);
  bool verifyCompute(const PlanStep &step);
  bool verifyScratch(const PlanStep &step);
  bool verifyLaunch(const PlanStep &step);
  bool verifyLoop(const PlanLoop &loop);
  bool verify(const std::vector<PlanBinding> &bindings);
  /// A value that steps may use from here on. `varies`: with the device or with
  /// addresses.
  bool bind(int64_t number, bool varies);
  bool varies(const PlanOperand &operand) const;
  bool varyAny(ArrayRef<PlanOperand> operands) const {
    return llvm::any_of(operands,
                        [&](const PlanOperand &o) { return varies(o); });
  }
  bool fail(const Twine &wanted) {
    if (message.empty())
      ("expected " + wanted + " in the plan of a launch").toVector(message);
    return false;
  }

  const LaunchPlan &plan;
  ArrayRef<unsigned> ranks;
  PlanFacts facts;
  llvm::DenseSet<int64_t> varying;
  /// Loops that the step is in.
  int depth = 0;
  SmallString<128> message;
};

} // namespace

bool Verifier::varies(const PlanOperand &operand) const {
  switch (operand.kind) {
  case Kind::Constant:
  case Kind::Size:
  case Kind::Stride:
    return false;
  case Kind::Value:
    return varying.contains(operand.number);
  case Kind::Multiprocessors:
  case Kind::Tensor:
  case Kind::Scratch:
  case Kind::Status:
    return true;
  }
  llvm_unreachable("unknown kind of operand");
}

bool Verifier::bind(int64_t number, bool varies) {
  if (number != facts.numValues)
    return fail("values that are numbered in their order");
  ++facts.numValues;
  if (varies)
    varying.insert(number);
  return true;
}

bool Verifier::verify(const PlanOperand &operand) {
  switch (operand.kind) {
  case Kind::Constant:
  case Kind::Multiprocessors:
  case Kind::Status:
    return true;
  case Kind::Value:
    return isBelow(operand.number, facts.numValues) ||
           fail("values that a step has made");
  case Kind::Size:
  case Kind::Stride:
  case Kind::Tensor:
    if (!isBelow(operand.number, ranks.size()))
      return fail("tensors that there are");
    return operand.kind == Kind::Tensor ||
           operand.dim < ranks[operand.number] ||
           fail("dimensions that tensors have");
  case Kind::Scratch:
    return isBelow(operand.number, facts.numScratch) ||
           fail("scratch that a step has made");
  }
  return fail("a known kind of operand");
}

bool Verifier::verify(const PlanKernel &kernel) {
  if (!llvm::all_of(kernel.block,
                    [](int64_t n) { return n > 0 && llvm::isUInt<32>(n); }))
    return fail("positive numbers of threads");
  if (!llvm::isUInt<32>(kernel.sharedBytes))
    return fail("shared memory of less than 2^32 bytes");
  return llvm::all_of(kernel.bits,
                      [](unsigned bits) { return bits == 32 || bits == 64; }) ||
         fail("parameters of 32 or 64 bits");
}

bool Verifier::verifyCompute(const PlanStep &step) {
  if (!step.op || step.operands.size() != step.op->getNumOperands())
    return fail("an operator with its operands");
  if (!verifyAll(step.operands))
    return false;
  StringRef wanted = step.op->checkRight(step.operands.back());
  if (!wanted.empty())
    return fail(wanted);
  return bind(step.number, varyAny(step.operands));
}

bool Verifier::verifyScratch(const PlanStep &step) {
  if (depth != 0 || step.number != facts.numScratch || step.unit < 0)
    return fail("scratch that is allocated once, in order");
  if (!verifyAll(step.operands))
    return false;
  if (varyAny(step.operands))
    return fail("scratch whose size follows from extents");
  ++facts.numScratch;
  return true;
}

bool Verifier::verifyLaunch(const PlanStep &step) {
  if (step.kernel >= plan.kernels.size())
    return fail("kernels that there are");
  if (step.operands.size() != plan.kernels[step.kernel].bits.size())
    return fail("as many operands as the kernel has parameters");
  return verifyAll(step.operands) && verifyAll(step.grid);
}

bool Verifier::verify(const std::vector<PlanBinding> &bindings) {
  for (const auto &[number, operand] : bindings)
    if (!verify(operand) || !bind(number, varies(operand)))
      return false;
  return true;
}

bool Verifier::verifyLoop(const PlanLoop &loop) {
  if (loop.next.size() != loop.state.size())
    return fail("a next value for each of a loop's state");
  ++depth;
  int64_t first = facts.numValues;
  if (!verify(loop.state) || !verify(loop.head) || !verify(loop.condition) ||
      !verify(loop.values) || !verify(loop.body) || !verifyAll(loop.next))
    return false;
  --depth;
  // From the second turn on all may follow from what varies, as how many turns
  // there are.
  if (varies(loop.condition) || varyAny(loop.next))
    for (int64_t number = first; number < facts.numValues; ++number)
      varying.insert(number);
  return true;
}

bool Verifier::verify(const PlanStep &step) {
  switch (step.kind) {
  case PlanStep::Kind::Compute:
    return verifyCompute(step);
  case PlanStep::Kind::Scratch:
    return verifyScratch(step);
  case PlanStep::Kind::Launch:
    return verifyLaunch(step);
  case PlanStep::Kind::Loop:
    return step.loop.size() == 1 ? verifyLoop(step.loop.front())
                                 : fail("one loop in its step");
  }
  return fail("a known kind of step");
}

bool Verifier::verify(const std::vector<PlanStep> &steps) {
  return llvm::all_of(steps,
                      [&](const PlanStep &step) { return verify(step); });
}

llvm::Expected<PlanFacts> Verifier::run() {
  if (llvm::all_of(plan.kernels,
                   [&](const PlanKernel &kernel) { return verify(kernel); }) &&
      verify(plan.steps))
    return facts;
  return llvm::createStringError(message);
}

llvm::Expected<PlanFacts> varlen::verifyPlan(const LaunchPlan &plan,
                                             ArrayRef<unsigned> ranks) {
  return Verifier(plan, ranks).run();
}
