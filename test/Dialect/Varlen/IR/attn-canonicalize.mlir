// RUN: varlen-opt %s --canonicalize --split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

// Operands are read through casts that forget extents; results become as static
// as the operands, and users keep their types by a cast.
// CHECK-LABEL: func.func @fold_tensor_cast
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<8x4x16xf32>, %[[KV:[a-z0-9]+]]: tensor<?x2x16xf32>, %[[CU:[a-z0-9]+]]: tensor<3xi32>
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q]], %[[KV]], %[[KV]], %[[CU]], %[[CU]] :
// CHECK-SAME: -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
// CHECK: %[[CAST:.*]] = tensor.cast %[[OUT]] : tensor<8x4x16xf32> to tensor<?x?x?xf32>
// CHECK: return %[[CAST]], %[[LSE]]
func.func @fold_tensor_cast(%q: tensor<8x4x16xf32>, %kv: tensor<?x2x16xf32>,
                            %cu: tensor<3xi32>) -> (tensor<?x?x?xf32>, tensor<4x8xf32>) {
  %q_cast = tensor.cast %q : tensor<8x4x16xf32> to tensor<?x?x?xf32>
  %kv_cast = tensor.cast %kv : tensor<?x2x16xf32> to tensor<?x?x?xf32>
  %cu_cast = tensor.cast %cu : tensor<3xi32> to tensor<?xi32>
  %out, %lse = varlen.attn %q_cast, %kv_cast, %kv_cast, %cu_cast, %cu_cast
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x?x?xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<?x?x?xf32>, tensor<4x8xf32>
}

// A cast that adds extents knows what its source does not.
// CHECK-LABEL: func.func @keep_tensor_cast
// CHECK: %[[CAST:.*]] = tensor.cast
// CHECK: varlen.attn %[[CAST]],
func.func @keep_tensor_cast(%q: tensor<?x?x16xf32>, %cu: tensor<3xi32>) -> tensor<?x4x16xf32> {
  %cast = tensor.cast %q : tensor<?x?x16xf32> to tensor<?x4x16xf32>
  %out, %lse = varlen.attn %cast, %cast, %cast, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// The same on memrefs.
// CHECK-LABEL: func.func @memref_cast
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<8x4x16xf32>, %[[KV:[a-z0-9]+]]: memref<?x?x16xf32>
// CHECK: %[[CAST:.*]] = memref.cast %[[KV]] : memref<?x?x16xf32> to memref<?x2x16xf32>
// CHECK: varlen.attn %[[Q]], %[[CAST]], %[[CAST]], {{.*}} outs(%[[Q]], %
func.func @memref_cast(%q: memref<8x4x16xf32>, %kv: memref<?x?x16xf32>,
                       %cu: memref<3xi32>, %lse: memref<4x8xf32>) {
  %q_cast = memref.cast %q : memref<8x4x16xf32> to memref<?x4x16xf32>
  %kv_cast = memref.cast %kv : memref<?x?x16xf32> to memref<?x2x16xf32>
  varlen.attn %q_cast, %kv_cast, %kv_cast, %cu, %cu outs(%q_cast, %lse)
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>, memref<3xi32>,
         memref<3xi32>, memref<?x4x16xf32>, memref<4x8xf32>) -> ()
  return
}

// What is on the op stays on it.
// CHECK-LABEL: func.func @keep_discardable_attributes
// CHECK: varlen.attn {{.*}} {my.note = 7 : i64} : {{.*}} -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
func.func @keep_discardable_attributes(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>)
    -> tensor<?x4x16xf32> {
  %cast = tensor.cast %q : tensor<8x4x16xf32> to tensor<?x4x16xf32>
  %out, %lse = varlen.attn %cast, %cast, %cast, %cu, %cu {my.note = 7}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Empty sequences
//===----------------------------------------------------------------------===//

// Padding at the end, an empty sequence at the start and two in the middle.
// CHECK-LABEL: func.func @drop_empty
// CHECK-DAG: %[[CU_Q:.*]] = arith.constant dense<[0, 2, 5]> : tensor<3xi32>
// CHECK-DAG: %[[CU_K:.*]] = arith.constant dense<[0, 4, 9]> : tensor<3xi32>
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %[[CU_Q]], %[[CU_K]] :
func.func @drop_empty(%q: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %cu_q = arith.constant dense<[0, 0, 2, 2, 2, 5, 5, 5]> : tensor<8xi32>
  %cu_k = arith.constant dense<[0, 0, 4, 4, 4, 9, 9, 9]> : tensor<8xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<8xi32>,
         tensor<8xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// Lists with an entry per sequence lose the same entries.
// CHECK-LABEL: func.func @drop_empty_with_lists
// CHECK-DAG: %[[CU:.*]] = arith.constant dense<[0, 2, 5]> : tensor<3xi64>
// CHECK-DAG: %[[USED:.*]] = arith.constant dense<[1, 3]> : tensor<2xi64>
// CHECK-DAG: %[[OFFSET:.*]] = arith.constant dense<[10, 30]> : tensor<2xi64>
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %[[CU]], %[[CU]] seqused_k(%[[USED]]) q_offset(%[[OFFSET]])
func.func @drop_empty_with_lists(%q: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %cu = arith.constant dense<[0, 2, 2, 5]> : tensor<4xi64>
  %used = arith.constant dense<[1, 0, 3]> : tensor<3xi64>
  %offset = arith.constant dense<[10, 20, 30]> : tensor<3xi64>
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu seqused_k(%used) q_offset(%offset)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xi64>,
         tensor<4xi64>, tensor<3xi64>, tensor<3xi64>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// Nothing but empty sequences.
// CHECK-LABEL: func.func @drop_all
// CHECK: %[[CU:.*]] = arith.constant dense<0> : tensor<1xi32>
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %[[CU]], %[[CU]] :
func.func @drop_all(%q: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %cu = arith.constant dense<0> : tensor<5xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<5xi32>,
         tensor<5xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// A sequence of queries without keys has rows to write, one of keys without
// queries has rows to skip.
// CHECK-LABEL: func.func @keep_half_empty
// CHECK-DAG: arith.constant dense<[0, 2, 2]> : tensor<3xi32>
// CHECK-DAG: arith.constant dense<[0, 0, 4]> : tensor<3xi32>
// CHECK: varlen.attn
func.func @keep_half_empty(%q: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %cu_q = arith.constant dense<[0, 2, 2]> : tensor<3xi32>
  %cu_k = arith.constant dense<[0, 0, 4]> : tensor<3xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// A list that is not a constant cannot be shortened.
// CHECK-LABEL: func.func @keep_empty_with_list
// CHECK: arith.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
// CHECK: varlen.attn {{.*}} seqused_q(
func.func @keep_empty_with_list(%q: tensor<?x4x16xf32>, %used: tensor<3xi32>)
    -> tensor<?x4x16xf32> {
  %cu = arith.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu seqused_q(%used)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xi32>,
         tensor<4xi32>, tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// Only one of the two is known.
// CHECK-LABEL: func.func @keep_empty_half_constant
// CHECK: arith.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
func.func @keep_empty_half_constant(%q: tensor<?x4x16xf32>, %cu_k: tensor<4xi32>)
    -> tensor<?x4x16xf32> {
  %cu_q = arith.constant dense<[0, 2, 2, 5]> : tensor<4xi32>
  %out, %lse = varlen.attn %q, %q, %q, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xi32>,
         tensor<4xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Windows. The longest sequence has 5 queries and 9 keys.
//===----------------------------------------------------------------------===//

// Under bottom_right alignment the last query sees the last key, so a left bound
// of 8 hides nothing of 9 keys; the first query of 5 sees all but 4 keys without
// looking ahead, so a right bound of 4 hides nothing.
// CHECK-LABEL: func.func @open_bottom_right
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {mask = #varlen.mask<window = (7, -1)>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {mask = #varlen.mask<window = (-1, 3)>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
func.func @open_bottom_right(%q: tensor<?x4x16xf32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %cu_q = arith.constant dense<[0, 5, 7]> : tensor<3xi32>
  %cu_k = arith.constant dense<[0, 1, 10]> : tensor<3xi32>
  %0, %1 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (7, 4)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %2, %3 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (8, 3)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %4, %5 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (8, 4)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0, %2, %4 : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// Under top_left alignment it is the reverse; without bounds the
// alignment goes too.
// CHECK-LABEL: func.func @open_top_left
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {mask = #varlen.mask<window = (3, -1), top_left>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {mask = #varlen.mask<window = (-1, 7), top_left>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
func.func @open_top_left(%q: tensor<?x4x16xf32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %cu_q = arith.constant dense<[0, 5, 7]> : tensor<3xi32>
  %cu_k = arith.constant dense<[0, 1, 10]> : tensor<3xi32>
  %0, %1 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (3, 8), top_left>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %2, %3 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (4, 7), top_left>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %4, %5 = varlen.attn %q, %q, %q, %cu_q, %cu_k {mask = #varlen.mask<window = (4, 8), top_left>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0, %2, %4 : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// A static number of rows bounds every sequence; causal attention of one query
// per sequence, on memrefs as well, sees all keys.
// CHECK-LABEL: func.func @open_by_extent
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {mask = #varlen.mask<causal>}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) :
func.func @open_by_extent(%q: tensor<8x4x16xf32>, %cu: tensor<?xi32>, %q1: memref<1x4x16xf32>,
                          %kv: memref<?x4x16xf32>, %mcu: memref<?xi32>,
                          %out: memref<1x4x16xf32>, %lse: memref<4x1xf32>) -> tensor<8x4x16xf32> {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<window = (7, 0)>}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  varlen.attn %q1, %kv, %kv, %mcu, %mcu outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<1x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<1x4x16xf32>, memref<4x1xf32>) -> ()
  return %0 : tensor<8x4x16xf32>
}

// One chunk of keys is a causal mask. The alignment bottom_right is behind
// all keys, top_left behind all queries.
// CHECK-LABEL: func.func @one_chunk
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal>}
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<7>}
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal, top_left>}
// CHECK: varlen.attn {{.*}} {mask = #varlen.chunk_mask<3, top_left>}
func.func @one_chunk(%q: tensor<4x2x16xf32>, %k: tensor<8x2x16xf32>, %cu: tensor<?xi32>)
    -> (tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<4x2x16xf32>) {
  %0, %1 = varlen.attn %q, %k, %k, %cu, %cu {mask = #varlen.chunk_mask<8>}
      : (tensor<4x2x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<4x2x16xf32>, tensor<2x4xf32>)
  %2, %3 = varlen.attn %q, %k, %k, %cu, %cu {mask = #varlen.chunk_mask<7>}
      : (tensor<4x2x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<4x2x16xf32>, tensor<2x4xf32>)
  %4, %5 = varlen.attn %q, %k, %k, %cu, %cu {mask = #varlen.chunk_mask<4, top_left>}
      : (tensor<4x2x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<4x2x16xf32>, tensor<2x4xf32>)
  %6, %7 = varlen.attn %q, %k, %k, %cu, %cu {mask = #varlen.chunk_mask<3, top_left>}
      : (tensor<4x2x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<4x2x16xf32>, tensor<2x4xf32>)
  return %0, %2, %4, %6 : tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<4x2x16xf32>
}

// -----

// An offset moves the window, and without any length nothing is known.
// CHECK-LABEL: func.func @keep_window
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (100, 100)>}
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (100, 100)>}
func.func @keep_window(%q: tensor<8x4x16xf32>, %d: tensor<?x4x16xf32>, %cu: tensor<?xi32>,
                       %offset: tensor<?xi32>) -> (tensor<8x4x16xf32>, tensor<?x4x16xf32>) {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu q_offset(%offset)
      {mask = #varlen.mask<window = (100, 100)>}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  %2, %3 = varlen.attn %d, %d, %d, %cu, %cu {mask = #varlen.mask<window = (100, 100)>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0, %2 : tensor<8x4x16xf32>, tensor<?x4x16xf32>
}

// An alignment without bounds goes even with an offset.
// CHECK-LABEL: func.func @align_nothing
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} q_offset(%{{.*}}) :
func.func @align_nothing(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %offset: tensor<?xi32>)
    -> tensor<?x4x16xf32> {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu q_offset(%offset)
      {mask = #varlen.mask<full, top_left>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0 : tensor<?x4x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Scale
//===----------------------------------------------------------------------===//

// 1/sqrt(64) is 0.125; 1/sqrt(128) is no f32, so the nearest one stays.
// CHECK-LABEL: func.func @scale
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: varlen.attn {{.*}} {scale = 2.500000e-01 : f32}
// CHECK: varlen.attn {{.*}} {scale = 0.0883883461 : f32}
// CHECK: varlen.attn {{.*}} {scale = 1.250000e-01 : f32}
func.func @scale(%q64: tensor<?x4x64xf32>, %q128: tensor<?x4x128xf32>, %any: tensor<?x4x?xf32>,
                 %cu: tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<?x4x64xf32>,
                                         tensor<?x4x128xf32>, tensor<?x4x?xf32>) {
  %0, %1 = varlen.attn %q64, %q64, %q64, %cu, %cu {scale = 0.125 : f32}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  %2, %3 = varlen.attn %q64, %q64, %q64, %cu, %cu {scale = 0.25 : f32}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  %4, %5 = varlen.attn %q128, %q128, %q128, %cu, %cu {scale = 0.0883883461 : f32}
      : (tensor<?x4x128xf32>, tensor<?x4x128xf32>, tensor<?x4x128xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x128xf32>, tensor<4x?xf32>)
  %6, %7 = varlen.attn %any, %any, %any, %cu, %cu {scale = 0.125 : f32}
      : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x?xf32>, tensor<4x?xf32>)
  return %0, %2, %4, %6
      : tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x128xf32>, tensor<?x4x?xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Extents of results
//===----------------------------------------------------------------------===//

// No element is used: the attention is removed.
// CHECK-LABEL: func.func @extents
// CHECK-SAME: (%[[Q:.*]]: tensor<?x?x64xf32>, %[[K:.*]]: tensor<?x?x64xf32>, %[[V:.*]]: tensor<?x?x?xf32>
// CHECK-NOT: varlen.attn
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG: %[[HEADS:.*]] = tensor.dim %[[Q]], %c1
// CHECK-DAG: %[[DIM:.*]] = tensor.dim %[[V]], %c2
// CHECK: return %[[ROWS]], %[[DIM]], %[[HEADS]]
func.func @extents(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x?xf32>,
                   %cu: tensor<?xi32>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x?xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  %rows = tensor.dim %out, %c0 : tensor<?x?x?xf32>
  %dim = tensor.dim %out, %c2 : tensor<?x?x?xf32>
  %heads = tensor.dim %lse, %c0 : tensor<?x?xf32>
  return %rows, %dim, %heads : index, index, index
}

// -----

// CHECK-LABEL: func.func @extents_of_gradients
// CHECK-SAME: %[[DOUT:.*]]: tensor<?x2x16xf32>, %[[Q:.*]]: tensor<?x2x16xf32>, %[[K:.*]]: tensor<?x1x16xf32>
// CHECK-NOT: varlen.attn_grad
// CHECK: %[[KEYS:.*]] = tensor.dim %[[K]], %c0
// CHECK: return %[[KEYS]]
func.func @extents_of_gradients(%dout: tensor<?x2x16xf32>, %q: tensor<?x2x16xf32>,
                                %k: tensor<?x1x16xf32>, %lse: tensor<2x?xf32>,
                                %cu: tensor<?xi32>) -> index {
  %c0 = arith.constant 0 : index
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %k, %dout, %lse, %cu, %cu
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>,
         tensor<?x2x16xf32>, tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>)
  %keys = tensor.dim %dk, %c0 : tensor<?x1x16xf32>
  return %keys : index
}

// -----

// Keys in pages: lists keep the sequences that the table has rows of; a bound that hides
// none of the keys that fit the pages goes.
// CHECK-LABEL: func.func @pages
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<window = (-1, 3)>} : {{.*}} tensor<3xi32>, tensor<2xi32>, tensor<2x4xi32>
func.func @pages(%q: tensor<20x4x16xf32>, %k: tensor<?x8x2x16xf32>, %used: tensor<2xi32>,
                 %table: tensor<2x4xi32>) -> (tensor<20x4x16xf32>, tensor<4x20xf32>) {
  %cu = arith.constant dense<[0, 20, 20]> : tensor<3xi32>
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
      {mask = #varlen.mask<window = (52, 3)>}
      : (tensor<20x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x4xi32>) -> (tensor<20x4x16xf32>, tensor<4x20xf32>)
  return %out, %lse : tensor<20x4x16xf32>, tensor<4x20xf32>
}
