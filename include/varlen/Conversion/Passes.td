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
    it. Lists that the runtime refuses make zero tiles. Each mask becomes a
    private function, which the runtime calls for the keys that a tile sees.
    `varlen.split_tiles` and `varlen.append_runs` become calls of the functions of these names.

    *Requires*: functions on memrefs.

    *Guarantees*: none of these operations is left. Lists whose stride is not known
    to be 1 are copied for the call. A mask that hides nothing has no function.

    *Numerics*: none.

    ```mlir
    %tiles = varlen.work_tiles %cu, %cu rows(%t, %t) heads(%h, %g)
        mask #varlen.mask<causal> block_m 64 : ... -> memref<?x10xi64>
    ```
    becomes
    ```mlir
    %slot = llvm.alloca %c1 x !llvm.ptr : (i64) -> !llvm.ptr
    %mask = func.constant @mask_bounds : (i64, i64, i64, i64, i64, !llvm.ptr) -> ()
    %n = call @varlen_work_tiles(%cu_address, %cu_size, ..., %mask_address, %slot) : (...) -> i64
    %count = arith.maxsi %n, %c0 : i64
    %list = llvm.load %slot : !llvm.ptr -> !llvm.ptr
    %tiles = builtin.unrealized_conversion_cast ... to memref<?x10xi64>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Lists requested of the runtime">];
}

def ConvertVarlenToCPU : Pass<"convert-varlen-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Make parallel loops of a CPU of tile loops";
  let description = [{
    Each `varlen.for_tiles` becomes a parallel loop over the list that
    `varlen.work_tiles` makes. A tile is cut into panels of as many queries as
    the micro-kernel of its `#varlen.cpu_schedule` has lanes, and its values into
    scratch: q as columns, packed when a panel begins, and the state, which goes from
    block to block and from panel to panel as tensors. Rows move between memory and scratch by
    `varlen.read_rows`, `varlen.write_rows` and `varlen.fill_rows`, which `varlen-expand-rows`
    writes as loops over views, as it does rows of the list (`varlen.read_work`). What is
    computed of each query by itself before and after its blocks, states that begin, move and
    become one, are `varlen.for_queries`, and the keys that queries see `varlen.key_limits`,
    which `varlen-expand-queries` writes as loops.

    A block of keys is copied once for all panels, with zeros behind its last
    key; where a tile has one panel it is read in place if nothing has to be
    converted, and the next block is prefetched. Few queries read keys where they are
    (`varlen.load_rows`), in pages of a multiple of 8 rows, too, and their products ask for rows as
    they go. With `kv = pairs` values are
    interleaved two by two. A panel takes one step for each block, on the keys
    that some query of it sees, with limits, and with `seen`, those that all see;
    one that is mostly empty (the last of a sequence) a step for each vector of
    its queries.

    The two forms of a `varlen.if_few` are the branches of an `scf.if`. A tile has few
    queries if its sequence has as many pairs as the first form at most, or half of that
    where keys are few. There queries are the rows of tiles, without panels: the steps have
    orientation `qk` and dynamic extents, and read keys and values where they are. The
    schedule is an attribute of the branch with panels; a loop in one form has panels only.

    A tile of rows that belong to no sequence writes the
    `otherwise` of its writes.

    Tiles run at once. Of those with more than an eighth of all scores the parts of a
    `varlen.for_parts` are items of the list (`varlen.split_tiles`); their states are
    merged in the order in which a thread does that processes all parts. A sequence with
    as much is processed after all others: it is cut to a grid of ranges of queries and
    blocks of keys, whose diagonals run one after the other.

    A tile of sequences packs q and dout before its first block, by columns, which
    scores read, and by rows, which dk and dv read; it sums dq in scratch, as long
    as the longest sequence needs, and takes a step for each block and each panel
    that sees it. Keys that are in no such tile are the rows without a key of a list
    whose rows are keys. Statistics of rows are computed for a vector of queries at
    once, all heads of a token together, after the product of each row with its
    own; a head sums the terms of its rows in their order.

    Each constant of a function with tile loops is there once, at its beginning.

    *Requires*: loops in the block of their batch, each but those over heads with a
    `#varlen.cpu_schedule`. Each operation of a loop is converted by itself; one that
    is not listed here is an error.
    Over queries: reads, `varlen.row_dot`, operations on what these return that
    implement `Varlen_QueryTileOpInterface`, writes, and at most one loop over blocks
    of `kv_block` keys, with reads and one step in orientation kq, as `varlen.online_attn`,
    whose sums are numbers or columns of queries and begin with one operation that implements
    `Varlen_StateInitOpInterface`; tiles have `block_m` queries then. That loop may be the
    state of a part of a `varlen.for_parts`, with one operation that implements
    `Varlen_QueryTileOpInterface` under `merge`.
    Over sequences: reads, of numbers those of `varlen.rows`, `varlen.clear` before the
    blocks, writes with 0 for rows that are not in use, and one loop over blocks of
    `kv_block` keys, with reads, `varlen.clear`, one step without a state in orientation kq,
    as `varlen.online_attn_grad`, of which any gradients may be absent, and
    `varlen.online_attn_jvp_grad`, and writes of dk and dv. All sums begin with a
    fill of 0, those of keys at the block; those of queries go from block to block, with
    as many rows as `varlen.size` says.
    Over heads: one `varlen.sum_rows`, and nothing else.
    *Guarantees*: no operation of the tile loops is left. Keys past the end of a
    sequence are zeros in scratch, never a neighbour's rows; the rows of score
    tiles are multiples of 8. Each row is summed in an order that its sequence alone
    decides, so results do not depend on threads or on the rest of the batch. An extent that breaks a
    rule is reported to the runtime, and nothing is written then.
    *Numerics*: rows are converted to the type of their tile as they are packed;
    out is multiplied by 1 / l, then rounded. What rounding loses of the sum of a
    sink's gradient is carried along.

    ```mlir
    varlen.for_tiles "attn" %t of queries(64) in %batch attributes {varlen.schedule = ...} {
      %q = varlen.read %Q at %t : ...
      %s:3 = varlen.for_blocks %b of keys(128) meeting %t : ... iter_args(...) -> (...) {
    ```
    becomes
    ```mlir
    %tiles = varlen.work_tiles %cu_q, %cu_k rows(%tq, %tk) heads(%hkv, %group) mask <full> block_m 64 : ...
    scf.forall (%i) in (%n) {
      ...
      scf.for %k0 = %k_begin to %k_end step %c128 {
        scf.for %p = %c0 to %panels step %c1 {
          scf.if %any_visible {
            %r:3 = varlen.online_attn kq ins(%q, %k, %v : ...) limits(%lo, %hi, %k0 : ...) seen(%from, %to) ...
            bufferization.materialize_in_destination %r#0 in restrict writable %acc
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Loops over tiles made parallel loops">];
}

def ConvertTileListsToGPU
    : Pass<"convert-tile-lists-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Make kernels of the lists of tiles of a batch";
  let description = [{
    A `varlen.list_tiles` becomes device memory and kernels that check cu_seqlens and make the list:
    one CTA sorts the sequences of a short list; of a long one each step is a launch. The
    work that its region tells of is counted by a warp for each tile. What is wrong goes to
    the status record of the device (GPU.h). `varlen.read_tile` and `varlen.read_sequence` become
    loads.

    *Requires*: lists in host code.

    *Guarantees*: none of these operations is left, nor a `varlen.batch` that they alone
    used. The host waits for no kernel.

    *Numerics*: none.

    ```mlir
    %sequence, %tile, %kv_head = varlen.read_tile %list[%item] heads(%c4) : memref<?x2xi32>
    ```
    becomes
    ```mlir
    %row = arith.divui %item, %c4_i32 : i32
    %at = arith.index_cast %row : i32 to index
    %number = memref.load %list[%at, %c0] : memref<?x2xi32>
    %sequence = arith.index_cast %number : i32 to index
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def ConvertVarlenToKernel
    : Pass<"convert-varlen-to-kernel", "::mlir::ModuleOp"> {
  let summary = "Make kernels of a GPU of tile loops and of varlen.append";
  let description = [{
    Each `varlen.for_tiles` becomes a launch of a persistent kernel, whose CTAs
    take tiles from a list until it is through, by a counter if they visit blocks. The list is a
    `varlen.list_tiles`, one for all loops of a batch with tiles of one type. If a score region of
    these loops hides blocks, as far as intervals tell and by numbers that are in memory before the loops
    run, its region counts those that a tile visits, so that the longest is first.

    Rows that are read at a tile for its blocks are copied to shared memory before
    these, rows of a block to a slot of a ring, or each read to one of its own, `stages` - 1 -
    `slack` blocks ahead, and a step's tiles are views of these. Rows of a tile that are used outside of its
    blocks, and numbers of rows, go to registers. The loop over
    blocks becomes two: one over the blocks that the mask or the end of a sequence
    cuts, whose steps have limits, and one over the others. With slack or several rings, a
    warpgroup that has no row in use takes no step. Of queries `by_head`
    the blocks of one head follow those of another. `varlen.rows` becomes device
    memory. With `producers` such warps copy (`kernel.roles`), and send the number of each item
    with the rows of its tile.

    All threads of a CTA, or all that compute, write the zeros of a `varlen.clear`, before a
    barrier, that of the first block if there are no producers; steps of a loop over tiles of queries may add
    to the rows that it names. A loop over heads, one `varlen.sum_rows`, gives each sum a
    warp.

    A `varlen.append` becomes kernels that check lists and tables, one if there are few rows, and
    one that writes the new rows if nothing is wrong, a warp for each row and head.

    *Requires*: loops in the block of their batch, each but those over heads with a
    `#varlen.gpu_schedule`; in one block of a loop reads, pure operations on tiles,
    at most one loop over blocks, `varlen.clear` before it, and writes. Another form is
    an error.
    *Guarantees*: no operation of the tile loops is left but the batch with what reads it
    (see `convert-tile-lists-to-gpu`), steps, and what is computed before and after them, on tiles. Rows that are not in use are zeros
    in shared memory, never a neighbour's. Each row is written by one CTA.
    An append writes nothing where something is wrong.
    *Numerics*: what is written is multiplied by `times` in the type of the value
    and rounded once; dsink and the rows of a head are summed by 32 lanes, each in the
    order of rows. What rounding loses of a lane's sum is carried along.

    ```mlir
    varlen.for_tiles "attn" %t of queries(64) in %batch attributes {varlen.schedule = ...} {
      %q = varlen.read %Q at %t : ...
      %s:3 = varlen.for_blocks %b of keys(32) meeting %t : ... iter_args(...) -> (...) {
    ```
    becomes
    ```mlir
    gpu.launch ... module(@kernels) function(@f_attn) {
      %q = kernel.alloc : memref<1x64x64xbf16, ...>
      %ring = kernel.ring stages(2) : <memref<1x32x64xbf16, ...>, ...>
      %next = kernel.alloc : memref<1xi64, ...>
      scf.while (%entry = %block) : (i32) -> i32 {
        kernel.copy %Q rows(%row, %head, %first, %group) valid(%n) to %q
        %s:3 = scf.for %i = %c0 to %masked step %c1 iter_args(...) {
          %slot:2 = kernel.ring.wait %ring[%i] younger 0
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::varlen::kernel::KernelDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Loops over tiles made kernels">,
    Statistic<"numAppends", "appends", "Appends made kernels">];
}

def VarlenLaunchLinalg : Pass<"varlen-launch-linalg", "::mlir::ModuleOp"> {
  let summary = "Kernels of linalg on memrefs, and of loops that access memory";
  let description = [{
    Each linalg operation on memrefs becomes a launch of a kernel. An element of
    its results has an owner, which computes all of it: a thread, or a warp where
    the operation reduces along contiguous memory, whose lanes take every 32nd
    term and are combined in a fixed tree. There are no atomic operations. Owners
    that are neighbours own neighbours in memory. A fill of new memory that a
    reduction or a contraction continues is left out: its number is where they
    start.

    A contraction of f16, bf16 or f32 into f32 runs on tensor cores, if it has one
    loop of rows, one of columns and one that is contracted, in which every operand
    is contiguous along one, static and a multiple of 16 there: a CTA owns a tile of
    up to 64 x 64 of the result, and `kernel` operations multiply blocks of up to 64
    steps. Factors of f32 are three of bf16 each (`kernel-split-f32`).

    Copies are kernels too. So are loops, branches and stores of one element
    outside of any linalg operation: a thread has an iteration of a parallel loop
    (`scf.forall`, `scf.parallel`), or of a loop of a nest whose index is in the same
    dimension of all accesses to what is stored, with all loops around it. One thread
    runs any other loop that loads or stores elements, with a remark. A loop of operations that are kernels
    themselves stays on the host, and so, on its stack, does memory for what host
    code alone keeps: shapes, and who owns which buffer.

    *Requires*: linalg on memrefs. *Guarantees*: no linalg on memrefs and no copy
    is left outside of kernels. Extents may be 0 or not known. *Numerics*: a
    reduction that a warp has, and a contraction on tensor cores, sum in another
    order, always the same one for the same extents, whatever the other rows are.
    An infinity among factors of f32 on tensor cores gives NaN.

    ```mlir
    linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<?x64xf32>) outs(%y : memref<?xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
    ```
    becomes
    ```mlir
    gpu.launch ... module(@kernels) function(@f_generic) {
      scf.for %i = %warp to %n step %warps {
        %0 = scf.for %j = %lane to %c64 step %c32 iter_args(%sum = %zero) -> (f32) {
          %a = memref.load %x[%i, %j] : memref<?x64xf32>
          ...
        }
        %other, %valid = gpu.shuffle xor %0, %c16, %c32 : f32
        ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::varlen::kernel::KernelDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numLaunched", "launched", "Operations and loops made kernels">,
    Statistic<"numTiled", "tiled", "Of them, contractions on tensor cores">];
}

def VarlenCheckHostCode : Pass<"varlen-check-host-code", "::mlir::ModuleOp"> {
  let summary = "An error for host code that would access device memory";
  let description = [{
    In a function for a GPU every buffer is in device memory, which only kernels
    can access. What is left outside of kernels and accesses memory has no code
    for a GPU: the first such operation is named.

    *Requires*: attention is tiled. *Guarantees*: the above. *Numerics*: none.

    ```mlir
    func.func @f(%x: memref<?xf32>) {
      gpu.launch ... { %a = memref.load %x[%i] : memref<?xf32> }  // in a kernel
      %b = memref.load %x[%i] : memref<?xf32>                     // an error
    ```
  }];
}

#endif // VARLEN_CONVERSION_PASSES_TD
