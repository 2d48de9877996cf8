// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse --split-input-file | FileCheck %s

// A warp for each sequence looks for an entry that is used and is no page. The list is
// made of what it finds; rows of the sequence N have no key.
// CHECK-LABEL: @pages
// CHECK-SAME: %[[K:[^:]*]]: memref<?x16x2x40xbf16>, %[[V:[^:]*]]: memref<?x16x2x24xbf16>, %{{.*}}: memref<?xi32>, %[[USED:[^:]*]]: memref<?xi32>, %[[TABLE:[^:]*]]: memref<?x?xi32>
// CHECK: %[[STRAY:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>
// CHECK: gpu.launch {{.*}} module(@kernels) function(@pages_tiles_pages)
// CHECK:   memref.load %[[USED]]
// CHECK:   scf.for
// CHECK:     memref.load %[[TABLE]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:   memref.store %{{.*}}, %[[STRAY]]
// CHECK: function(@pages_tiles_in_one_cta)
// CHECK:   memref.load %[[STRAY]]
// CHECK:   memref.load %[[TABLE]]
// CHECK: memref.dealloc %[[STRAY]]
// The row of the table is the sequence.
// CHECK: function(@pages_attn)
// CHECK: %[[S32:.*]] = memref.load %{{.*}}[%{{.*}}, %c0] : memref<?x2xi32>
// CHECK: %[[S:.*]] = arith.index_cast %[[S32]] : i32 to index
// CHECK: kernel.copy %[[K]] rows(%[[S]], %{{.*}}, %{{.*}}, %c1) valid(%{{.*}}) pages(%[[TABLE]] : memref<?x?xi32>) to %{{[^ ]*}} : memref
// CHECK: kernel.copy %[[V]] rows(%[[S]], %{{.*}}, %{{.*}}, %c1) valid(%{{.*}}) pages(%[[TABLE]] : memref<?x?xi32>) to %{{[^ ]*}} : memref
func.func @pages(%q: memref<?x8x40xbf16>, %k: memref<?x16x2x40xbf16>, %v: memref<?x16x2x24xbf16>,
                 %cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
                 %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      {mask = #varlen.mask<causal>,
       varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>}
      : (memref<?x8x40xbf16>, memref<?x16x2x40xbf16>, memref<?x16x2x24xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x24xbf16>, memref<8x?xf32>, memref<?x?xi32>) -> ()
  return
}

// -----

// A block of 32 keys is in one page of 64.
// CHECK-LABEL: @blocks_in_pages
// CHECK-COUNT-2: kernel.copy %{{.*}} pages(%{{.*}} : memref<?x?xi32>) to %{{.*}} {one_page}
func.func @blocks_in_pages(%q: memref<?x8x40xbf16>, %k: memref<?x64x2x40xbf16>, %cu: memref<?xi32>,
                           %used: memref<?xi32>, %table: memref<?x?xi32>,
                           %out: memref<?x8x40xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      {mask = #varlen.mask<causal>,
       varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>}
      : (memref<?x8x40xbf16>, memref<?x64x2x40xbf16>, memref<?x64x2x40xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x40xbf16>, memref<8x?xf32>, memref<?x?xi32>) -> ()
  return
}
