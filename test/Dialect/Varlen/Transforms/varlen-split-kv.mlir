// RUN: varlen-opt %s --varlen-split-kv --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-split-kv --varlen-split-kv --split-input-file | FileCheck %s

// Each part begins with a state of its own; the merge is that of the step. What is
// before and after the blocks stays.

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// CHECK-LABEL: @split
// CHECK: varlen.for_tiles "a" %[[T:.*]] of queries(16)
// CHECK-NEXT: %[[Q:.*]] = varlen.read %{{.*}} at %[[T]]
// CHECK-NEXT: %[[S:.*]]:3 = varlen.for_parts %[[P:.*]] of %[[T]] blocks(16) few(8) : !varlen.tile<queries(16)>
// CHECK-SAME: -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
// CHECK-NEXT: %[[ACC0:.*]], %[[M0:.*]], %[[L0:.*]] = varlen.online_init kq scale 5.000000e-01
// CHECK-NEXT: %[[R:.*]]:3 = varlen.for_blocks %[[B:.*]] of keys(16) meeting %[[P]]
// CHECK-SAME: iter_args(%[[ACC:.*]] = %[[ACC0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]])
// CHECK: varlen.online_attn kq at(%[[T]], %[[B]] : {{.*}}) ins(%[[Q]],
// CHECK-SAME: outs(%[[ACC]], %[[M]], %[[L]] :
// CHECK: varlen.yield %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK-NEXT: } merge(%[[ACC1:.*]], %[[M1:.*]], %[[L1:.*]] with %[[ACC2:.*]], %[[M2:.*]], %[[L2:.*]]) {
// CHECK-NEXT: %[[ACC3:.*]], %[[M3:.*]], %[[L3:.*]] = varlen.online_merge kq %[[ACC1]], %[[M1]], %[[L1]] with %[[ACC2]], %[[M2]], %[[L2]] scale 5.000000e-01 : tensor<8x16xf32>, tensor<1x16xf32>
// CHECK-NEXT: varlen.yield %[[ACC3]], %[[M3]], %[[L3]]
// CHECK: varlen.online_finish kq %[[S]]#0, %[[S]]#1, %[[S]]#2
func.func @split(%batch: !varlen.batch, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>) {
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

// The schedule says how many blocks; a state that others begin with, too, stays.

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = pairs, part = 4, few_part = 32>

// CHECK-LABEL: @sizes
// CHECK: %[[ACC:.*]], %{{.*}}, %{{.*}} = varlen.online_init
// CHECK: varlen.for_parts %{{.*}} of %{{.*}} blocks(4) few(32)
// CHECK: varlen.online_init
// CHECK: varlen.online_merge kq {{.*}} rounded
// CHECK: return %[[ACC]]
func.func @sizes(%batch: !varlen.batch, %q: memref<?x2x4xbf16>, %out: memref<?x2x4xbf16>) -> tensor<4x16xf32> {
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<4x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xbf16>, !varlen.tile<queries(16)> -> tensor<16x4xbf16>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xbf16>, !varlen.tile<keys(16)> -> tensor<16x4xbf16>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt : tensor<16x4xbf16>, tensor<16x4xbf16>, tensor<16x4xbf16>)
          outs(%acc, %m, %l : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 rounded : tensor<4x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x4xf32> -> memref<?x2x4xbf16>, !varlen.tile<queries(16)>
  }
  return %acc0 : tensor<4x16xf32>
}

// -----

// On a GPU the keys of few queries alone are in parts.

#gpu = #varlen.gpu_schedule<warps = 1, block_m = 16, kv_block = 16, stages = 2, ctas = 1, few_part = 8>

// CHECK-LABEL: @few
// CHECK: varlen.for_parts %{{.*}} of %{{.*}} blocks(0) few(8)
// CHECK: varlen.online_merge qk
func.func @few(%batch: !varlen.batch, %qt: tensor<16x16xbf16>) {
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #gpu} {
    %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x16xf32>, tensor<16x1xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
  }
  return
}

// -----

// A schedule without parts, one for a GPU without, none.

#whole = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy, part = 0, few_part = 0>
#gpu = #varlen.gpu_schedule<warps = 1, block_m = 16, kv_block = 16, stages = 2, ctas = 1>

// CHECK-LABEL: @whole
// CHECK-COUNT-3: varlen.for_blocks
// CHECK-NOT: varlen.for_parts
func.func @whole(%batch: !varlen.batch, %q: memref<?x2x16xbf16>, %qt: tensor<16x16xbf16>) {
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #whole} {
    %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x16xf32>, tensor<16x1xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
  }
  varlen.for_tiles "b" %t of queries(16) in %batch attributes {varlen.schedule = #gpu} {
    %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x16xf32>, tensor<16x1xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
  }
  varlen.for_tiles "c" %t of queries(16) in %batch {
    %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x16xf32>, tensor<16x1xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
  }
  return
}

// -----

// States that begin with something else, that something but the step modifies,
// or that there is no merge for; no state.

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// CHECK-LABEL: @other
// CHECK-NOT: varlen.for_parts
func.func @other(%batch: !varlen.batch, %qt: tensor<16x4xf32>, %n: tensor<1x16xf32>, %lse: tensor<16x1xf32>, %acc1: tensor<4x16xf32>) {
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc1, %m = %n, %l = %n) -> (tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>)
          outs(%acc, %m, %l : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
  }
  varlen.for_tiles "b" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<4x16xf32>, tensor<1x16xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %twice = arith.addf %acc, %acc : tensor<4x16xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>)
          outs(%twice, %m, %l : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
  }
  varlen.for_tiles "c" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x4xf32>, tensor<16x1xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)>
        iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x4xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %dq = varlen.online_attn_grad qk natural at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %qt, %qt, %qt, %lse, %lse : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>,
              tensor<16x4xf32>, tensor<16x1xf32>, tensor<16x1xf32>) dq(%acc : tensor<16x4xf32>) scale 0.5
      varlen.yield %dq, %m, %l : tensor<16x4xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> {
    }
  }
  return
}
