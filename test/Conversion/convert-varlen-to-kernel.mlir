// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>

// CHECK-LABEL: @causal
// CHECK-SAME: (%[[Q:.*]]: memref<?x8x40xbf16>, %[[K:.*]]: memref<?x2x40xbf16>,
func.func @causal(%q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>,
                  %cu: memref<?xi32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  // The list is made on the device, and the host does not look at it.
  // CHECK: call @varlen_gpu_status_buffer
  // CHECK: %[[LIST:.*]] = memref.alloc(%{{.*}}) : memref<?x2xi32>
  // CHECK: %[[COUNT:.*]] = memref.alloc() : memref<2xi64>
  // Work and tiles of each sequence; sorted runs of 1, 16, 256, ... of them.
  // CHECK: %[[TABLE:.*]] = memref.alloc(%[[SEGMENTS:.*]]) : memref<2x3x?xi64>
  // CHECK: gpu.launch {{.*}} module(@kernels) function(@causal_tiles_segments)
  // CHECK-COUNT-3: memref.store %{{.*}}, %[[TABLE]]
  // CHECK: %[[SORTED:.*]]:2 = scf.while (%[[SIZE:.*]] = %c1, %[[HALF:.*]] = %c0)
  // CHECK:   arith.cmpi slt, %[[SIZE]], %[[SEGMENTS]]
  // CHECK:   gpu.launch {{.*}} module(@kernels) function(@causal_tiles_merge)
  // CHECK:     scf.for
  // CHECK:       scf.while
  // CHECK-COUNT-3: memref.store %{{.*}}, %[[TABLE]]
  // CHECK:   arith.muli %{{.*}}, %c16
  // CHECK: gpu.launch {{.*}} module(@kernels) function(@causal_tiles)
  // CHECK: memref.load %[[TABLE]][%[[SORTED]]#1,
  // CHECK: memref.store %{{.*}}, %[[COUNT]][%c0]
  // CHECK: memref.store %{{.*}}, %[[COUNT]][%c1]
  // The first error of all streams is kept, and complete when its code is there.
  // CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} acq_rel monotonic
  // CHECK-COUNT-3: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : i64, !llvm.ptr
  // CHECK: llvm.store %{{.*}} atomic release
  // CHECK: scf.while
  // CHECK: memref.store %{{.*}}, %[[LIST]]
  // CHECK: memref.dealloc %[[TABLE]]

  // CHECK: call @varlen_gpu_multiprocessors
  // CHECK: gpu.launch {{.*}} module(@kernels) function(@causal_attn)
  // CHECK: %[[QS:.*]] = kernel.alloc : memref<1x64x64xbf16
  // CHECK: %[[RING:.*]] = kernel.ring stages(3) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16
  // A persistent loop over (tile, kv head): the first is that of the CTA's number, the others are
  // taken.
  // CHECK: %[[TAKEN:.*]] = kernel.alloc : memref<2xi64, #gpu.address_space<workgroup>>
  // One thread stores the number of them; no register keeps it.
  // CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0 : index
  // CHECK: scf.if %[[IS_FIRST]] {
  // CHECK:   memref.store %{{.*}}, %[[TAKEN]][%c1]
  // CHECK: scf.while (%[[ITEM:.*]] = %{{.*}}, %[[END:.*]] = %{{.*}}) : (i32, i32)
  // CHECK:   arith.cmpi slt, %[[ITEM]], %[[END]] : i32
  // CHECK:   scf.if
  // CHECK:     kernel.ring.restart
  // CHECK:     kernel.copy %[[Q]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4) valid(%{{.*}}) to %[[QS]]
  // Two of three stages are filled before the first step.
  // CHECK:     kernel.ring.acquire
  // CHECK:     kernel.ring.commit
  // CHECK:     kernel.ring.acquire
  // CHECK:     kernel.ring.commit
  // CHECK-NOT: kernel.ring.commit
  // CHECK:   } else {
  // CHECK:     gpu.barrier
  // Rows past the diagonal of a block are compared in the first loop only.
  // CHECK:   scf.for
  // CHECK:     kernel.ring.wait %[[RING]][%{{.*}}] younger 1
  // CHECK:     kernel.tile %[[QS]] : {{.*}} to tensor<64x48xbf16>
  // CHECK:     varlen.online_attn qk ins({{.*}}: tensor<64x48xbf16>, tensor<32x48xbf16>, tensor<32x32xbf16>) limits(
  // CHECK:     kernel.ring.release
  // CHECK:   scf.for
  // CHECK:     varlen.online_attn
  // CHECK-NOT: limits
  // CHECK:   kernel.take %[[COUNT]][%c1] to %[[TAKEN]]
  // CHECK:   kernel.store %{{.*}} : tensor<64x32xbf16> to memref<?x8x24xbf16>
  // CHECK:   kernel.store %{{.*}} : tensor<64x1xf32> to memref<8x?xf32>
  // CHECK:   gpu.barrier
  // CHECK:   memref.load %[[TAKEN]][%c0]
  // CHECK:   memref.load %[[TAKEN]][%c1]
  // CHECK: memref.dealloc %[[LIST]]
  // CHECK: memref.dealloc %[[COUNT]]
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}

// With slack a stage fewer is filled ahead.
// CHECK-LABEL: @slack
func.func @slack(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // CHECK: kernel.ring stages(3) slack(1) lag(1)
  // CHECK: kernel.ring.commit
  // CHECK-NOT: kernel.ring.commit
  // CHECK: scf.for
  // CHECK: kernel.ring.wait %{{.*}} younger 0
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, slack = 1, lag = 1>}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}

// Keys and values have a ring each, whose commits take turns.
// CHECK-LABEL: @rings
func.func @rings(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // CHECK: %[[KEYS:.*]] = kernel.ring stages(3) : <memref<1x32x64xbf16, {{[^,]*}}>>
  // CHECK: %[[VALUES:.*]] = kernel.ring stages(3) : <memref<1x32x64xbf16, {{[^,]*}}>>
  // CHECK: kernel.ring.restart %[[KEYS]], %[[VALUES]]
  // CHECK: kernel.ring.commit %[[KEYS]]
  // CHECK: kernel.ring.commit %[[VALUES]]
  // CHECK: kernel.ring.commit %[[KEYS]]
  // CHECK: kernel.ring.commit %[[VALUES]]
  // CHECK: scf.for
  // CHECK: kernel.ring.wait %[[KEYS]]{{.*}} younger 2
  // CHECK: kernel.ring.acquire %[[KEYS]]
  // CHECK: kernel.copy
  // CHECK-NOT: kernel.copy
  // CHECK: kernel.ring.wait %[[VALUES]]{{.*}} younger 2
  // CHECK: kernel.ring.acquire %[[VALUES]]
  // CHECK: kernel.ring.release %[[KEYS]]
  // CHECK: kernel.ring.release %[[VALUES]]
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 1, rings = 2>}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}

// A warpgroup without a row in use copies with the others, and takes no step.
// CHECK-LABEL: @idle_warpgroups
func.func @idle_warpgroups(%q: memref<?x8x64xbf16>, %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // CHECK: %[[GROUP:.*]], %{{.*}} = gpu.shuffle idx
  // CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %c64_i32
  // CHECK: %[[USED:.*]] = arith.cmpi slt, %[[FIRST]], %{{.*}} : i32
  // CHECK: scf.if %[[USED]]
  // CHECK-COUNT-2: varlen.online_attn
  // CHECK: } else {
  // CHECK: scf.for
  // CHECK: kernel.ring.wait
  // CHECK: kernel.ring.acquire
  // CHECK: kernel.ring.commit
  // CHECK-NOT: varlen.online_attn
  // CHECK: kernel.ring.release
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.gpu_schedule<warps = 8, block_m = 128, kv_block = 32, stages = 3, ctas = 1, slack = 1>}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}

// f32 tiles lie in shared memory as three bf16 tiles each.
// CHECK-LABEL: @f32
func.func @f32(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %out: memref<?x8x64xf32>, %lse: memref<8x?xf32>) {
  // CHECK: %[[A:.*]] = kernel.alloc : memref<1x64x64xbf16
  // CHECK: %[[B:.*]] = kernel.alloc : memref<1x64x64xbf16
  // CHECK: %[[C:.*]] = kernel.alloc : memref<1x64x64xbf16
  // CHECK: kernel.copy {{.*}} to %[[A]], %[[B]], %[[C]] : memref<?x8x64xf32>
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #gpu}
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>, memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>) -> ()
  return
}
