//===- VarlenAttrs.td - Attributes of the varlen dialect ---*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_ATTRS_TD
#define VARLEN_ATTRS_TD

include "varlen/Dialect/Varlen/IR/VarlenDialect.td"
include "varlen/Dialect/Varlen/IR/VarlenInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Varlen_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Varlen_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def Varlen_Alignment : I32EnumAttr<"Alignment",
    "the corner of the (query, key) rectangle that the diagonal of a mask ends in", [
      I32EnumAttrCase<"BottomRight", 0, "bottom_right">,
      I32EnumAttrCase<"TopLeft", 1, "top_left">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}

def Varlen_Orientation : I32EnumAttr<"Orientation",
    "the order of the axes of a score tile", [
      I32EnumAttrCase<"QK", 0, "qk">,
      I32EnumAttrCase<"KQ", 1, "kq">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}
def Varlen_OrientationAttr
    : EnumAttr<Varlen_Dialect, Varlen_Orientation, "orientation">;

def Varlen_KVStorage : I32EnumAttr<"KVStorage",
    "the way a micro-kernel reads the keys and values of a kv block", [
      I32EnumAttrCase<"Copy", 0, "copy">,
      I32EnumAttrCase<"Pairs", 1, "pairs">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}

def Varlen_TileOrder : I32EnumAttr<"TileOrder",
    "where the elements of a tile lie in memory", [
      I32EnumAttrCase<"Rows", 0, "rows">,
      I32EnumAttrCase<"Columns", 1, "columns">,
      I32EnumAttrCase<"RowPairs", 2, "row_pairs">,
      I32EnumAttrCase<"ColumnPairs", 3, "column_pairs">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}
def Varlen_TileOrderAttr
    : EnumAttr<Varlen_Dialect, Varlen_TileOrder, "tile_order"> {
  let assemblyFormat = "`<` $value `>`";
}

def Varlen_QueryMemory : I32EnumAttr<"QueryMemory",
    "where a value of each query of a tile lies in memory", [
      I32EnumAttrCase<"Scratch", 0, "scratch">,
      I32EnumAttrCase<"Rows", 1, "rows">,
      I32EnumAttrCase<"Numbers", 2, "numbers">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}
def Varlen_QueryMemoryAttr
    : EnumAttr<Varlen_Dialect, Varlen_QueryMemory, "query_memory"> {
  let assemblyFormat = "`<` $value `>`";
}

def Varlen_Axis : I32EnumAttr<"Axis", "what the rows of a tile are", [
      I32EnumAttrCase<"Queries", 0, "queries">,
      I32EnumAttrCase<"Keys", 1, "keys">,
      I32EnumAttrCase<"Heads", 2, "heads">,
      I32EnumAttrCase<"Sequences", 3, "sequences">]> {
  let cppNamespace = "::mlir::varlen";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Mask
//===----------------------------------------------------------------------===//

def Varlen_MaskAttr : Varlen_Attr<"Mask", "mask", [
    DeclareAttrInterfaceMethods<Varlen_MaskAttrInterface>]> {
  let summary = "Which keys a query sees";
  let description = [{
    The query at position i of a sequence with Lq queries and Lk keys sees the
    keys j with `i + d - left <= j <= i + d + right`, where
    `d = Lk - Lq` (`bottom_right`) or `d = 0` (`top_left`). Both bounds are
    inclusive; -1 leaves a side open. Causal is `(-1, 0)`. Lengths are the used
    ones, and `q_offset` of `varlen.attn` is added to `d`.

    ```mlir
    #varlen.mask<full>
    #varlen.mask<causal>
    #varlen.mask<causal, top_left>
    #varlen.mask<window = (512, 0)>
    #varlen.mask<window = (128, -1), top_left>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "-1",
                           "keys before the diagonal, -1 for all">:$left,
    DefaultValuedParameter<"int64_t", "-1",
                           "keys after the diagonal, -1 for all">:$right,
    DefaultValuedParameter<"::mlir::varlen::Alignment",
                           "::mlir::varlen::Alignment::BottomRight",
                           "where the diagonal is">:$alignment);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static MaskAttr getFull(::mlir::MLIRContext *context) {
      return get(context, -1, -1, Alignment::BottomRight);
    }
    bool isCausal() const { return getLeft() < 0 && getRight() == 0; }
  }];
}

def Varlen_ChunkMaskAttr : Varlen_Attr<"ChunkMask", "chunk_mask", [
    DeclareAttrInterfaceMethods<Varlen_MaskAttrInterface>]> {
  let summary = "The keys up to a query, of its chunk of the sequence";
  let description = [{
    Keys are cut into chunks of `size`, the first of which begins at key 0. The
    query at position `p = i + d` sees the keys up to p of the chunk that p is in,
    with d as in `#varlen.mask`.

    ```mlir
    #varlen.chunk_mask<8192>
    #varlen.chunk_mask<8192, top_left>
    ```
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "keys in a chunk, up to 2^28">:$size,
    DefaultValuedParameter<"::mlir::varlen::Alignment",
                           "::mlir::varlen::Alignment::BottomRight",
                           "where the diagonal is">:$alignment);
  let assemblyFormat = "`<` $size (`,` $alignment^)? `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// CPU schedule
//===----------------------------------------------------------------------===//

def Varlen_CPUScheduleAttr : Varlen_Attr<"CPUSchedule", "cpu_schedule", [
    DeclareAttrInterfaceMethods<Varlen_ScheduleAttrInterface, ["getPartSizes"]>]> {
  let summary = "Tile sizes and register blocking of one attention on a CPU";
  let description = [{
    Put on `varlen.attn` as the discardable attribute `varlen.schedule` by
    `varlen-assign-schedule`, handed on by `varlen-tile-attn` and
    `convert-varlen-to-cpu`, removed by `varlen-place-tiles`.

    Keys are the rows of a score tile and queries its lanes. A panel is
    `vectors * lanes` queries; the micro-kernel keeps `rows x vectors`
    accumulators of `lanes` elements in registers. A work tile is up to
    `panels` panels; they share a contiguous copy of each kv block of `kv_block`
    keys. `kv` says what is in it: `copy`, elements of the compute type, or
    `pairs`, pairs of 16-bit elements side by side, as dot-product instructions
    want them.

    A part of the keys that a tile visits (`varlen-split-kv`) has `part` kv blocks, 16 by
    default, or `few_part`, by default 8, where queries are few. With 0 for both there
    are no parts, and gradients have none. Results depend on these numbers, by rounding.

    ```mlir
    #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 3,
                         kv_block = 64, kv = copy>
    ```
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "queries in a vector: a power of two up to 64">:$lanes,
    AttrParameter<"int64_t", "vectors in a panel, up to 32">:$vectors,
    AttrParameter<"int64_t", "keys that a micro-kernel takes at once: 1, 2, 4 or 8">:$rows,
    AttrParameter<"int64_t", "most panels in a work tile">:$panels,
    AttrParameter<"int64_t", "keys in a kv block, a multiple of 8">:$kv_block,
    AttrParameter<"::mlir::varlen::KVStorage",
                  "how a micro-kernel reads a kv block">:$kv,
    DefaultValuedParameter<"int64_t", "::mlir::varlen::kPartBlocks",
                           "kv blocks in a part">:$part,
    DefaultValuedParameter<"int64_t", "::mlir::varlen::kFewPartBlocks",
                           "kv blocks in a part, for few queries">:$few_part);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Queries in a panel.
    int64_t getPanelSize() const { return getLanes() * getVectors(); }
    /// Queries in a work tile.
    int64_t getBlockM() const { return getPanelSize() * getPanels(); }
  }];
}

//===----------------------------------------------------------------------===//
// GPU schedule
//===----------------------------------------------------------------------===//

def Varlen_GPUScheduleAttr : Varlen_Attr<"GPUSchedule", "gpu_schedule", [
    DeclareAttrInterfaceMethods<Varlen_ScheduleAttrInterface, ["getPartSizes"]>]> {
  let summary = "Tile sizes and pipeline depth of one attention on a GPU";
  let description = [{
    Put on `varlen.attn` as `varlen.schedule` by `varlen-assign-schedule`, used
    up by `varlen-tile-attn`.

    A CTA of `warps` warps takes tiles of `block_m` queries, a multiple of 16 to
    each warp, and visits kv blocks of `kv_block` keys, a multiple of 16, of which
    `stages` have room in shared memory: one is read while the others are
    fetched. `ctas` CTAs share a multiprocessor. With a `slack`, warps of a CTA may be
    as many blocks apart; as many stages fewer are fetched ahead. With a `lag` of 1, at
    most the slack, a block is multiplied into the accumulators while the exponentials
    of the next one are computed. With 2 `rings` the rows of a block that are of one
    kind, as its keys or its values, have slots of their own, which can be free while
    the others are read; a schedule with a lag has 1. In the forward, with a
    `rescale_threshold` accumulators are rescaled only where a maximum would be more than
    that, in units of log2, too small (see `varlen.online_attn`). Of gradients: with
    `scores_first`, 1, the gradient of p is computed beside p, not before the scores. In the
    forward, with a `few_part` the keys of a sequence with few queries are cut into parts of
    that many kv blocks, which CTAs share, and whose states one more kernel merges (split-KV).
    With `producers` so many more warps of the CTA do nothing but copy, as far ahead as
    there are stages, and the rows of the next tile while results of one are written; the target
    needs mbarriers that threads can wait for (sm_90 and later). With `maps`, 1, they copy whole
    blocks and tiles of 16-bit rows by tensor maps that each CTA makes first (TMA; sm_90a), if
    cu_seqlens are i32. Of dk and dv in one kernel: with
    `five_products`, 1, it also makes dq, which tiles of keys add up in the order of tiles
    (`varlen.add_in_order`), where two kernels compute the scores and the gradient of p twice.

    ```mlir
    #varlen.gpu_schedule<warps = 4, block_m = 128, kv_block = 64, stages = 2, ctas = 2>
    ```
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "warps in a CTA">:$warps,
    AttrParameter<"int64_t", "queries in a tile">:$blockM,
    AttrParameter<"int64_t", "keys in a kv block">:$kvBlock,
    AttrParameter<"int64_t", "kv blocks in shared memory">:$stages,
    AttrParameter<"int64_t", "CTAs on a multiprocessor">:$ctas,
    DefaultValuedParameter<"int64_t", "0", "blocks that warps may be apart">:$slack,
    DefaultValuedParameter<"int64_t", "0", "blocks that accumulators are behind">:$lag,
    DefaultValuedParameter<"int64_t", "1", "rings of slots">:$rings,
    DefaultValuedParameter<"int64_t", "0",
      "log2 that a maximum may be too small">:$rescale_threshold,
    DefaultValuedParameter<"int64_t", "0",
      "whether scores come before the gradient of p">:$scores_first,
    DefaultValuedParameter<"int64_t", "0",
      "kv blocks in a part of the keys of few queries">:$few_part,
    DefaultValuedParameter<"int64_t", "0", "warps that only copy">:$producers,
    DefaultValuedParameter<"int64_t", "0", "whether these copy by tensor maps">:$maps,
    DefaultValuedParameter<"int64_t", "0",
      "whether tiles of keys add up dq as well">:$five_products);
  let assemblyFormat = [{
    `<` `warps` `=` $warps `,` `block_m` `=` $blockM `,` `kv_block` `=` $kvBlock
    `,` `stages` `=` $stages `,` `ctas` `=` $ctas
    (`,` struct($slack, $lag, $rings, $rescale_threshold, $scores_first, $few_part,
                $producers, $maps, $five_products)^)? `>`
  }];
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "const ::mlir::varlen::GPUTiles &":$tiles), [{
    return $_get($_ctxt, tiles.warps, tiles.blockM, tiles.kvBlock, tiles.stages,
                 tiles.ctas, tiles.slack, tiles.lag, tiles.rings,
                 tiles.rescaleThreshold, tiles.scoresFirst, tiles.fewPart,
                 tiles.producers, tiles.maps, tiles.fiveProducts);
  }]>];
  let extraClassDeclaration = [{
    ::mlir::varlen::GPUTiles getTiles() const {
      return {getWarps(), getBlockM(), getKvBlock(), getStages(),
              getCtas(),  getSlack(),  getLag(),     getRings(),
              getRescaleThreshold(), getScoresFirst(), getFewPart(),
              getProducers(), getMaps(), getFiveProducts()};
    }
  }];
}

def Varlen_GPUGradScheduleAttr : Varlen_Attr<"GPUGradSchedule", "gpu_grad_schedule", [
    DeclareAttrInterfaceMethods<Varlen_ScheduleAttrInterface>]> {
  let summary = "Tile sizes of the kernels that compute gradients on a GPU";
  let description = [{
    Put on `varlen.attn_grad` as `varlen.schedule` by `varlen-assign-schedule`,
    used up by `varlen-tile-attn`.

    `dq` is the kernel in which tiles of `block_m` queries visit kv blocks. In
    those of `dk` and `dv` tiles of `kv_block` keys, a multiple of 16 to each
    warp, visit blocks of `block_m` queries, of which `stages` have room in shared
    memory. Without `dv` one kernel computes dk and dv; with it, each has its own,
    whose accumulators need half the registers. If `dk` has `five_products` no kernel is made of `dq`,
    whose tiles are those of statistics alone.

    ```mlir
    #varlen.gpu_grad_schedule<
      dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
      dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::mlir::varlen::GPUScheduleAttr", "dq">:$dq,
    AttrParameter<"::mlir::varlen::GPUScheduleAttr", "dk, and dv if it has none">:$dk,
    OptionalParameter<"::mlir::varlen::GPUScheduleAttr", "dv">:$dv);
  let assemblyFormat = "`<` `dq` `=` $dq `,` `dk` `=` $dk (`,` `dv` `=` $dv^)? `>`";
  let genVerifyDecl = 1;
}

#endif // VARLEN_ATTRS_TD
