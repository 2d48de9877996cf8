//===- EmitHeader.cpp - What C declares of compiled functions -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitHeader.h"

#include "CTypes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Launch/LaunchPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class HeaderEmitter {
public:
  explicit HeaderEmitter(llvm::raw_ostream &os)
      : os(os), types(os, /*withMakers=*/true) {}
  LogicalResult emit(ModuleOp module);

private:
  LogicalResult declare(func::FuncOp function);

  llvm::raw_ostream &os;
  CTypes types;
};
} // namespace

LogicalResult HeaderEmitter::declare(func::FuncOp function) {
  StringRef name = function.getName();
  if (failed(checkCName(function, name)))
    return failure();
  std::vector<std::string> names;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto source = function.getArgAttrOfType<StringAttr>(i, kNameAttrName);
    names.push_back(source ? source.str() : "");
  }
  // The function itself is one that the parameters would hide.
  names = getParameterNames(names, {name});
  std::string parameters, arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    FailureOr<std::string> c = types.get(function, type);
    if (failed(c))
      return failure();
    const std::string &argument = names[i];
    parameters +=
        (i ? ", " : "") + *c + (c->back() == '*' ? "" : " ") + argument;
    arguments += (i ? ", " : "") + argument;
  }
  os << "/* func @" << name << " : " << function.getFunctionType() << "\n"
     << "   Returns null, or what was wrong. */\n"
     << "void _mlir_ciface_" << name << "("
     << (parameters.empty() ? "void" : parameters)
     << ");\nstatic inline const char *" << name << "("
     << (parameters.empty() ? "void" : parameters)
     << ") {\n  varlen_clear_error();\n  _mlir_ciface_" << name << "("
     << arguments << ");\n  return varlen_last_error();\n}\n\n";
  return success();
}

LogicalResult HeaderEmitter::emit(ModuleOp module) {
  os << "/* Made by varlen-opt. Link the object, libVarlenRuntime, libm and\n"
        "   threads. Results are the last arguments: memory of the caller. */\n"
        "#pragma once\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "const char *varlen_last_error(void);\n"
        "void varlen_clear_error(void);\n\n";
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal() &&
        failed(declare(function)))
      return failure();
  os << "#ifdef __cplusplus\n}\n#endif\n";
  return success();
}

LogicalResult varlen::emitHeader(ModuleOp module, llvm::raw_ostream &os) {
  return HeaderEmitter(os).emit(module);
}
