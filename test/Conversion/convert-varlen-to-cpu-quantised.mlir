// RUN: varlen-opt %s --varlen-tile-attn --varlen-specialize-few --convert-varlen-to-cpu --canonicalize --cse | FileCheck %s

// The scales of a block are copied for either orientation. Few queries read keys where they
// are, and convert them in products; more queries read copies that have been converted.
// CHECK-LABEL: func.func @quantised
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x16xf32>, %[[K:[^:]*]]: memref<?x2x16xi8>, %[[V:[^:]*]]: memref<?x2x24xi8>
// CHECK-DAG: %[[KSCALE:.*]] = memref.reinterpret_cast {{.*}} memref<?x2x1xf32
// CHECK: %[[NUMBERS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<16x1xf32>
// CHECK: varlen.read_rows %{{.*}} : memref<?x2x1xf32,
// CHECK: bufferization.to_tensor %{{.*}} restrict : {{.*}} to tensor<1x?xf32>
// CHECK: varlen.load_rows %[[K]] {{.*}} -> tensor<?x16xi8>
// CHECK: varlen.online_attn qk ins(%{{.*}} : tensor<?x16xf32>, tensor<?x16xi8>, tensor<?x24xi8>) k_scale(%{{.*}} : tensor<1x?xf32>)
// CHECK: varlen.read_rows %[[K]] {{.*}} : memref<?x2x16xi8> to memref<?x16xf32,
// CHECK: varlen.online_attn kq ins(%{{.*}} : tensor<8x16xf32>, tensor<?x16xf32>, tensor<?x24xf32>) k_scale(%{{.*}} : tensor<?x1xf32>)
func.func @quantised(%q: memref<?x4x16xf32>, %k: memref<?x2x16xi8>, %v: memref<?x2x24xi8>,
                     %cu: memref<?xi32>, %scale: memref<?x2xf32>, %out: memref<?x4x24xf32>,
                     %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) k_scale(%scale)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 2, panels = 2, kv_block = 16, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x2x16xi8>, memref<?x2x24xi8>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>, memref<?x2xf32>) -> ()
  return
}
