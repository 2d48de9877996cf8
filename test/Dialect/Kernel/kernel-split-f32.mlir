// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-split-f32)))' | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-split-f32,kernel-distribute,canonicalize,cse)))' | FileCheck %s --check-prefix=FRAGMENT

#qd = affine_map<(m, n, d) -> (m, d)>
#kd = affine_map<(m, n, d) -> (n, d)>
#vd = affine_map<(m, n, d) -> (d, n)>
#mn = affine_map<(m, n, d) -> (m, n)>
!k = memref<1x64x64xbf16, #gpu.address_space<workgroup>>

gpu.module @kernels {
  // Six products of planes, small ones first; the planes of a shared tile are
  // in memory.
  // CHECK-LABEL: gpu.func @shared
  // CHECK-SAME: (%[[K0:.*]]: memref<{{.*}}>, %[[K1:.*]]: memref<{{.*}}>, %[[K2:.*]]: memref<{{.*}}>, %{{.*}}: memref<?x1x64xf32>
  // CHECK-DAG: %[[Z:.*]] = linalg.fill
  // CHECK-DAG: %[[A0:.*]] = kernel.tile %[[K0]] : memref<1x64x64xbf16, #gpu.address_space<workgroup>> to tensor<64x64xbf16>
  // CHECK-DAG: %[[A1:.*]] = kernel.tile %[[K1]]
  // CHECK-DAG: %[[A2:.*]] = kernel.tile %[[K2]]
  // CHECK: %[[B0:.*]] = kernel.tile %[[K0]]
  // CHECK: %[[B1:.*]] = kernel.tile %[[K1]]
  // CHECK: %[[B2:.*]] = kernel.tile %[[K2]]
  // CHECK: %[[T0:.*]] = linalg.contract {{.*}} ins(%[[A0]], %[[B2]] : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%[[Z]] : tensor<64x64xf32>)
  // CHECK: %[[T1:.*]] = linalg.contract {{.*}} ins(%[[A2]], %[[B0]] {{.*}}) outs(%[[T0]]
  // CHECK: %[[T2:.*]] = linalg.contract {{.*}} ins(%[[A1]], %[[B1]] {{.*}}) outs(%[[T1]]
  // CHECK: %[[T3:.*]] = linalg.contract {{.*}} ins(%[[A0]], %[[B1]] {{.*}}) outs(%[[T2]]
  // CHECK: %[[T4:.*]] = linalg.contract {{.*}} ins(%[[A1]], %[[B0]] {{.*}}) outs(%[[T3]]
  // CHECK: %[[T5:.*]] = linalg.contract {{.*}} ins(%[[A0]], %[[B0]] {{.*}}) outs(%[[T4]]
  // CHECK: kernel.store %[[T5]]
  // FRAGMENT-LABEL: gpu.func @shared
  // FRAGMENT-COUNT-6: kernel.contract %{{.*}}, %{{.*}}, %{{.*}} k(64) : memref
  // FRAGMENT-NOT: arith.addf
  gpu.func @shared(%k0: !k, %k1: !k, %k2: !k, %out: memref<?x1x64xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %k = kernel.tile %k0, %k1, %k2 : !k, !k, !k to tensor<64x64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = linalg.contract indexing_maps = [#qd, #kd, #mn]
        ins(%k, %k : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x1x64xf32>
    gpu.return
  }

  // A value is split in registers, and what was accumulated before is added in
  // the end.
  // CHECK-LABEL: gpu.func @value
  // CHECK: %[[P:.*]] = linalg.fill
  // CHECK: %[[S:.*]]:3 = linalg.generic {{.*}} ins(%[[P]] : tensor<64x64xf32>)
  // CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: bf16, %{{.*}}: bf16, %{{.*}}: bf16):
  // CHECK: %[[B0:.*]] = arith.truncf %[[X]] : f32 to bf16
  // CHECK: %[[W0:.*]] = arith.extf %[[B0]]
  // CHECK: %[[R0:.*]] = arith.subf %[[X]], %[[W0]]
  // CHECK: %[[B1:.*]] = arith.truncf %[[R0]]
  // CHECK: %[[W1:.*]] = arith.extf %[[B1]]
  // CHECK: %[[R1:.*]] = arith.subf %[[R0]], %[[W1]]
  // CHECK: %[[B2:.*]] = arith.truncf %[[R1]]
  // CHECK: linalg.yield %[[B0]], %[[B1]], %[[B2]]
  // CHECK: %[[Z:.*]] = linalg.fill
  // CHECK: linalg.contract {{.*}} ins(%[[S]]#0, %{{.*}}) outs(%[[Z]]
  // CHECK-COUNT-4: linalg.contract
  // CHECK: %[[SUM:.*]] = linalg.contract {{.*}} ins(%[[S]]#0
  // CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[ACC:.*]], %[[SUM]] :
  // CHECK: arith.addf
  // CHECK: kernel.store %[[R]]
  // FRAGMENT-LABEL: gpu.func @value
  // FRAGMENT: arith.truncf {{.*}} : vector<1x8x2x2xf32> to vector<1x8x2x2xbf16>
  // FRAGMENT: arith.subf
  // FRAGMENT: arith.truncf
  // FRAGMENT: arith.subf
  // FRAGMENT: arith.truncf
  // FRAGMENT-COUNT-6: kernel.contract %{{.*}}, %{{.*}}, %{{.*}} k(64) {b_t} : vector<1x8x2x2xbf16>
  // FRAGMENT: arith.addf
  gpu.func @value(%k0: !k, %k1: !k, %k2: !k, %out: memref<?x1x64xf32>, %x: f32, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %v = kernel.tile %k0, %k1, %k2 : !k, !k, !k to tensor<64x64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %p = linalg.fill ins(%x : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = linalg.contract indexing_maps = [#qd, #vd, #mn]
        ins(%p, %v : tensor<64x64xf32>, tensor<64x64xf32>) outs(%p : tensor<64x64xf32>) -> tensor<64x64xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x1x64xf32>
    gpu.return
  }

  // Contractions of 16 bits stay.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK-COUNT-1: linalg.contract
  // CHECK-NOT: linalg.contract
  gpu.func @narrow(%k0: !k, %out: memref<?x1x64xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %k = kernel.tile %k0 : !k to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %s = linalg.contract indexing_maps = [#qd, #kd, #mn]
        ins(%k, %k : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    kernel.store %s to %out rows(%i, %i, %i, %i) valid(%i) : tensor<64x64xf32> to memref<?x1x64xf32>
    gpu.return
  }
  // So do those of buffers, which are no tiles.
  // CHECK-LABEL: gpu.func @buffers
  // CHECK-COUNT-1: linalg.contract
  // CHECK-NOT: linalg.contract
  gpu.func @buffers(%q: memref<64x64xf32>, %k: memref<64x64xf32>, %s: memref<64x64xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    linalg.contract indexing_maps = [#qd, #kd, #mn]
        ins(%q, %k : memref<64x64xf32>, memref<64x64xf32>) outs(%s : memref<64x64xf32>)
    gpu.return
  }
}
