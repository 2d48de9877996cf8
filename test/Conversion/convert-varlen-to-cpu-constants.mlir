// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --varlen-specialize-few --convert-varlen-to-cpu --split-input-file | FileCheck %s

// Each constant is there once, at the beginning of the function, for whichever
// loop uses it; what a score computes with stays in its region.

// CHECK-LABEL: @constants
// CHECK: arith.constant 8 : index
// CHECK-NOT: arith.constant 8 : index
// CHECK: varlen.work_tiles
// CHECK-NOT: arith.constant
// CHECK: varlen.online_attn {{ *}}qk
// CHECK-NEXT: arith.constant 2.500000e-01 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.constant 5.000000e-01 : f32
// CHECK-NEXT: arith.mulf
// CHECK-NOT: arith.constant
// CHECK: varlen.online_attn {{ *}}kq
// CHECK-NEXT: arith.constant 2.500000e-01 : f32
func.func @constants(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %cu: memref<?xi32>,
                     %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>,
       varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 2,
                                              kv_block = 32, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %half = arith.constant 0.5 : f32
        %r = arith.mulf %s, %half : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// A function without tile loops is left alone.

// CHECK-LABEL: @other
// CHECK-COUNT-2: arith.constant 7 : index
func.func @other() -> (index, index) {
  %a = arith.constant 7 : index
  %b = arith.constant 7 : index
  return %a, %b : index, index
}
