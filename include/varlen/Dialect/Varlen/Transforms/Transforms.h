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

/// Adds the patterns of varlen-online-softmax: steps of online softmax, what
/// belongs to their state, and their gradients become linalg.
void populateOnlineSoftmaxPatterns(RewritePatternSet &patterns);

//===----------------------------------------------------------------------===//
// varlen-expand-exp2
//===----------------------------------------------------------------------===//

/// math.exp2 on scalars and vectors to a polynomial; `degree` is for f32
/// operations that do not say theirs, `scale` that AVX-512's vscalef is there.
void populateExpandExp2Patterns(RewritePatternSet &patterns, int64_t degree,
                                bool scale);

//===----------------------------------------------------------------------===//
// varlen-outline-work
//===----------------------------------------------------------------------===//

/// Attribute of LLVM functions that are the work of an attention: their loops
/// are blocked and vectorised already.
inline constexpr llvm::StringLiteral kWorkFunctionAttrName = "varlen-work";

//===----------------------------------------------------------------------===//
// Calls of the runtime
//===----------------------------------------------------------------------===//

/// The declaration of a function of Runtime.h in `module`, added if there is
/// none. Emits an error at `user` if the name stands for something else.
FailureOr<func::FuncOp> getRuntimeFunction(ModuleOp module, Operation *user,
                                           llvm::StringRef name,
                                           FunctionType type);

/// Emits a call that reports a broken rule about an extent, unless `rule` is 0:
/// then none is (see `varlen.batch`). Whether one is, an i1. Fails, with an
/// error at `user`, if a name of the runtime is taken.
FailureOr<Value> emitExtentReport(ImplicitLocOpBuilder &b, Operation *user,
                                  Value rule, Value value, Value bound);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_TRANSFORMS_H
