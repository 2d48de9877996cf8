//===- ImportedScore.cpp - Attention that comes as text -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportedScore.h"

#include "ImportedAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::varlen;

static constexpr StringLiteral nameAttr = "varlen.name";

SmallVector<StringRef> ParsedAttention::getCaptureNames() {
  SmallVector<StringRef> names;
  for (Value capture : attention.getCaptures()) {
    auto argument = cast<BlockArgument>(capture);
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      nameAttr);
    names.push_back(name ? name.getValue() : "");
  }
  return names;
}

/// The module of a text, or null and the first error.
static OwningOpRef<ModuleOp> parse(MLIRContext *context, StringRef text,
                                   std::string &error) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      error = diagnostic.str();
    return success();
  });
  return parseSourceString<ModuleOp>(text, ParserConfig(context));
}

/// The same, of a text that needs no dialects but those of a function around an
/// attention: a pass may load no others.
static OwningOpRef<ModuleOp> parseInPass(MLIRContext *context, StringRef text,
                                         std::string &error) {
  MLIRContext alone(MLIRContext::Threading::DISABLED);
  alone.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                    VarlenDialect>();
  if (!parse(&alone, text, error))
    return nullptr;
  // It parses: a handler would take the diagnostics of other threads.
  return parseSourceString<ModuleOp>(text, ParserConfig(context));
}

/// The function and its attention, if the module has nothing else; operands are
/// arguments of the function, and results are returned in their order.
static bool findAttention(ParsedAttention &parsed) {
  Block *body = parsed.module->getBody();
  if (!llvm::hasSingleElement(*body))
    return false;
  parsed.function = dyn_cast<func::FuncOp>(body->front());
  if (!parsed.function || !llvm::hasSingleElement(parsed.function.getBody()))
    return false;
  Block &block = parsed.function.getBody().front();
  if (!llvm::hasNItems(block, 2))
    return false;
  parsed.attention = dyn_cast<AttentionOpInterface>(block.front());
  return parsed.attention &&
         ImportedAttention::findKind(block.front().getName().getStringRef()) &&
         parsed.attention.getDestinations().empty() &&
         llvm::all_of(block.front().getOperands(),
                      llvm::IsaPred<BlockArgument>) &&
         llvm::equal(block.getTerminator()->getOperands(),
                     block.front().getResults());
}

FailureOr<ParsedAttention> varlen::parseAttention(Operation *op, StringRef what,
                                                  StringRef text) {
  std::string error;
  ParsedAttention parsed;
  parsed.module = parseInPass(op->getContext(), text, error);
  if (!parsed.module)
    return op->emitError("expected ")
           << what << " to be the text of a function with one attention, got: "
           << error;
  if (!findAttention(parsed))
    return op->emitError("expected ")
           << what
           << " to be the text of a function of one attention that returns its "
              "results, and of nothing else";
  return parsed;
}

/// What an attention without rows has in front of its captures, between these
/// and their types, and in front of its score.
static std::string wrap(ArrayRef<std::pair<StringRef, StringRef>> captures,
                        StringRef score, StringRef compute) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "func.func @score(%varlen.q: tensor<0x1x1x" << compute
     << ">, %varlen.cu: tensor<1xi32>";
  for (auto [name, type] : captures)
    os << ", " << name << ": " << type << " {" << nameAttr << " = \""
       << name.drop_front() << "\"}";
  os << ") -> (tensor<0x1x1x" << compute << ">, tensor<1x0x" << compute
     << ">) {\n%varlen.out:2 = varlen.attn %varlen.q, %varlen.q, %varlen.q, "
        "%varlen.cu, %varlen.cu";
  if (!captures.empty())
    os << " captures(" << llvm::join(llvm::make_first_range(captures), ", ")
       << ")";
  os << " : (";
  for (unsigned i = 0; i < 3; ++i)
    os << "tensor<0x1x1x" << compute << ">, ";
  os << "tensor<1xi32>, tensor<1xi32>";
  for (auto [name, type] : captures)
    os << ", " << type;
  os << ") -> (tensor<0x1x1x" << compute << ">, tensor<1x0x" << compute << ">) "
     << score << "\nreturn %varlen.out#0, %varlen.out#1 : tensor<0x1x1x"
     << compute << ">, tensor<1x0x" << compute << ">\n}\n";
  return text;
}

FailureOr<ParsedAttention> varlen::parseScore(Operation *op, StringRef what,
                                              StringRef text,
                                              FloatType compute) {
  StringRef rest = text.trim();
  auto wanted = [&](const Twine &got) {
    return op->emitError("expected ")
           << what
           << " to be the text of a score, [captures(%name: type, ...)] score "
              "(...) {...}, got "
           << got;
  };
  SmallVector<std::pair<StringRef, StringRef>> captures;
  if (rest.consume_front("captures")) {
    rest = rest.ltrim();
    size_t end = rest.find(')');
    if (!rest.starts_with("(") || end == StringRef::npos)
      return wanted("captures without a list in parentheses");
    SmallVector<StringRef> parts;
    rest.slice(1, end).split(parts, ',');
    for (StringRef part : parts) {
      auto [name, type] = part.split(':');
      name = name.trim();
      if (!name.starts_with("%") || name.size() < 2 ||
          !llvm::all_of(name.drop_front(),
                        [](char c) { return llvm::isAlnum(c) || c == '_'; }))
        return wanted("the capture '" + part.trim() + "'");
      // The attention below has heads and rows of its own.
      StringRef extents = type.trim();
      if (extents.consume_front("tensor<") &&
          llvm::any_of(extents.split('f').first, llvm::isDigit))
        return op->emitError("expected ")
               << what << " to have ? for each extent of the capture " << name
               << ", as a score is for all heads and lengths, got "
               << type.trim();
      captures.emplace_back(name, type.trim());
    }
    rest = rest.drop_front(end + 1).ltrim();
  }
  if (!rest.starts_with("score"))
    return wanted("'" + rest.take_front(20) + "'");

  std::string error;
  ParsedAttention parsed;
  parsed.module =
      parseInPass(op->getContext(),
                  wrap(captures, rest, compute.isF64() ? "f64" : "f32"), error);
  if (!parsed.module)
    return wanted("an error: " + error);
  // A text may close more than its region.
  if (!findAttention(parsed) || !parsed.attention.getScoreBody())
    return wanted("more than that");
  return parsed;
}
