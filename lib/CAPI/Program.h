//===- Program.h - Compiled functions ---------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_PROGRAM_H
#define VARLEN_LIB_CAPI_PROGRAM_H

#include "Invocation.h"
#include "varlen/ExecutionEngine/ObjectCode.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Types.h"

#include <memory>
#include <string>
#include <vector>

namespace varlen_capi {

/// An argument or a result.
struct Parameter {
  std::string name;
  /// With VARLEN_DYNAMIC for what is known at run time only.
  std::vector<int64_t> shape, strides;
  uint8_t code, bits;
  int64_t elementBytes;
  bool isScalar;
  bool isWritten;
  /// The function makes it: nothing that it holds before is read. A memref of
  /// the caller's may be updated.
  bool isResult = false;
  /// Strides are those of a dense tensor, and the member is empty.
  bool isDense = true;
  /// What the caller sees.
  VarlenParameter view;

  /// Makes the view; what it points to is the parameter's.
  void finish();
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  /// Words of its memref descriptor; 0 for a scalar.
  int64_t getNumWords() const { return isScalar ? 0 : 3 + 2 * getRank(); }
};

/// A compiled function. Nothing changes after the compilation.
struct Function {
  std::string name;
  std::vector<Parameter> arguments, results;
  /// How many extents all results have together.
  int64_t numExtents = 0;
  /// Takes the addresses of the arguments: of scalars, and of pointers to
  /// descriptors; results follow the arguments.
  Invocation::Entry entry = nullptr;
  /// Takes those of the arguments and of a buffer of numExtents i64; null if
  /// there are no extents.
  Invocation::Entry shapes = nullptr;
  /// The operation by which the workspace depends on more than extents; empty
  /// if it does not.
  std::string workspaceDependsOn;

  std::string getEntryName() const { return "_mlir_ciface_" + name; }
  std::string getShapesName() const { return getEntryName() + "_shapes"; }
};

struct Program {
  std::vector<std::unique_ptr<Function>> functions;
  /// The target and the object files that the code is for, and is from.
  std::string target;
  std::vector<std::string> objects;
  std::unique_ptr<mlir::varlen::LoadedObjects> code;
};

/// Loads the object files of the program, and finds the functions in it.
VarlenStatus load(Program &program);

/// Reads the signatures of all functions that can be called. An error is
/// emitted, with the location of the function.
mlir::LogicalResult
readFunctions(mlir::ModuleOp module, bool stridedTensors,
              std::vector<std::unique_ptr<Function>> &functions);

/// Finds out, once parallel loops are outlined, whether allocations depend on
/// extents only.
void findWorkspaces(mlir::ModuleOp module,
                    std::vector<std::unique_ptr<Function>> &functions);

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_PROGRAM_H
