// A score region at each level of an attention.
// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s --check-prefix=TILES
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu | FileCheck %s --check-prefix=CPU
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax | FileCheck %s --check-prefix=STEPS

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// Captures are read as numbers of rows, the scale is in front of the region, or part of a
// fused multiply-add where the region adds to the score.
// TILES-LABEL: func.func @attn
// TILES: varlen.for_tiles
// TILES: %[[SLOPE:.*]] = varlen.read %{{.*}} at %{{.*}} : memref<4xf32>, {{.*}} -> tensor<1x48xf32>
// TILES: varlen.for_blocks
// TILES: varlen.online_attn kq at({{.*}}) ins({{.*}}) captures(%[[SLOPE]] : tensor<1x48xf32>) outs({{.*}}) scale 1.000000e+00
// TILES-SAME: score (%score: f32, %query: i32, %key: i32, %capture: f32) {
// TILES: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// TILES-NOT: arith.mulf %score
// TILES: %[[Y:.*]] = arith.mulf %capture, %{{.*}} : f32
// TILES: math.fma %score, %[[SCALE]], %[[Y]] : f32
// TILES: varlen.online_finish {{.*}} scale 1.000000e+00
// Positions of queries are tiles, that of key 0 a number.
// CPU-LABEL: func.func @attn
// CPU: varlen.online_attn kq {{.*}} positions(%{{.*}}, %{{.*}} : tensor<1x24xi32>, i32) captures(%{{.*}} : tensor<1x24xf32>)
// The region is written between the products and what hides keys behind the mask.
// STEPS-LABEL: func.func @attn
// STEPS: linalg.contract
// STEPS: linalg.generic
// STEPS: ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x24xf32>, tensor<1x24xi32>, tensor<1x24xf32>)
// STEPS: %[[DISTANCE:.*]] = arith.subi %{{.*}}, %in{{.*}} : i32
// STEPS-NEXT: %[[X:.*]] = arith.sitofp %[[DISTANCE]]
// STEPS-NEXT: %[[Y:.*]] = arith.mulf %in{{.*}}, %[[X]] : f32
// STEPS-NEXT: %[[NEW:.*]] = math.fma %in, %{{.*}}, %[[Y]] : f32
// STEPS-NEXT: linalg.yield %[[NEW]]
func.func @attn(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %slopes: memref<4xf32>,
                %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%slopes)
      {mask = #varlen.mask<causal>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %slope: f32) {
        %distance = arith.subi %j, %i : i32
        %x = arith.sitofp %distance : i32 to f32
        %y = arith.mulf %slope, %x : f32
        %new = arith.addf %s, %y : f32
        varlen.yield %new : f32
      }
  return
}

// The statistics of rows carry captures, gradients of heads what rows subtract from them.
// TILES-LABEL: func.func @grad
// TILES: %[[ROWS:.*]] = varlen.rows in %{{.*}} : <3 x f32>
// TILES: %[[TERMS:.*]] = varlen.rows in %{{.*}} : <1 x f32>
// TILES: varlen.write %{{.*}}, %{{.*}}, %{{.*}} to %[[ROWS]] at %{{.*}} otherwise (inf, 0.000000e+00, 0.000000e+00)
// TILES: varlen.for_tiles "dqkv"
// TILES: varlen.online_attn_grad {{.*}} captures(%{{.*}} : tensor<1x?xf32>) {{.*}} dcaptures(%{{.*}} : tensor<1x?xf32>) scale 1.000000e+00 {{.*}}wrt_captures = array<i64: 0>
// TILES: arith.mulf %score, %{{.*}} : f32
// TILES: varlen.write %{{.*}} to %[[TERMS]] at %{{.*}} otherwise (0.000000e+00) times -1.000000e+00
// TILES: varlen.for_tiles "dcapture0"
// TILES: varlen.sum_rows %[[TERMS]] to %{{.*}} at %{{.*}} negated
// The derivative by the gain is the product: it is summed over keys.
// STEPS-LABEL: func.func @grad
// STEPS: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// The derivative by the score is the gain: no score is read again.
// STEPS: linalg.generic
// STEPS-SAME: ins(%{{.*}}, %{{.*}} : tensor<8x24xf32>, tensor<1x24xf32>)
// STEPS-NEXT: ^bb0(%[[DS:.*]]: f32, %[[GAIN:.*]]: f32, %{{.*}}: f32):
// STEPS: arith.mulf %[[DS]], %[[GAIN]]
func.func @grad(%q: memref<?x4x64xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                %gains: memref<4xf32>, %dq: memref<?x4x64xf32>, %dk: memref<?x4x64xf32>,
                %dv: memref<?x4x64xf32>, %dgains: memref<4xf32>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dgains)
      captures(%gains) {wrt_captures = array<i64: 0>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
         memref<?x4x64xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4xf32>,
         memref<4xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        %new = arith.mulf %s, %gain : f32
        varlen.yield %new : f32
      }
  return
}

// A region that only hides keys leaves the scale to the step.
// TILES-LABEL: func.func @hidden
// TILES: varlen.online_attn {{.*}} scale 1.250000e-01 score (
// TILES: varlen.yield %score, %{{.*}} : f32, i1
// STEPS-LABEL: func.func @hidden
// STEPS: %[[SEEN:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// STEPS: arith.select %[[SEEN]], %{{.*}}, %{{.*}} : f32
func.func @hidden(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %out: memref<?x4x64xf32>,
                  %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %visible = arith.cmpi eq, %i, %j : i32
        varlen.yield %s, %visible : f32, i1
      }
  return
}
