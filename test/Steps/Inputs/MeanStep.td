//===- MeanStep.td - A step that another project adds ------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Online softmax that also returns the mean of the scores that a query sees: its
// state has two more numbers of each query, their sum and their count.
//
//===----------------------------------------------------------------------===//

#ifndef MEAN_STEP_TD
#define MEAN_STEP_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "varlen/Dialect/Varlen/IR/VarlenAttrs.td"
include "varlen/Dialect/Varlen/IR/VarlenInterfaces.td"
include "varlen/Dialect/Varlen/IR/VarlenOpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenTypes.td"

def Mean_Dialect : Dialect {
  let name = "mean";
  let cppNamespace = "::mean";
  let dependentDialects = ["::mlir::varlen::VarlenDialect"];
}

class Mean_Op<string mnemonic, list<Trait> traits> : Op<Mean_Dialect, mnemonic, traits>;

def Mean_InitOp : Mean_Op<"init", [
    Pure, AllTypesMatch<["m", "l", "total", "count"]>,
    DeclareOpInterfaceMethods<Varlen_StateInitOpInterface>]> {
  let summary = "The state of queries that have processed no key";
  let arguments = (ins F64Attr:$scale);
  let results = (outs Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Varlen_Tile:$total,
                      Varlen_Tile:$count);
  let assemblyFormat = "`scale` $scale attr-dict `:` type($acc) `,` type($m)";
}

def Mean_StepOp : Mean_Op<"step", [
    Pure, AttrSizedOperandSegments, InferTypeOpAdaptor, AllTypesMatch<["m", "l", "total", "count"]>,
    DeclareOpInterfaceMethods<Varlen_StepOpInterface, ["getScoreBody", "createMerge"]>,
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "A block of queries against a block of keys";
  let arguments = (ins
    Varlen_Tile:$q, Varlen_Tile:$k, Varlen_Tile:$v,
    Optional<Varlen_Tensor<I32, 2>>:$lo, Optional<Varlen_Tensor<I32, 2>>:$hi, Optional<I32>:$k0,
    Optional<Varlen_TileType>:$queries, Optional<Varlen_TileType>:$keys,
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Varlen_Tile:$total, Varlen_Tile:$count,
    F64Attr:$scale, Varlen_OrientationAttr:$orientation);
  let results = (outs Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out,
                      Varlen_Tile:$total_out, Varlen_Tile:$count_out);
  let assemblyFormat = [{
    $orientation (`at` `(` $queries^ `,` $keys `:` type($queries) `,` type($keys) `)`)?
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    (`limits` `(` $lo^ `,` $hi `,` $k0 `:` type($lo) `,` type($hi) `,` type($k0) `)`)?
    `outs` `(` $acc `,` $m `,` $l `,` $total `,` $count `:` type($acc) `,` type($m) `)`
    `scale` $scale attr-dict
  }];
}

class Mean_QueryTileOp<string mnemonic, list<Trait> traits>
    : Mean_Op<mnemonic, !listconcat([
        Pure, DeclareOpInterfaceMethods<Varlen_QueryTileOpInterface, ["setRounded"]>], traits)> {
  dag attributes = (ins F64Attr:$scale, Varlen_OrientationAttr:$orientation, UnitAttr:$rounded);
}

def Mean_MergeOp : Mean_QueryTileOp<"merge", [
    AllTypesMatch<["acc", "more_acc", "acc_out"]>,
    AllTypesMatch<["m", "l", "total", "count", "more_m", "more_l", "more_total", "more_count",
                   "m_out", "l_out", "total_out", "count_out"]>]> {
  let summary = "The state of queries that have processed the keys of two states";
  let arguments = !con((ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Varlen_Tile:$total, Varlen_Tile:$count,
    Varlen_Tile:$more_acc, Varlen_Tile:$more_m, Varlen_Tile:$more_l, Varlen_Tile:$more_total,
    Varlen_Tile:$more_count), attributes);
  let results = (outs Varlen_Tile:$acc_out, Varlen_Tile:$m_out, Varlen_Tile:$l_out,
                      Varlen_Tile:$total_out, Varlen_Tile:$count_out);
}

def Mean_FinishOp : Mean_QueryTileOp<"finish", [
    AllTypesMatch<["m", "l", "total", "count", "lse", "mean"]>]> {
  let summary = "Output, lse and the mean score of queries that have processed their keys";
  let arguments = !con((ins
    Varlen_Tile:$acc, Varlen_Tile:$m, Varlen_Tile:$l, Varlen_Tile:$total, Varlen_Tile:$count),
    attributes);
  let results = (outs Varlen_Tile:$out, Varlen_Tile:$lse, Varlen_Tile:$mean);
  let assemblyFormat = [{
    $orientation $acc `,` $m `,` $l `,` $total `,` $count `scale` $scale (`rounded` $rounded^)?
    attr-dict `:` type($acc) `,` type($m) `->` type($out)
  }];
}

#endif // MEAN_STEP_TD
