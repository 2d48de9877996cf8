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

    *Requires*: functions on memrefs.

    *Guarantees*: no varlen.work_tiles is left. Lists whose stride is not known
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
    scratch: q as columns, packed when a panel begins, the state of the loop over
    blocks where it stays until that loop ends. Rows move between memory and scratch by
    `linalg.copy`, `linalg.fill` and `linalg.transpose` on views, one view for all rows
    where a token has one head in the tile, else one for each token.

    A block of keys is copied once for all panels, with zeros behind its last
    key; where a tile has one panel it is read in place if nothing has to be
    converted, and the next block is prefetched. With `kv = pairs` values are
    interleaved two by two. A panel takes one step for each block, on the keys
    that some query of it sees, with limits, and with `seen`, those that all see;
    one that is mostly empty (the last of a sequence) a step for each vector of
    its queries.

    A tile of few queries (up to half a vector; with few keys, a quarter) takes the
    other branch of an `scf.if`, without panels: its queries are the rows of tiles,
    the steps have orientation `qk` and dynamic extents, and read keys and values
    where they are. The schedule is an attribute of the branch with panels.

    A tile of rows that belong to no sequence writes the
    `otherwise` of its writes.

    Tiles run at once, but those with more than an eighth of all scores, which have
    turns of their own after all others: threads process the parts of a
    `varlen.for_parts`, then one merges their states, in the order in which a thread
    does that processes all parts; a sequence is cut to a grid of ranges
    of queries and blocks of keys, whose diagonals run one after the other.

    A tile of sequences packs q and dout before its first block, by columns, which
    scores read, and by rows, which dk and dv read; it sums dq in scratch, as long
    as the longest sequence needs, and takes a step for each block and each panel
    that sees it. Keys that are in no such tile are the rows without a key of a list
    whose rows are keys. Statistics of rows are computed for a vector of queries at
    once, all heads of a token together, after the product of each row with its
    own; a head sums the terms of its rows in their order.

    *Requires*: loops in the block of their batch, each but those over heads with a
    `#varlen.cpu_schedule`. Each operation of a loop is converted by itself; one that
    is not listed here is an error.
    Over queries: reads, `varlen.row_dot`, operations on what these return that
    implement `Varlen_QueryTileOpInterface`, writes, and at most one loop over blocks
    of `kv_block` keys, with reads and one `varlen.online_attn kq`, whose state begins
    with `varlen.online_init`; tiles have `block_m` queries then. That loop may be the
    state of a part of a `varlen.for_parts`, with one operation that implements
    `Varlen_QueryTileOpInterface` under `merge`.
    Over sequences: reads, of numbers those of `varlen.rows`, `varlen.clear` before the
    blocks, writes with 0 for rows that are not in use, and one loop over blocks of
    `kv_block` keys, with reads, `varlen.clear`, one `varlen.online_attn_grad kq`, of
    which any gradients may be absent, and writes of dk and dv. All sums begin with a
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

def ConvertVarlenToKernel
    : Pass<"convert-varlen-to-kernel", "::mlir::ModuleOp"> {
  let summary = "Make kernels of a GPU of tile loops";
  let description = [{
    Each `varlen.for_tiles` becomes a launch of a persistent kernel, whose CTAs
    take tiles from a list until it is through, by a counter if they visit blocks. The list is made on the device,
    once for all loops of a batch with tiles of one type, by kernels that check
    cu_seqlens: the host does not wait for them. If a score region of these loops hides
    blocks, as far as intervals tell and by numbers that are in memory before the loops
    run, a kernel counts those that each tile visits, so that the longest is first.

    Rows that are read at a tile for its blocks are copied to shared memory before
    these, rows of a block to a slot of a ring, or each read to one of its own, `stages` - 1 -
    `slack` blocks ahead, and a step's tiles are views of these. Rows of a tile that are used outside of its
    blocks, and numbers of rows, go to registers. The loop over
    blocks becomes two: one over the blocks that the mask or the end of a sequence
    cuts, whose steps have limits, and one over the others. With slack or several rings, a
    warpgroup that has no row in use takes no step. Of queries `by_head`
    the blocks of one head follow those of another. `varlen.rows` becomes device
    memory.

    All threads of a CTA write the zeros of a `varlen.clear`, before the barrier that
    the first block of a tile is waited for with; steps of a loop over tiles of queries may add
    to the rows that it names. A loop over heads, one `varlen.sum_rows`, gives each sum a
    warp.

    *Requires*: loops in the block of their batch, each but those over heads with a
    `#varlen.gpu_schedule`; in one block of a loop reads, pure operations on tiles,
    at most one loop over blocks, `varlen.clear` before it, and writes. Another form is
    an error.
    *Guarantees*: no operation of the tile loops is left but steps, and what is
    computed before and after them, on tiles. Rows that are not in use are zeros
    in shared memory, never a neighbour's. Each row is written by one CTA.
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
    Statistic<"numConverted", "converted", "Loops over tiles made kernels">];
}

def ConvertNVVMToExecutor
    : Pass<"convert-nvvm-to-executor", "::mlir::ModuleOp"> {
  let summary = "Make host functions of GPU kernels, for the executor";
  let description = [{
    Kernels in the llvm and nvvm dialects become functions of the host that do
    the same in the executor (Executor/Device.h), thread by thread: every nvvm
    operation is a call, every access to shared and global memory has a check in
    front of it, the accumulators of wgmma are handles, shared globals are
    offsets. What can be a hazard carries the index of its source location.

    The gpu.module becomes a gpu.binary that names an image: the table of
    kernels and locations, which a constructor registers with the runtime
    (Runtime/GPUExecutor.h). Host code, with its gpu.launch_func, is the same as
    for a GPU.

    *Requires*: gpu.modules of llvm.func and llvm.mlir.global, in the llvm and
    nvvm dialects, with kernel.wgmma and kernel.wgmma_wait.

    *Guarantees*: no gpu.module and no nvvm operation is left. An operation or
    an intrinsic that the executor does not have is an error that names it, and
    so is inline PTX.

    *Numerics*: matrix products accumulate in f32 in the order of k; ex2, lg2,
    rcp and their like are those of the host's libm.

    ```mlir
    gpu.module @m {
      llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
        nvvm.barrier0
        ...
    ```
    becomes
    ```mlir
    llvm.func internal @varlen_sim.m.k(%out: !llvm.ptr<1>) {
      llvm.call @varlen_sim_barrier(%c0, %c0, %site) : (i32, i32, i32) -> ()
      ...
    gpu.binary @m [#gpu.object<#nvvm.target, bin = "varlen-executor:m...">]
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Kernels made host functions">];
}

def VarlenAttachTarget : Pass<"varlen-attach-target", "::mlir::ModuleOp"> {
  let summary = "Say which chip the kernels of a module are for";
  let description = [{
    Puts an `#nvvm.target` on every `gpu.module`. `ptx` is ten times the version
    of PTX that is written, and so of the drivers that can read it. Kernels with
    a `nvvm.maxntid` get a `nvvm.maxnreg`, what one CTA of that size can have. A
    `llvm.loop_annotation` that a branch has kept from a loop of `scf` becomes
    the annotation that LLVM reads.

    *Requires*: nothing. *Guarantees*: the above; an error for a chip that is
    not in the table of GPUs and for a version of PTX that does not know it; with
    `needs-toolkit` one for a CUDA toolkit that `gpu-module-to-binary` would not
    take. *Numerics*: none.

    ```mlir
    gpu.module @kernels { ... }
    ```
    becomes
    ```mlir
    gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx90">] { ... }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"",
           "GPU to generate code for, a name of its table">,
    Option<"ptx", "ptx", "int64_t", "90", "Version of PTX, times 10">,
    Option<"needsToolkit", "needs-toolkit", "bool", "false",
           "Check the toolkit that CUDA_ROOT, CUDA_HOME or CUDA_PATH names, if one does">];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

def VarlenAssemble : Pass<"varlen-assemble", "::mlir::ModuleOp"> {
  let summary = "PTX to machine code, with ptxas's notes read";
  let description = [{
    Runs `ptxas` on the PTX of each `gpu.binary`. Unlike upstream's
    `gpu-module-to-binary` it reads what ptxas says: spilled registers (more than
    256 bytes of a thread's, unless `allow-spills`; fewer are a warning), a
    serialised `wgmma` (C7510 to C7519) and an ignored `setmaxnreg` (C7508) are
    errors. A remark gives the registers of each kernel
    with `report`. With `fatbin` the PTX goes along, for newer chips
    (`fatbinary`).

    *Requires*: `gpu-module-to-binary{format=isa}`; ptxas in `toolkit`/bin, else
    in $CUDA_HOME/bin or PATH. *Guarantees*: no object is PTX text.
    *Numerics*: none.

    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "...">]
    ```
    becomes
    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, bin = "...">]
    ```
  }];
  let options = [
    Option<"fatbin", "fatbin", "bool", "false",
           "Make a fat binary of machine code and PTX">,
    Option<"toolkit", "toolkit", "std::string", "",
           "Folder of a CUDA toolkit">,
    Option<"allowSpills", "allow-spills", "bool", "false",
           "Accept kernels that spill registers">,
    Option<"report", "report", "bool", "false",
           "A remark on each kernel's registers">];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numAssembled", "assembled", "Objects assembled">];
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

def VarlenExpandDeviceMath : Pass<"varlen-expand-device-math"> {
  let summary = "Functions of kernels in instructions that a GPU has";
  let description = [{
    In kernels, and in launches that are not outlined yet, functions of f32 become
    upstream's polynomials and expansions, or one instruction where there is an
    exact one (`sqrt`, `floor`, ...) and for `exp2`. f16 and bf16 are computed in
    f32 and rounded after each operation. Functions of f64, and `arith.remf`,
    become calls of libdevice. `fpowi` is a power of floats with the sign that an odd
    exponent leaves, or, if that is constant, products.

    *Requires*: nothing. *Guarantees*: in kernels, no operation of math but those
    that LLVM has for GPUs; an error names one that has no form there. *Numerics*:
    a polynomial is off by a few units in the last place of f32, `tanh` by at most
    3; `sin` and `cos` by 1e-6 up to 10^5, and by as many times more as the angle is
    larger; `powf` is `exp(y * log(x))`, off by as many more as that product is
    large, and of a denormal x that of the smallest normal number; `exp2` gives 0 where f32 has less than all of its places.

    ```mlir
    %y = math.rsqrt %x : bf16
    ```
    becomes
    ```mlir
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %x : bf16 to f32
    %root = llvm.call_intrinsic "llvm.sqrt.f32"(%wide) : (f32) -> f32
    %inverse = arith.divf %one, %root : f32
    %y = arith.truncf %inverse : f32 to bf16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
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

def VarlenFlattenKernelArguments
    : Pass<"varlen-flatten-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "Kernels on bare pointers and numbers, in a fixed order";
  let description = [{
    A memref that a kernel takes becomes its pointer, a memref of rank 0, and those of
    its offset, extents and strides that its type does not have; strides of dense
    memory follow from extents. Parameters are, in this order,

    1. a pointer for each memref, and other pointers;
    2. for each memref its offset, extents and strides, as `index`;
    3. numbers;

    each kind in the order in which the values are made in the function that launches
    the kernel: its arguments first. So the order follows from that function's type and
    from what the kernel needs, and operations around it do not change it. Constants go
    into the kernel. Lowered with `use-bare-ptr-memref-call-conv` and
    `use-bare-pointers-for-kernels`, a parameter is 64 bits.

    *Requires*: one launch of each kernel, on strided memrefs. *Guarantees*: the above.
    *Numerics*: none.

    ```mlir
    gpu.launch_func @kernels::@f ... args(%n : index, %x : memref<?x64xf32, strided<[?, 1]>>)
    ```
    becomes
    ```mlir
    %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %x
    gpu.launch_func @kernels::@f ... args(%base : memref<f32>, %sizes#0 : index,
                                          %strides#0 : index, %n : index)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"];
  let options = [
    Option<"splitNumbers", "split-numbers", "bool", "false",
           "Pass numbers of 64 bits as two of 32 bits, the low one first">];
  let statistics = [Statistic<"numFlattened", "flattened", "Kernels">];
}

def VarlenMutateKernels : Pass<"varlen-mutate-kernels", "::mlir::ModuleOp"> {
  let summary = "Put one fault into the kernels, for tests of tests";
  let description = [{
    Mutants are numbered: first all that weaken synchronisation (an operation
    that orders threads or asynchronous work is deleted, or a wait lets one more
    group be in flight), then all that change an integer constant of one
    operation. `mutant` is the one to apply; -1 changes nothing and lists them
    as remarks. A kernel's tests should fail for each of them, or there is
    something to explain.

    *Requires*: gpu.modules in the llvm and nvvm dialects, with kernel.wgmma and
    kernel.wgmma_wait. *Guarantees*: the same numbers for the same module.
    *Numerics*: what the fault makes of them.

    ```mlir
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    ```
    becomes, with `mutant=2`,
    ```mlir
    nvvm.cp.async.wait.group 0
    ```
  }];
  let options = [
    Option<"mutant", "mutant", "int64_t", "-1",
           "Number of the mutant; -1 lists all">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VarlenAddShapeFunctions
    : Pass<"varlen-add-shape-functions", "::mlir::ModuleOp"> {
  let summary = "Add functions that compute the extents of results";
  let description = [{
    For every public function `f` with results that are tensors there will be a
    function `f_shapes` that has its arguments and another, a buffer of as many
    i64 as these results have extents. It stores the extents there, one result
    after the other, and computes nothing else: a caller can allocate what
    `varlen-add-result-arguments` makes arguments.

    *Requires*: functions on tensors, of which the extents of results follow from
    those of arguments or from scalars; the operations between say how, by
    `ReifyRankedShapedTypeOpInterface`. An error names a result of which they do
    not. *Guarantees*: the above; nothing else changes. What `f` asserts is for `f` to
    check. *Numerics*: none.

    ```mlir
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %y = math.exp %x : tensor<?x4xf32>
      return %y : tensor<?x4xf32>
    }
    ```
    gets the companion
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
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numAdded", "added", "Functions of extents">];
}

def VarlenAddResultArguments
    : Pass<"varlen-add-result-arguments", "::mlir::ModuleOp"> {
  let summary = "Let callers say where results go";
  let description = [{
    The results of public functions become arguments, after the others: a memref
    for each, of the same shape, of rank 0 for a scalar. Bufferization then makes
    what computes a result compute it there, without a copy where it can.

    With `strided`, tensor arguments and these memrefs may have any strides but
    the last, which is 1.

    *Requires*: results that are ranked tensors or scalars; runs before
    bufferization. *Guarantees*: public functions have no results. A function
    that the module calls itself has a private copy for these calls. *Numerics*:
    none.

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
  }];
  let options = [
    Option<"strided", "strided", "bool", /*default=*/"false",
           "Tensors have any strides but the last, which is 1">];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"];
  let statistics = [
    Statistic<"numAdded", "added", "Results that are arguments now">];
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

def VarlenImportStableHLO : Pass<"varlen-import-stablehlo"> {
  let summary = "Attention of StableHLO modules";
  let description = [{
    `stablehlo.custom_call` with the target, and `stablehlo.composite` with the name
    `varlen.attn` or `varlen.attn_grad` become these operations. Operands are those
    of the operation without the optional ones; these follow, in the order in which
    the configuration names them. What `indices_of_shape_operands` names does not count.
    The configuration is the dictionary
    `backend_config` (or `mhlo.backend_config`, `composite_attributes`), with

    | entry | | default |
    |---|---|---|
    | `causal` | bool | false |
    | `window_left`, `window_right` | integer, -1 is open | -1 |
    | `chunk` | integer: a chunk mask of that size | none |
    | `top_left` | bool: the alignment of the mask | false |
    | `scale` | float | 1/sqrt(head_dim) |
    | `operands` | names of the optional operands that there are, those of captures last: an array, or a text with commas between them | none |
    | `score` | the [text of a score](../scores.md#as-text) | that of `source` |
    | `source` | the text of a function of the operands with one attention, which [a handler at run time](../jax.md#the-handlers) compiles. It has to say the same as the other entries | none |
    | `chip` | the GPU that a handler has kernels for: the last result is a workspace then, which nothing reads | none |

    Whatever else the configuration has is an error, as is any other attribute that may say
    what is computed. Gradients of captures are the last results of `varlen.attn_grad`, of
    all or of none. StableHLO need not be registered: modules in the generic form will do.

    *Requires*: operands and results that are ranked tensors; `operand_layouts` and
    `result_layouts`, where they are given, row-major. *Guarantees*: the above;
    nothing else changes, and the decomposition of a composite stays where it is.
    *Numerics*: none.

    ```mlir
    %0:2 = "stablehlo.custom_call"(%q, %k, %v, %cu, %cu, %sink)
        {call_target_name = "varlen.attn", api_version = 4 : i32,
         backend_config = {causal = true, operands = ["sink"]}} : (...) -> (...)
    ```
    becomes
    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu, %cu sink(%sink)
        {mask = #varlen.mask<causal>} : (...) -> (...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::varlen::VarlenDialect"];
  let statistics = [Statistic<"numImported", "imported", "Attentions">];
}

def VarlenImportTorch : Pass<"varlen-import-torch"> {
  let summary = "Attention of torch-mlir's modules";
  let description = [{
    `torch.operator` operations with the name `torch.torch_attn._varlen_attn` or
    `torch.torch_attn._varlen_attn_backward`, which torch-mlir makes of
    `torch.nn.attention.varlen.varlen_attn` and of its backward function, become
    `varlen.attn` and `varlen.attn_grad`, between `torch_c.to_builtin_tensor` and
    `torch_c.from_builtin_tensor`.

    | parameter | becomes |
    |---|---|
    | `query`, `key`, `value`, `cu_seq_q`, `cu_seq_k`, `seqused_k`; `grad_out`, `out`, `lse` | operands |
    | `is_causal`, `window_size` | the mask, bounds below -1 as open as -1 |
    | `scale` | `scale` |
    | `max_q`, `max_k`, `enable_gqa`, `num_splits`, `rng_state` | nothing: no result depends on them |
    | `block_table` | an error, if it is not none |

    The `rng_state` of the forward, if it is used elsewhere, is zeros, as in PyTorch.

    So do `torch.varlen.attn` and `torch.varlen.attn_backward`, of which `varlen.torch` makes
    all its attentions. Their `score` is the [text of a score](../scores.md#as-text), and
    `captures` a list; that of their gradients is taken apart by `torch.prim.ListUnpack`.
    Any other operator of both libraries is an error, so that none is left by mistake.
    torch-mlir need not be registered: modules in the generic form will do.

    *Requires*: value tensors with sizes and dtypes; numbers, flags, texts and lists made by
    `torch.constant.*` and `torch.prim.ListConstruct`.
    *Guarantees*: the above; nothing else changes. *Numerics*: none.

    ```mlir
    %0:3 = torch.operator "torch.torch_attn._varlen_attn"(%q, %k, %v, %cu, %cu, ...) : (...)
        -> (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[8,?],f32>, !torch.vtensor<[2],ui64>)
    ```
    becomes
    ```mlir
    %1 = torch_c.to_builtin_tensor %q : !torch.vtensor<[?,8,64],bf16> -> tensor<?x8x64xbf16>
    ...
    %out, %lse = varlen.attn %1, %2, %3, %4, %4 {mask = #varlen.mask<causal>} : (...) -> (...)
    %5 = torch_c.from_builtin_tensor %out : tensor<?x8x64xbf16> -> !torch.vtensor<[?,8,64],bf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::varlen::VarlenDialect"];
  let statistics = [Statistic<"numImported", "imported", "Attentions">];
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

def VarlenExpandCopies : Pass<"varlen-expand-copies"> {
  let summary = "Copy memrefs that are not contiguous by linalg";
  let description = [{
    A memref.copy that is more than one memcpy becomes `linalg.copy`: upstream
    lowers it to a call of a library that compiled functions do not link.

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

def VarlenCallLibm : Pass<"varlen-call-libm", "::mlir::ModuleOp"> {
  let summary = "Call libm for functions that LLVM does not have";
  let description = [{
    math.erf, erfc, cbrt, asinh, acosh and atanh become calls, lane by lane; fpowi, of
    integers of any width, becomes products if its exponent is constant, else a power of
    floats. All other operations of the math dialect LLVM takes.

    *Requires*: scalars and vectors of f32 and f64 (f16 and bf16 by way of f32).
    *Guarantees*: none of the seven is left.
    *Numerics*: those of the system's libm; a variable exponent of fpowi is rounded to the
    type of the base, f32 at least, but for whether it is odd.

    ```mlir
    %y = math.erf %x : f32
    ```
    becomes
    ```mlir
    %y = call @erff(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::vector::VectorDialect"];
}

def VarlenConvertPrints : Pass<"varlen-convert-prints", "::mlir::ModuleOp"> {
  let summary = "Call the functions that print";
  let description = [{
    A `vector.print` becomes calls of functions that upstream's `convert-vector-to-llvm`
    declares in the module. Functions that print nothing can then be converted at the
    same time, on several threads, for no conversion changes anything outside of them.
    A module without prints is left as it is; one with prints goes through
    `convert-vector-to-llvm` as a whole.

    *Requires*: vectors of one dimension, as `convert-vector-to-scf` makes them.
    *Guarantees*: no `vector.print` is left. *Numerics*: none.

    ```mlir
    vector.print %x : f32
    ```
    becomes
    ```mlir
    llvm.call @printF32(%x) : (f32) -> ()
    llvm.call @printNewline() : () -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VarlenExpandExtremes : Pass<"varlen-expand-extremes"> {
  let summary = "Write maxima and minima as one comparison where no NaN is lost";
  let description = [{
    x86 has one instruction for `x > y ? x : y`, which is y where either of them is a
    NaN, and none for maxima that treat NaNs in another way: LLVM writes three. An
    `arith.maxnumf` or `arith.minnumf` with an operand that is never a NaN becomes a
    comparison and a selection, and so does an `arith.maximumf` or `arith.minimumf`
    with a constant. Never a NaN is a constant that is none, what a loop carries that
    begins with such a value and stays one, as a running maximum from -inf does, and
    what is selected or broadcast from such values.

    *Requires*: loops as `scf.for`. Extremes of which nothing is known are left as
    they are, and so is `arith.maximumf` with 0.0, which is 0.0 also for -0.0.
    *Guarantees*: results are the same, but for the sign of a zero that
    `arith.maxnumf` and `arith.minnumf` leave open.
    *Numerics*: none.

    ```mlir
    %top = scf.for %i = %c0 to %n step %c1 iter_args(%t = %minus_infinity) -> vector<8xf32> {
      %x = vector.load %m[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      %max = arith.maxnumf %x, %t : vector<8xf32>
      scf.yield %max : vector<8xf32>
    }
    ```
    becomes
    ```mlir
    %top = scf.for %i = %c0 to %n step %c1 iter_args(%t = %minus_infinity) -> vector<8xf32> {
      %x = vector.load %m[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      %greater = arith.cmpf ogt, %x, %t : vector<8xf32>
      %max = arith.select %greater, %x, %t : vector<8xi1>, vector<8xf32>
      scf.yield %max : vector<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Extremes written as comparisons">];
}

def VarlenExpandFMA : Pass<"varlen-expand-fma"> {
  let summary = "Write fused multiply-adds as two operations";
  let description = [{
    For CPUs without such an instruction, where LLVM calls `fmaf` for each lane.

    *Requires*: nothing. *Guarantees*: no math.fma and no vector.fma is left.
    *Numerics*: the product is rounded, so results differ from those of other
    targets in their last places.

    ```mlir
    %y = math.fma %a, %b, %c : vector<4xf32>
    ```
    becomes
    ```mlir
    %0 = arith.mulf %a, %b : vector<4xf32>
    %y = arith.addf %0, %c : vector<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Multiply-adds written as two">];
}

def VarlenExpandNarrowFloats : Pass<"varlen-expand-narrow-floats"> {
  let summary = "Write f16 and bf16 arithmetic in f32 and integers";
  let description = [{
    Arithmetic and mathematics on f16 and bf16 is done in f32. Conversions are
    written as integer arithmetic for the types named by the options, which are
    those that the target has no instruction for: LLVM would call `__truncsfbf2`
    and its like for each lane.

    *Requires*: scalars and vectors.

    *Guarantees*: no arith or math operation on narrow floats but conversions
    from and to f32, and none for the types named by the options.

    *Numerics*: conversions to f32 are exact; conversions from f32 round to
    nearest even, keep denormals, make inf of what is too large, and make a
    quiet NaN of a NaN. f64 goes through f32 and is rounded twice. Each
    arithmetic operation rounds its result once.

    ```mlir
    %y = arith.truncf %x : vector<8xf32> to vector<8xbf16>
    ```
    becomes
    ```mlir
    %bits = arith.bitcast %x : vector<8xf32> to vector<8xi32>
    %high = arith.shrui %bits, %c16 : vector<8xi32>
    %odd = arith.andi %high, %c1 : vector<8xi32>
    %half = arith.addi %odd, %c7fff : vector<8xi32>
    %rounded = arith.addi %bits, %half : vector<8xi32>
    %quiet = arith.ori %bits, %quiet_bit : vector<8xi32>
    %nan = arith.cmpf uno, %x, %x : vector<8xf32>
    %wide = arith.select %nan, %quiet, %rounded : vector<8xi1>, vector<8xi32>
    %shifted = arith.shrui %wide, %c16 : vector<8xi32>
    %short = arith.trunci %shifted : vector<8xi32> to vector<8xi16>
    %y = arith.bitcast %short : vector<8xi16> to vector<8xbf16>
    ```
  }];
  let options = [
    Option<"bf16", "bf16", "bool", "true",
           "Write conversions of bf16 as integer arithmetic">,
    Option<"f16", "f16", "bool", "false",
           "Write conversions of f16 as integer arithmetic">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def VarlenExpandPairs : Pass<"varlen-expand-pairs"> {
  let summary = "Write arithmetic on pairs of bf16 in 32-bit lanes";
  let description = [{
    Pairs of bf16 are what a dot product instruction reads. Two vectors of f32 that
    are rounded to bf16 and interleaved become integer arithmetic on 32-bit lanes: one
    addition rounds, a shift and a mask put both halves together, where LLVM converts
    each vector and shuffles. `dot` says what becomes of an `x86vector.avx512.dot`, the
    dot product of pairs on every target: it stays (`avx512`), becomes AArch64's `bfdot`
    (`neon`, 4 pairs at once), or two fused multiply-adds (`fma`).

    *Requires*: a rounding to nearest, with ties away from zero, which is one integer
    addition; conversions that round in another way are left as they are.
    *Guarantees*: results are the same for numbers and infinities.
    *Numerics*: a NaN stays one if the lower half of its bits is zero, as that of
    a default NaN is; others may become infinite or a number. Multiply-adds round after
    each product, the even one first; `bfdot` rounds the sum of both products to odd, then
    the result, and takes subnormal numbers for 0 (Arm ARM, FEAT_BF16).

    ```mlir
    %0 = arith.truncf %even to_nearest_away : vector<16xf32> to vector<16xbf16>
    %1 = arith.truncf %odd to_nearest_away : vector<16xf32> to vector<16xbf16>
    %pairs = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
    ```
    becomes
    ```mlir
    %bits = arith.bitcast %even : vector<16xf32> to vector<16xi32>
    %rounded = arith.addi %bits, %half : vector<16xi32>
    %low = arith.shrui %rounded, %c16 : vector<16xi32>
    %odd_bits = arith.bitcast %odd : vector<16xf32> to vector<16xi32>
    %odd_rounded = arith.addi %odd_bits, %half : vector<16xi32>
    %high = arith.andi %odd_rounded, %upper : vector<16xi32>
    %both = arith.ori %low, %high : vector<16xi32>
    %pairs = vector.bitcast %both : vector<16xi32> to vector<32xbf16>
    ```
  }];
  let options = [
    Option<"dot", "dot", "::mlir::varlen::PairDot", "::mlir::varlen::PairDot::AVX512",
           "What a dot product of pairs becomes",
           [{::llvm::cl::values(
               clEnumValN(::mlir::varlen::PairDot::AVX512, "avx512", "Itself"),
               clEnumValN(::mlir::varlen::PairDot::Neon, "neon", "bfdot of AArch64"),
               clEnumValN(::mlir::varlen::PairDot::FMA, "fma",
                          "Two fused multiply-adds"))}]>];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def VarlenFinalizeLLVM : Pass<"varlen-finalize-llvm", "::mlir::ModuleOp"> {
  let summary = "Name the CPU of a module that is ready for LLVM";
  let description = [{
    Puts the triple on the module, and the processor, the one to tune for and
    the features on every function with a body, so that any code generator makes
    the same code of it. `target` is a name of the target table.

    *Requires*: nothing but the llvm dialect is left; the first operation that
    is not is named in an error. *Guarantees*: the above. *Numerics*: none.

    ```mlir
    llvm.func @f() { ... }
    ```
    becomes
    ```mlir
    llvm.func @f() attributes {target_cpu = "x86-64-v3", tune_cpu = "znver3",
        target_features = #llvm.target_features<["+avx2", ...]>} { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to generate code for, a name of the target table">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VarlenUseDeviceMemory
    : Pass<"varlen-use-device-memory", "::mlir::ModuleOp"> {
  let summary = "Let host code allocate its buffers on the GPU";
  let description = [{
    In a function for a GPU every buffer is in device memory: calls of `malloc`
    and `free` become calls of `varlen_gpu_allocate` and `varlen_gpu_free`
    (GPU.h). Upstream's `gpu.alloc` would do, were it not for the stream that
    each of them makes and waits for.

    *Requires*: host code in the llvm dialect. *Guarantees*: the above.
    *Numerics*: none.

    ```mlir
    %p = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
    ```
    becomes
    ```mlir
    %p = llvm.call @varlen_gpu_allocate(%bytes) : (i64) -> !llvm.ptr
    ```
  }];
}

#endif // VARLEN_CONVERSION_PASSES_TD
