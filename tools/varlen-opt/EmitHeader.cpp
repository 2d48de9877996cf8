//===- EmitHeader.cpp - What C declares of compiled functions -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitHeader.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {
/// An element, as C and names of structs have it.
struct Element {
  StringRef c, name;
};

class HeaderEmitter {
public:
  explicit HeaderEmitter(llvm::raw_ostream &os) : os(os) {}
  LogicalResult emit(ModuleOp module);

private:
  static std::optional<Element> getElement(Type type);
  /// The C type of an argument; declares the struct of a tensor.
  FailureOr<std::string> getType(func::FuncOp function, Type type);
  void declareStruct(StringRef name, Element element, int64_t rank);
  LogicalResult declare(func::FuncOp function);

  llvm::raw_ostream &os;
  llvm::StringSet<> structs;
};
} // namespace

std::optional<Element> HeaderEmitter::getElement(Type type) {
  if (type.isF64())
    return Element{"double", "f64"};
  if (type.isF32())
    return Element{"float", "f32"};
  // C has no types for these that all compilers know: the bits.
  if (type.isF16())
    return Element{"uint16_t", "f16"};
  if (type.isBF16())
    return Element{"uint16_t", "bf16"};
  if (type.isInteger(1))
    return Element{"uint8_t", "i1"};
  if (type.isInteger(8))
    return Element{"int8_t", "i8"};
  if (type.isInteger(16))
    return Element{"int16_t", "i16"};
  if (type.isInteger(32))
    return Element{"int32_t", "i32"};
  if (type.isInteger(64) || type.isIndex())
    return Element{"int64_t", "i64"};
  return std::nullopt;
}

/// A memref descriptor, and one for a dense tensor.
void HeaderEmitter::declareStruct(StringRef name, Element element,
                                  int64_t rank) {
  if (!structs.insert(name).second)
    return;
  std::string guard = name.upper() + "_DECLARED";
  os << "#ifndef " << guard << "\n#define " << guard << "\ntypedef struct "
     << name << " {\n  " << element.c << " *allocated, *data;\n"
     << "  int64_t offset;\n";
  if (rank > 0)
    os << "  int64_t sizes[" << rank << "], strides[" << rank << "];\n";
  os << "} " << name << ";\n\n/* A dense tensor. */\nstatic inline " << name
     << " make_" << name << "(" << element.c << " *data";
  for (int64_t d = 0; d < rank; ++d)
    os << ", int64_t size" << d;
  os << ") {\n  " << name << " result;\n"
     << "  result.allocated = result.data = data;\n  result.offset = 0;\n";
  for (int64_t d = rank - 1; d >= 0; --d) {
    os << "  result.sizes[" << d << "] = size" << d << ";\n  result.strides["
       << d << "] = ";
    if (d == rank - 1)
      os << "1;\n";
    else
      os << "result.strides[" << d + 1 << "] * size" << d + 1 << ";\n";
  }
  os << "  return result;\n}\n#endif\n\n";
}

FailureOr<std::string> HeaderEmitter::getType(func::FuncOp function,
                                              Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  std::optional<Element> element =
      getElement(shaped ? shaped.getElementType() : type);
  // What is passed by value has to be a type of C.
  bool isBits = !shaped && (type.isF16() || type.isBF16());
  if (!element || isBits || (shaped && !shaped.hasRank()))
    return function.emitOpError("expected scalars and ranked tensors of types "
                                "that C has, got ")
           << type;
  if (!shaped)
    return type.isInteger(1) ? std::string("bool") : element->c.str();
  std::string name =
      ("varlen_" + element->name + "_" + Twine(shaped.getRank())).str();
  declareStruct(name, *element, shaped.getRank());
  return name + " *";
}

LogicalResult HeaderEmitter::declare(func::FuncOp function) {
  StringRef name = function.getName();
  if (!llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return function.emitOpError("expected a name that C can have");
  std::string parameters, arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    FailureOr<std::string> c = getType(function, type);
    if (failed(c))
      return failure();
    std::string argument = ("arg" + Twine(i)).str();
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
