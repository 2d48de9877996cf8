// RUN: varlen-opt %s --canonicalize --split-input-file | FileCheck %s

// What a region says of the distance of key and query, and of the chunk that they are in,
// moves to the mask.

// Bounds of both sides, one of them with its operands swapped, and one that the mask
// has already.
// CHECK-LABEL: func.func @window
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (5, 2)>} : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
func.func @window(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<window = (9, 2)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %six = arith.constant 6 : i32
        %seven = arith.constant 7 : i32
        %behind = arith.subi %i, %j : i32
        %near = arith.cmpi sgt, %six, %behind : i32
        %most = arith.addi %i, %seven : i32
        %before = arith.cmpi sle, %j, %most : i32
        %visible = arith.andi %near, %before : i1
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// Causal and in one chunk, in any order, by any division: positions before the first
// key, where they differ, see nothing. The alignment stays.
// CHECK-LABEL: func.func @chunks
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x16xf32>
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<50>} : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<64, top_left>} : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
func.func @chunks(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 50 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %same = arith.cmpi eq, %a, %b : i32
        %causal = arith.cmpi sle, %j, %i : i32
        %visible = arith.andi %same, %causal : i1
        varlen.yield %s, %visible : f32, i1
      }
  %1:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal, top_left>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 64 : i32
        %a = arith.divsi %j, %size : i32
        %b = arith.divui %i, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %0#0, %1#0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// -----

// Of two chunks one that holds the other is implied by it, and so is a window that is no
// shorter; other conditions stay.
// CHECK-LABEL: func.func @implied
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<20>} : {{.*}} score (
// CHECK-NEXT: %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK-NEXT: %[[RARE:.*]] = arith.cmpi sge, %key, %[[FIVE]] : i32
// CHECK-NEXT: varlen.yield %score, %[[RARE]] : f32, i1
func.func @implied(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.chunk_mask<60>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %forty = arith.constant 40 : i32
        %twenty = arith.constant 20 : i32
        %five = arith.constant 5 : i32
        %a = arith.divsi %i, %forty : i32
        %b = arith.divsi %j, %forty : i32
        %in_forty = arith.cmpi eq, %a, %b : i32
        %c = arith.divsi %i, %twenty : i32
        %d = arith.divsi %j, %twenty : i32
        %in_twenty = arith.cmpi eq, %c, %d : i32
        %behind = arith.subi %i, %j : i32
        %near = arith.cmpi slt, %behind, %twenty : i32
        %rare = arith.cmpi sge, %j, %five : i32
        %x = arith.andi %in_forty, %in_twenty : i1
        %y = arith.andi %near, %rare : i1
        %visible = arith.andi %x, %y : i1
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// No chunk mask looks ahead or is shorter than its chunk, takes quotients of different
// sizes or of something else than positions, or cuts the chunks that the mask has.
// CHECK-LABEL: func.func @no_chunks
// CHECK: varlen.attn {{[^{]*}} : {{.*}} score (
// CHECK: arith.floordivsi
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (7, 0)>} : {{.*}} score (
// CHECK: arith.divsi
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal>} : {{.*}} score (
// CHECK: arith.divsi
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal>} : {{.*}} score (
// CHECK: arith.divsi
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<60>} : {{.*}} score (
// CHECK: arith.divsi
func.func @no_chunks(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 50 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  %1:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<window = (7, 0)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 50 : i32
        %a = arith.divsi %i, %size : i32
        %b = arith.divsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  %2:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 50 : i32
        %other = arith.constant 60 : i32
        %a = arith.divsi %i, %size : i32
        %b = arith.divsi %j, %other : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  %3:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 50 : i32
        %next = arith.addi %i, %size : i32
        %a = arith.divsi %next, %size : i32
        %b = arith.divsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  %4:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.chunk_mask<60>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 40 : i32
        %a = arith.divsi %i, %size : i32
        %b = arith.divsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %0#0, %1#0, %2#0, %3#0, %4#0
      : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>
}
