//===- Passes.td - Conversions out of varlen ---------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_PASSES_TD
#define VARLEN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertVarlenToRuntime
    : Pass<"convert-varlen-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Call the runtime for the work of an attention";
  let description = [{
    `varlen.work_tiles` becomes a call of `varlen_work_tiles` (Runtime.h); the
    list that the runtime allocates is the result, and `memref.dealloc` frees
    it. Lists that the runtime refuses make zero tiles.

    *Requires*: functions on memrefs.

    *Guarantees*: no varlen.work_tiles is left. Lists whose stride is not known
    to be 1 are copied for the call.

    *Numerics*: none.

    ```mlir
    %tiles = varlen.work_tiles %cu, %cu rows(%t, %t) heads(%h, %g)
        mask #varlen.mask<causal> block_m 64 : ... -> memref<?x9xi64>
    ```
    becomes
    ```mlir
    %slot = llvm.alloca %c1 x !llvm.ptr : (i64) -> !llvm.ptr
    %n = call @varlen_work_tiles(%cu_address, %cu_size, ..., %slot) : (...) -> i64
    %count = arith.maxsi %n, %c0 : i64
    %list = llvm.load %slot : !llvm.ptr -> !llvm.ptr
    %tiles = builtin.unrealized_conversion_cast ... to memref<?x9xi64>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Lists requested of the runtime">];
}

#endif // VARLEN_CONVERSION_PASSES_TD
