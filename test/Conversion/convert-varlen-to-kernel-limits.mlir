// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu --varlen-online-softmax --varlen-expand-scores | FileCheck %s

// Scores of a masked block are compared with the sides at which the mask has a limit.

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>

// CHECK-LABEL: @causal
// CHECK: linalg.index 1
// CHECK-NOT: arith.cmpi sge
// CHECK: arith.cmpi slt, %{{.*}}, %in{{[_0-9]*}} : i32
// CHECK-NEXT: arith.select
// CHECK-NEXT: linalg.yield
func.func @causal(%q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>,
                  %cu: memref<?xi32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}

// CHECK-LABEL: @window
// CHECK: linalg.index 1
// CHECK: arith.cmpi sge, %{{.*}}, %in{{[_0-9]*}} : i32
// CHECK-NEXT: arith.cmpi slt, %{{.*}}, %in{{[_0-9]*}} : i32
// CHECK-NEXT: arith.select
// CHECK-NEXT: arith.select
// CHECK-NEXT: linalg.yield
func.func @window(%q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>,
                  %cu: memref<?xi32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<window = (16, 0)>, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}
