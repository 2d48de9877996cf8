//===- VarlenStepOps.td - Steps of online softmax ----------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile, or a panel of it, and one block. Included by VarlenOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_STEP_OPS_TD
#define VARLEN_STEP_OPS_TD

include "varlen/Dialect/Varlen/IR/VarlenAttnBase.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenTableOps.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/IR/OpAsmInterface.td"

//===----------------------------------------------------------------------===//
// What steps share
//===----------------------------------------------------------------------===//

def Varlen_LimitTile : Varlen_Tensor<I32, 2>;

/// In units of log2, so that no weight overflows f16: next to a reference of
/// 2^24 or more, where c is the next power of two, weights may have as many more.
def Varlen_RescaleThresholdAttr
    : ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<8>]>;

/// A step: `varlen.online_attn` and its derivatives.
class Varlen_StepOp<string mnemonic, list<string> overridden, list<Trait> traits>
    : Varlen_Op<mnemonic, !listconcat([
        AttrSizedOperandSegments, IsolatedFromAbove, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<Varlen_StepOpInterface, overridden>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<DestinationStyleOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, [
          "getAsmResultNames", "getAsmBlockArgumentNames"]>], traits)> {
  // Where the step is, and what it reads there.
  dag inputs = (ins
    Optional<Varlen_LimitTile>:$lo, Optional<Varlen_LimitTile>:$hi, Optional<I32>:$k0,
    Optional<Index>:$seen_begin, Optional<Index>:$seen_end,
    Optional<Varlen_TileType>:$queries, Optional<Varlen_TileType>:$keys,
    Optional<Varlen_LimitTile>:$position, Optional<I32>:$first_key,
    Variadic<Varlen_Tile>:$captures,
    Arg<Variadic<Varlen_TableMemory>, "", [MemRead]>:$tables,
    Variadic<Varlen_RowTile>:$rows);
  string atFormat = [{
    (`at` `(` $queries^ `,` $keys `:` type($queries) `,` type($keys) `)`)?
  }];
  string inputsFormat = [{
    (`limits` `(` $lo^ `,` $hi `,` $k0 `:` type($lo) `,` type($hi) `,` type($k0) `)`)?
    (`seen` `(` $seen_begin^ `,` $seen_end `)`)?
    (`positions` `(` $position^ `,` $first_key `:` type($position) `,` type($first_key) `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`tables` `(` $tables^ `:` type($tables) `)`)? (`rows` `(` $rows^ `:` type($rows) `)`)?
  }];
  let regions = (region VariadicRegion<SizedRegion<1>>:$score);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    LogicalResult $cppClass::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
      return detail::reifyDestinations(*this, builder, shapes);
    }
    Speculation::Speculatability $cppClass::getSpeculatability() {
      return getTables().empty() ? Speculation::Speculatable
                                 : Speculation::NotSpeculatable;
    }
    void $cppClass::getAsmBlockArgumentNames(Region &region,
                                             OpAsmSetValueNameFn setName) {
      setScoreArgumentNames(region, setName);
    }
  }];
}

//===----------------------------------------------------------------------===//
// online_attn
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnOp : Varlen_StepOp<"online_attn", ["createMerge", "getKeyNumbers"], [
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "generateResultTileValue",
      "getIterationDomainTileFromResultTile"]>,
    DeclareOpInterfaceMethods<PartialReductionOpInterface, [
      "generateInitialTensorForPartialReduction", "tileToPartialReduction",
      "mergeReductions", "getPartialResultTilePosition"]>]> {
  let summary = "One step of online softmax: a block of queries against a block of keys";
  let description = [{
    Destination-passing on the state of each query: `acc` (its row of the
    unnormalised output), `m` (the largest score so far, before the scale) and
    `l` (the sum of exponentials, relative to r(m)):

        m' = max(m, max_j s[i, j])
        p[i, j] = exp2(c * s[i, j] - r(m'))            c = scale * log2(e)
        l' = l * exp2(r(m) - r(m')) + sum_j p[i, j]    r(m) = up(c * m)
        acc' = acc * exp2(r(m) - r(m')) + p v

    `up` is `ceil` where v has the compute type: the rescaling factor is then an
    exact power of two. Where v is narrower p is rounded to its type, and `up`
    changes nothing: the largest p is 1, so a query with one key gets exactly
    the value of that key. From `|c * m| = 2^24` on (2^53 in f64), where r would
    be rounded to more than 1, c is the next power of two in both of its places:
    the products with m are then exact, and no p is more than 1. A state begins with
    `varlen.online_init`. At the end out = acc / l and lse = scale * m + log(l) + log(2) * (r(m) - c * m)
    (Milakov and Gimelshein, 2018; Dao, 2022).

    With a `rescale_threshold` of t, m stays as it is while that is at most t / c below
    m': no p is more than 2^t then, and the factor of most rows is 1, which
    `varlen.rescale` makes use of (conditional rescaling: Zadouri et al.,
    FlashAttention-4). A query decides by its own scores, so that its numbers are the
    same whatever tile it is in.

    `orientation` says what the rows of a score tile are: queries (`qk`) or keys
    (`kq`). Shapes for M queries and N keys: q is M x D, k is N x D and v is
    N x Dv in either orientation. acc is M x Dv, m and l are M x 1 for `qk`; acc
    is Dv x M, m and l are 1 x M for `kq`, whose scores read the rows of q as
    columns: it may lie in memory that way. With `limits(lo, hi, k0)` key j of
    the block is visible to query i only if `lo[i] <= k0 + j < hi[i]`; lo and hi
    have the shape of m. With `seen(begin, end)` all queries see the keys `begin` to before
    `end`, as far as the block has these, and neither lo nor hi falls from one query to the
    next; if these are all keys of the block, the limits are not read. In a tile
    loop `at(queries, keys)` says which rows the step is of: the mask of the batch
    and the ends of the sequence hide keys as limits do, which is what a target
    makes of it.

    A `score` region makes the score of a product, of the positions of query and
    key and of the numbers that `captures` have of a query, tiles in the shape of m,
    and may hide the key. `tables` are the captures that are tables, in the order of the
    region's arguments: in a step with `at` the memory of an attention, H x M or H x T x M,
    else views of which a row begins at each element, and `rows`, in the shape of m, the row
    of each query. In a step that does not say `at` where it is,
    `positions(position, first_key)` are those of the queries and that of key 0. The
    scale comes after the region.

    Tiles are steps on some queries, and on some keys one after the other, or side by
    side, as a reduction in parallel parts: the sums of a query are then rounded
    elsewhere. `varlen.online_merge` makes one state of two. A step with `at` has no
    tiles.

    acc, m and l have the compute type, f32 or f64; q and k one type that
    accumulates in it (f16, bf16 or f32 in f32, f64 in f64), v such a type too:
    probabilities are rounded to the type of v. Every extent may be dynamic.

    k and v may be quantised, of i8 or f8E4M3FN, where products convert them;
    probabilities are not rounded then. `k_scale` and `v_scale` have a number of each
    key, N x 1 for `kq` and 1 x N for `qk`: scores are multiplied by the first, before
    the score region, and probabilities by the second in the product with v, not in l.

    ```mlir
    %acc1, %m1, %l1 = varlen.online_attn kq
        ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%begin, %end)
        outs(%acc, %m, %l : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
        scale 0.125
    ```
  }];
  let arguments = !con((ins
    Varlen_Tile:$q, Varlen_KeyTile:$k, Varlen_KeyTile:$v,
    Optional<Varlen_Tile>:$k_scale, Optional<Varlen_Tile>:$v_scale), inputs, (ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation,
    DefaultValuedAttr<Varlen_RescaleThresholdAttr, "0">:$rescale_threshold));
  let results = (outs Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out);
  let assemblyFormat = "$orientation" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    (`k_scale` `(` $k_scale^ `:` type($k_scale) `)`)?
    (`v_scale` `(` $v_scale^ `:` type($v_scale) `)`)?
  }] # inputsFormat # [{
    `outs` `(` $acc `,` $m `,` $l `:` type($acc) `,` type($m) `,` type($l) `)`
    `scale` $scale attr-dict `` custom<Score>($score)
  }];
  let extraClassDeclaration = [{
    /// The power of two that large scores are multiplied by: scale * log2(e) or
    /// the next one.
    static double getCoarseFactor(double scale);
  }];
}

def Varlen_RescaleOp : Varlen_Op<"rescale", [
    Pure, AllTypesMatch<["tile", "result"]>]> {
  let summary = "Rows of a tile times a factor of each, which is 1 for most";
  let description = [{
    `result[i, j] = tile[i, j] * factor[i]`, where a target may leave out a product by
    1. The accumulator of a step with a `rescale_threshold`, from
    `varlen-online-softmax`; `kernel-distribute` makes a branch of each warp of it.

    ```mlir
    %acc1 = varlen.rescale %acc by %alpha : tensor<64x128xf32>, tensor<64x1xf32>
    ```
  }];
  let arguments = (ins Varlen_Tile:$tile, Varlen_Tile:$factor);
  let results = (outs Varlen_Tile:$result);
  let assemblyFormat = "$tile `by` $factor attr-dict `:` type($tile) `,` type($factor)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// online_attn_jvp
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnJVPOp : Varlen_StepOp<"online_attn_jvp", [
    "getTableArguments", "createMerge"], []> {
  let summary = "One step of online softmax, and of its tangents";
  let description = [{
    `varlen.online_attn` along the tangents tq, tk and tv of its rows. Beside acc, m and
    l the state of a query has the tangents of the two sums, `tacc` and `tl`:

        ts[i, j] = scale * (sum_d tq[i, d] * k[j, d] + q[i, d] * tk[j, d])
        tl' = tl * exp2(r(m) - r(m')) + sum_j p[i, j] * ts[i, j]
        tacc' = tacc * exp2(r(m) - r(m')) + (p * ts) v + p tv

    with p, m' and r of `varlen.online_attn`. What sums are relative to has no tangent: it
    cancels in out and lse. acc, m and l are those of `varlen.online_attn` without a
    `rescale_threshold`. Where a key is not visible ts is 0, whatever tq, k, q and tk are
    there.

    tq, tk and tv have the types of q, k and v, tacc and tl those of acc and l; p * ts is
    rounded to the type of v, as p is. A state of steps that round has one sum more,
    `tl_rounded`, of p * ts as tacc has them: what rounding them adds to tacc is then
    relative to out, so that it is 0 for a query that sees one key
    (`varlen.online_finish`). A state begins with `varlen.online_init` and ends with
    `varlen.online_finish`, each with tangents.

    With a `score` region ts are the tangents of the new scores. `tcaptures`, in the shape
    of m, are the tangents of the captures that `wrt_captures` numbers. The tangents of
    tables are further `tables`, behind the tables that the region reads.

    ```mlir
    %acc1, %m1, %l1, %tacc1, %tl1 = varlen.online_attn_jvp kq
        ins(%q, %k, %v, %tq, %tk, %tv : tensor<32x64xf32>, tensor<?x64xf32>,
            tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%begin, %end)
        outs(%acc, %m, %l, %tacc, %tl : tensor<48x32xf32>, tensor<1x32xf32>,
             tensor<1x32xf32>, tensor<48x32xf32>, tensor<1x32xf32>)
        scale 0.125
    ```
  }];
  let arguments = !con((ins
    Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v,
    Varlen_Tile:$tq, Varlen_Tile:$tk, Varlen_Tile:$tv), inputs, (ins
    Variadic<Varlen_Tile>:$tcaptures,
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Varlen_Tile:$tacc, Varlen_Tile:$tl,
    Optional<Varlen_Tile>:$tl_rounded,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation,
    Varlen_WrtCapturesAttr:$wrt_captures));
  let results = (outs
    Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out,
    Varlen_Tile:$tacc_out, Varlen_Tile:$tl_out, Optional<Varlen_Tile>:$tl_rounded_out);
  let assemblyFormat = "$orientation" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `:`
      type($q) `,` type($k) `,` type($v) `,` type($tq) `,` type($tk) `,` type($tv) `)`
  }] # inputsFormat # [{
    (`tcaptures` `(` $tcaptures^ `:` type($tcaptures) `)`)?
    `outs` `(` $acc `,` $m `,` $l `,` $tacc `,` $tl (`,` $tl_rounded^)? `:`
      type($acc) `,` type($m) `,` type($l) `,` type($tacc) `,` type($tl)
      (`,` type($tl_rounded)^)? `)`
    `scale` $scale attr-dict `` custom<Score>($score)
  }];
}

//===----------------------------------------------------------------------===//
// What steps of gradients share
//===----------------------------------------------------------------------===//

/// A step that adds to gradients, of which some may be absent.
class Varlen_GradStepOp<string mnemonic, list<string> overridden>
    : Varlen_StepOp<mnemonic, !listconcat(overridden, [
        "getTableGradients", "getGradientTables"]), []> {
  // What it adds to, behind its other operands.
  dag sums = (ins
    Arg<Variadic<Varlen_TableMemory>, "", [MemRead, MemWrite]>:$dtables,
    Variadic<Varlen_RowTile>:$drows,
    Optional<Varlen_Tile>:$dq, Optional<Varlen_Tile>:$dk, Optional<Varlen_Tile>:$dv,
    Variadic<Varlen_Tile>:$dcaptures,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation, UnitAttr:$natural,
    Varlen_WrtCapturesAttr:$wrt_captures);
  string sumsFormat = [{
    (`dtables` `(` $dtables^ `:` type($dtables) `)`)? (`drows` `(` $drows^ `:` type($drows) `)`)?
    (`dq` `(` $dq^ `:` type($dq) `)`)? (`dk` `(` $dk^ `:` type($dk) `)`)?
    (`dv` `(` $dv^ `:` type($dv) `)`)?
    (`dcaptures` `(` $dcaptures^ `:` type($dcaptures) `)`)?
    `scale` $scale attr-dict `` custom<Score>($score)
  }];
  let results = (outs Variadic<Varlen_Tile>:$gradients);
  let extraClassDeclaration = [{
    /// The results for dcaptures.
    ::mlir::ResultRange getDcapturesOut() {
      return getResults().take_back(getDcaptures().size());
    }
    /// The result for a destination, in whose order they come; null if that is
    /// absent.
    ::mlir::Value getDqOut() { return getGradient(getDq(), 0); }
    ::mlir::Value getDkOut() { return getGradient(getDk(), getDq() ? 1 : 0); }
    ::mlir::Value getDvOut() {
      return getGradient(getDv(), (getDq() ? 1 : 0) + (getDk() ? 1 : 0));
    }
    ::mlir::Value getGradient(::mlir::Value destination, unsigned before) {
      return destination ? getResult(before) : ::mlir::Value();
    }
  }];
}

//===----------------------------------------------------------------------===//
// online_attn_grad
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnGradOp : Varlen_GradStepOp<"online_attn_grad", []> {
  let summary = "The gradients of a block of queries against a block of keys";
  let description = [{
    The backward of one `varlen.online_attn` step, with probabilities recomputed
    from the logsumexp of the whole row. Destination-passing on the gradients:

        p[i, j] = exp2(min(c * s[i, j] - lse[i], 0))   c = scale * log2(e)
        dp[i, j] = sum_d dout[i, d] * v[j, d]
        ds[i, j] = p[i, j] * (dp[i, j] - delta[i])
        dq' = dq + ds k         dk' = dk + ds^T q      dv' = dv + p^T dout

    with `delta[i] = sum_d dout[i, d] * out[i, d] - dlse[i]` (Dao, 2022; the
    gradient that arrives through lse is the second term). lse is in units of
    log2; with `natural` it is not, and p = exp(min(scale * s - lse, 0)), which
    takes one operation more for each score and rounds lse once less. The factor `scale` of dq and dk is applied where they are stored. Each of
    dq, dk and dv may be absent, so that one kernel can own the gradients of the
    queries and another those of keys and values; results come in the order of
    the destinations that are there.

    `orientation` is that of `varlen.online_attn`. Shapes for M queries and N
    keys: q and dq are M x D, dout is M x Dv, k and dk are N x D, v and dv are
    N x Dv, in either orientation: the scores read the rows of q and dout as
    columns where they have to, the other products read them as rows, and a tile
    that lies in memory twice, once each way, is still one tile. lse and delta
    are M x 1 for `qk`, 1 x M for `kq`. `limits`, `seen` and `at` are
    those of `varlen.online_attn`: where a key is not visible p and ds are 0,
    whatever lse, delta and dp are there. A query without a key, whose lse is
    -inf, sees none or has +inf here.

    With a `score` region p is that of the new scores and ds goes back through it.
    `dcaptures`, in the shape of lse, get what a query adds to the gradients of the
    captures that `wrt_captures` numbers, those of the region. Of tables among them `dtables`
    is the memory, H x T x M or views as of `tables`, to whose row of a query, in `drows`,
    is added what the query adds; a query with a negative row adds nothing. For a table of
    keys the memory is H x T, queries of a head have one row, and the key is the index.

    dq, dk, dv, lse and delta have the compute type, f32 or f64; q and k one
    type that accumulates in it, v and dout one such type too: p is rounded to
    the type of dout and ds to the type of q for the products they take part in.
    Every extent may be dynamic. With `scores_first` dp is written right behind the
    scores, so that it can be computed beside p; otherwise where ds needs it.

    ```mlir
    %dk1, %dv1 = varlen.online_attn_grad kq
        ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<?x64xf32>,
            tensor<?x48xf32>, tensor<32x48xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%begin, %end)
        dk(%dk : tensor<?x64xf32>) dv(%dv : tensor<?x48xf32>) scale 0.125
    ```
  }];
  let arguments = !con((ins
    Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v, Varlen_Tile:$dout,
    Varlen_Tile:$lse, Varlen_Tile:$delta), inputs, sums, (ins UnitAttr:$scores_first));
  let assemblyFormat = "$orientation (`natural` $natural^)?" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `,` $dout `,` $lse `,` $delta `:`
      type($q) `,` type($k) `,` type($v) `,` type($dout) `,` type($lse) `,` type($delta) `)`
  }] # inputsFormat # sumsFormat;
}

//===----------------------------------------------------------------------===//
// online_attn_jvp_grad
//===----------------------------------------------------------------------===//

def Varlen_OnlineAttnJVPGradOp : Varlen_GradStepOp<"online_attn_jvp_grad", ["getTableArguments"]> {
  let summary = "The gradients of a block of queries and its tangents against a block of keys";
  let description = [{
    The gradients of one `varlen.online_attn_jvp` step, for the cotangents `dtout` of the
    tangent of out and, if it is there, `dout` of out. Probabilities are recomputed as in
    `varlen.online_attn_grad`, and tangents of scores as in `varlen.online_attn_jvp`:

        p[i, j] = exp2(min(c * s[i, j] - lse[i], 0))   c = scale * log2(e)
        ts[i, j] = scale * (sum_d tq[i, d] * k[j, d] + q[i, d] * tk[j, d])
        tp[i, j] = p[i, j] * (ts[i, j] - tlse[i])
        dp[i, j] = sum_d dtout[i, d] * v[j, d]
        tdp[i, j] = sum_d dtout[i, d] * tv[j, d] + dout[i, d] * v[j, d]
        ds[i, j] = p[i, j] * (dp[i, j] - delta[i])
        tds[i, j] = tp[i, j] * (dp[i, j] - delta[i]) + p[i, j] * (tdp[i, j] - tdelta[i])
        dq' = dq + tds k + ds tk        dk' = dk + tds^T q + ds^T tq
        dv' = dv + tp^T dtout + p^T dout

    lse, in units of log2 unless `natural`, and delta are the results of
    `varlen.online_statistics`, tdelta is the one of `varlen.online_tangent_statistics`; tlse
    is the tangent of lse. The factor `scale` of dq and dk is applied where they are stored.
    As there, each of dq, dk and dv may be absent.

    Shapes, orientations, `limits`, `seen` and `at` are those of `varlen.online_attn_grad`;
    tq, tk and tv have the types of q, k and v, dtout and dout one type, and tlse and tdelta
    have the type of lse. Where a key is not visible p, tp, ds and tds are 0, whatever else is
    there. For the products that they take part in p and tp are rounded to the type of dtout,
    ds and tds to the type of q.

    With a `score` region p is of the new scores, ts are their tangents, and ds and tds go
    back through it and its second derivative. `tcaptures` and the further `tables`, of the
    captures that `tangent_captures` numbers, are those of `varlen.online_attn_jvp`,
    `dcaptures`, `dtables` and `drows`, of `wrt_captures`, those of `varlen.online_attn_grad`:
    of captures that have tangents another step may add to the gradients.

    ```mlir
    %dq1, %dk1, %dv1 = varlen.online_attn_jvp_grad kq
        ins(%q, %k, %v, %tq, %tk, %tv, %dtout : tensor<32x64xf32>, tensor<?x64xf32>,
            tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>,
            tensor<32x48xf32>) dout(%dout : tensor<32x48xf32>)
        statistics(%lse, %delta, %tlse, %tdelta : tensor<1x32xf32>, tensor<1x32xf32>,
                   tensor<1x32xf32>, tensor<1x32xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%begin, %end)
        dq(%dq : tensor<32x64xf32>) dk(%dk : tensor<?x64xf32>) dv(%dv : tensor<?x48xf32>)
        scale 0.125
    ```
  }];
  let arguments = !con((ins
    Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v,
    Varlen_Tile:$tq, Varlen_Tile:$tk, Varlen_Tile:$tv,
    Varlen_Tile:$dtout, Optional<Varlen_Tile>:$dout,
    Varlen_Tile:$lse, Varlen_Tile:$delta, Varlen_Tile:$tlse, Varlen_Tile:$tdelta), inputs,
    (ins Variadic<Varlen_Tile>:$tcaptures), sums,
    (ins Varlen_WrtCapturesAttr:$tangent_captures));
  let assemblyFormat = "$orientation (`natural` $natural^)?" # atFormat # [{
    `ins` `(` $q `,` $k `,` $v `,` $tq `,` $tk `,` $tv `,` $dtout `:`
      type($q) `,` type($k) `,` type($v) `,` type($tq) `,` type($tk) `,` type($tv) `,`
      type($dtout) `)`
    (`dout` `(` $dout^ `:` type($dout) `)`)?
    `statistics` `(` $lse `,` $delta `,` $tlse `,` $tdelta `:`
      type($lse) `,` type($delta) `,` type($tlse) `,` type($tdelta) `)`
  }] # inputsFormat # [{
    (`tcaptures` `(` $tcaptures^ `:` type($tcaptures) `)`)?
  }] # sumsFormat;
}

#endif // VARLEN_STEP_OPS_TD
