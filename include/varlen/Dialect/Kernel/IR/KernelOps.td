//===- KernelOps.td - Operations on tiles and fragments ----*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_OPS_TD
#define KERNEL_OPS_TD

include "varlen/Dialect/Kernel/IR/KernelTypes.td"
include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, traits>;

/// The rows clause: five operands of type index.
defvar Kernel_rowsFormat =
    "`rows` `(` $row `,` $head `,` $first `,` $group `)` `valid` `(` $valid `)`";

class Kernel_RowsOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, traits> {
  let extraClassDeclaration = [{
    ::mlir::varlen::kernel::RowsOperands getRows() {
      return {getRow(), getHead(), getFirst(), getGroup(), getValid()};
    }
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Kernel_TileOp : Kernel_Op<"tile", [Pure]> {
  let summary = "A shared tile as a value";
  let description = [{
    A view: nothing is read here. The value holds until its slot is released, or
    is copied to again; contractions read it where they are. The tensor has the
    element type and the rows of the memory, and as many of its columns as are
    in use, a multiple of 8 (of 16 where they are the contraction's extent).

    An f32 tile has three bf16 planes of one type, whose sum it is:
    `kernel-split-f32` takes its contractions apart.

    ```mlir
    %k = kernel.tile %slot : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
        to tensor<64x48xbf16>
    ```
  }];
  let arguments = (ins Variadic<Kernel_Shared>:$mem);
  let results = (outs Kernel_Tile:$tile);
  let assemblyFormat = "$mem attr-dict `:` type($mem) `to` type($tile)";
  let builders = [OpBuilder<(ins "::mlir::Type":$tile, "::mlir::Value":$mem),
                            [{ build($_builder, $_state, tile, ::mlir::ValueRange(mem)); }]>];
  let hasVerifier = 1;
}

def Kernel_LoadOp : Kernel_RowsOp<"load", [
    MemoryEffects<[MemRead]>,
    TypesMatchWith<"otherwise is an element of the memory", "mem", "otherwise",
                   "::llvm::cast<::mlir::MemRefType>($_self).getElementType()">]> {
  let summary = "Rows of global memory, or one value for each, or a few";
  let description = [{
    Element i is that of row i in a memory of rank 2 or 1; `otherwise` for rows
    that do not exist. A memory of rank 3, `H x T x S`, has S such values for each
    row, which are as many results. A result is R x 1, or 1 x C where the rows of
    memory are the columns of a tile; as a fragment, its row or column projection.
    No row is looked for where `valid` is a constant that says they all exist.

    A result of several columns has the rows of a memory `T x H x D` as its own,
    with zeros past column D.

    With a `block_table` memory is pages, `P x page x H x S`, of which rows are found as
    `kernel.copy` does, with `one_page` once for all of them.

    ```mlir
    %s = kernel.load %sink rows(%zero, %head, %first, %group) valid(%n) otherwise %x
        : memref<16xf32> to tensor<64x1xf32>
    %lse, %delta = kernel.load %stats rows(%row, %head, %first, %one) valid(%c64) otherwise %x
        : memref<16x?x2xf32> to tensor<1x64xf32>, tensor<1x64xf32>
    %o = kernel.load %out rows(%row, %head, %first, %group) valid(%n) otherwise %x
        : memref<?x16x40xbf16> to tensor<64x48xbf16>
    ```
  }];
  let arguments = (ins
    Kernel_Global:$mem, Index:$row, Index:$head, Index:$first, Index:$group,
    Index:$valid, AnyType:$otherwise, Optional<MemRefRankOf<[I32], [2]>>:$block_table,
    UnitAttr:$one_page);
  let results = (outs Variadic<Kernel_TileOrFragment>:$values);
  let assemblyFormat = !strconcat(
      "$mem ", Kernel_rowsFormat, [{
        `otherwise` $otherwise (`pages` `(` $block_table^ `:` type($block_table) `)`)? attr-dict
        `:` type($mem) `to` type($values)
      }]);
  let extraClassDeclaration = [{
    ::mlir::varlen::kernel::RowsOperands getRows() {
      return {getRow(), getHead(), getFirst(), getGroup(), getValid(), getBlockTable()};
    }
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$values, "::mlir::Value":$mem,
                                 "::mlir::varlen::kernel::RowsOperands":$rows,
                                 "::mlir::Value":$otherwise),
      [{ build($_builder, $_state, values, mem, rows.row, rows.head, rows.first,
               rows.group, rows.valid, otherwise, rows.table, /*one_page=*/false); }]>];
}

def Kernel_StoreOp : Kernel_RowsOp<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "A tile to global memory";
  let description = [{
    Rows that exist are written: to memory `T x H x D` as they are, without the
    columns past its extent; to memory `H x T` one value each (R x 1), once, and to
    memory `H x T x S` S values. Values and memory have the same element type. A fragment
    is that of the transpose with `transposed`: its columns are the rows of memory.

    ```mlir
    kernel.store %out to %o rows(%row, %head, %first, %group) valid(%n)
        : tensor<64x48xbf16> to memref<?x16x40xbf16>
    ```
  }];
  let arguments = (ins
    Variadic<Kernel_TileOrFragment>:$values, Kernel_Global:$mem, Index:$row,
    Index:$head, Index:$first, Index:$group, Index:$valid, UnitAttr:$transposed);
  let assemblyFormat = !strconcat(
      "$values `to` $mem ", Kernel_rowsFormat, [{ attr-dict `:` type($values) `to` type($mem) }]);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "::mlir::Value":$mem,
                                 "::mlir::varlen::kernel::RowsOperands":$rows),
      [{ build($_builder, $_state, values, mem, rows.row, rows.head, rows.first,
               rows.group, rows.valid, /*transposed=*/false); }]>];
}

def Kernel_AddInOrderOp : Kernel_Op<"add_in_order", [
    MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["part", "total"]>]> {
  let summary = "Adds a tile to a sum that CTAs share, when it is its turn";
  let description = [{
    `sums` has room for many tiles, each in the order that suits the threads, and `counters`
    numbers for each of them, as many as there are warps, 0 at first; both are of one kernel. The
    result is tile `slot` of the sums and the part, or the part alone if it is the `first`. Unless
    it is the `last` the result becomes the tile in memory.

    The parts of a slot have turns that follow each other. A warp waits, unless its part is the first,
    for the turn, and passes it on behind its numbers: no warp waits for another one of its
    CTA. Who has the turn before has to be computed by then, or be under way.

    ```mlir
    %total = kernel.add_in_order %part to %sums[%slot] of %counters turn(%turn, %first, %last)
        : tensor<64x64xf32>, memref<?xf32>, memref<?xi32>
    ```
  }];
  let arguments = (ins
    Kernel_TileOrFragment:$part, MemRefRankOf<[F32], [1]>:$sums, Index:$slot,
    MemRefRankOf<[I32], [1]>:$counters, I32:$turn, I1:$first, I1:$last);
  let results = (outs Kernel_TileOrFragment:$total);
  let assemblyFormat = [{
    $part `to` $sums `[` $slot `]` `of` $counters `turn` `(` $turn `,` $first `,` $last `)` attr-dict
    `:` type($part) `,` type($sums) `,` type($counters)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def Kernel_StageOp : Kernel_Op<"stage", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A fragment in shared memory, for all warps";
  let description = [{
    By all threads, which pass a barrier behind it. The memory holds the fragment until the next
    `kernel.stage` of the kernel, whose memory is the same. In between all threads have waited for
    the contractions that read it, and then passed another barrier: that of a `kernel.ring.wait` of the
    only ring, without slack, is one.

    ```mlir
    %shared = kernel.stage %ds : vector<1x8x2x2xbf16> to memref<1x64x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Kernel_Fragment:$fragment);
  let results = (outs Kernel_Shared:$memory);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `to` type($memory)";
  let hasVerifier = 1;
}

def Kernel_Operand : AnyTypeOf<[Kernel_Fragment, Kernel_Shared]>;

class Kernel_ContractBase<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, traits> {
  let arguments = (ins
    Arg<Kernel_Operand, "A: M x K">:$a,
    Arg<Kernel_Shared, "B: N x K, or K x N with b_t">:$b,
    Kernel_Fragment:$acc,
    ConfinedAttr<I64Attr, [IntPositive]>:$k, UnitAttr:$a_t, UnitAttr:$b_t);
  let hasVerifier = 1;
}

def Kernel_ContractOp : Kernel_ContractBase<"contract", [
    MemoryEffects<[MemRead]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + A B on the tensor cores";
  let description = [{
    A is a 16-bit fragment, or a shared tile [m][k] ([k][m] with `a_t`); B is a
    shared tile [n][k] ([k][n] with `b_t`); `k` is the contraction's extent, a
    multiple of 16. Products accumulate in f32. All warps of the CTA take part,
    each with its own rows of A.

    sm_80: `ldmatrix` (transposing it for `a_t` and `b_t`) and `mma.sync`
    m16n8k16; an A fragment is used where it is. Hopper: `wgmma`, with A and B
    by descriptors or A in registers.

    ```mlir
    %s = kernel.contract %q, %k, %zero k(64)
        : memref<1x64x64xbf16, #gpu.address_space<workgroup>>,
          memref<1x64x64xbf16, #gpu.address_space<workgroup>> into vector<1x8x2x2xf32>
    %o = kernel.contract %p, %v, %acc k(64) {b_t}
        : vector<1x8x2x2xbf16>, memref<1x64x64xbf16, #gpu.address_space<workgroup>>
          into vector<1x8x2x2xf32>
    ```
  }];
  let results = (outs Kernel_Fragment:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc `k` `(` $k `)` attr-dict `:` type($a) `,` type($b) `into` type($acc)
  }];
}

def Kernel_StartOp : Kernel_ContractBase<"start", [
    TypesMatchWith<"result is pending acc", "acc", "result",
                   "::mlir::varlen::kernel::PendingType::get($_ctxt, "
                   "::llvm::cast<::mlir::VectorType>($_self))">]> {
  let summary = "A contraction, issued";
  let description = [{
    `kernel.contract` up to the point where it has been issued; the accumulator,
    and what A and B read, belong to the tensor cores until a `kernel.wait`. On
    Hopper one committed group of `wgmma`; `mma.sync` completes in order, so
    there is nothing to wait for.

    ```mlir
    %s = kernel.start %q, %k, %zero k(64) : memref<...>, memref<...> into vector<1x8x2x2xf32>
    %x = kernel.wait %s younger 1 : !kernel.pending<vector<1x8x2x2xf32>>
    ```
  }];
  let results = (outs Kernel_Pending:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc `k` `(` $k `)` attr-dict `:` type($a) `,` type($b) `into`
    custom<PendingSum>(type($acc), type($result))
  }];
}

def Kernel_WaitOp : Kernel_Op<"wait", [
    TypesMatchWith<"result is what is pending", "pending", "result",
                   "::llvm::cast<::mlir::varlen::kernel::PendingType>($_self).getFragment()">]> {
  let summary = "The result of a started contraction";
  let description = [{
    At most `younger` contractions that were started later may still be in
    flight after it. On Hopper `wgmma.wait_group`; on sm_80 nothing.
  }];
  let arguments = (ins Kernel_Pending:$pending,
                       ConfinedAttr<I32Attr, [IntNonNegative]>:$younger);
  let results = (outs Kernel_Fragment:$result);
  let assemblyFormat = "$pending `younger` $younger attr-dict `:` type($pending)";
}

//===----------------------------------------------------------------------===//
// Instructions of Hopper
//===----------------------------------------------------------------------===//

/// An instruction that the nvvm dialect lacks. Upstream's convert-nvvm-to-llvm
/// makes PTX of it, as of those of the nvvm dialect without an intrinsic.
class Kernel_PtxOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<BasicPtxBuilderOpInterface, ["getAsmValues"]>]>;

def Kernel_WgmmaOp : Kernel_PtxOp<"wgmma", [
    AttrSizedOperandSegments,
    OptionalTypesMatchWith<"acc has the type of the result", "result", "acc", "$_self">]> {
  let summary = "acc + A B, issued by a warpgroup (wgmma.mma_async m64nNk16)";
  let description = [{
    The four warps of a warpgroup multiply 64 x 16 numbers by 16 x N. A is four
    registers (i32) of each thread, in the layout of a fragment, or the descriptor
    (i64) of a matrix in shared memory, as B is; `a_t` and `b_t` say that the
    rows of such a matrix are those of k. The accumulator is N / 2 registers of each
    thread; a sum that starts with zero has none to start with.

    The registers of the result, and the memory of A and B, belong to the tensor
    cores until a `kernel.wgmma_wait`. Fences and groups are operations of the nvvm
    dialect. Its `nvvm.wgmma.mma_async` has no A in registers.

    ```mlir
    %s = kernel.wgmma bf16 a(%q) b(%k) : i64 into !llvm.struct<(f32, f32, f32, f32)>
    %o = kernel.wgmma f16 a(%p0, %p1, %p2, %p3) b(%v) acc(%s) {b_t}
        : i32, i32, i32, i32 into !llvm.struct<(f32, f32, f32, f32)>
    ```
  }];
  let arguments = (ins
    TypeAttrOf<AnyTypeOf<[F16, BF16]>>:$element,
    Variadic<AnyTypeOf<[I32, I64]>>:$a, I64:$b, Optional<Kernel_Accumulator>:$acc,
    UnitAttr:$a_t, UnitAttr:$b_t);
  let results = (outs Kernel_Accumulator:$result);
  let assemblyFormat = [{
    $element `a` `(` $a `)` `b` `(` $b `)` (`acc` `(` $acc^ `)`)? attr-dict
    `:` type($a) `into` type($result)
  }];
  let extraClassDeclaration = [{
    /// The value of each thread.
    int64_t getNumRegisters();
    /// N: there are 64 N sums for 128 threads.
    int64_t getNumColumns() { return 2 * getNumRegisters(); }
    bool isAInRegisters() { return getA().size() == 4; }
  }];
  let hasVerifier = 1;
}

def Kernel_WgmmaWaitOp : Kernel_PtxOp<"wgmma_wait", [AllTypesMatch<["acc", "result"]>]> {
  let summary = "An accumulator that may be read (wgmma.wait_group)";
  let description = [{
    At most `younger` of the groups that were committed last may still be in flight
    after it. The result is the same registers, so that whatever reads these
    depends on the wait; `nvvm.wgmma.wait.group.sync.aligned` does not name them.

    ```mlir
    %t = kernel.wgmma_wait %s younger 1 : !llvm.struct<(f32, f32, f32, f32)>
    ```
  }];
  let arguments = (ins Kernel_Accumulator:$acc,
                       ConfinedAttr<I32Attr, [IntNonNegative]>:$younger);
  let results = (outs Kernel_Accumulator:$result);
  let assemblyFormat = "$acc `younger` $younger attr-dict `:` type($acc)";
}

#endif // KERNEL_OPS_TD
