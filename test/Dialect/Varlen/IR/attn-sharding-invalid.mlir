// RUN: varlen-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(sharding-propagation))'

// Upstream's propagation would make equal parts of these.

shard.grid @grid(shape = 2)
func.func @offsets(%q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %cu: tensor<3xi32>) -> tensor<8x4x16xf32> {
  %rows = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 3, 8] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<8x4x16xf32>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<8x4x16xf32>
  // expected-error @below {{expected shardings in equal parts, got one with sharded_dims_offsets}}
  %out, %lse = varlen.attn %q1, %k, %k, %cu, %cu : (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out : tensor<8x4x16xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @halos(%q: tensor<8x4x16xf32>, %k: tensor<8x2x16xf32>, %cu: tensor<3xi32>) -> tensor<8x4x16xf32> {
  %rows = shard.sharding @grid split_axes = [[0]] halo_sizes = [1, 1] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<8x4x16xf32>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<8x4x16xf32>
  // expected-error @below {{expected shardings in equal parts, got one with halo_sizes}}
  %out, %lse = varlen.attn %q1, %k, %k, %cu, %cu : (tensor<8x4x16xf32>, tensor<8x2x16xf32>, tensor<8x2x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %out : tensor<8x4x16xf32>
}
