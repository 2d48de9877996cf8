// Blocks that a score region hides at the ends of a tile's range are not copied; those
// between are copied, as the ring runs ahead, and not computed.
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>
#grad = #varlen.gpu_grad_schedule<
    dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
    dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>>

// Each warp reads the numbers of all rows of a tile, two in a lane: a shuffle for each
// power of two and bound.
// CHECK-LABEL: func.func @forward
// CHECK: gpu.launch {{.*}} function(@forward_attn)
// CHECK: memref.load %{{.*}} : memref<4x?xf32>
// CHECK: memref.load %{{.*}} : memref<4x?xf32>
// CHECK: %[[LOW:.*]] = arith.minimumf
// CHECK: arith.maximumf
// CHECK: gpu.shuffle xor %[[LOW]]
// CHECK-COUNT-9: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: %[[LEAST:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: %[[MOST:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// A lane asks for every 32nd block; the first and the last that someone sees count.
// CHECK: %[[SEEN:.*]]:2 = scf.for
// CHECK: %[[ENDS:.*]] = arith.cmpf ult, %{{.*}}, %[[MOST]] : f32
// CHECK: arith.select %[[ENDS]]
// CHECK: gpu.shuffle xor %[[SEEN]]#0
// CHECK: gpu.shuffle xor %[[SEEN]]#1
// CHECK: scf.for
// CHECK: kernel.ring.wait
// CHECK: %[[FIRST:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[MAY:.*]] = arith.cmpf ult, %[[FIRST]], %{{.*}} : f32
// CHECK: scf.if %[[MAY]]
// CHECK: varlen.online_attn qk {{.*}} limits(
// CHECK: varlen.yield %{{.*}}, %{{.*}} : f32, i1
// Of blocks that the mask does not cut, those that are visible as a whole have a step that
// hides nothing.
// CHECK: kernel.ring.wait
// CHECK: %[[FIRST:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[LAST:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[MAY:.*]] = arith.cmpf ult, %[[FIRST]], %[[MOST]] : f32
// CHECK: %[[CUT:.*]] = arith.cmpf uge, %[[LAST]], %[[LEAST]] : f32
// CHECK: scf.if %[[MAY]]
// CHECK: scf.if %[[CUT]]
// CHECK: varlen.yield %{{.*}}, %{{.*}} : f32, i1
// CHECK: } else {
// CHECK: varlen.online_attn qk
// CHECK: varlen.yield %score : f32
func.func @forward(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %prefix: memref<4x?xf32>,
                   %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// A tile of keys asks for the queries of each block, of one head.
// CHECK-LABEL: func.func @grad
// CHECK: gpu.launch {{.*}} function(@grad_dkv)
// CHECK: scf.for
// CHECK: kernel.ring.wait
// CHECK: memref.load %{{.*}} : memref<4x?x3xf32>
// CHECK: memref.load %{{.*}} : memref<4x?x3xf32>
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: arith.cmpf ult
// CHECK: scf.if
func.func @grad(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %lse: memref<4x?xf32>,
                %prefix: memref<4x?xf32>, %dq: memref<?x4x64xbf16>, %dk: memref<?x4x64xbf16>,
                %dv: memref<?x4x64xbf16>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #grad}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// Where a window begins behind every key, the blocks that lanes ask for begin where keys end.
// CHECK-LABEL: func.func @window
// CHECK: gpu.launch {{.*}} function(@window_attn)
// CHECK: gpu.thread_id
// CHECK: %[[ROWS:.*]] = arith.addi %{{.*}}, %c31 : index
// CHECK-NEXT: %[[PAST:.*]] = arith.divui %[[ROWS]], %c32
// CHECK-NEXT: %[[END:.*]] = arith.index_cast %[[PAST]] : index to i32
// CHECK-NEXT: %[[WITHIN:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %[[BLOCK:.*]] = arith.divui %[[WITHIN]], %c32
// CHECK-NEXT: %[[BEGIN:.*]] = arith.index_cast %[[BLOCK]] : index to i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[BEGIN]], %{{.*}} : i32
// CHECK-NEXT: scf.for %{{.*}} = %[[FIRST]] to %[[END]]
func.func @window(%q: memref<?x4x64xbf16>, %cu: memref<?xi32>, %offsets: memref<?xi32>,
                  %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu q_offset(%offsets) outs(%out, %lse)
      {mask = #varlen.mask<window = (16, 0)>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32) {
        %visible = arith.cmpi ule, %j, %i : i32
        varlen.yield %s, %visible : f32, i1
      }
  return
}
