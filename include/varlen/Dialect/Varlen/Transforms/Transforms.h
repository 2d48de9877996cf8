//===- Transforms.h - What the passes of varlen are made of -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_TRANSFORMS_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_TRANSFORMS_H

#include "mlir/Support/LLVM.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace mlir {
class FunctionType;
class ImplicitLocOpBuilder;
class ModuleOp;
class Operation;
class RewritePatternSet;
class Value;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// varlen-online-softmax
//===----------------------------------------------------------------------===//

/// Adds the patterns of varlen-online-softmax, which lower steps of online
/// softmax, the operations on their state, and their gradients to linalg.
/// With `skipsRescaling` there are varlen.rescale among them.
void populateOnlineSoftmaxPatterns(RewritePatternSet &patterns,
                                   bool skipsRescaling = false);

//===----------------------------------------------------------------------===//
// varlen-expand-exp2
//===----------------------------------------------------------------------===//

/// math.exp2 on scalars and vectors to a polynomial; `degree` is the default
/// for f32 operations without varlen.exp2_degree, `scale` allows AVX-512's
/// vscalef.
void populateExpandExp2Patterns(RewritePatternSet &patterns, int64_t degree,
                                bool scale);

//===----------------------------------------------------------------------===//
// varlen-outline-work
//===----------------------------------------------------------------------===//

/// LLVM function attribute, under `passthrough` of a func.func, of the work of
/// an attention: its loops are blocked and vectorised already.
inline constexpr llvm::StringLiteral kWorkFunctionAttrName = "varlen-work";

//===----------------------------------------------------------------------===//
// Calls of the runtime
//===----------------------------------------------------------------------===//

/// The declaration of a function of Runtime.h in `module`, added if there is
/// none. Emits an error at `user` if another symbol has the name.
FailureOr<func::FuncOp> getRuntimeFunction(ModuleOp module, Operation *user,
                                           llvm::StringRef name,
                                           FunctionType type);

/// Emits a call that reports a violated rule about an extent, if there is one:
/// `rule` is its number, or 0 (see `varlen.batch`). Returns whether there is,
/// an i1. Fails, with an error at `user`, if a name of the runtime is taken.
FailureOr<Value> emitExtentReport(ImplicitLocOpBuilder &b, Operation *user,
                                  Value rule, Value value, Value bound);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_TRANSFORMS_H
