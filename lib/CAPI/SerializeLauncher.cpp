//===- SerializeLauncher.cpp - Launchers as bytes -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors, the plan of the launches, and the code of the kernels, which is
// a driver's affair. All else is checked: whatever the bytes are, the host
// reads and writes its own memory only.
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Launcher.h"
#include "Status.h"

#include "llvm/ADT/STLExtras.h"

using namespace varlen_capi;
using namespace mlir;
using namespace mlir::varlen;

static constexpr llvm::StringLiteral launcherMark = "VARLEN-LAUNCHER 1";

/// Plans have no deeper loops; reading them recurs.
static constexpr int maxDepth = 16;

namespace varlen_capi {
template <typename Bytes> static bool transfer(Bytes &bytes, PlanStep &step);

template <typename Bytes>
static bool transfer(Bytes &bytes, PlanOperand &operand) {
  return bytes(operand.kind) && bytes(operand.number) && bytes(operand.dim);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, PlanBinding &binding) {
  return bytes(binding.first) && bytes(binding.second);
}

template <typename Bytes, typename Item, size_t size>
static bool transfer(Bytes &bytes, std::array<Item, size> &items) {
  return llvm::all_of(items, [&](Item &item) { return bytes(item); });
}

template <typename Bytes> static bool transfer(Bytes &bytes, PlanLoop &loop) {
  return bytes.list(loop.state) && bytes.list(loop.head) &&
         bytes.list(loop.values) && bytes(loop.condition) &&
         bytes.list(loop.body) && bytes.list(loop.next);
}

/// By their names, as the operators of another build may stand elsewhere.
template <typename Bytes>
static bool transfer(Bytes &bytes, const PlanOperator *&op) {
  std::string name = op ? op->name.str() : "";
  if (!bytes(name))
    return false;
  op = name.empty() ? nullptr : lookupPlanOperator(name);
  return op || name.empty();
}

template <typename Bytes> static bool transfer(Bytes &bytes, PlanStep &step) {
  static thread_local int depth = 0;
  if (depth == maxDepth)
    return false;
  ++depth;
  bool isRead = bytes(step.kind) && bytes(step.number) && bytes(step.op) &&
                bytes.list(step.operands) && bytes(step.unit) &&
                bytes(step.kernel) && bytes(step.grid) && bytes.list(step.loop);
  --depth;
  return isRead;
}

template <typename Bytes>
static bool transfer(Bytes &bytes, PlanKernel &kernel) {
  return bytes(kernel.name) && bytes(kernel.block) &&
         bytes(kernel.sharedBytes) && bytes.list(kernel.bits);
}

template <typename Bytes>
static bool transfer(Bytes &bytes, Launcher &launcher) {
  return bytes(launcher.function.name) &&
         bytes.list(launcher.function.arguments) &&
         bytes.list(launcher.plan.kernels) && bytes.list(launcher.plan.steps) &&
         bytes(launcher.image);
}
} // namespace varlen_capi

VarlenStatus varlenLauncherSerialize(VarlenLauncher launcher,
                                     VarlenCode *code) {
  if (!launcher.ptr || !code)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher and where to store its bytes, got null");
  auto &owner = *static_cast<Launcher *>(launcher.ptr);
  std::lock_guard<std::mutex> lock(owner.mutex);
  return seal(launcherMark, code, [&](Writer &writer) { writer(owner); });
}

/// The signature of a launcher has tensors only.
static bool isTensor(const Parameter &parameter) {
  auto areExtents = [](ArrayRef<int64_t> values) {
    return llvm::all_of(
        values, [](int64_t n) { return n >= 0 || n == VARLEN_DYNAMIC; });
  };
  constexpr int64_t maxRank = 64;
  return !parameter.isScalar && parameter.getRank() <= maxRank &&
         parameter.strides.size() ==
             (parameter.isDense ? 0 : parameter.shape.size()) &&
         areExtents(parameter.shape) && areExtents(parameter.strides) &&
         llvm::is_contained({8, 16, 32, 64}, parameter.bits) &&
         parameter.elementBytes == parameter.bits / 8;
}

VarlenStatus varlenLauncherDeserialize(const void *data, size_t size,
                                       VarlenLauncher *launcher) {
  if (!data || !launcher)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher's bytes and where to store it, got null");
  Reader reader;
  if (VarlenStatus status =
          unseal(launcherMark, "launcher", data, size, reader))
    return status;
  auto result = std::make_unique<Launcher>();
  if (!reader(*result) || !reader.isAtEnd())
    return fail(VARLEN_INVALID_ARGUMENT,
                "the launcher ends too early or late, or is none");
  if (!llvm::all_of(result->function.arguments, isTensor))
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher of tensors, got others");
  if (VarlenStatus status = finish(*result))
    return status;
  launcher->ptr = result.release();
  return VARLEN_OK;
}
