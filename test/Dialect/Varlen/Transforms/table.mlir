// A table of a score region at each level of an attention.
// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s --check-prefix=TILES
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu | FileCheck %s --check-prefix=CPU
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax | FileCheck %s --check-prefix=STEPS
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax --varlen-expand-rows --varlen-choose-copies --varlen-expand-table-sums --varlen-tiles-to-vectors=target=avx2 | FileCheck %s --check-prefix=VECTORS

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// The steps of a tile loop have the table as it is.
// TILES-LABEL: func.func @attn
// TILES: varlen.online_attn kq at({{.*}}) ins({{.*}}) tables(%{{.*}} : memref<4x?x32xf32>) outs(
// TILES-SAME: score (%score: f32, %query: i32, %key: i32, %table: !varlen.table<f32>) {
// TILES: varlen.lookup %table[%key] : !varlen.table<f32>
// Below, a row is where it begins, and panels have those of their queries.
// CPU-LABEL: func.func @attn
// CPU: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%{{.*}}, 32], strides: [1, 1] : memref<f32> to memref<?x32xf32, strided<[1, 1]>>
// CPU: varlen.online_attn kq {{.*}} tables(%{{.*}} : memref<?x32xf32, strided<[1, 1]>>) rows(%{{.*}} : tensor<1x24xi64>)
// The region is written with an entry in place of the lookup.
// STEPS-LABEL: func.func @attn
// STEPS: linalg.generic
// STEPS: ins(%{{.*}}, %{{.*}} : tensor<8x24xf32>, tensor<1x24xi64>)
// STEPS: %[[KEY:.*]] = arith.addi
// STEPS: %[[ENTRY:.*]] = varlen.gather %{{.*}}[%{{.*}}, %[[KEY]]] : memref<?x32xf32, strided<[1, 1]>>, i64, i32 -> f32
// STEPS-NEXT: math.fma %{{.*}}, %{{.*}}, %[[ENTRY]] : f32
// Queries are lanes.
// VECTORS-LABEL: func.func @attn
// VECTORS: varlen.gather {{.*}} : memref<?x32xf32, strided<[1, 1]>>, vector<8xi64>, vector<8xi32> -> vector<8xf32>
func.func @attn(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %bias: memref<4x?x32xf32>,
                %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%bias)
      {mask = #varlen.mask<causal>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?x32xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

// Queries sum to rows of their own: in scratch, of which a head's are summed, for a table
// of heads.
// TILES-LABEL: func.func @grad
// TILES: %[[ROWS:.*]] = memref.alloc(%{{.*}}) : memref<4x?x32xf32>
// TILES: varlen.for_tiles "dqkv"
// TILES: varlen.clear %[[ROWS]] at %{{.*}} : memref<4x?x32xf32>
// TILES: varlen.online_attn_grad {{.*}} tables(%{{.*}} : memref<4x32xf32>) dtables(%[[ROWS]] : memref<4x?x32xf32>) {{.*}}wrt_captures = array<i64: 0>
// TILES: varlen.for_tiles "dcapture0"
// TILES: varlen.sum_rows %[[ROWS]] to %{{.*}} at %{{.*}} : memref<4x?x32xf32> to memref<4x32xf32>
// TILES: memref.dealloc %[[ROWS]]
// STEPS-LABEL: func.func @grad
// STEPS: %[[INDEX:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x24xi32>)
// STEPS: varlen.scatter_add %{{.*}} at %[[INDEX]] to %{{.*}}[%{{.*}}] : tensor<8x24xf32>, tensor<8x24xi32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x24xi64>
// Lanes without a query are left out.
// VECTORS-LABEL: func.func @grad
// VECTORS: %[[MASK:.*]] = arith.cmpi ne, %{{.*}}, %{{.*}} : vector<8xi64>
// VECTORS: %[[SUM:.*]] = vector.gather %[[FLAT:.*]][%{{.*}}] [%[[AT:.*]]], %[[MASK]]
// VECTORS: %[[NEW:.*]] = arith.addf %[[SUM]]
// VECTORS: vector.scatter %[[FLAT]][%{{.*}}] [%[[AT]]], %[[MASK]], %[[NEW]]
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
        %b = varlen.lookup %table[%j] : !varlen.table<f32>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}
