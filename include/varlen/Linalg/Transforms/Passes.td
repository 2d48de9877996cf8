//===- Passes.td - Passes on upstream's linalg -------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LINALG_TRANSFORMS_PASSES_TD
#define VARLEN_LINALG_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenKeepOnDevice
    : Pass<"varlen-keep-on-device", "::mlir::func::FuncOp"> {
  let summary = "Numbers read from tensors, and constant tensors, in kernels";
  let description = [{
    What the host would have to read from device memory, or keep there. A number
    that is computed from elements of tensors (`tensor.extract`) and used in the
    body of a linalg operation, filled in or inserted somewhere is computed there.
    A constant tensor becomes one that linalg writes.

    *Requires*: functions on tensors. *Guarantees*: the above; a number that host
    code needs, for a loop or as a result, is left. *Numerics*: none.

    ```mlir
    %s = tensor.extract %x[] : tensor<f32>
    %y = linalg.fill ins(%s : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    ```
    becomes
    ```mlir
    %y = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]}
        outs(%e : tensor<?xf32>) {
    ^bb0(%o: f32):
      %s = tensor.extract %x[] : tensor<f32>
      linalg.yield %s : f32
    } -> tensor<?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def VarlenFuseLinalg : Pass<"varlen-fuse-linalg", "::mlir::func::FuncOp"> {
  let summary = "Elementwise operations where they are read";
  let description = [{
    Each linalg operation that is left will be a kernel. An elementwise operation
    that one other reads goes into it, also into a reduction, where nothing is
    computed twice by that; not into a contraction. Each operation that continues a fill
    gets its own.

    *Requires*: linalg on tensors. *Guarantees*: but for contractions and fills,
    all of it is `linalg.generic`. *Numerics*: a contraction into f16 or bf16 sums
    in f32 and is rounded once; else none.

    ```mlir
    %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %1 = linalg.add ins(%0, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    ```
    becomes
    ```mlir
    %1 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]}
        ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %2 = math.exp %a : f32
      %3 = arith.addf %2, %b : f32
      linalg.yield %3 : f32
    } -> tensor<?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def VarlenFuseReductions
    : Pass<"varlen-fuse-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reductions of elements where these are computed";
  let description = [{
    A reduction of what an elementwise operation computes becomes one operation with
    it, which has the elements as another result where others read them: both are one
    loop, and the elements need not be read again. So does what writes the elements in
    another form: as pairs of rows, which the map `(i, j) -> (i floordiv 2, j, i mod 2)`
    describes, rounded, where rows have a static power of two of elements, or masked
    (`varlen.hide`), which takes all elementwise operations that lead to it. What is masked
    and computed from another masked tile, as ds of p, is computed with that, and so is, last,
    a reduction of a masked tile; what else reads the other tile moves behind both.

    *Requires*: `linalg.generic` on tensors, the reduction before others that read the
    elements, unless these are masked. *Guarantees*: nothing is computed twice. *Numerics*: none.

    ```mlir
    %p = linalg.generic {iterator_types = ["parallel", "parallel"], ...} ins(%s, %m)
    %l = linalg.generic {iterator_types = ["parallel", "reduction"], ...} ins(%p)
    ```
    becomes
    ```mlir
    %p, %l = linalg.generic {iterator_types = ["parallel", "reduction"], ...} ins(%s, %m)
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFused", "fused", "Reductions fused">];
}

def VarlenDecomposeLinalg
    : Pass<"varlen-decompose-linalg", "::mlir::func::FuncOp"> {
  let summary = "linalg operations that stand for several, as these";
  let description = [{
    An operation of linalg that implements `AggregatedOpInterface`, such as
    `linalg.softmax`, becomes the structured operations that it stands for, which
    the passes below tile, fuse and vectorize. So does `math.fpowi` outside of
    attention: products if its exponent is constant, else a power of floats.

    *Requires*: these operations on tensors; on memrefs they are an error.
    *Guarantees*: none is left. *Numerics*: those of upstream's decomposition;
    a variable exponent is rounded to the type of the base, as f32 from 2^24 on, but
    for whether it is odd.

    ```mlir
    %y = linalg.softmax dimension(1) ins(%x : tensor<?x64xf32>)
        outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
    becomes
    ```mlir
    %max = linalg.generic {iterator_types = ["parallel", "reduction"], ...}
    %exp = linalg.generic {iterator_types = ["parallel", "parallel"], ...}
    %sum = linalg.generic {iterator_types = ["parallel", "reduction"], ...}
    %y = linalg.generic {iterator_types = ["parallel", "parallel"], ...}
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numDecomposed", "decomposed", "Operations decomposed">];
}

def VarlenNarrowContractions
    : Pass<"varlen-narrow-contractions", "::mlir::func::FuncOp"> {
  let summary = "Contractions of the narrow tensors that factors are extended from";
  let description = [{
    A contraction whose factors are `arith.extf` of a narrower type, or of that
    type already, takes the narrower tensors. `varlen-differentiate` makes such
    contractions: the cotangent of a sum that was rounded to bf16 is extended to
    f32, and multiplied by a tensor of bf16. Dot products of bf16 pairs, and tensor
    cores, compute several products of bf16 in the time of one of f32.

    *Requires*: contractions on tensors. *Guarantees*: a contraction is changed only
    if both of its factors have the narrower type then. *Numerics*: extension is
    exact, and so are the factors; a target may add the products in another order.

    ```mlir
    %0 = arith.extf %dy : tensor<?x64xbf16> to tensor<?x64xf32>
    %1 = linalg.contract indexing_maps = [#mk, #nk, #mn]
        ins(%0, %w : tensor<?x64xf32>, tensor<32x64xbf16>)
        outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
    ```
    becomes
    ```mlir
    %1 = linalg.contract indexing_maps = [#mk, #nk, #mn]
        ins(%dy, %w : tensor<?x64xbf16>, tensor<32x64xbf16>)
        outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numNarrowed", "narrowed", "Contractions changed">];
}

def VarlenTileLinalg : Pass<"varlen-tile-linalg", "::mlir::func::FuncOp"> {
  let summary = "linalg on tensors in tiles, on threads";
  let description = [{
    Each linalg operation on tensors becomes an `scf.forall` over tiles of its
    result, and with it what only it reads and what is computed tile by tile
    without computing anything twice: elementwise producers, fills, reductions of
    rows, and the contraction that an elementwise operation reads. A contraction is
    computed in blocks: its right factor is copied once, in panels as wide as the
    vectors of a tile of the result in registers; each thread copies a block of
    rows of the left one. Where the target has a dot product of bf16 pairs, copies of
    bf16 are of pairs along the contracted loop, and an odd end is padded with zeros.
    Of few rows tiles are of columns, and the right factor is read where it is. If
    the contracted loop is its last dimension, `varlen.in_order` on the contraction
    says that it adds up in the order of that loop, as panels do; whether there are
    few rows may be decided at run time.

    *Requires*: linalg on tensors; operations whose indices are no loops, in an
    `scf.forall` already, or too small to be worth a thread are left as they are.
    *Guarantees*: the loops are normalized, and buffers of a tile have a size that
    is known before the loop.
    *Numerics*: a contraction into f16 or bf16 sums in f32 and is rounded once; else
    none.

    ```mlir
    %0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
    %1 = linalg.matmul ins(%a, %w : tensor<?x512xf32>, tensor<512x64xf32>)
        outs(%0 : tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
    becomes
    ```mlir
    %panels = scf.forall (%p) in (2) shared_outs(%o = %memory) -> (tensor<2x512x32xf32>) {
      ... a copy of columns 32 * %p to 32 * %p + 32 of %w
    }
    %1 = scf.forall (%i) in (%blocks) shared_outs(%o = %empty) -> (tensor<?x64xf32>) {
      %0 = linalg.fill ...                       // of 96 rows, or fewer
      scf.for %k = %c0 to %c512 step %c256 ... { // depth
        ... a copy of 96 x 256 of %a
        scf.for %p = %c0 to %c2 step %c1 ... {
          linalg.contract ...                    // 96 x 32 of the result
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to generate code for: host, or a name of the target table">];
  let statistics = [
    Statistic<"numLoops", "loops", "Loops over tiles">,
    Statistic<"numOperations", "operations", "Operations in them">];
}

def VarlenVectorizeLinalg
    : Pass<"varlen-vectorize-linalg", "::mlir::func::FuncOp"> {
  let summary = "linalg on memrefs to loops of vectors";
  let description = [{
    Contractions of floats become loops over tiles of the result that stay in
    registers while the contracted loop runs. Of other operations, the loop along
    which memory is contiguous becomes one of vectors: elementwise operations,
    broadcasts, copies, and reductions, which sum up in as many lanes as a vector
    has. A copy that transposes, or that transposes pairs of 16 bits, reads blocks of
    vectors and transposes them in registers, and so does a contraction with
    `varlen.in_order` whose right factor has the contracted loop last. One with
    `varlen.add_last` adds what is in memory to the sum of its products. Where registers
    hold all of a result, contractions and elementwise operations on it that follow each
    other go on with the registers. Results that are pairs of rows, of the map
    `(i, j) -> (i floordiv 2, j, i mod 2)`, are written two rows at once. What a body reads
    by `memref.load` is a vector where the last index is the loop of vectors and the others
    are the same in all lanes, as in a gather of rows, and is read one element at a time
    elsewhere; a `cf.assert` is one of all lanes. A contraction asks for rows of a right factor that
    is not known to be small some time before it reads them, behind the last one for those that
    `varlen.followed_by` names.

    *Requires*: linalg on memrefs; others are left as they are.
    *Guarantees*: no linalg on memrefs and no `varlen.followed_by` is left. Operations without a vector form
    (elements that are no whole bytes, indices that are no loops, functions of libm)
    become scalar loops; a remark counts them and names the first.
    *Numerics*: a reduction along the loop of vectors sums in another order, always
    the same one; a contraction multiplies and adds with one rounding where the
    target has the instruction; of bf16 it adds pairs of products where the target has
    a dot product of them, which takes subnormal numbers for zero. `exp`, `log`, `tanh`, `sin` and others of f16, bf16
    and f32 are upstream's polynomials, of a few units in the last place of f32.

    ```mlir
    linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.mulf %a, %a : f32
      linalg.yield %0 : f32
    }
    ```
    becomes
    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %c64 step %c64 {
        %a = vector.load %x[%i, %j] : memref<?x64xf32>, vector<64xf32>
        %0 = arith.mulf %a, %a : vector<64xf32>
        vector.store %0, %y[%i, %j] : memref<?x64xf32>, vector<64xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to generate code for: host, or a name of the target table">];
  let statistics = [
    Statistic<"numContractions", "contractions", "Contractions in registers">,
    Statistic<"numVectorized", "vectorized", "Other operations vectorized">,
    Statistic<"numScalar", "scalar", "Operations left for scalar loops">];
}

def VarlenExpandCopies : Pass<"varlen-expand-copies"> {
  let summary = "Copy memrefs that are not contiguous by linalg";
  let description = [{
    A memref.copy that is more than one memcpy becomes `linalg.copy`: upstream
    lowers it to a call of a library that compiled functions do not link. One from
    memory to itself, which a loop or a branch has returned as well, is erased.

    *Requires*: ranked memrefs. *Guarantees*: each memref.copy left has
    contiguous operands. *Numerics*: none.

    ```mlir
    memref.copy %x, %y : memref<?xf32, strided<[2]>> to memref<?xf32>
    ```
    becomes
    ```mlir
    linalg.copy ins(%x : memref<?xf32, strided<[2]>>) outs(%y : memref<?xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Copies handed to linalg">];
}

#endif // VARLEN_LINALG_TRANSFORMS_PASSES_TD
