//===- KernelDialect.td - The kernel dialect ---------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_DIALECT_TD
#define KERNEL_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::mlir::varlen::kernel";
  let summary = "The inside of a GPU kernel: tiles, fragments, shared memory";
  let description = [{
    One CTA's work on dense tiles, between linalg on tiles and the instructions
    of a GPU. It has two stages with the same operations:

    - *tiles*: values are static rank-2 tensors: R x C, a row statistic R x 1, a
      column statistic 1 x C. Arithmetic is linalg.
    - *fragments*: values are each thread's part of a tile. Arithmetic is arith,
      math and vector. `kernel-distribute` goes from tiles to fragments.

    There is one layout. A tile R x C over W warps is, in each thread, a
    `vector<R/16W x C/8 x 2 x 2>`; element [i, j, h, c] of lane l of warp w is

        row    = 16*W*i + 16*w + 8*h + l/4
        column = 8*j + 2*(l%4) + c

    which is at once the accumulator of `mma.sync` m16n8k16 and of `wgmma`, in
    16 bits the A operand of both, and what `ldmatrix` and `stmatrix` x4 move. A
    statistic is a projection of it: R x 1 is `vector<R/16W x 1 x 2 x 1>`, the
    same in the four lanes of a row; 1 x C is `vector<1 x C/8 x 1 x 2>`, the same
    in the eight lanes of a column and in all warps. A tile of fewer rows than 16 for
    each warp, but of as many columns, is the fragment of its transpose.

    A *shared tile* is `memref<SLABS x R x 64 x T, #gpu.address_space<workgroup>>`
    of a 16-bit T: slabs of 64 columns, rows of 128 bytes, whose 16-byte chunks
    are permuted: chunk c of row r is stored at c xor (r mod 8). That is the
    128-byte swizzle of TMA and wgmma; with it neither `ldmatrix` nor copies
    have bank conflicts. Columns may be fewer than 64 * SLABS; those up to the
    next multiple of 16 are zero in memory.

    *Rows in global memory* have one description, the clause
    `rows(%row, %head, %first, %group) valid(%n)`, all of type index: row i of a
    tile is the pair p = first + i of a query row and a head, stored at row
    `row + p / group` of head `head * group + p % group`; rows 0 <= i < n exist
    (n may be negative, or more than the tile has). With a group of 1 that is
    row `row + first + i` of `head`. Memory is `T x H x D`, indexed [row, head,
    column]; `H x T`, indexed [head, row], or `H x T x S` with S values each; or
    `H`, indexed [head].

    The operations on memory (`alloc`, `ring`, `copy`) are the same in both
    stages. A ring is a queue of shared-memory slots that copies fill while
    earlier slots are read. The protocol is that of a producer and a consumer;
    every thread is both.

    Below both stages are instructions that the nvvm dialect lacks
    (`kernel.wgmma`, `kernel.wgmma_wait`, `kernel.publish_map`), on types of the llvm dialect.
  }];
  let useDefaultTypePrinterParser = 1;
  // Addresses of tensor maps are pointers.
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // KERNEL_DIALECT_TD
