//===- Source.h - Modules of the caller -------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_SOURCE_H
#define VARLEN_LIB_CAPI_SOURCE_H

#include "Status.h"
#include "varlen/ExecutionEngine/CompileThreads.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace varlen_capi {

/// A context of one compilation. Each has its own, so compilations have nothing
/// in common.
class Source {
public:
  Source(VarlenDiagnosticFn onDiagnostic, void *diagnosticContext);

  /// Reads text or bytecode.
  VarlenStatus parse(const void *source, size_t size);
  /// Ends with `status` and the first error that was emitted.
  VarlenStatus failWithDiagnostic(VarlenStatus status, const char *step) const;
  mlir::ModuleOp getModule() { return *module; }
  mlir::MLIRContext *getContext() { return &context; }

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);

  mlir::varlen::CompileThreads threads;
  mlir::MLIRContext context;
  VarlenDiagnosticFn onDiagnostic;
  void *diagnosticContext;
  std::string firstError;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_SOURCE_H
