//===- Passes.td - Passes of the kernel dialect ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_TRANSFORMS_PASSES_TD
#define KERNEL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

class Kernel_Pass<string name> : Pass<name, "::mlir::gpu::GPUFuncOp">;

def KernelSplitF32 : Kernel_Pass<"kernel-split-f32"> {
  let summary = "f32 contractions as six of bf16";
  let description = [{
    Factors of f32 become sums of three bf16 planes: a shared tile has them in
    memory, where `kernel.copy` put them; a value is split in registers, each
    plane what rounding to the planes before has left. The contraction becomes
    those of the six largest pairs of planes, small ones first, into one
    accumulator that starts from zero; what it started from is added in the end.

    The layout of fragments is that of 16 bits, and so is everything below; one
    contraction costs as much as three in TF32 would.

    *Requires*: tiles; runs before `kernel-distribute`.
    *Guarantees*: no contraction of f32 is left.
    *Numerics*: a product has a relative error of 2^-25; sums are those of the
    tensor cores, which may cut off instead of rounding within a contraction,
    but do not carry that on to the next.

    ```mlir
    %k = kernel.tile %k0, %k1, %k2 : memref<...>, memref<...>, memref<...> to tensor<64x64xf32>
    %s = linalg.contract ... ins(%x, %k) outs(%acc) -> tensor<64x64xf32>
    ```
    becomes
    ```mlir
    %x0, %x1, %x2 = linalg.generic ins(%x) { truncf, extf, subf, truncf, extf, subf, truncf }
    %b0 = kernel.tile %k0 : memref<...> to tensor<64x64xbf16>
    ...
    %t0 = linalg.contract ... ins(%x0, %b2) outs(%zeros) -> tensor<64x64xf32>
    %t1 = linalg.contract ... ins(%x2, %b0) outs(%t0) -> tensor<64x64xf32>
    %t2 = linalg.contract ... ins(%x1, %b1) outs(%t1) -> tensor<64x64xf32>
    %t3 = linalg.contract ... ins(%x0, %b1) outs(%t2) -> tensor<64x64xf32>
    %t4 = linalg.contract ... ins(%x1, %b0) outs(%t3) -> tensor<64x64xf32>
    %t5 = linalg.contract ... ins(%x0, %b0) outs(%t4) -> tensor<64x64xf32>
    %s = linalg.generic ins(%acc, %t5) { addf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::varlen::kernel::KernelDialect"];
  let statistics = [
    Statistic<"numSplit", "split", "Contractions of f32 taken apart">];
}

def KernelDistribute : Kernel_Pass<"kernel-distribute"> {
  let summary = "Tiles to fragments: each thread's part of a tile";
  let description = [{
    Every tile R x C becomes `vector<R/16W x C/8 x 2 x 2>`, W the warps of the
    CTA, in the layout of the dialect; a row statistic R x 1 becomes
    `vector<R/16W x 1 x 2 x 1>`. One operation becomes one: `linalg.generic` its
    region on vectors, `linalg.contract` a `kernel.contract`, a row reduction a
    `vector.multi_reduction` in the thread and a `gpu.subgroup_reduce` of the
    four lanes that share the row. In a region every value keeps the smallest
    shape it needs, so what depends on the row alone is done once per row. A body
    with a function of many operations (`math.tanh`) is written for one
    `vector<2x2>` after the other: on a whole fragment its polynomial would want
    several registers for each number at once. Shared tiles stay in memory.
    `varlen.rescale` becomes a product in a branch that a warp takes if a row of one of
    its lanes has another factor than 1 (`nvvm.vote.sync any`).
    `varlen.scatter_add` becomes loads and stores by two of the four lanes, a row each,
    to which the others hand their numbers (`gpu.shuffle`): one thread adds to a row of
    memory, in the order of columns, so nothing has to be ordered by a barrier. A contraction whose first
    factor is in registers, but has not the rows of the result, reads it from shared memory, where all
    threads put it (`kernel.stage`).

    Where the rows of a tile are not 16 for each warp, but its columns are, threads have a fragment of its
    transpose: as the result of contractions and of loops that do the same to each element, and in `kernel.store`.

    *Requires*: static rank-2 tiles, R a multiple of 16 W, C of 8 (16 where it is
    contracted over), in `linalg.generic` with the maps (m, n), (m, 0) and
    (0, n), `linalg.contract`, `linalg.fill`, `tensor.empty`, `varlen.scatter_add` with
    rows R x 1, scf and the operations of this dialect; in a contraction B is a `kernel.tile`; W is
    `known_block_size` / 32, or the consumers of a `kernel.roles`.
    *Guarantees*: no tensors are left; every complaint names the operation.
    *Numerics*: a row's sum is of the columns of a thread first, then of the
    lanes. The -inf that a maximum starts from is left out: it matters only to
    a row of nothing but NaN.

    ```mlir
    %s = linalg.contract ins(%q, %k : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero)
    %top = linalg.generic {"row reduction"} ins(%s) outs(%lowest) { arith.maxnumf }
    %p = linalg.generic ins(%s, %minus_m) { math.fma, math.exp2 }
    ```
    becomes, in a CTA of 128 threads,
    ```mlir
    %s = kernel.contract %q, %k, %zero k(64) : memref<...>, memref<...> into vector<1x8x2x2xf32>
    %x = vector.multi_reduction <maxnumf>, %s, %lowest [1, 3] : vector<1x8x2x2xf32> to vector<1x2xf32>
    %y = vector.shape_cast %x : vector<1x2xf32> to vector<2xf32>
    %z = gpu.subgroup_reduce maxnumf %y cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
    %top = vector.shape_cast %z : vector<2xf32> to vector<1x1x2x1xf32>
    %b = vector.broadcast %minus_m : vector<1x1x2x1xf32> to vector<1x8x2x2xf32>
    %e = math.fma %s, %c, %b : vector<1x8x2x2xf32>
    %p = math.exp2 %e : vector<1x8x2x2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect", "::mlir::varlen::kernel::KernelDialect",
    "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numOps", "operations", "linalg operations distributed">];
}

def KernelDeferRowSum : Kernel_Pass<"kernel-defer-row-sum"> {
  let summary = "Sum the lanes of a row after the loop, not in it";
  let description = [{
    A row statistic that a loop carries as l * alpha + sum, or l + sum, with the
    sum over the four lanes of a row, becomes one partial sum per lane, and the
    lanes are summed once behind the loop. alpha is the same in the four lanes,
    as every row statistic. What l starts from goes to the first lane. A loop
    that carries on the result of another one carries on its parts.

    *Requires*: fragments.
    *Guarantees*: such loops sum over lanes behind the last of them only.
    *Numerics*: another order of the same sum.

    ```mlir
    %l = scf.for ... iter_args(%l0 = %zero) {
      %x = arith.mulf %l0, %alpha : vector<1x1x2x1xf32>
      %y = gpu.subgroup_reduce add %part cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
      %z = vector.shape_cast %y : vector<2xf32> to vector<1x1x2x1xf32>
      %l1 = arith.addf %x, %z : vector<1x1x2x1xf32>
      scf.yield %l1
    }
    ```
    becomes
    ```mlir
    %parts = scf.for ... iter_args(%l0 = %zero) {
      %x = arith.mulf %l0, %alpha : vector<1x1x2x1xf32>
      %z = vector.shape_cast %part : vector<2xf32> to vector<1x1x2x1xf32>
      %l1 = arith.addf %x, %z : vector<1x1x2x1xf32>
      scf.yield %l1
    }
    %a = vector.shape_cast %parts : vector<1x1x2x1xf32> to vector<2xf32>
    %b = gpu.subgroup_reduce add %a cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
    %l = vector.shape_cast %b : vector<2xf32> to vector<1x1x2x1xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numDeferred", "deferred", "Sums taken out of a loop">];
}

def KernelDeferContract : Kernel_Pass<"kernel-defer-contract"> {
  let summary = "Contractions into what a loop carries, one iteration later";
  let description = [{
    In a loop over the slots of a ring with a lag, a contraction of a fragment that the
    iteration computes with a tile of its slot, whose result is only yielded, goes to the
    next iteration, before the result is used there: the loop carries the fragment and the
    accumulator. It reads the slot before, which is released after it. The first
    iteration is peeled, and what the last one defers comes after the loop.

    Between its contractions an iteration then computes on the product of the first
    while the deferred one runs: `kernel-split-contract` leaves it where it is, and ptxas
    issues it piece by piece beside what is before it.

    *Requires*: fragments.
    *Guarantees*: none.
    *Numerics*: the same operations in the same order.

    ```mlir
    %o = scf.for %i = %lb to %ub step %c1 iter_args(%acc = %zero) -> (...) {
      %k, %v = kernel.ring.wait %ring[%i] younger 0 : ...
      %s = kernel.contract %q, %k, %zeros k(64) : ...
      %p, %scaled = ... %s, %acc ...
      %sum = kernel.contract %p, %v, %scaled k(64) {b_t} : ...
      kernel.ring.release %ring[%i] : ...
      scf.yield %sum
    ```
    becomes
    ```mlir
      ... scf.for %i = %next to %ub step %c1 iter_args(%before = ..., %factor = ...) {
        %k, %v = kernel.ring.wait %ring[%i] younger 0 : ...
        %s = kernel.contract %q, %k, %zeros k(64) : ...
        %k0, %v0 = kernel.ring.slot %ring[%i - 1] : ...
        %acc = kernel.contract %factor, %v0, %before k(64) {b_t} : ...
        kernel.ring.release %ring[%i - 1] : ...
        %p, %scaled = ... %s, %acc ...
        scf.yield %scaled, %p
    ```
  }];
  let dependentDialects = ["::mlir::varlen::kernel::KernelDialect",
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numDeferred", "deferred", "Loops whose contractions are deferred">];
}

def KernelPlaceWaits : Kernel_Pass<"kernel-place-waits"> {
  let summary = "Slots of several rings from their first use to their last";
  let description = [{
    In a block that waits for slots of several rings, each `kernel.ring.wait` goes to the
    first use of its slot, with what is fetched to its ring behind it, and the
    `kernel.ring.release` behind the last use. So a slot of keys is free for others
    while the products with the values run, and one of values while scores are
    computed: two blocks of room are as good as three in one ring.

    *Requires*: the protocol of `kernel.ring`.
    *Guarantees*: the order of operations on each ring; of different rings, the waits
    and commits have the order of their first uses.
    *Numerics*: none.

    ```mlir
    %k = kernel.ring.wait %keys[%i] younger 1 : ...
    %v = kernel.ring.wait %values[%i] younger 1 : ...
    %s = kernel.contract %q, %k, %zero k(64) : ...
    %o = kernel.contract %p, %v, %acc k(64) {b_t} : ...
    kernel.ring.release %keys[%i] : ...
    kernel.ring.release %values[%i] : ...
    ```
    becomes
    ```mlir
    %k = kernel.ring.wait %keys[%i] younger 1 : ...
    %s = kernel.contract %q, %k, %zero k(64) : ...
    kernel.ring.release %keys[%i] : ...
    %v = kernel.ring.wait %values[%i] younger 1 : ...
    %o = kernel.contract %p, %v, %acc k(64) {b_t} : ...
    kernel.ring.release %values[%i] : ...
    ```
  }];
  let statistics = [
    Statistic<"numPlaced", "placed", "Waits moved to the first use of their slot">];
}

def KernelSplitContract : Kernel_Pass<"kernel-split-contract"> {
  let summary = "Contractions to an early start and a late wait";
  let description = [{
    A contraction starts behind the last operation that makes one of its operands or
    lets shared memory be read or written (a barrier, `kernel.ring.wait`,
    `kernel.ring.release`), other contractions not among them: of two that can start at
    the same place the later one goes first, unless it is written before a use of the
    earlier one. The wait goes before the first use of the result, before
    shared memory is handed back, or before a fragment of 16 bits, which another
    contraction may take, is written, whichever comes first: ptxas lets no `wgmma` be in
    flight while it writes factors of one. Its `younger` is the number of contractions
    started in between.

    Contractions of a block whose accumulators take more than 160 registers of a thread
    stay as they are: what is in flight keeps its registers, and there would be none for
    the work beside it. So do those that accumulate one onto the other, which
    `kernel-lower-contract` takes together, and those of a `kernel.ring.slot`, which are
    deferred: ptxas would move the wait up to an early start.

    *Requires*: fragments.
    *Guarantees*: started contractions are waited for in their block.
    *Numerics*: none.

    ```mlir
    %s = kernel.contract %q, %k, %zero k(64) : ...
    %o = kernel.contract %p, %v, %acc k(64) {b_t} : ...
    %x = math.exp2 %s : vector<1x8x2x2xf32>
    ```
    becomes
    ```mlir
    %0 = kernel.start %q, %k, %zero k(64) : ...
    %1 = kernel.start %p, %v, %acc k(64) {b_t} : ...
    %s = kernel.wait %0 younger 1 : <vector<1x8x2x2xf32>>
    %x = math.exp2 %s : vector<1x8x2x2xf32>
    ...
    %o = kernel.wait %1 younger 0 : <vector<1x8x2x2xf32>>
    ```
  }];
  let dependentDialects = ["::mlir::varlen::kernel::KernelDialect"];
  let statistics = [
    Statistic<"numOverlapped", "overlapped", "Contractions with work between start and wait">];
}

def KernelLowerContract : Kernel_Pass<"kernel-lower-contract"> {
  let summary = "Contractions to tensor-core instructions";
  let description = [{
    `mma.sync` m16n8k16 of f16 or bf16, accumulating in f32. Operands in shared
    memory come by `ldmatrix` of four 8 x 8 matrices (transposing it for `a_t`
    and `b_t`), without bank conflicts; an A fragment is used in place. B is
    read once for all m-tiles of a warp. An address is a part of the lane that no
    loop changes, exclusive-or'ed with a constant of the step, and constant
    offsets. Contractions that accumulate one onto the other and read an operand of
    each other, as terms of f32 do, and the addition of something else to the last, are
    done together so that few registers are in use: column by column with A fragments,
    else step by step with the last term summed apart.

    With `wgmma` (sm_90a) kernels multiply by `kernel.wgmma` m64nNk16 instead, a
    commit group for each contraction, if their warps are a multiple of 4 and all
    accumulators have 16 rows for each warp and at most 256 columns: B, and A unless it
    is a fragment, are read where they are by descriptors, and a sum that starts with a
    zero constant starts without registers. Contractions that accumulate one onto the
    other are one group, but terms of f32 are left to `mma.sync`.

    *Requires*: fragments; a number of warps that is a power of 2 for `a_t`.
    *Guarantees*: no `kernel.contract`, `kernel.start`, `kernel.wait` is left.
    *Numerics*: per k-step of 16 as the instruction does it, steps in order.

    ```mlir
    %s = kernel.contract %q, %k, %zero k(16) : memref<...>, memref<...> into vector<1x2x2x2xf32>
    ```
    becomes
    ```mlir
    %a = nvvm.ldmatrix %qa {num = 4 : i32, layout = row, ...} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %b = nvvm.ldmatrix %kb {num = 4 : i32, layout = row, ...} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %c = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%z0, %z1, %z2, %z3] {shape = #nvvm.shape<m = 16, n = 8, k = 16>, ...}
    %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b2, %b3] C[%z4, %z5, %z6, %z7] {shape = #nvvm.shape<m = 16, n = 8, k = 16>, ...}
    %s = vector.from_elements %c0, %c1, %c2, %c3, %d0, %d1, %d2, %d3 : vector<1x2x2x2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::vector::VectorDialect"];
  let options = [
    Option<"wgmma", "wgmma", "bool", "false", "Whether the target has wgmma">];
  let statistics = [
    Statistic<"numContractions", "contractions", "Contractions lowered">,
    Statistic<"numWgmma", "wgmma", "Kernels that multiply by wgmma">];
}

def KernelCopyByMap : Kernel_Pass<"kernel-copy-by-map"> {
  let summary = "Whole tiles are copied by tensor maps";
  let description = [{
    A `kernel.copy` by producers of rows that a `kernel.tensor_map` of the region describes becomes
    a branch: where all rows of the tile exist, a `kernel.copy_by_map` copies them, and otherwise it
    does, row by row. So no copy reads a row of another sequence. Rows in pages, of f32, of bytes, whose
    chunks of 16 bytes are not aligned, or of more than one head, are copied as before; a map that no
    copy uses is not made.

    *Requires*: a `kernel.tensor_map` dominates the copies of its source, whose rows are below 2^31.
    *Guarantees*: each `kernel.tensor_map` that is left has a use.
    *Numerics*: none.

    ```mlir
    %map = kernel.tensor_map %keys rows(64) to %maps[%i] : ...
    ...
    kernel.copy %keys rows(%row, %head, %first, %c1) valid(%n) to %k : ...
    ```
    becomes
    ```mlir
    %map = kernel.tensor_map %keys rows(64) to %maps[%i] : ...
    ...
    %whole = arith.cmpi sle, %c64, %n : index
    scf.if %whole {
      %at = arith.addi %row, %first : index
      kernel.copy_by_map %map row(%at) head(%head) to %k : ...
    } else {
      kernel.copy %keys rows(%row, %head, %first, %c1) valid(%n) to %k : ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numCopies", "copies", "Copies with a map for whole tiles">];
}

def KernelLowerMemory : Pass<"kernel-lower-memory", "::mlir::ModuleOp"> {
  let summary = "Place shared memory, and copy to it with cp.async";
  let description = [{
    Every `kernel.alloc` and every slot of a `kernel.ring` gets its place in the
    dynamic shared memory of its kernel, whose size goes to the launches.
    `kernel.copy` becomes 16-byte `cp.async` with zero fill, a chunk of 8
    elements to a thread; rows whose chunks are not aligned (head_dim not a
    multiple of 8, odd strides) and f32 rows, which are split into three bf16
    planes, pass through registers instead. A commit becomes a `cp.async` group,
    a wait the wait for that group and a barrier of the CTA; acquire and release
    cost nothing. In a kernel with `wgmma`, which reads shared memory through another
    proxy, threads fence what they have written before that barrier.

    With `mbarriers`, a slot of a ring that has slack, or is not the kernel's only one, and is
    filled by `cp.async` alone has two mbarriers instead: each thread's copies arrive at the first, which a wait
    waits for, and each warp that releases the slot at the second, which an
    acquire waits for. So have all slots of a kernel with `kernel.roles`, where
    producers copy and consumers release; a thread that has stored to a slot arrives at the first
    mbarrier for that, too. `kernel.put` becomes a store of one producer.

    `kernel.tensor_map` becomes zeros and `tensormap.replace` of shared memory and `kernel.publish_map`, each by
    another warp of producers. Behind them comes a barrier of the producers, and a fence by which the first warp
    acquires all maps. `kernel.copy_by_map` becomes one
    `cp.async.bulk.tensor` for each box of 64 columns. The first producer thread issues them; it tells the mbarrier
    how many bytes to expect before it arrives there itself. A wait for a slot that is `whole`, whose tiles have such copies, needs no fence. Where kernels do not read slots by the async proxy, that thread publishes to
    the proxy what others have stored to the slot before.

    `kernel.take` becomes an atomic addition of relaxed order by the first thread, which
    stores the number before the next barrier. Numbers lie behind all tiles. `kernel.stage` becomes
    stores of two neighbours and a barrier, with that fence in front.

    *Requires*: `gpu.func` kernels with `known_block_size`. Global memory aligned
    to 16 bytes. The protocol of `kernel.ring`.
    *Guarantees*: of the kernel dialect's memory operations only `kernel.tile`,
    `kernel.load` and `kernel.store` are left. An error if a kernel needs more
    shared memory than `shared-bytes`.
    *Numerics*: f32 = b0 + b1 + b2, each rounded to nearest; exact but for the
    last 0 to 2 bits.

    ```mlir
    %k = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<memref<...>>
    ```
    becomes
    ```mlir
    nvvm.cp.async.wait.group 0
    gpu.barrier
    %stage = arith.andi %i, %c1 : i32
    ...
    %k = memref.view %shared[%offset][] : memref<?xi8, ...> to memref<1x64x64xbf16, ...>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let options = [
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "Bytes of shared memory that a CTA can have">,
    Option<"mbarriers", "mbarriers", "bool", "false",
           "Rings with slack, and several rings, have mbarriers, for which the target can "
           "wait">];
  let statistics = [
    Statistic<"numAsync", "async", "Copies by cp.async">,
    Statistic<"numSynchronous", "synchronous", "Copies through registers">];
}

def KernelLowerRoles : Kernel_Pass<"kernel-lower-roles"> {
  let summary = "Roles to a branch of the CTA's warps";
  let description = [{
    `kernel.roles` becomes a branch on the number of the warp, one that all of its lanes have
    from the first of them, so that it is known to be one of whole warps. Each `gpu.barrier` in
    a region becomes a barrier of its own number (1 for consumers, 2 for producers) of the
    warps that run the region. With `moves-registers` and registers of the roles the kernel
    starts with the mean of these (`nvvm.maxnreg`), and each role begins by asking for its own
    (`nvvm.setmaxregister`).

    *Requires*: `known_block_size` of the warps of both roles; after `kernel-lower-memory`,
    which asks who copies.
    *Guarantees*: no `kernel.roles`.
    *Numerics*: none.

    ```mlir
    kernel.roles consumers(8) registers(232) { ... } producers(4) registers(32) { ... }
    ```
    becomes
    ```mlir
    %warp, %valid = gpu.shuffle idx %own, %c0, %c32 : i32
    %consumes = arith.cmpi slt, %warp, %c8 : i32
    scf.if %consumes {
      nvvm.setmaxregister increase 232
      ...
    } else {
      nvvm.setmaxregister decrease 32
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"movesRegisters", "moves-registers", "bool", "false",
           "Roles have the registers that they name: the target has setmaxnreg">];
  let statistics = [
    Statistic<"numLowered", "lowered", "Kernels with roles">];
}

def KernelLowerAccess : Kernel_Pass<"kernel-lower-access"> {
  let summary = "Fragments from and to global memory";
  let description = [{
    `kernel.store` of a tile: each thread writes the pairs of columns that it
    has of a row, if the row exists, in one store where rows start at even
    elements; columns past the memory's are left out. A row statistic is written
    by the first of the four lanes. `kernel.load`: each thread loads the values
    of its rows. A row and head from a grouped rows clause take one 64-bit
    division for the tile and one of 32 bits for each row; none if the group is
    a constant 1. `kernel.add_in_order`: one lane of a warp waits for the turn by loads that
    acquire, all lanes load, add and store 16 bytes at a time, neighbours beside
    each other, and one lane passes the turn on by a store that releases.

    *Requires*: fragments; memory with the identity layout starts at a multiple
    of 16 bytes, `first` of the rows clause is not negative.
    *Guarantees*: no `kernel.load`, `kernel.store` and `kernel.add_in_order` is left; memory outside
    the rows that exist is not touched.
    *Numerics*: the additions of `kernel.add_in_order`.

    ```mlir
    kernel.store %out to %o rows(%row, %head, %first, %one) valid(%n)
        : vector<1x8x2x2xbf16> to memref<?x16x64xbf16>
    ```
    becomes
    ```mlir
    %exists = arith.cmpi slt, %i, %n : index
    scf.if %exists {
      %pair = vector.extract %out[0, 0, 0] : vector<2xbf16> from vector<1x8x2x2xbf16>
      vector.store %pair, %o[%r, %head, %column] {alignment = 4 : i64} : ...
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def KernelExpandReductions : Kernel_Pass<"kernel-expand-reductions"> {
  let summary = "Row reductions to a tree and two shuffles";
  let description = [{
    What a thread has of a row is reduced as a balanced tree; the four lanes of
    the row by two shuffles and operations, element by element.

    *Requires*: fragments; clusters of at most 32 lanes, and numbers of at most 32
    bits in them.
    *Guarantees*: no `vector.multi_reduction` of fragments and no
    `gpu.subgroup_reduce` of clusters is left.
    *Numerics*: the order of a sum. The identity that a reduction starts from
    (-0.0 for a sum, -inf for maxnumf) is left out.

    ```mlir
    %x = vector.multi_reduction <add>, %p, %start [1, 3] : vector<1x1x2x2xf32> to vector<1x2xf32>
    ...
    %z = gpu.subgroup_reduce add %y cluster(size = 4) : (vector<2xf32>) -> vector<2xf32>
    ```
    becomes
    ```mlir
    %a = arith.addf %p0, %p1 : f32
    ...
    %b, %valid = gpu.shuffle xor %a, %one, %lanes : f32
    %c = arith.addf %a, %b : f32
    %d, %valid1 = gpu.shuffle xor %c, %two, %lanes : f32
    %e = arith.addf %c, %d : f32
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::vector::VectorDialect"];
}

def KernelExpandMath : Kernel_Pass<"kernel-expand-math"> {
  let summary = "Functions of f32 to an intrinsic per element";
  let description = [{
    `math.exp2` and `math.log2` of f32 become `ex2.approx.ftz` and
    `lg2.approx.ftz`; `math.absf`, `math.copysign`, `math.sqrt` and those that round
    (`math.ceil`, `math.floor`, `math.round`, `math.roundeven`, `math.trunc`) LLVM's
    intrinsics, where convert-gpu-to-nvvm would call libdevice. Nothing else has to be
    expanded: `math.fma` and `arith.maxnumf` are single instructions to LLVM, and a
    division is exact, which one per row can afford.

    *Requires*: nothing. Works on scalars and vectors of any shape.
    *Guarantees*: none of these functions of f32 is left.
    *Numerics*: exp2 to 2 ulp, exact for integers; denormal arguments and
    results are zero. log2 to an absolute error of 2^-22 within [0.5, 2] and a
    relative one of 2^-22 outside.

    ```mlir
    %p = math.exp2 %x : vector<2xf32>
    ```
    becomes
    ```mlir
    %0:2 = vector.to_elements %x : vector<2xf32>
    %1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%0#0) : (f32) -> f32
    %2 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%0#1) : (f32) -> f32
    %p = vector.from_elements %1, %2 : vector<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def KernelPackNarrow : Kernel_Pass<"kernel-pack-narrow"> {
  let summary = "Convert f32 to f16 and bf16, and bf16 to f32, in pairs";
  let description = [{
    A fragment of f32 that is rounded takes one instruction for two neighbouring
    columns, whose result is a register of an A operand. Of such a register of bf16 a
    shift and a mask are the two f32.

    *Requires*: nothing.
    *Guarantees*: no `arith.truncf` from vectors with an even number of f32 to
    f16 or bf16, and no `arith.extf` from vectors with an even number of bf16 to f32
    is left.
    *Numerics*: as `arith.truncf`: to the nearest, ties to even.

    ```mlir
    %b = arith.truncf %p : vector<1x1x1x2xf32> to vector<1x1x1x2xbf16>
    ```
    becomes
    ```mlir
    %0:2 = vector.to_elements %p : vector<1x1x1x2xf32>
    %1 = nvvm.convert.f32x2.to.bf16x2 %0#1, %0#0 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
    %2:2 = vector.to_elements %1 : vector<2xbf16>
    %b = vector.from_elements %2#0, %2#1 : vector<1x1x1x2xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect", "::mlir::vector::VectorDialect"];
}

#endif // KERNEL_TRANSFORMS_PASSES_TD
