//===- LaunchPlan.h - What host code does to launch kernels -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Host code of a GPU as a list of steps that any language can take: numbers
// computed from extents, scratch, and launches. docs/kernel-abi.md describes it
// as it is written to files.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LAUNCH_LAUNCHPLAN_H
#define VARLEN_LAUNCH_LAUNCHPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/Support/Error.h"

#include <array>
#include <string>
#include <vector>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::varlen {

struct VarlenToNVVMOptions;

/// A number, or where memory begins. Numbers have 64 bits and a sign.
struct PlanOperand {
  enum class Kind {
    Constant,
    Value,           ///< of a step
    Size,            ///< `dim` of argument `number`
    Stride,          ///< the same, in elements
    Multiprocessors, ///< of the device
    Tensor,          ///< argument `number`
    Scratch,
    Status,
  };
  Kind kind = Kind::Constant;
  int64_t number = 0;
  unsigned dim = 0;

  bool operator==(const PlanOperand &other) const {
    return kind == other.kind && number == other.number && dim == other.dim;
  }
};

/// An operator: its name in a manifest, the operation that it is ("" for
/// comparisons, whose name is their predicate), and what it is in C and as a
/// function, where "L" and "R" are its operands, "C" the condition of a
/// selection.
struct PlanOperator {
  StringRef name, operation, c;
  int64_t (*evaluate)(int64_t condition, int64_t lhs, int64_t rhs);

  size_t getNumOperands() const { return name == "select" ? 3 : 2; }
  /// What the operator wants on its right, where it traps or has no meaning for
  /// other numbers; "" if the operand is that.
  StringRef checkRight(const PlanOperand &operand) const;
};
/// The operator of an operation on integers, or of that name; null if there is
/// none.
const PlanOperator *getPlanOperator(Operation *op);
const PlanOperator *lookupPlanOperator(StringRef name);

struct PlanLoop;

struct PlanStep {
  enum class Kind { Compute, Scratch, Launch, Loop };
  Kind kind = Kind::Compute;
  /// Which value or scratch the step makes.
  int64_t number = 0;
  /// Of Compute: an operator of these operands.
  const PlanOperator *op = nullptr;
  /// Of Scratch: `unit` times these bytes. Of Launch: the parameters.
  SmallVector<PlanOperand> operands;
  int64_t unit = 0;
  /// Of Launch.
  size_t kernel = 0;
  std::array<PlanOperand, 3> grid;
  std::vector<PlanLoop> loop; ///< Of Loop: one.
};

using PlanBinding = std::pair<int64_t, PlanOperand>;

/// `state` are values that begin as operands. Each turn takes the steps `head`
/// and binds `values`; it ends the loop unless `condition`; then it takes
/// `body`, and `state` becomes `next`.
struct PlanLoop {
  std::vector<PlanBinding> state, values;
  std::vector<PlanStep> head, body;
  PlanOperand condition;
  std::vector<PlanOperand> next;
};

struct PlanKernel {
  std::string name;
  std::array<int64_t, 3> block;
  int64_t sharedBytes; ///< dynamic
  /// Bits of each parameter; pointers have 64.
  std::vector<unsigned> bits;
};

struct LaunchPlan {
  struct Argument {
    std::string name; ///< varlen.name, or ""
    MemRefType type;
  };
  std::string name;
  std::vector<Argument> arguments;
  std::vector<PlanKernel> kernels;
  std::vector<PlanStep> steps;
};

/// What follows from a plan that can be taken.
struct PlanFacts {
  int64_t numValues = 0, numScratch = 0;
};

/// Checks that the steps can be taken for tensors of these ranks: they use what
/// there is, no operator traps, and the scratch of a launch is what it was when
/// it was measured, whatever the device is. That loops end is not checked.
llvm::Expected<PlanFacts> verifyPlan(const LaunchPlan &plan,
                                     ArrayRef<unsigned> ranks);

/// Lowers a module to launches of kernels on bare pointers, in functions whose
/// results are arguments (`strided`: with any strides but the last), and plans
/// the public ones. An error names an operation that a plan has no step for.
/// `buildVarlenLaunchesToLLVM` makes code of the kernels that are left.
FailureOr<std::vector<LaunchPlan>>
planLaunches(ModuleOp module, const VarlenToNVVMOptions &pipeline,
             bool strided);

/// An error at `op` if `name` is none that C can have. Kernels are named after
/// functions, and LLVM aborts at names that PTX has not.
LogicalResult checkCName(Operation *op, StringRef name);

} // namespace mlir::varlen

#endif // VARLEN_LAUNCH_LAUNCHPLAN_H
