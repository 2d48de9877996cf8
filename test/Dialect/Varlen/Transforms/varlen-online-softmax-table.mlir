// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax | FileCheck %s

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// The region is computed once for the cotangents of all lookups of a table, and a lookup adds its
// own; the scores and ds compute it again.
// CHECK-LABEL: func.func @grad
// CHECK: math.tanh
// CHECK: %[[TERMS:.*]]:3 = linalg.generic
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x24xf32>, tensor<8x24xf32>, tensor<8x24xf32>)
// CHECK-NOT: linalg.generic
// CHECK: math.tanh
// CHECK-NOT: math.tanh
// CHECK: varlen.scatter_add %[[TERMS]]#0 at
// CHECK-NOT: math.tanh
// CHECK: varlen.scatter_add %[[TERMS]]#1 at
// CHECK-NOT: math.tanh
// CHECK: varlen.scatter_add %[[TERMS]]#2 at
// CHECK: math.tanh
// CHECK: scf.yield
func.func @grad(%q: memref<?x4x64xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                %bias: memref<4x32xf32>, %dq: memref<?x4x64xf32>, %dk: memref<?x4x64xf32>,
                %dv: memref<?x4x64xf32>, %dbias: memref<4x32xf32>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
         memref<?x4x64xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4x32xf32>,
         memref<4x32xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %a = varlen.lookup %table[%i] : !varlen.table<f32>
        %b = varlen.lookup %table[%j] : !varlen.table<f32>
        %d = arith.subi %i, %j : i32
        %c = varlen.lookup %table[%d] : !varlen.table<f32>
        %s0 = arith.addf %s, %a : f32
        %s1 = arith.mulf %s0, %b : f32
        %s2 = arith.addf %s1, %c : f32
        %new = math.tanh %s2 : f32
        varlen.yield %new : f32
      }
  return
}
