//===- Passes.td - Passes on the interfaces of functions ---*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_ABI_PASSES_TD
#define VARLEN_ABI_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenAddResultArguments
    : Pass<"varlen-add-result-arguments", "::mlir::ModuleOp"> {
  let summary = "Let callers say where results go";
  let description = [{
    The results of public functions become arguments, after the others: a memref
    for each, of the same shape, of rank 0 for a scalar. Bufferization then makes
    what computes a result compute it there, without a copy where it can.

    With `strided`, tensor arguments and these memrefs may have any strides but
    the last, which is 1.

    With `shapes`, every public function `f` with results that are tensors has a
    function `f_shapes` of its arguments and of another one, a buffer of as many
    i64 as these results have extents. It stores the extents there, one result
    after the other, and computes nothing else, so a caller can allocate the
    results. What `f` asserts is for `f` to check.

    *Requires*: results that are ranked tensors or scalars; runs before
    bufferization. With `shapes`, the extents of results follow from extents of
    arguments or from scalars, and the operations between implement
    `ReifyRankedShapedTypeOpInterface`, which says how; an error names a result
    whose extents do not follow. *Guarantees*: public functions have no results. A
    function that the module calls itself has a private copy for these calls.
    *Numerics*: none.

    ```mlir
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %y = math.exp %x : tensor<?x4xf32>
      return %y : tensor<?x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x4xf32>, %out: memref<?x4xf32>) {
      %y = math.exp %x : tensor<?x4xf32>
      bufferization.materialize_in_destination %y in restrict writable %out
          : (tensor<?x4xf32>, memref<?x4xf32>) -> ()
      return
    }
    ```
    and, with `shapes`, has the companion
    ```mlir
    func.func @f_shapes(%x: tensor<?x4xf32>, %extents: memref<2xi64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4_i64 = arith.constant 4 : i64
      %dim = tensor.dim %x, %c0 : tensor<?x4xf32>
      %rows = arith.index_cast %dim : index to i64
      memref.store %rows, %extents[%c0] : memref<2xi64>
      memref.store %c4_i64, %extents[%c1] : memref<2xi64>
      return
    }
    ```
  }];
  let options = [
    Option<"strided", "strided", "bool", /*default=*/"false",
           "Tensors have any strides but the last, which is 1">,
    Option<"shapes", "shapes", "bool", /*default=*/"false",
           "Add functions that compute the extents of results">];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"];
  let statistics = [
    Statistic<"numAdded", "added", "Results that are arguments now">,
    Statistic<"numShapeFunctions", "shape functions", "Functions of extents">];
}

def VarlenSeparateResults
    : Pass<"varlen-separate-results", "::mlir::func::FuncOp"> {
  let summary = "Copy results that are computed in memory of other ones";
  let description = [{
    `eliminate-empty-tensors` has a result computed in the memref that it is
    materialized in. Bufferization does not see that writing a result to that
    memref overwrites other tensors there: one that comes from what the first
    result was computed from, such as a common `linalg.fill`, or from an earlier
    step of it. A result that may be such a tensor is copied before the first
    one is written.

    *Requires*: results that are materialized in memrefs, as
    `varlen-add-result-arguments` leaves them, at the end of a block.
    *Guarantees*: what is written to one memref is read from no other that is
    written to before. *Numerics*: none.

    ```mlir
    %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
    %x = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    bufferization.materialize_in_destination %y in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
    bufferization.materialize_in_destination %x in restrict writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
    ```
    becomes
    ```mlir
    %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
    %x = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    %c = bufferization.alloc_tensor() copy(%x) : tensor<4xf32>
    bufferization.materialize_in_destination %y in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
    bufferization.materialize_in_destination %c in restrict writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
  let statistics = [
    Statistic<"numCopied", "copied", "Results that are copied">];
}

def VarlenAllowMeasuring
    : Pass<"varlen-allow-measuring", "::mlir::ModuleOp"> {
  let summary = "Let a run of a function count its memory, and do nothing else";
  let description = [{
    A run in which `varlen_is_measuring` is true executes every allocation and
    deallocation of a real run, and reads and writes no memory: operations that do
    are in branches that it does not take. The runtime provides that function,
    and others in place of `malloc`, `free`, `varlen_work_tiles` and
    `varlen_parallel_for`, which count and run no work; so `scf.forall` and
    attention stay as they are.

    *Requires*: functions on buffers, before parallel loops are outlined.
    *Guarantees*: real runs compute the same. Where what is allocated depends on
    more than extents and scalar arguments, the function stays as it is and gets
    the attribute `varlen.memory_depends_on`, with the name of an operation by
    which it does. *Numerics*: none.

    ```mlir
    %x = memref.alloc(%n) : memref<?xf32>
    linalg.fill ins(%zero : f32) outs(%x : memref<?xf32>)
    ```
    becomes
    ```mlir
    %measures = call @varlen_is_measuring() : () -> i1
    %true = arith.constant true
    %computes = arith.xori %measures, %true : i1
    %x = memref.alloc(%n) : memref<?xf32>
    scf.if %computes {
      linalg.fill ins(%zero : f32) outs(%x : memref<?xf32>)
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"];
  let statistics = [
    Statistic<"numBranches", "branches", "Branches around uses of memory">,
    Statistic<"numRefused", "refused",
              "Functions whose memory depends on more than extents">];
}

def VarlenExportFunctions
    : Pass<"varlen-export-functions", "::mlir::ModuleOp"> {
  let summary = "Give public functions a C interface";
  let description = [{
    Every public function with a body gets `llvm.emit_c_interface`, so that C
    can call it as `_mlir_ciface_<name>`, and its tensor arguments
    `bufferization.writable = false`: a caller's inputs are never written to.

    *Requires*: nothing; runs before bufferization. *Guarantees*: the above.
    *Numerics*: none.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32> {bufferization.writable = false})
        -> tensor<4xf32> attributes {llvm.emit_c_interface} { ... }
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numExported", "exported", "Functions with a C interface">];
}

#endif // VARLEN_ABI_PASSES_TD
