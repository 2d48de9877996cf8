// A table of keys of a score region at each level of an attention.
// RUN: varlen-opt %s --split-input-file --varlen-tile-attn | FileCheck %s --check-prefix=TILES
// RUN: varlen-opt %s --split-input-file --varlen-tile-attn --convert-varlen-to-cpu | FileCheck %s --check-prefix=CPU
// RUN: varlen-opt %s --split-input-file --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax | FileCheck %s --check-prefix=STEPS
// RUN: varlen-opt %s --split-input-file --varlen-tile-attn --convert-varlen-to-cpu --varlen-expand-queries --varlen-online-softmax --varlen-expand-rows --varlen-choose-copies --varlen-expand-table-sums --varlen-tiles-to-vectors=target=avx2 | FileCheck %s --check-prefix=VECTORS

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// The steps of a tile loop have the table as it is.
// TILES-LABEL: func.func @attn
// TILES: varlen.online_attn kq at({{.*}}) ins({{.*}}) tables(%{{.*}} : memref<4x?xf32>) outs(
// TILES-SAME: %table: !varlen.table<f32, keys>
// Below, it begins with the first key of the sequence, and ends with the last one.
// CPU-LABEL: func.func @attn
// CPU: %[[ITEM:.*]]:13 = varlen.read_work
// CPU: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%{{.*}}, %{{.*}}], strides: [1, 1] : memref<f32> to memref<?x?xf32, strided<[1, 1], offset: ?>>
// CPU: varlen.online_attn kq {{.*}} tables(%{{.*}} : memref<?x?xf32, strided<[1, 1], offset: ?>>) rows(%{{.*}} : tensor<1x24xi64>)
// STEPS-LABEL: func.func @attn
// STEPS: varlen.gather %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf32, strided<[1, 1], offset: ?>>, i64, i32 -> f32
// VECTORS-LABEL: func.func @attn
// VECTORS: varlen.gather {{.*}} : memref<?x?xf32, strided<[1, 1], offset: ?>>, vector<8xi64>, vector<8xi32> -> vector<8xf32>
func.func @attn(%q: memref<?x4x64xf32>, %k: memref<?x2x64xf32>, %cu: memref<?xi32>,
                %bias: memref<4x?xf32>, %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) captures(%bias)
      {varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x2x64xf32>, memref<?x2x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// Who owns the keys of a block owns what their numbers get: there is no scratch.
// TILES-LABEL: func.func @grad
// TILES-SAME: %[[DBIAS:[^:]*]]: memref<4x?xf32>) {
// TILES-NOT: memref.alloc
// TILES: varlen.for_blocks {{.*}}%[[BLOCK:.*]] of
// TILES: varlen.clear %[[DBIAS]] at %{{.*}} : memref<4x?xf32>, <keys(128)>
// TILES: varlen.online_attn_grad {{.*}} tables(%{{.*}} : memref<4x?xf32>) dtables(%[[DBIAS]] : memref<4x?xf32>) {{.*}}wrt_captures = array<i64: 0>
// TILES-NOT: varlen.sum_rows
// STEPS-LABEL: func.func @grad
// STEPS-NOT: varlen.scatter_add
// STEPS: varlen.add_keys %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : tensor<8x24xf32>, memref<?x?xf32, strided<[1, 1], offset: ?>>, tensor<1x24xi64>
// A sum over the lanes of a head goes to each key.
// VECTORS-LABEL: func.func @grad
// VECTORS: %[[ROW:.*]] = vector.extract %[[ROWS:.*]][%{{.*}}] : i64 from vector<8xi64>
// VECTORS: %[[SAME:.*]] = arith.cmpi eq, %[[ROWS]], %{{.*}} : vector<8xi64>
// VECTORS: vector.reduction <minsi>
// VECTORS: scf.if
// VECTORS: %[[OWN:.*]] = arith.select %[[SAME]], %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xf32>
// VECTORS: %[[SUM:.*]] = vector.reduction <add>, %[[OWN]]
// VECTORS: %[[BEFORE:.*]] = memref.load %[[FLAT:.*]][%[[AT:.*]]]
// VECTORS: %[[NEW:.*]] = arith.addf %[[BEFORE]], %[[SUM]]
// VECTORS: memref.store %[[NEW]], %[[FLAT]][%[[AT]]]
func.func @grad(%q: memref<?x4x64xf32>, %k: memref<?x2x64xf32>, %lse: memref<4x?xf32>,
                %cu: memref<?xi32>, %bias: memref<4x?xf32>, %dq: memref<?x4x64xf32>,
                %dk: memref<?x2x64xf32>, %dv: memref<?x2x64xf32>, %dbias: memref<4x?xf32>) {
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x2x64xf32>, memref<?x2x64xf32>,
         memref<?x4x64xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xf32>, memref<?x2x64xf32>, memref<?x2x64xf32>, memref<4x?xf32>,
         memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}
