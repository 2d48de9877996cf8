//===- ImportedScore.h - Attention that comes as text -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frontends carry a score region as text in operators and calls. The text has
// what varlen.attn has behind the types of its other operands, with the types
// of captures in front:
//
//   captures(%slopes: tensor<?xf32>) score (%score: f32, ...) { ... }
//
// Without captures it begins with `score`.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_IMPORT_IMPORTEDSCORE_H
#define VARLEN_LIB_IMPORT_IMPORTEDSCORE_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::varlen {

/// A function of one attention, which returns all that the attention does, in a
/// module of its own.
struct ParsedAttention {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  AttentionOpInterface attention;

  /// Names of the captures: those of the function's arguments.
  SmallVector<StringRef> getCaptureNames();
};

/// Reads such a function. `what` is what errors on `op` call the text.
FailureOr<ParsedAttention> parseAttention(Operation *op, StringRef what,
                                          StringRef text);

/// Reads the text of a score, for scores of type `compute`, as an attention
/// with it. `what` is what errors on `op` call the text.
FailureOr<ParsedAttention> parseScore(Operation *op, StringRef what,
                                      StringRef text, FloatType compute);

} // namespace mlir::varlen

#endif // VARLEN_LIB_IMPORT_IMPORTEDSCORE_H
