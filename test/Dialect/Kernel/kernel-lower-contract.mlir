// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-lower-contract,canonicalize,cse)))' --split-input-file | FileCheck %s

!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// One k-step of 16 x 16, both operands in shared memory. A lane's address: row
// and chunk of its 8 x 8 matrix, the chunk exclusive-or'ed with the row.
// CHECK-LABEL: gpu.func @both_shared
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[C128:.*]] = arith.constant 128 : i32
// CHECK: %[[W16:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: %[[R8:.*]] = arith.andi %[[LANE]], %{{.*}} : i32
// CHECK: %[[S3:.*]] = arith.shrui %[[LANE]], %[[C3]] : i32
// CHECK: %[[B3:.*]] = arith.andi %[[S3]], %{{.*}} : i32
// CHECK: %[[B4:.*]] = arith.shrui %[[LANE]], %[[C4]] : i32
// A: bit 3 of the lane selects the rows, bit 4 the chunk.
// CHECK: %[[H:.*]] = arith.muli %[[B3]], %{{.*}} : i32
// CHECK: %[[ROW0:.*]] = arith.addi %[[H]], %[[R8]] : i32
// CHECK: %[[ROW:.*]] = arith.addi %[[ROW0]], %[[W16]] : i32
// CHECK: %[[ROWS:.*]] = arith.muli %[[ROW]], %[[C128]] : i32
// CHECK: %[[CHUNK:.*]] = arith.xori %[[B4]], %[[R8]] : i32
// CHECK: %[[CHUNKS:.*]] = arith.muli %[[CHUNK]], %{{.*}} : i32
// CHECK: %[[OFFSET:.*]] = arith.addi %[[ROWS]], %[[CHUNKS]] : i32
// B, transposed.
// CHECK: %[[HB:.*]] = arith.muli %[[B4]], %{{.*}} : i32
// CHECK: %[[ROWB:.*]] = arith.addi %[[HB]], %[[R8]] : i32
// CHECK: arith.xori %[[B3]], %[[R8]] : i32
// CHECK: %[[PA:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK: %[[A:.*]] = nvvm.ldmatrix %[[PA]] {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK-COUNT-4: llvm.extractvalue %[[A]]
// CHECK: %[[B:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: %[[D:.*]] = nvvm.mma.sync A[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}] C[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: vector.from_elements {{.*}} : vector<1x2x2x2xf32>
gpu.module @kernels {
  gpu.func @both_shared(%q: !k, %k: !k, %acc: vector<1x2x2x2xf32>, %out: memref<?x1x16xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %q, %k, %acc k(16) : !k, !k into vector<1x2x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x1x16xf32>
    gpu.return
  }
}

// -----

!v = memref<2x64x64xf16, #gpu.address_space<workgroup>>

// A fragment is used in place: the registers of step s are its column pairs 2s
// and 2s + 1. B is transposed on its way, read once for two m-tiles, and the
// last, odd n-tile takes half a load. The second slab is 64 rows of 128 bytes
// away, a step of 16 rows 2048 bytes.
// CHECK-LABEL: gpu.func @fragment
// CHECK-SAME: (%[[P:.*]]: vector<2x4x2x2xf16>
// CHECK: vector.extract %[[P]][0, 0, 0] : vector<2xf16>
// CHECK: vector.extract %[[P]][0, 0, 1]
// CHECK: vector.extract %[[P]][0, 1, 0]
// CHECK: vector.extract %[[P]][0, 1, 1]
// CHECK: vector.extract %[[P]][1, 0, 0]
// CHECK: %[[B0:.*]] = nvvm.ldmatrix %[[AT:.*]] {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK-COUNT-4: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: %[[X:.*]] = arith.xori %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-3: nvvm.ldmatrix {{.*}}num = 4
// CHECK: %[[SLAB:.*]] = llvm.getelementptr %{{.*}}[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK: nvvm.ldmatrix %[[SLAB]] {{.*}}layout = #nvvm.mma_layout<col>, num = 2
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: vector.extract %[[P]][0, 2, 0]
// CHECK: %[[STEP:.*]] = llvm.getelementptr %{{.*}}[2048]
// CHECK: nvvm.ldmatrix %[[STEP]] {{.*}}num = 4
gpu.module @kernels {
  gpu.func @fragment(%p: vector<2x4x2x2xf16>, %v: !v, %acc: vector<2x9x2x2xf32>, %out: memref<?x1x72xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %s = kernel.contract %p, %v, %acc k(32) {b_t} : vector<2x4x2x2xf16>, !v into vector<2x9x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<2x9x2x2xf32> to memref<?x1x72xf32>
    gpu.return
  }
}

// -----

!a = memref<2x64x64xbf16, #gpu.address_space<workgroup>>

// A stored transposed: rows are k, a warp's rows are chunks, and those of warps
// 4 to 7 are in the second slab.
// CHECK-LABEL: gpu.func @transposed_a
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[C8192:.*]] = arith.constant 8192 : i32
// CHECK: %[[CHUNK:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: %[[SLAB:.*]] = arith.shrui %[[CHUNK]], %[[C3]] : i32
// CHECK: arith.muli %[[SLAB]], %[[C8192]] : i32
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.mma.sync
gpu.module @kernels {
  gpu.func @transposed_a(%a: !a, %acc: vector<1x2x2x2xf32>, %out: memref<?x1x16xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %s = kernel.contract %a, %a, %acc k(16) {a_t, b_t} : !a, !a into vector<1x2x2x2xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x1x16xf32>
    gpu.return
  }
}

// -----

!v = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// Contractions onto each other, and an addition to the last: all products and
// the sum of the first two n-tiles, then those of the next.
// CHECK-LABEL: gpu.func @chain
// CHECK-SAME: (%{{.*}}: vector<1x2x2x2xbf16>, {{.*}}, %[[ACC:[a-z0-9]*]]: vector<1x4x2x2xf32>, %{{.*}}: memref
// CHECK-DAG: %[[E:.*]]:16 = vector.to_elements %[[ACC]]
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: arith.addf %[[E]]#0, %{{.*}} : f32
// CHECK: arith.addf %[[E]]#7, %{{.*}} : f32
// CHECK-NOT: arith.addf
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK: arith.addf %[[E]]#8, %{{.*}} : f32
// CHECK: arith.addf %[[E]]#15, %{{.*}} : f32
// CHECK: vector.from_elements
gpu.module @kernels {
  gpu.func @chain(%p: vector<1x2x2x2xbf16>, %v: !v, %acc: vector<1x4x2x2xf32>, %out: memref<?x1x32xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %z = arith.constant dense<0.0> : vector<1x4x2x2xf32>
    %a = kernel.contract %p, %v, %z k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    %b = kernel.contract %p, %v, %a k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    %c = kernel.contract %p, %v, %b k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    %d = arith.addf %acc, %c : vector<1x4x2x2xf32>
    kernel.store %d to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x4x2x2xf32> to memref<?x1x32xf32>
    gpu.return
  }
}

// -----

!v = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// A barrier between two, or another use of the first sum: one after the other.
// CHECK-LABEL: gpu.func @no_chain
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.barrier
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: vector.from_elements
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: vector.from_elements
gpu.module @kernels {
  gpu.func @no_chain(%p: vector<1x2x2x2xbf16>, %v: !v, %acc: vector<1x4x2x2xf32>, %out: memref<?x1x32xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.contract %p, %v, %acc k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    gpu.barrier
    %b = kernel.contract %p, %v, %a k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    %c = kernel.contract %p, %v, %b k(16) {b_t} : vector<1x2x2x2xbf16>, !v into vector<1x4x2x2xf32>
    %d = arith.mulf %b, %c : vector<1x4x2x2xf32>
    kernel.store %d to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x4x2x2xf32> to memref<?x1x32xf32>
    gpu.return
  }
}

// -----

!q = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// With A in shared memory: both steps of 16, each with all three contractions;
// the last, large one has a sum of its own.
// CHECK-LABEL: gpu.func @chain_shared
// CHECK: %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
// CHECK: %[[E:.*]]:8 = vector.to_elements
// CHECK-COUNT-3: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync {{.*}}C[%[[E]]#0,
// CHECK: nvvm.mma.sync {{.*}}C[%[[E]]#4,
// CHECK: nvvm.ldmatrix
// CHECK: %[[S0:.*]] = nvvm.mma.sync
// CHECK: %[[S1:.*]] = nvvm.mma.sync
// CHECK: nvvm.ldmatrix
// CHECK: %[[L:.*]] = nvvm.mma.sync {{.*}}C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO]],
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-8: arith.addf
// CHECK-NOT: arith.addf
gpu.module @kernels {
  gpu.func @chain_shared(%q: !q, %k: !q, %acc: vector<1x2x2x2xf32>, %out: memref<?x1x16xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.contract %q, %k, %acc k(32) : !q, !q into vector<1x2x2x2xf32>
    %b = kernel.contract %k, %q, %a k(32) : !q, !q into vector<1x2x2x2xf32>
    %c = kernel.contract %q, %q, %b k(32) : !q, !q into vector<1x2x2x2xf32>
    kernel.store %c to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x1x16xf32>
    gpu.return
  }
}

// -----

!q = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

// Sums of products that have no operand in common: one after the other, onto one sum.
// CHECK-LABEL: gpu.func @sum_of_products
// CHECK: %[[E:.*]]:8 = vector.to_elements
// CHECK: %[[S:.*]] = nvvm.mma.sync {{.*}}C[%[[E]]#0,
// CHECK: %[[S0:.*]] = llvm.extractvalue %[[S]][0]
// CHECK: %[[T:.*]] = nvvm.mma.sync {{.*}}C[%[[E]]#4,
// CHECK: %[[T0:.*]] = llvm.extractvalue %[[T]][0]
// CHECK: nvvm.mma.sync {{.*}}C[%[[S0]],
// CHECK: nvvm.mma.sync {{.*}}C[%[[T0]],
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: arith.addf
gpu.module @kernels {
  gpu.func @sum_of_products(%q: !q, %k: !q, %tq: !q, %tk: !q, %acc: vector<1x2x2x2xf32>, %out: memref<?x1x16xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = kernel.contract %tq, %k, %acc k(16) : !q, !q into vector<1x2x2x2xf32>
    %b = kernel.contract %q, %tk, %a k(16) : !q, !q into vector<1x2x2x2xf32>
    kernel.store %b to %out rows(%i, %i, %i, %i) valid(%i) : vector<1x2x2x2xf32> to memref<?x1x16xf32>
    gpu.return
  }
}
