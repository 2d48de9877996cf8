//===- VarlenDialect.td - The varlen dialect ---------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_TD
#define VARLEN_DIALECT_TD

include "mlir/IR/OpBase.td"

def Varlen_Dialect : Dialect {
  let name = "varlen";
  let cppNamespace = "::mlir::varlen";
  let summary = "Attention over packed sequences of different lengths";
  let description = [{
    `varlen.attn` says what attention over a packed batch means; the other
    operations are the steps of its way down to a target:

    1. `varlen.attn`: packed tensors (or buffers), no tuning;
    2. `varlen.for_tiles`: loops over the tiles that own rows and over the blocks
       that they visit, with nothing of a target but sizes;
    3. `varlen.online_attn`: a dense block of queries against a dense block of
       keys, which becomes linalg on rank-2 tiles.

    Discardable attributes:

    | | on | |
    |---|---|---|
    | `varlen.schedule` | an attention, a `varlen.for_tiles`; of a CPU the `scf.forall` that this becomes, or an `scf.if` in that | the tile sizes of the code for a target; on `scf` operations, those of the tiles inside, until `varlen-place-tiles` |
    | `varlen.exp2_degree` | `math.exp2`, and what has exponentials | the degree of the polynomial that suffices: 3 to 6, or 11 for f64 |
    | `varlen.in_order` | `linalg.contract` | that it adds up in the order of the contracted loop, whatever its operands look like in memory |
    | `varlen.add_last` | `linalg.contract` | that what is in memory is added to the sum of the products in the end |
    | `varlen.memory_depends_on` | a function | the name of an operation by which it allocates memory whose size extents do not determine |
    | `varlen.name` | an argument or result of a function | the name under which `varlen-run` reads or writes it |

    A function of `varlen-outline-work` also has the LLVM function attribute
    `varlen-work`, under `passthrough`: its loops are vectorized already, and a JIT
    compiler may leave them to fewer optimizations.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  // What varlen.attn decomposes, tiles and canonicalises into: an interface's
  // caller cannot know which dialects to load.
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
  private:
    void addBytecodeInterface();
  }];
}

#endif // VARLEN_DIALECT_TD
