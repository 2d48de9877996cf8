//===- VarlenScoreOps.td - What steps do to one score ------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SCORE_OPS_TD
#define VARLEN_SCORE_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Varlen_HideOp : Varlen_Op<"hide", [
    Pure, AllTypesMatch<["score", "hidden", "result"]>]> {
  let summary = "A score, or a constant where the limits of a query hide the key";
  let description = [{
    `score` if `lo <= k0 + key < hi` or `whole` is true, else `hidden`: the limits of a
    step (see `varlen.online_attn`) for one query and the key `key` of its block; `k0 + key`
    is the key's number in its sequence or tile, which is not negative. In the
    linalg of steps, whose passes ask what a tile has hidden, and where: if `key` is a
    `linalg.index`, along a dimension of the tile. `varlen-expand-scores` expands it.

    ```mlir
    %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) unless(%whole) : f32
    ```
  }];
  let arguments = (ins
    Varlen_ComputeFloat:$score, Varlen_ComputeFloat:$hidden, Index:$key, I32:$lo, I32:$hi,
    I32:$k0, Optional<I1>:$whole);
  let results = (outs Varlen_ComputeFloat:$result);
  let assemblyFormat = [{
    $score `with` $hidden `at` $key `limits` `(` $lo `,` $hi `,` $k0 `)`
    (`unless` `(` $whole^ `)`)? attr-dict `:` type($score)
  }];
  let extraClassDeclaration = [{
    /// Whether `lo` may hide a key: none is before number 0.
    bool hasLower();
  }];
}

def Varlen_WeightOp : Varlen_Op<"weight", [Pure, SameOperandsAndResultType]> {
  let summary = "The weight of a score; 0 of -inf, which is hidden";
  let description = [{
    `exp2(score * factor + summand)`, with one fused multiply-add. The factor is positive
    and the summand finite, hence a score of -inf has the weight 0: where `varlen.hide` has
    hidden scores by -inf, products with weights have terms of zero.
    `varlen-expand-scores` expands it.

    ```mlir
    %p = varlen.weight %s by %factor plus %minus_m : f32
    ```
  }];
  let arguments = (ins
    Varlen_ComputeFloat:$score, Varlen_ComputeFloat:$factor, Varlen_ComputeFloat:$summand);
  let results = (outs Varlen_ComputeFloat:$result);
  let assemblyFormat = [{
    $score `by` $factor `plus` $summand attr-dict `:` type($score)
  }];
}

#endif // VARLEN_SCORE_OPS_TD
