//===- Manifest.cpp - Launch plans as JSON --------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Launch/Manifest.h"

#include "varlen/Launch/LaunchPlan.h"
#include "varlen/Pipelines/Pipelines.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::varlen;
using llvm::json::Array;
using llvm::json::Object;

/// Changes with anything that a reader of manifests would notice.
static constexpr int64_t version = 1;

static llvm::json::Value print(const PlanOperand &operand) {
  using Kind = PlanOperand::Kind;
  std::string number = std::to_string(operand.number);
  std::string dim = "[" + std::to_string(operand.dim) + "]";
  switch (operand.kind) {
  case Kind::Constant:
    return operand.number;
  case Kind::Value:
    return "value" + number;
  case Kind::Size:
    return "arg" + number + ".size" + dim;
  case Kind::Stride:
    return "arg" + number + ".stride" + dim;
  case Kind::Multiprocessors:
    return "multiprocessors";
  case Kind::Tensor:
    return "arg" + number;
  case Kind::Scratch:
    return "scratch" + number;
  case Kind::Status:
    return "status";
  }
  llvm_unreachable("unknown kind of operand");
}

template <typename Range, typename Function>
static Array mapToArray(const Range &range, Function function) {
  Array array;
  for (const auto &element : range)
    array.push_back(function(element));
  return array;
}

static Array print(ArrayRef<PlanOperand> operands) {
  return mapToArray(operands,
                    [](const PlanOperand &operand) { return print(operand); });
}

static Array print(ArrayRef<PlanBinding> bindings) {
  return mapToArray(bindings, [](const PlanBinding &binding) {
    return Array{"value" + std::to_string(binding.first),
                 print(binding.second)};
  });
}

static Array print(const LaunchPlan &plan, const std::vector<PlanStep> &steps);

static Object print(const LaunchPlan &plan, const PlanStep &step) {
  std::string number = std::to_string(step.number);
  switch (step.kind) {
  case PlanStep::Kind::Compute:
    return Object{{"value", "value" + number},
                  {"op", step.op->name},
                  {"operands", print(step.operands)}};
  case PlanStep::Kind::Scratch: {
    Array factors = print(step.operands);
    factors.insert(factors.begin(), step.unit);
    return Object{{"scratch", "scratch" + number},
                  {"bytes", std::move(factors)}};
  }
  case PlanStep::Kind::Launch:
    return Object{{"launch", plan.kernels[step.kernel].name},
                  {"grid", print(step.grid)},
                  {"parameters", print(step.operands)}};
  case PlanStep::Kind::Loop: {
    const PlanLoop &loop = step.loop.front();
    return Object{{"loop", Object{{"state", print(ArrayRef(loop.state))},
                                  {"head", print(plan, loop.head)},
                                  {"values", print(ArrayRef(loop.values))},
                                  {"while", print(loop.condition)},
                                  {"body", print(plan, loop.body)},
                                  {"next", print(ArrayRef(loop.next))}}}};
  }
  }
  llvm_unreachable("unknown kind of step");
}

static Array print(const LaunchPlan &plan, const std::vector<PlanStep> &steps) {
  return mapToArray(steps,
                    [&](const PlanStep &step) { return print(plan, step); });
}

/// Numbers, null where a type leaves one open.
static Array printOpen(ArrayRef<int64_t> numbers) {
  return mapToArray(numbers, [](int64_t number) {
    return ShapedType::isStatic(number) ? llvm::json::Value(number)
                                        : llvm::json::Value(nullptr);
  });
}

static Object print(const LaunchPlan::Argument &argument) {
  MemRefType type = argument.type;
  std::string element = "i64";
  if (!type.getElementType().isIndex()) {
    element.clear();
    llvm::raw_string_ostream(element) << type.getElementType();
  }
  Object object{{"element", element}, {"sizes", printOpen(type.getShape())}};
  if (!argument.name.empty())
    object["name"] = argument.name;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.getLayout().isIdentity() &&
      succeeded(type.getStridesAndOffset(strides, offset)))
    object["strides"] = printOpen(strides);
  return object;
}

static Object print(const PlanKernel &kernel) {
  return Object{{"name", kernel.name},
                {"block", Array(kernel.block)},
                {"shared_bytes", kernel.sharedBytes},
                {"parameter_bits", Array(kernel.bits)}};
}

/// Of code that a driver loads.
static StringRef getName(GPUFormat format) {
  switch (format) {
  case GPUFormat::PTX:
    return "ptx";
  case GPUFormat::Cubin:
    return "cubin";
  case GPUFormat::Fatbin:
    return "fatbin";
  default:
    llvm_unreachable("not written to files");
  }
}

void varlen::emitManifest(ArrayRef<LaunchPlan> plans,
                          const VarlenToNVVMOptions &pipeline,
                          llvm::raw_ostream &os) {
  auto printOne = [](const auto &one) { return print(one); };
  Array functions = mapToArray(plans, [&](const LaunchPlan &plan) {
    return Object{{"name", plan.name},
                  {"arguments", mapToArray(plan.arguments, printOne)},
                  {"kernels", mapToArray(plan.kernels, printOne)},
                  {"steps", print(plan, plan.steps)}};
  });
  llvm::json::Value manifest = Object{{"varlen_manifest", version},
                                      {"chip", std::string(pipeline.chip)},
                                      {"format", getName(pipeline.format)},
                                      {"status_bytes", 32},
                                      {"functions", std::move(functions)}};
  os << llvm::formatv("{0:2}", manifest) << "\n";
}
