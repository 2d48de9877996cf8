//===- KernelMemoryOps.td - Operations on shared memory ----*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_MEMORY_OPS_TD
#define KERNEL_MEMORY_OPS_TD

include "varlen/Dialect/Kernel/IR/KernelOps.td"

def Kernel_AllocOp : Kernel_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Shared memory of the CTA for the kernel's whole life";
  let description = [{
    A tile, or numbers that the threads tell each other.
  }];
  let arguments = (ins);
  let results = (outs AnyTypeOf<[Kernel_Shared, Kernel_SharedNumbers]>:$mem);
  let assemblyFormat = "attr-dict `:` type($mem)";
}

def Kernel_TakeOp : Kernel_Op<"take", [
    MemoryEffects<[MemRead, MemWrite]>, AllElementTypesMatch<["counters", "slot"]>]> {
  let summary = "The next number of a counter, for all threads of the CTA";
  let description = [{
    One thread adds 1 to counter `i`, which the CTAs of a kernel share, and puts what it
    was before into the first element of `slot`. Every number is taken once, by whichever
    CTA comes first.

    The slot holds it behind the next barrier in the block of the operation. What comes
    before that barrier hides the latency. Another barrier comes between the
    last read of the slot and the next `kernel.take`.

    ```mlir
    kernel.take %counters[%i] to %slot
        : memref<2xi64>, memref<1xi64, #gpu.address_space<workgroup>>
    gpu.barrier
    %number = memref.load %slot[%c0] : memref<1xi64, #gpu.address_space<workgroup>>
    ```

    In a `kernel.roles` the threads are the producers, and so are those of the barriers.
  }];
  let arguments = (ins Kernel_Counters:$counters, Index:$i, Kernel_SharedNumbers:$slot);
  let assemblyFormat = [{
    $counters `[` $i `]` `to` $slot attr-dict `:` type($counters) `,` type($slot)
  }];
}

def Kernel_PutOp : Kernel_Op<"put", [
    MemoryEffects<[MemWrite]>,
    TypesMatchWith<"the number has the type of the slot's elements", "slot", "number",
                   "::llvm::cast<::mlir::MemRefType>($_self).getElementType()">]> {
  let summary = "A number that all producers have, into a slot of a ring";
  let description = [{
    One of them stores it as the first element of `slot`. As copies to the slot, it is there
    for those who wait for it.

    ```mlir
    kernel.put %item to %slot : memref<1xi32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[I32, I64]>:$number, Kernel_SharedNumbers:$slot);
  let assemblyFormat = "$number `to` $slot attr-dict `:` type($slot)";
}

def Kernel_CopyOp : Kernel_RowsOp<"copy", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Rows of a tile into shared memory, asynchronously, by all threads";
  let description = [{
    Row i of the tile goes to row i of the slot; rows that do not exist and
    columns past those of the source become zero, so no value of another
    sequence is ever read. Complete after the wait for the commit it is part of.

    An f32 source has three slots of bf16: the planes whose sum it is. It passes
    through registers; the copy itself is then synchronous, the protocol is the
    same. A source of i8 or f8E4M3FN has quantised rows, whose numbers f16, bf16 and
    the planes of f32 all have.

    It becomes `cp.async` of 16 bytes with zero fill, or loads and stores where
    rows are not whole 16-byte chunks. Quantised rows of whole chunks of 8 go to a slot of a ring by
    `cp.async` of 8 bytes, which the thread that has copied them widens in place when it
    has waited for them; in a `kernel.roles`, where others wait, and outside of rings they
    pass through registers.

    With a `block_table` the source is pages, `P x page x H x D`, and `row` is a row of
    the table: row r of the sequence (of r < 2^31) is row `r mod page` of page
    `block_table[row, r div page]`. No read leaves the source or the table, whatever
    entries are. With `one_page` the rows that exist are all in one page, which is
    then looked up once.

    ```mlir
    kernel.copy %k rows(%row, %head, %first, %one) valid(%n) to %slot
        : memref<?x8x64xbf16>, memref<1x64x64xbf16, #gpu.address_space<workgroup>>
    kernel.copy %k rows(%s, %head, %first, %one) valid(%n) pages(%table : memref<?x?xi32>) to %slot
        : memref<?x16x8x64xbf16>, memref<1x64x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins
    Kernel_Global:$source, Index:$row, Index:$head, Index:$first, Index:$group,
    Index:$valid, Optional<MemRefRankOf<[I32], [2]>>:$block_table,
    Variadic<Kernel_Shared>:$slot, UnitAttr:$one_page);
  let assemblyFormat = !strconcat(
      "$source ", Kernel_rowsFormat, [{
        (`pages` `(` $block_table^ `:` type($block_table) `)`)? `to` $slot attr-dict
        `:` type($source) `,` type($slot)
      }]);
  let extraClassDeclaration = [{
    ::mlir::varlen::kernel::RowsOperands getRows() {
      return {getRow(), getHead(), getFirst(), getGroup(), getValid(), getBlockTable()};
    }
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$source, "::mlir::varlen::kernel::RowsOperands":$rows,
                   "::mlir::ValueRange":$slot),
      [{ build($_builder, $_state, source, rows.row, rows.head, rows.first,
               rows.group, rows.valid, rows.table, slot, /*one_page=*/false); }]>,
    OpBuilder<(ins "::mlir::Value":$source, "::mlir::varlen::kernel::RowsOperands":$rows,
                   "::mlir::Value":$slot),
      [{ build($_builder, $_state, source, rows, ::mlir::ValueRange(slot)); }]>];
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

def Kernel_TensorMapOp : Kernel_Op<"tensor_map", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A tensor map of rows of global memory, which a CTA makes for its copies";
  let description = [{
    Describes memory of `T x H x D` to `kernel.copy_by_map`: a box is `rows` rows of one head, and
    64 columns, with the swizzle of a shared tile. A producer warp makes the map in row `i` of `memory`,
    which no other CTA uses, and the result is its address there.
    Elements have 16 bits, and rows start at multiples of 16 bytes, as memory does.

    It is an operation in the block of producers (`kernel.roles`), all of whose maps come before the first
    copy by one. Which copies these are, says `kernel-copy-by-map`.

    ```mlir
    %map = kernel.tensor_map %keys rows(64) to %maps[%i] : memref<?x8x64xbf16>, memref<512x128xi8>
    ```
  }];
  let arguments = (ins Kernel_Global:$source, Kernel_Maps:$memory, Index:$i,
                       ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<256>]>:$rows);
  let results = (outs LLVM_PointerInAddressSpace<0>:$map);
  let assemblyFormat = [{
    $source `rows` `(` $rows `)` `to` $memory `[` $i `]` attr-dict
    `:` type($source) `,` type($memory)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$memory, "::mlir::Value":$i,
                   "int64_t":$rows)>];
  let hasVerifier = 1;
}

def Kernel_CopyByMapOp : Kernel_Op<"copy_by_map", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All rows of a tile into a slot, through a tensor map (TMA)";
  let description = [{
    Rows `row` and up of a head of the memory that the map is of, as many as the slot has, all of which
    exist and are below 2^31. Columns past the last one of the memory become zero. One thread starts the copy,
    with one instruction for each box of 64 columns. The bytes arrive at the mbarrier that a slot has in a
    `kernel.roles`. As with a `kernel.copy`, the copy is complete after the wait for its commit.

    ```mlir
    kernel.copy_by_map %map row(%first) head(%head) to %slot
        : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<0>:$map, Index:$row, Index:$head,
                       Kernel_Shared:$slot);
  let assemblyFormat = [{
    $map `row` `(` $row `)` `head` `(` $head `)` `to` $slot attr-dict `:` type($slot)
  }];
}

def Kernel_PublishMapOp : Kernel_PtxOp<"publish_map"> {
  let summary = "A tensor map from shared to global memory (tensormap.cp_fenceproxy)";
  let description = [{
    All lanes of a warp copy the 128 bytes of a map, whose fields `tensormap.replace` has set,
    to where copies read it: each thread that issues some has a
    `nvvm.fence.proxy.acquire` of its address in between, or is behind one that has.

    ```mlir
    kernel.publish_map %shared to %global : !llvm.ptr<3>, !llvm.ptr<1>
    ```
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<3>:$shared,
                       LLVM_PointerInAddressSpace<1>:$global);
  let assemblyFormat = "$shared `to` $global attr-dict `:` type(operands)";
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def Kernel_RingOp : Kernel_Op<"ring", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A queue of shared-memory slots";
  let description = [{
    `stages` slots of tiles and numbers; slot i of the operations on the ring is number i
    mod stages. The producer acquires a slot, copies to it and commits; the consumer waits
    for it, reads it and releases it; both in the order of i. The copies to a slot
    are in the block of its acquire, or in branches in it.

        producer: acquire(i)  copy...  commit
        consumer:                              wait(i)  read...  release(i)

    Outside of a `kernel.roles` every thread is both. Without `slack` a commit is a `cp.async` group, and a wait is
    `cp.async.wait_group` and a barrier of the CTA. That barrier also proves that
    the slot before is no longer read: with S stages acquire(i) has to come
    after wait(i - S + 1). Release does nothing.

    With a slack of N acquire(i) comes after wait(i - S + 1 + N), and warps may be N
    slots apart: where the target can wait for an mbarrier, a slot has one that says
    it is full and one that says it is empty. The multiplications of one
    warpgroup then run beside the exponentials of another.

    So have the slots of a kernel with several rings, of which a slot of one can be
    released while those of another are read. Commits of all rings count as younger.

    In a `kernel.roles` all slots have these two mbarriers, and acquires and waits no other
    order than that of i. There i may start again at 0 where 2 x stages would follow, as it
    counts for a slot and the parity of its turns alone.

    With a `lag` of 1, at most the slack, `kernel-defer-contract` may have a slot read,
    and released, in the iteration after that of its wait.

    ```mlir
    %ring = kernel.ring stages(2) : !kernel.ring<memref<...>, memref<...>>
    kernel.ring.restart %ring : !kernel.ring<memref<...>, memref<...>>
    %k, %v = kernel.ring.acquire %ring[%i] : !kernel.ring<memref<...>, memref<...>>
    kernel.copy %keys rows(...) valid(%n) to %k : ...
    kernel.copy %values rows(...) valid(%n) to %v : ...
    kernel.ring.commit %ring : ...
    %k1, %v1 = kernel.ring.wait %ring[%j] younger 1 : ...
    kernel.ring.release %ring[%j] : ...
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$stages,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$slack,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$lag);
  let results = (outs Kernel_Ring:$ring);
  let assemblyFormat = [{
    `stages` `(` $stages `)` (`slack` `(` $slack^ `)`)? (`lag` `(` $lag^ `)`)?
    attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
}

def Kernel_RingRestartOp : Kernel_Op<"ring.restart"> {
  let summary = "All threads: every slot of these rings is empty, the next one is slot 0";
  let description = [{
    Every slot that was acquired has been waited for and released, and all threads
    have passed a barrier since.
  }];
  let arguments = (ins Variadic<Kernel_Ring>:$rings);
  let assemblyFormat = "$rings attr-dict `:` type($rings)";
  let hasVerifier = 1;
}

/// Has the memory of a slot, whose types are those of the ring.
class Kernel_SlotOp<string mnemonic> : Kernel_Op<mnemonic, [InferTypeOpAdaptor]> {
  let results = (outs Variadic<AnyTypeOf<[Kernel_Shared, Kernel_SharedNumbers]>>:$slot);
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location>, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::llvm::append_range(
          types, ::llvm::cast<RingType>(adaptor.getRing().getType()).getSlot());
      return ::mlir::success();
    }
  }];
}

def Kernel_RingAcquireOp : Kernel_SlotOp<"ring.acquire"> {
  let summary = "Producer: slot i may be overwritten";
  let description = [{
    The memory of the slot, to be copied to. Waits, where it has to, until the
    slot is empty.
  }];
  let arguments = (ins Kernel_Ring:$ring, I32:$i);
  let assemblyFormat = "$ring `[` $i `]` attr-dict `:` type($ring)";
}

def Kernel_RingCommitOp : Kernel_Op<"ring.commit"> {
  let summary = "Producer: all copies so far belong to the acquired slot";
  let description = [{
    A commit without copies is legal: it keeps the count of later commits right
    where there is nothing more to fetch.
  }];
  let arguments = (ins Kernel_Ring:$ring);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
}

def Kernel_RingWaitOp : Kernel_SlotOp<"ring.wait"> {
  let summary = "Consumer: slot i is full";
  let description = [{
    The memory of the slot, to be read until it is released. At most `younger`
    later commits may still be in flight, fewer than there are stages. With `whole` all rows of
    what was copied to it exist: who has copied them by a map need not be told that others have not.
  }];
  let arguments = (ins Kernel_Ring:$ring, I32:$i,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$younger, UnitAttr:$whole);
  let assemblyFormat = [{
    $ring `[` $i `]` `younger` $younger (`whole` $whole^)? attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
}

def Kernel_RingSlotOp : Kernel_SlotOp<"ring.slot"> {
  let summary = "Consumer: the memory of slot i, which was waited for";
  let description = [{
    To be read until it is released, as what the wait has returned.
  }];
  let arguments = (ins Kernel_Ring:$ring, I32:$i);
  let assemblyFormat = "$ring `[` $i `]` attr-dict `:` type($ring)";
}

def Kernel_RingReleaseOp : Kernel_Op<"ring.release"> {
  let summary = "Consumer: all reads of slot i are done";
  let arguments = (ins Kernel_Ring:$ring, I32:$i);
  let assemblyFormat = "$ring `[` $i `]` attr-dict `:` type($ring)";
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def Kernel_RolesOp : Kernel_Op<"roles", [
    RecursiveMemoryEffects, NoRegionArguments, SingleBlockImplicitTerminator<"EndOp">,
    ParentOneOf<["::mlir::gpu::GPUFuncOp", "::mlir::gpu::LaunchOp"]>]> {
  let summary = "Warps that copy beside warps that compute";
  let description = [{
    The first warps of the CTA, `consumers` of them, run the one region, the other ones, as many
    as `producers` says, the other region (warp specialization). They wait for each other at rings alone: who copies
    to slots does so as far ahead as these are free, and for whichever item comes next, while the
    others compute; and no thread that multiplies computes addresses of copies.

    Tiles are shared by the consumers, copies by the producers, and a `gpu.barrier` is one of the
    warps that run its region. All acquires, copies, commits and takes are in the region of
    producers, and all waits for slots, reads and releases in that of consumers; rings are not
    restarted. Before it comes a barrier of the CTA, behind the operations that make the rings.

    With `registers` threads of either kind have so many, whole multiples of 8 from 24 to 256
    (`setmaxnreg`), where the target can move them; there are whole warpgroups of either kind then.

    ```mlir
    %kv = kernel.ring stages(3) : !kernel.ring<memref<...>>
    gpu.barrier
    kernel.roles consumers(8) registers(232) {
      %k = kernel.ring.wait %kv[%i] younger 0 : !kernel.ring<memref<...>>
      ...
      kernel.ring.release %kv[%i] : !kernel.ring<memref<...>>
    } producers(4) registers(32) {
      %k = kernel.ring.acquire %kv[%i] : !kernel.ring<memref<...>>
      kernel.copy %keys rows(...) valid(%n) to %k : ...
      kernel.ring.commit %kv : !kernel.ring<memref<...>>
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$consumers,
    ConfinedAttr<I64Attr, [IntPositive]>:$producers,
    OptionalAttr<I64Attr>:$consumer_registers, OptionalAttr<I64Attr>:$producer_registers);
  let regions = (region SizedRegion<1>:$consuming, SizedRegion<1>:$producing);
  let assemblyFormat = [{
    `consumers` `(` $consumers `)` (`registers` `(` $consumer_registers^ `)`)? $consuming
    `producers` `(` $producers `)` (`registers` `(` $producer_registers^ `)`)? $producing
    attr-dict
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "int64_t":$consumers, "int64_t":$producers,
                   "::mlir::IntegerAttr":$consumerRegisters,
                   "::mlir::IntegerAttr":$producerRegisters)>];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Kernel_EndOp : Kernel_Op<"end", [Pure, Terminator, HasParent<"RolesOp">]> {
  let summary = "The end of what a role does";
  let assemblyFormat = "attr-dict";
}

#endif // KERNEL_MEMORY_OPS_TD
