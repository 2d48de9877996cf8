// RUN: varlen-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(sharding-propagation,shard-partition,canonicalize,cse))' | FileCheck %s

// Heads on two processes: each has its own, whole groups of them, and sends
// nothing.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @heads
// CHECK-SAME: %[[Q:[^:]*]]: tensor<8x2x16xf32>, %[[K:[^:]*]]: tensor<8x1x16xf32>, %[[V:[^:]*]]: tensor<8x1x16xf32>, %[[CU:[^:]*]]: tensor<3xi32>
// CHECK-NEXT: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q]], %[[K]], %[[V]], %[[CU]], %[[CU]] {{.*}} -> (tensor<8x2x16xf32>, tensor<2x8xf32>)
// CHECK-NEXT: return %[[OUT]], %[[LSE]]
func.func @heads(%q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %v: tensor<8x2x16xf32>, %cu: tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %heads = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %own = shard.shard %q to %heads annotate_for_users : tensor<8x4x16xf32>
  %out, %lse = varlen.attn %own, %k, %v, %cu, %cu {mask = #varlen.mask<causal>} : (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// -----

// Rows: each process has half of those of q, as sequences of its own, and all
// of k and v. Entries that are not valid for all rows stay as they are.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @rows
// CHECK-SAME: %[[Q:[^:]*]]: tensor<4x4x16xf32>, %[[K:[^:]*]]: tensor<4x2x16xf32>, %[[V:[^:]*]]: tensor<4x2x16xf32>, %[[CU:[^:]*]]: tensor<3xi32>
// CHECK-DAG: %[[ALL_V:.*]] = shard.all_gather %[[V]] on @grid grid_axes = [0] gather_axis = 0 : tensor<4x2x16xf32> -> tensor<8x2x16xf32>
// CHECK-DAG: %[[ALL_K:.*]] = shard.all_gather %[[K]] on @grid grid_axes = [0] gather_axis = 0
// CHECK: %[[NUMBER:.*]] = shard.process_multi_index on @grid axes = [0] : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %c4
// CHECK: %[[OWN:.*]] = linalg.generic {{.*}} ins(%[[CU]] : tensor<3xi32>)
// CHECK: arith.subi %{{.*}}, %[[FIRST]]
// CHECK: %[[OFFSET:.*]] = linalg.generic
// CHECK: %[[INCREASE:.*]] = linalg.generic {{.*}}iterator_types = ["reduction"]
// CHECK: arith.cmpi sle, %{{.*}}, %c8
// CHECK: %[[CHOSEN:.*]] = linalg.generic {{.*}} ins(%[[CU]] : tensor<3xi32>) outs(%[[OWN]] : tensor<3xi32>)
// CHECK: arith.select
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn %[[Q]], %[[ALL_K]], %[[ALL_V]], %[[CHOSEN]], %[[CU]] q_offset(%[[OFFSET]]) {{.*}} -> (tensor<4x4x16xf32>, tensor<4x4xf32>)
// CHECK-NEXT: return %[[OUT]], %[[LSE]]
func.func @rows(%q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %v: tensor<8x2x16xf32>, %cu: tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<8x4x16xf32>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<8x4x16xf32>
  %k0 = shard.shard %k to %rows : tensor<8x2x16xf32>
  %v0 = shard.shard %v to %rows : tensor<8x2x16xf32>
  %out, %lse = varlen.attn %q1, %k0, %v0, %cu, %cu {mask = #varlen.mask<causal>} : (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// -----

// Gradients by what all processes have are sums over them.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @gradients
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]], %[[DSINK:.*]] = varlen.attn_grad {{.*}} -> (tensor<4x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<4xf32>)
// CHECK-DAG: %[[SUM_K:.*]] = shard.all_reduce %[[DK]] on @grid grid_axes = [0]
// CHECK-DAG: %[[SUM_V:.*]] = shard.all_reduce %[[DV]] on @grid grid_axes = [0]
// CHECK-DAG: %[[SUM_SINK:.*]] = shard.all_reduce %[[DSINK]] on @grid grid_axes = [0]
// CHECK: return %[[DQ]], %[[SUM_K]], %[[SUM_V]], %[[SUM_SINK]]
func.func @gradients(%dout: tensor<8x4x16xf32>, %q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %v: tensor<8x2x16xf32>, %out: tensor<8x4x16xf32>, %lse: tensor<4x8xf32>, %cu: tensor<3xi32>, %sink: tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<4xf32>) {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<8x4x16xf32>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<8x4x16xf32>
  %dq, %dk, %dv, %dsink = varlen.attn_grad %dout, %q1, %k, %v, %out, %lse, %cu, %cu sink(%sink) {mask = #varlen.mask<causal>} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %dsink : tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<4xf32>
}

// -----

// Sums of 16-bit floats are in f32.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @narrow_gradients
// CHECK: %{{.*}}, %[[DK:.*]], %{{.*}} = varlen.attn_grad {{.*}} -> (tensor<4x4x16xbf16>, tensor<8x2x16xbf16>, tensor<8x2x16xbf16>)
// CHECK: %[[WIDE:.*]] = arith.extf %[[DK]] : tensor<8x2x16xbf16> to tensor<8x2x16xf32>
// CHECK: %[[SUM:.*]] = shard.all_reduce %[[WIDE]] on @grid grid_axes = [0] : tensor<8x2x16xf32>
// CHECK: %[[NARROW:.*]] = arith.truncf %[[SUM]] : tensor<8x2x16xf32> to tensor<8x2x16xbf16>
// CHECK: return %{{.*}}, %[[NARROW]],
func.func @narrow_gradients(%dout: tensor<8x4x16xbf16>, %q: tensor<8x4x16xbf16>, %k: tensor<8x2x16xbf16>, %v: tensor<8x2x16xbf16>, %out: tensor<8x4x16xbf16>, %lse: tensor<4x8xf32>, %cu: tensor<3xi32>) -> (tensor<8x4x16xbf16>, tensor<8x2x16xbf16>, tensor<8x2x16xbf16>) {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<8x4x16xbf16>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<8x4x16xbf16>
  %dq, %dk, %dv = varlen.attn_grad %dout, %q1, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<causal>} : (tensor<8x4x16xbf16>, tensor<8x4x16xbf16>, tensor<8x2x16xbf16>, tensor<8x2x16xbf16>, tensor<8x4x16xbf16>, tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xbf16>, tensor<8x2x16xbf16>, tensor<8x2x16xbf16>)
  return %dq, %dk, %dv : tensor<8x4x16xbf16>, tensor<8x2x16xbf16>, tensor<8x2x16xbf16>
}

// -----

// Rows and heads, on two axes, with numbers of rows as captures.

shard.grid @grid(shape = 2x2)
// CHECK-LABEL: @both
// CHECK-SAME: tensor<4x2x16xf32>, %[[K:[^:]*]]: tensor<8x1x16xf32>
// CHECK: shard.process_multi_index on @grid axes = [1]
// CHECK: varlen.attn {{.*}} captures(%{{.*}}) : (tensor<4x2x16xf32>, tensor<8x1x16xf32>, tensor<8x1x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<2x4xf32>) -> (tensor<4x2x16xf32>, tensor<2x4xf32>)
func.func @both(%q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %v: tensor<8x2x16xf32>, %cu: tensor<3xi32>, %gains: tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %split = shard.sharding @grid split_axes = [[1], [0]] : !shard.sharding
  %own = shard.shard %q to %split annotate_for_users : tensor<8x4x16xf32>
  %out, %lse = varlen.attn %own, %k, %v, %cu, %cu captures(%gains) : (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
    %new = arith.mulf %s, %g : f32
    varlen.yield %new : f32
  }
  return %out, %lse : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// -----

// Two kv heads are too few for three processes: all of them compute all.

shard.grid @grid(shape = 3)
// CHECK-LABEL: @too_few
// CHECK: %[[Q:.*]] = shard.all_gather
// CHECK: varlen.attn %[[Q]], {{.*}} -> (tensor<8x6x16xf32>, tensor<6x8xf32>)
func.func @too_few(%q: tensor<8x6x16xf32>, %k: tensor<8x2x16xf32>, %v: tensor<8x2x16xf32>, %cu: tensor<3xi32>) -> (tensor<8x6x16xf32>, tensor<6x8xf32>) {
  %heads = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %own = shard.shard %q to %heads : tensor<8x6x16xf32>
  %out, %lse = varlen.attn %own, %k, %v, %cu, %cu : (tensor<8x6x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x6x16xf32>, tensor<6x8xf32>)
  return %out, %lse : tensor<8x6x16xf32>, tensor<6x8xf32>
}

// -----

// Heads of keys in pages.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @pages
// CHECK-SAME: %[[Q:[^:]*]]: tensor<8x2x16xf32>, %[[K:[^:]*]]: tensor<6x8x1x16xf32>, %[[CU:[^:]*]]: tensor<3xi32>, %[[USED:[^:]*]]: tensor<2xi32>, %[[TABLE:[^:]*]]: tensor<2x3xi32>
// CHECK-NEXT: varlen.attn %[[Q]], %[[K]], %[[K]], %[[CU]] seqused_k(%[[USED]]) block_table(%[[TABLE]]) {{.*}} -> (tensor<8x2x16xf32>, tensor<2x8xf32>)
func.func @pages(%q: tensor<8x4x16xf32>, %k: tensor<6x8x2x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %table: tensor<2x3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %heads = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %own = shard.shard %q to %heads annotate_for_users : tensor<8x4x16xf32>
  %out, %lse = varlen.attn %own, %k, %k, %cu seqused_k(%used) block_table(%table) {mask = #varlen.mask<causal>} : (tensor<8x4x16xf32>, tensor<6x8x2x16xf32>, tensor<6x8x2x16xf32>, tensor<3xi32>, tensor<2xi32>, tensor<2x3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// -----

// Heads of quantised keys and of their scales.

shard.grid @grid(shape = 2)
// CHECK-LABEL: @quantised
// CHECK-SAME: %[[Q:[^:]*]]: tensor<8x2x16xf32>, %[[K:[^:]*]]: tensor<9x1x16xi8>, %[[CU:[^:]*]]: tensor<3xi32>, %[[ROWS:[^:]*]]: tensor<9x1xf32>, %[[HEADS:[^:]*]]: tensor<1xf32>
// CHECK-NEXT: varlen.attn %[[Q]], %[[K]], %[[K]], %[[CU]], %[[CU]] k_scale(%[[ROWS]]) v_scale(%[[HEADS]]) {{.*}} -> (tensor<8x2x16xf32>, tensor<2x8xf32>)
func.func @quantised(%q: tensor<8x4x16xf32>, %k: tensor<9x2x16xi8>, %cu: tensor<3xi32>, %rows: tensor<9x2xf32>, %each: tensor<2xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %heads = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %own = shard.shard %q to %heads annotate_for_users : tensor<8x4x16xf32>
  %out, %lse = varlen.attn %own, %k, %k, %cu, %cu k_scale(%rows) v_scale(%each) : (tensor<8x4x16xf32>, tensor<9x2x16xi8>, tensor<9x2x16xi8>, tensor<3xi32>, tensor<3xi32>, tensor<9x2xf32>, tensor<2xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<8x4x16xf32>, tensor<4x8xf32>
}
