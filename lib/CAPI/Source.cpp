//===- Source.cpp - Modules of the caller ---------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "varlen/InitAll.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace varlen_capi;
using namespace mlir;

/// All that modules may name, made once: contexts only read it.
static const DialectRegistry &getRegistry() {
  static const DialectRegistry *registry = [] {
    auto *result = new DialectRegistry;
    varlen::registerRequiredUpstream(*result);
    varlen::registerAllDialects(*result);
    varlen::registerAllExtensions(*result);
    return result;
  }();
  return *registry;
}

/// With the threads that the caller has chosen for calls.
Source::Source(VarlenDiagnosticFn onDiagnostic, void *diagnosticContext)
    : context(getRegistry(), MLIRContext::Threading::DISABLED),
      onDiagnostic(onDiagnostic), diagnosticContext(diagnosticContext),
      handler(&context,
              [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {
  // Notes with whole operations in the generic form are for developers of
  // passes.
  context.printOpOnDiagnostic(false);
  context.setThreadPool(threads);
}

static VarlenSeverity getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return VARLEN_NOTE;
  case DiagnosticSeverity::Warning:
    return VARLEN_WARNING;
  case DiagnosticSeverity::Error:
    return VARLEN_ERROR;
  case DiagnosticSeverity::Remark:
    return VARLEN_REMARK;
  }
  return VARLEN_ERROR;
}

LogicalResult Source::handle(Diagnostic &diagnostic) {
  std::string text = diagnostic.str(), file;
  // Advice of upstream's that follows names options of its tools.
  text.resize(
      std::min(text.find(". If this is intended, please "), text.size()));
  VarlenDiagnostic view = {};
  view.severity = getSeverity(diagnostic.getSeverity());
  view.message = text.c_str();
  view.file = "";
  std::string place;
  if (auto location =
          diagnostic.getLocation()->findInstanceOf<FileLineColRange>()) {
    file = location.getFilename().str();
    view.file = file.c_str();
    view.line = location.getStartLine();
    view.column = location.getStartColumn();
    place = file + ":" + std::to_string(view.line) + ":" +
            std::to_string(view.column) + ": ";
  }
  if (firstError.empty() && view.severity == VARLEN_ERROR)
    firstError = place + text;
  if (onDiagnostic)
    onDiagnostic(diagnosticContext, &view);
  for (Diagnostic &note : diagnostic.getNotes())
    (void)handle(note);
  return success();
}

VarlenStatus Source::failWithDiagnostic(VarlenStatus status,
                                        const char *step) const {
  if (firstError.empty())
    return fail(status, "%s failed without a message", step);
  return fail(status, "%s", firstError.c_str());
}

VarlenStatus Source::parse(const void *source, size_t size) {
  // As aligned as a file that is mapped: sections of bytecode may want that.
  constexpr size_t alignment = 4096;
  auto buffer = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
      size, "module", llvm::Align(alignment));
  if (!buffer)
    return fail(VARLEN_OUT_OF_MEMORY,
                "not enough memory for a source of %zu bytes", size);
  memcpy(buffer->getBufferStart(), source, size);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failWithDiagnostic(VARLEN_PARSE_ERROR, "parsing");
  return VARLEN_OK;
}
