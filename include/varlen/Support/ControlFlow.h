//===- ControlFlow.h - Loops and branches of a builder ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structured control flow whose bodies are emitted with the builder of the code
// around them: while a body is emitted, the insertion point of `b` is in it.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_CONTROLFLOW_H
#define VARLEN_SUPPORT_CONTROLFLOW_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

using Values = SmallVector<Value>;

/// A loop over [from, to) in steps that carries the values that `body` returns
/// to the next iteration; returns the last ones.
ValueRange emitLoop(ImplicitLocOpBuilder &b, Value from, Value to, Value step,
                    ValueRange inits,
                    function_ref<Values(Value, ValueRange)> body);
/// One that carries none; returns the scf.for.
Operation *emitLoop(ImplicitLocOpBuilder &b, Value from, Value to, Value step,
                    function_ref<void(Value)> body);
void emitLoop(ImplicitLocOpBuilder &b, Value from, Value to, int64_t step,
              function_ref<void(Value)> body);

/// A parallel loop over 0 to before `count`; returns the scf.forall.
Operation *emitForall(ImplicitLocOpBuilder &b, Value count,
                      function_ref<void(Value)> body);

/// The sum of `termOf(i)` for i in [from, to) in steps, in this order, starting
/// from `zero`; what rounding has lost of it is carried along (Kahan, 1965).
Value emitSum(ImplicitLocOpBuilder &b, Value from, Value to, Value step,
              Value zero, function_ref<Value(Value)> termOf);

/// A loop that runs while `condition` holds for the carried values, which
/// `body` replaces; returns the last ones.
ValueRange emitWhile(ImplicitLocOpBuilder &b, ValueRange inits,
                     function_ref<Value(ValueRange)> condition,
                     function_ref<Values(ValueRange)> body);

/// One of two branches; `otherwise` may be null. Returns the scf.if.
Operation *emitIf(ImplicitLocOpBuilder &b, Value condition,
                  function_ref<void()> then,
                  function_ref<void()> otherwise = nullptr);
/// What one of two branches returns.
ValueRange emitChoice(ImplicitLocOpBuilder &b, Value condition,
                      function_ref<Values()> then,
                      function_ref<Values()> otherwise);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_CONTROLFLOW_H
