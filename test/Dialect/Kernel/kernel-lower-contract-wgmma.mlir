// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-contract{wgmma=true},canonicalize,cse)))' --split-input-file | FileCheck %s

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// Both factors by descriptors: the address in units of 16 bytes, 64 of these
// from eight rows to the next, and the 128-byte swizzle. A step of 16 columns
// is 32 bytes. The registers of the sum are written before the fence.
// CHECK-LABEL: gpu.func @both_shared
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 4611686293305360384 : i64
// CHECK-DAG: %[[STEP:.*]] = arith.constant 2 : i64
// CHECK: %[[E:.*]]:8 = vector.to_elements
// CHECK: %[[SUM0:.*]] = llvm.insertvalue %[[E]]#0, %{{.*}}[0]
// CHECK: %[[SUM:.*]] = llvm.insertvalue %[[E]]#7, %{{.*}}[7]
// CHECK: %[[PA:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// CHECK: %[[MASKED:.*]] = arith.andi %[[PA]], %{{.*}} : i32
// CHECK: %[[UNITS:.*]] = arith.shrui %[[MASKED]], %{{.*}} : i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[UNITS]] : i32 to i64
// CHECK: %[[A:.*]] = arith.ori %[[WIDE]], %[[HIGH]] : i64
// CHECK: %[[A1:.*]] = arith.addi %[[A]], %[[STEP]] : i64
// CHECK: %[[B:.*]] = arith.ori {{.*}}, %[[HIGH]] : i64
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: %[[D:.*]] = kernel.wgmma bf16 a(%[[A]]) b(%[[B]]) acc(%[[SUM]]) : i64 into !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>
// CHECK: %[[D1:.*]] = kernel.wgmma bf16 a(%[[A1]]) b(%{{.*}}) acc(%[[D]]) : i64 into
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: %[[R:.*]] = kernel.wgmma_wait %[[D1]] younger 0
// CHECK: llvm.extractvalue %[[R]][0]
// CHECK: vector.from_elements {{.*}} : vector<1x2x2x2xf32>
gpu.module @kernels {
  gpu.func @both_shared(%q: !k, %k: !k, %acc: vector<1x2x2x2xf32>, %out: memref<?x1x16xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(32) : !k, !k into vector<1x2x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x1x16xf32>
    gpu.return
  }
}

// -----

!v = memref<2x64x64xf16, #gpu.address_space<workgroup>>

// A in registers. The rows of B are those of k: 16 of them are 2048 bytes, and
// from slab to slab of columns there are 64 rows, 512 units.
// CHECK-LABEL: gpu.func @fragment
// CHECK-SAME: (%[[P:.*]]: vector<1x4x2x2xf16>
// CHECK-DAG: arith.constant 4611686293338849280 : i64
// CHECK-DAG: arith.constant 128 : i64
// CHECK: vector.extract %[[P]][0, 0, 0] : vector<2xf16>
// CHECK: vector.extract %[[P]][0, 0, 1]
// CHECK: vector.extract %[[P]][0, 1, 0]
// CHECK: vector.extract %[[P]][0, 1, 1]
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-2: kernel.wgmma f16 a(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) b(%{{.*}}) acc(%{{.*}}) {b_t} : i32, i32, i32, i32 into
gpu.module @kernels {
  gpu.func @fragment(%p: vector<1x4x2x2xf16>, %v: !v, %acc: vector<1x16x2x2xf32>, %out: memref<?x1x128xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %p, %v, %acc k(32) {b_t} : vector<1x4x2x2xf16>, !v into vector<1x16x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x16x2x2xf32> to memref<?x1x128xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// A sum that starts with zero has no registers to start with.
// CHECK-LABEL: gpu.func @zero
// CHECK: %[[S:.*]] = kernel.wgmma bf16 a(%{{.*}}) b(%{{.*}}) : i64 into
// CHECK: kernel.wgmma bf16 a(%{{.*}}) b(%{{.*}}) acc(%[[S]]) : i64 into
gpu.module @kernels {
  gpu.func @zero(%q: !k, %k: !k, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant dense<0.0> : vector<1x1x2x2xf32>
    %s = kernel.contract %q, %k, %zero k(32) : !k, !k into vector<1x1x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
}

// -----

!k = memref<2x128x64xbf16, #gpu.address_space<workgroup>>

// Of eight warps the second four have the rows from 64 on, or the second slab of
// a transposed A, 16384 bytes further. Which four is the same in all lanes.
// CHECK-LABEL: gpu.func @two_groups
// CHECK-DAG: %[[SLAB:.*]] = arith.constant 16384 : i32
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 8192 : i32
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
// CHECK: %[[GROUP:.*]] = arith.shrui %[[WARP]], %[[C2]] : i32
// CHECK: arith.muli %[[GROUP]], %[[ROWS]] : i32
// CHECK: kernel.wgmma bf16 a(%{{.*}}) b(%{{.*}}) acc(%{{.*}}) : i64 into
// CHECK: arith.muli %{{.*}}, %[[SLAB]] : i32
// CHECK: kernel.wgmma bf16 a(%{{.*}}) b(%{{.*}}) acc(%{{.*}}) {a_t, b_t} : i64 into
gpu.module @kernels {
  gpu.func @two_groups(%q: !k, %k: !k, %acc: vector<1x1x2x2xf32>, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(16) : !k, !k into vector<1x1x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    %t = kernel.contract %q, %k, %acc k(16) {a_t, b_t} : !k, !k into vector<1x1x2x2xf32>
    kernel.store %t to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// What is in flight is a struct of registers; each wait says how many may still be.
// CHECK-LABEL: gpu.func @in_flight
// CHECK: %[[S:.*]] = kernel.wgmma {{.*}} into !llvm.struct<(f32, f32, f32, f32)>
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: %[[T:.*]] = kernel.wgmma
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: kernel.wgmma_wait %[[S]] younger 1
// CHECK: kernel.wgmma_wait %[[T]] younger 0
gpu.module @kernels {
  gpu.func @in_flight(%q: !k, %k: !k, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant dense<0.0> : vector<1x1x2x2xf32>
    %s = kernel.start %q, %k, %zero k(16) : !k, !k into vector<1x1x2x2xf32>
    %t = kernel.start %q, %q, %zero k(16) : !k, !k into vector<1x1x2x2xf32>
    %s1 = kernel.wait %s younger 1 : <vector<1x1x2x2xf32>>
    kernel.store %s1 to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    %t1 = kernel.wait %t younger 0 : <vector<1x1x2x2xf32>>
    kernel.store %t1 to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
}

// -----

!wide = memref<1x264x64xbf16, #gpu.address_space<workgroup>>
!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// The terms of f32, and what is not for whole warpgroups with one instruction
// each, are for mma.sync.
// CHECK-LABEL: gpu.func @terms
// CHECK-NOT: wgmma
// CHECK: nvvm.mma.sync
// CHECK-LABEL: gpu.func @two_warps
// CHECK-NOT: wgmma
// CHECK: nvvm.mma.sync
// CHECK-LABEL: gpu.func @more_rows
// CHECK-NOT: wgmma
// CHECK: nvvm.mma.sync
// CHECK-LABEL: gpu.func @more_columns
// CHECK-NOT: wgmma
// CHECK: nvvm.mma.sync
gpu.module @kernels {
  gpu.func @terms(%q: !k, %k: !k, %acc: vector<1x1x2x2xf32>, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(16) : !k, !k into vector<1x1x2x2xf32>
    %t = kernel.contract %q, %q, %s k(16) : !k, !k into vector<1x1x2x2xf32>
    kernel.store %t to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
  gpu.func @two_warps(%q: !k, %k: !k, %acc: vector<1x1x2x2xf32>, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(16) : !k, !k into vector<1x1x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
  gpu.func @more_rows(%p: vector<2x2x2x2xbf16>, %k: !k, %acc: vector<2x1x2x2xf32>, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %p, %k, %acc k(16) : vector<2x2x2x2xbf16>, !k into vector<2x1x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<2x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
  gpu.func @more_columns(%p: vector<1x2x2x2xbf16>, %k: !wide, %acc: vector<1x33x2x2xf32>, %out: memref<?x1x264xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %p, %k, %acc k(16) : vector<1x2x2x2xbf16>, !wide into vector<1x33x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x33x2x2xf32> to memref<?x1x264xf32>
    gpu.return
  }
}

// -----

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// A sum of products that have no operand in common is one group.
// CHECK-LABEL: gpu.func @sum_of_products
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NEXT: %[[S:.*]] = kernel.wgmma bf16 a(%[[TQ:.*]]) b(%[[K:.*]]) acc(%{{.*}}) : i64 into
// CHECK-NEXT: %[[T:.*]] = kernel.wgmma bf16 a(%[[Q:.*]]) b(%[[TK:.*]]) acc(%[[S]]) : i64 into
// CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: kernel.wgmma_wait %[[T]] younger 0
// CHECK-NOT: wgmma
gpu.module @kernels {
  gpu.func @sum_of_products(%q: !k, %k: !k, %tq: !k, %tk: !k, %acc: vector<1x1x2x2xf32>, %out: memref<?x1x8xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %tq, %k, %acc k(16) : !k, !k into vector<1x1x2x2xf32>
    %t = kernel.contract %q, %tk, %s k(16) : !k, !k into vector<1x1x2x2xf32>
    kernel.store %t to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf32> to memref<?x1x8xf32>
    gpu.return
  }
}
