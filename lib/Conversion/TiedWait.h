//===- TiedWait.h - Waits for wgmma as assembly -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_TIEDWAIT_H
#define VARLEN_LIB_CONVERSION_TIEDWAIT_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>

namespace mlir::varlen {

/// The name of a wait for wgmma that is assembly, and through which the
/// registers pass that it waits for, each tied to the result of its number
/// (Wgmma.cpp of the kernel dialect).
inline constexpr llvm::StringLiteral kTiedWait =
    "wgmma.wait_group.sync.aligned";

/// How many groups it lets be in flight; none for anything else.
inline std::optional<int64_t> getTiedPending(Operation *op) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  StringRef text = assembly ? assembly.getAsmString().trim() : StringRef();
  int64_t pending = 0;
  if (!text.consume_front(kTiedWait) ||
      text.trim(" \t;").getAsInteger(10, pending))
    return std::nullopt;
  return pending;
}

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_TIEDWAIT_H
