//===- CTypes.cpp - What C calls the types of arguments -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CTypes.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::varlen;

std::optional<CElement> varlen::getCElement(Type type) {
  if (type.isF64())
    return CElement{"double", "f64"};
  if (type.isF32())
    return CElement{"float", "f32"};
  // C has no types for these that all compilers know: the bits.
  if (type.isF16())
    return CElement{"uint16_t", "f16"};
  if (type.isBF16())
    return CElement{"uint16_t", "bf16"};
  if (type.isInteger(1))
    return CElement{"uint8_t", "i1"};
  if (type.isInteger(8))
    return CElement{"int8_t", "i8"};
  if (type.isInteger(16))
    return CElement{"int16_t", "i16"};
  if (type.isInteger(32))
    return CElement{"int32_t", "i32"};
  if (type.isInteger(64) || type.isIndex())
    return CElement{"int64_t", "i64"};
  return std::nullopt;
}

/// A name of lower case that is a word of C or of C++, or a macro that
/// compilers define.
static bool isWord(StringRef name) {
  static const llvm::StringSet<> words = {
      "alignas",   "alignof",   "and",       "and_eq",   "asm",
      "assert",    "auto",      "bitand",    "bitor",    "bool",
      "break",     "case",      "catch",     "char",     "class",
      "compl",     "complex",   "concept",   "const",    "consteval",
      "constexpr", "constinit", "continue",  "decltype", "default",
      "delete",    "do",        "double",    "else",     "enum",
      "errno",     "explicit",  "export",    "extern",   "false",
      "float",     "for",       "friend",    "goto",     "if",
      "imaginary", "inline",    "int",       "linux",    "long",
      "mutable",   "namespace", "new",       "noexcept", "noreturn",
      "not",       "not_eq",    "nullptr",   "operator", "or",
      "or_eq",     "private",   "protected", "public",   "register",
      "requires",  "restrict",  "return",    "short",    "signed",
      "sizeof",    "static",    "stderr",    "stdin",    "stdout",
      "struct",    "switch",    "template",  "this",     "throw",
      "true",      "try",       "typedef",   "typeid",   "typename",
      "typeof",    "union",     "unix",      "unsigned", "using",
      "virtual",   "void",      "volatile",  "while",    "xor",
      "xor_eq"};
  return words.contains(name);
}

std::vector<std::string> varlen::getParameterNames(ArrayRef<std::string> names,
                                                   ArrayRef<StringRef> taken) {
  llvm::StringSet<> used;
  used.insert_range(taken);
  std::vector<std::string> parameters;
  for (auto [i, name] : llvm::enumerate(names)) {
    auto isLetter = [](char c) {
      return llvm::isLower(c) || llvm::isDigit(c) || c == '_';
    };
    // "arg1" may be that of another parameter.
    bool isName = !name.empty() && llvm::isLower(name.front()) &&
                  llvm::all_of(name, isLetter) &&
                  !StringRef(name).starts_with("arg") && !isWord(name) &&
                  used.insert(name).second;
    parameters.push_back(isName ? name : "arg" + std::to_string(i));
  }
  return parameters;
}

/// A memref descriptor, and one for a dense tensor.
void CTypes::declareStruct(StringRef name, CElement element, int64_t rank) {
  if (!structs.insert(name).second)
    return;
  std::string guard = name.upper() + "_DECLARED";
  os << "#ifndef " << guard << "\n#define " << guard << "\ntypedef struct "
     << name << " {\n  " << element.c << " *allocated, *data;\n"
     << "  int64_t offset;\n";
  if (rank > 0)
    os << "  int64_t sizes[" << rank << "], strides[" << rank << "];\n";
  os << "} " << name << ";\n";
  if (!withMakers) {
    os << "#endif\n\n";
    return;
  }
  os << "\n/* A dense tensor. */\nstatic inline " << name << " make_" << name
     << "(" << element.c << " *data";
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

FailureOr<std::string> CTypes::get(Operation *op, Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  std::optional<CElement> element =
      getCElement(shaped ? shaped.getElementType() : type);
  // What is passed by value has to be a type of C.
  bool isBits = !shaped && (type.isF16() || type.isBF16());
  if (!element || isBits || (shaped && !shaped.hasRank()))
    return op->emitOpError("expected scalars and ranked tensors of types "
                           "that C has, got ")
           << type;
  if (!shaped)
    return type.isInteger(1) ? std::string("bool") : element->c.str();
  std::string name =
      ("varlen_" + element->name + "_" + Twine(shaped.getRank())).str();
  declareStruct(name, *element, shaped.getRank());
  return name + " *";
}
