// A factor of probabilities at each level of an attention, and in its gradients.
// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s --check-prefix=TILES
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax | FileCheck %s --check-prefix=CPU
// RUN: varlen-opt %s --varlen-online-softmax | FileCheck %s --check-prefix=STEPS

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// Nothing but the factor: products are the scores, and the scale stays where it is without a
// region. The sum of the weights is of these as they are.
// TILES-LABEL: func.func @cpu
// TILES: varlen.online_attn kq {{.*}} scale 1.250000e-01
// TILES-SAME: score (%score: f32, %query: i32, %key: i32, %capture: f32) {
// TILES: varlen.yield %score, %{{.*}} : f32, f32
// CPU-LABEL: func.func @cpu
// CPU: %[[P:.*]] = linalg.generic {{.*}} tensor<1x24xf32>, tensor<1x24xf32>) outs(%{{.*}} : tensor<?x24xf32>)
// CPU-NEXT: ^bb0
// CPU-NEXT: varlen.weight
// CPU: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<?x24xf32>, tensor<1x24xf32>)
// CPU: %[[KEY:.*]] = linalg.index 0
// CPU: %[[ROW:.*]] = arith.index_cast %[[KEY]]
// CPU: %[[J:.*]] = arith.addi %[[ROW]], %{{.*}} : i32
// CPU: %[[WORD:.*]] = arith.bitcast
// CPU: arith.muli %[[J]], %[[WORD]]
// CPU: %[[FACTOR:.*]] = arith.select
// CPU: arith.mulf %in, %[[FACTOR]]
// CPU: linalg.generic {{.*}} ins(%[[P]] : tensor<?x24xf32>)
// CPU: arith.addf
func.func @cpu(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %words: memref<4x?xf32>,
               %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%words)
      {varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %start: f32) {
        %word = arith.bitcast %start : f32 to i32
        %product = arith.muli %j, %word : i32
        %none = arith.constant 0 : i32
        %kept = arith.cmpi sge, %product, %none : i32
        %two = arith.constant 2.0 : f32
        %zero = arith.constant 0.0 : f32
        %factor = arith.select %kept, %two, %zero : f32
        varlen.yield %s, %factor : f32, f32
      }
  return
}

// The factor is computed once: of p, for dv, and that times dp is a term of ds.
// STEPS-LABEL: func.func @grad_step
// STEPS: %[[KEPT:[0-9]+]] = linalg.generic {{.*}} ins(%[[P:[0-9]+]] : tensor<8x16xf32>)
// STEPS: arith.sitofp
// STEPS: arith.mulf %in,
// STEPS: linalg.contract {{.*}} ins(%[[KEPT]],
// STEPS: linalg.generic {{.*}} ins(%[[P]], %{{[0-9]+}}, %{{.*}}, %[[KEPT]] :
// STEPS: %[[X:[0-9]+]] = arith.mulf %in, %in_{{.*}} : f32
// STEPS: %[[Y:[0-9]+]] = arith.mulf %in_{{.*}}, %in_{{.*}} : f32
// STEPS: arith.subf %[[Y]], %[[X]]
// STEPS-NOT: arith.sitofp
// STEPS: return
func.func @grad_step(%q: tensor<8x8xf32>, %k: tensor<16x8xf32>, %m: tensor<8x1xf32>,
                     %position: tensor<8x1xi32>, %first: i32)
    -> (tensor<8x8xf32>, tensor<16x8xf32>) {
  %0:2 = varlen.online_attn_grad qk
      ins(%q, %k, %k, %q, %m, %m : tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>,
          tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      positions(%position, %first : tensor<8x1xi32>, i32)
      dq(%q : tensor<8x8xf32>) dv(%k : tensor<16x8xf32>) scale 1.0 {scores_first}
      score (%s: f32, %i: i32, %j: i32) {
        %factor = arith.sitofp %j : i32 to f32
        varlen.yield %s, %factor : f32, f32
      }
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<16x8xf32>
}
