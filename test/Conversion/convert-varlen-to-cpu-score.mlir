// Blocks that a score region hides are skipped.
// RUN: varlen-opt %s --varlen-tile-attn --varlen-specialize-few --convert-varlen-to-cpu | FileCheck %s

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>

// A capture has a range of a few queries, of each panel, stored once, and of all panels.
// CHECK-LABEL: func.func @captured
// CHECK: %[[RANGES:.*]] = memref.alloc() {{.*}}: memref<2x2xf32>
// CHECK: %[[EXTREMES:.*]]:2 = scf.for
// CHECK: arith.minimumf
// CHECK: arith.maximumf
// What is too large, or NaN, may be anything.
// CHECK: %[[LOW:.*]] = arith.cmpf oge, %[[EXTREMES]]#0, %{{.*}} : f32
// CHECK: %[[HIGH:.*]] = arith.cmpf ole, %[[EXTREMES]]#1, %{{.*}} : f32
// CHECK: %[[KNOWN:.*]] = arith.andi %[[LOW]], %[[HIGH]] : i1
// CHECK: %[[MOST:.*]] = arith.select %[[KNOWN]], %[[EXTREMES]]#1, %{{.*}} : f32
// CHECK: memref.store %[[MOST]], %[[FEW:.*]][%{{.*}}, %{{.*}}] : memref<1x2xf32>
// CHECK: memref.load %[[FEW]]
// CHECK: %[[LARGEST:.*]] = memref.load %[[FEW]]
// CHECK: arith.cmpf ult, %{{.*}}, %[[LARGEST]] : f32
// CHECK: varlen.online_attn qk
// CHECK: memref.store %{{.*}}, %[[RANGES]][%{{.*}}, %{{.*}}] : memref<2x2xf32>
// CHECK: %[[ALL:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32)
// The first key of the block and the largest number of the capture.
// CHECK: %[[FIRST:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[MAY:.*]] = arith.cmpf ult, %[[FIRST]], %[[ALL]]#1 : f32
// CHECK: scf.if %[[MAY]]
// Again for each panel.
// CHECK: memref.load %[[RANGES]]
// CHECK: %[[PANEL:.*]] = memref.load %[[RANGES]]
// CHECK: arith.cmpf ult, %{{.*}}, %[[PANEL]] : f32
// CHECK: varlen.online_attn kq
func.func @captured(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %prefix: memref<4x?xf32>,
                    %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Captures that only change scores have none.
// CHECK-LABEL: func.func @scored
// CHECK-NOT: arith.minimumf
// CHECK: return
func.func @scored(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %gains: memref<4x?xf32>,
                  %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%gains)
      {mask = #varlen.mask<full>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        %new = arith.mulf %s, %gain : f32
        %size = arith.constant 512 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %new, %visible : f32, i1
      }
  return
}

// A gradient has ranges of all panels of a sequence, of two captures here.
// CHECK-LABEL: func.func @grad
// CHECK: memref.alloc(%{{.*}}) {{.*}}: memref<?x4xf32>
// CHECK: arith.minimumf
// CHECK: arith.minimumf
// CHECK: arith.cmpf ule
// CHECK: arith.cmpf ult
// CHECK: varlen.online_attn_grad
func.func @grad(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %lse: memref<4x?xf32>,
                %begin: memref<4x?xf32>, %end: memref<4x?xf32>, %dq: memref<?x4x64xf32>,
                %dk: memref<?x4x64xf32>, %dv: memref<?x4x64xf32>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) captures(%begin, %end)
      {mask = #varlen.mask<full>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
         memref<?x4x64xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4x?xf32>,
         memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %first: f32, %past: f32) {
        %x = arith.sitofp %j : i32 to f32
        %begun = arith.cmpf oge, %x, %first : f32
        %open = arith.cmpf olt, %x, %past : f32
        %visible = arith.andi %begun, %open : i1
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Intervals know nothing of a table: every block is visited.
// CHECK-LABEL: func.func @looked_up
// CHECK-NOT: arith.cmpf
// CHECK: varlen.online_attn {{ *}}qk
// CHECK: arith.cmpf une
// CHECK-NOT: arith.cmpf
// CHECK: varlen.online_attn {{ *}}kq
func.func @looked_up(%q: memref<?x4x64xf32>, %cu: memref<?xi32>, %flags: memref<4x?x?xf32>,
                     %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%flags)
      {mask = #varlen.mask<full>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xf32>, memref<4x?xf32>, memref<4x?x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %flag = varlen.lookup %table[%j] : !varlen.table<f32>
        %zero = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %zero : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}
