// RUN: varlen-opt %s --varlen-tile-attn --varlen-specialize-few --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --varlen-specialize-few --split-input-file | FileCheck %s --check-prefix=PARTS
// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --varlen-specialize-few --varlen-specialize-few --split-input-file | FileCheck %s --check-prefix=PARTS

// Half the lanes are few. Their tiles, states and numbers have queries as rows.

// CHECK-LABEL: @attn
// CHECK: varlen.for_tiles "attn" %[[T:.*]] of queries(32)
// CHECK: varlen.if_few %[[F:.*]] of %[[T]] : !varlen.tile<queries(4)> of !varlen.tile<queries(32)> {
// CHECK:   %[[Q:.*]] = varlen.read %{{.*}} at %[[F]] : memref<?x4x16xf32>, <queries(4)> -> tensor<4x16xf32>
// CHECK:   varlen.online_init qk scale 2.500000e-01 : tensor<4x24xf32>, tensor<4x1xf32>
// CHECK:   varlen.for_blocks %[[B:.*]] of keys(32) meeting %[[F]] : !varlen.tile<queries(4)> {{.*}} -> (tensor<4x24xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
// CHECK:     varlen.read %{{.*}} at %[[B]] : memref<?x2x16xf32>, <keys(32)> -> tensor<32x16xf32>
// CHECK:     varlen.online_attn qk at(%[[F]], %[[B]] : !varlen.tile<queries(4)>, !varlen.tile<keys(32)>) ins(%[[Q]], {{.*}} : tensor<4x16xf32>, tensor<32x16xf32>, tensor<32x24xf32>)
// CHECK:   %[[SINK:.*]] = varlen.read %{{.*}} at %[[F]] : memref<4xf32>, <queries(4)> -> tensor<4x1xf32>
// CHECK:   varlen.online_finish qk %{{.*}} sink(%[[SINK]] : tensor<4x1xf32>) scale 2.500000e-01 : tensor<4x24xf32>, tensor<4x1xf32>
// CHECK:   varlen.write {{.*}} at %[[F]] otherwise (0.000000e+00) : tensor<4x24xf32>
// CHECK:   varlen.write {{.*}} at %[[F]] otherwise (-inf) : tensor<4x1xf32>
// CHECK: } else {
// CHECK:   varlen.read %{{.*}} at %[[T]] : memref<?x4x16xf32>, <queries(32)> -> tensor<32x16xf32>
// CHECK:   varlen.online_attn kq at(%[[T]],
// CHECK:   varlen.online_finish kq {{.*}} : tensor<24x32xf32>, tensor<1x32xf32>
// CHECK: }

// PARTS-LABEL: @attn
// PARTS: varlen.if_few %[[F:[^ ]*]] of
// PARTS: varlen.for_parts %[[P:.*]] of %[[F]] blocks(16) few(8) : !varlen.tile<queries(4)> -> (tensor<4x24xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
// PARTS:   varlen.for_blocks %{{.*}} of keys(32) meeting %[[P]] : !varlen.tile<queries(4)>
// PARTS: varlen.online_merge qk {{.*}} : tensor<4x24xf32>, tensor<4x1xf32>
// PARTS: } else {
// PARTS: varlen.for_parts {{.*}} : !varlen.tile<queries(32)>
// PARTS: varlen.online_merge kq
// PARTS-NOT: varlen.if_few
func.func @attn(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x24xf32>, %cu: memref<?xi32>, %sink: memref<4xf32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu sink(%sink) outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>, memref<4xf32>, memref<?x4x24xf32>, memref<4x?xf32>) -> ()
  return
}

// -----

// Numbers of keys are columns, as keys are.

// CHECK-LABEL: @quantised
// PARTS-LABEL: @quantised
// CHECK: varlen.if_few
// CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x2x1xf32, {{.*}}>, <keys(32)> -> tensor<1x32xf32>
// CHECK: varlen.online_attn qk {{.*}} k_scale(%{{.*}} : tensor<1x32xf32>)
// CHECK: } else {
// CHECK: varlen.read %{{.*}} at %{{.*}} : memref<?x2x1xf32, {{.*}}>, <keys(32)> -> tensor<32x1xf32>
func.func @quantised(%q: memref<?x4x16xf32>, %k: memref<?x2x16xi8>, %v: memref<?x2x24xi8>,
                     %cu: memref<?xi32>, %scale: memref<?x2xf32>, %out: memref<?x4x24xf32>,
                     %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) k_scale(%scale)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 2, panels = 2, kv_block = 32, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x2x16xi8>, memref<?x2x24xi8>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>, memref<?x2xf32>) -> ()
  return
}

// -----

// Loops without blocks, and schedules of a GPU, are left as they are.

// CHECK-LABEL: @others
// CHECK-NOT: varlen.if_few
func.func @others(%x: memref<?x8x64xbf16>, %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>, %i: index) {
  varlen.attn %x, %x, %x, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>} : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "copy" %t of queries(32) in %batch attributes {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} {
    %0 = varlen.read %x at %t : memref<?x8x64xbf16>, !varlen.tile<queries(32)> -> tensor<32x64xbf16>
    varlen.write %0 to %out at %t otherwise (0.0) : tensor<32x64xbf16> -> memref<?x8x64xbf16>, !varlen.tile<queries(32)>
  }
  return
}
