// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --emit-bytecode | varlen-opt | FileCheck %s

// CHECK-LABEL: func.func @pages
// CHECK: %k_cache, %v_cache = varlen.append %{{.*}}, %{{.*}}, %{{.*}} seqused_k(%{{.*}}) block_table(%{{.*}}) outs(%{{.*}}, %{{.*}}) {varlen.note = 1 : i64} :
func.func @pages(%k: tensor<?x2x16xbf16>, %v: tensor<?x2x24xbf16>, %cu: tensor<?xi64>, %used: tensor<?xi64>,
                 %table: tensor<?x?xi32>, %kc: tensor<?x?x2x16xbf16>, %vc: tensor<?x?x2x24xbf16>)
    -> (tensor<?x?x2x16xbf16>, tensor<?x?x2x24xbf16>) {
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) outs(%kc, %vc) {varlen.note = 1 : i64}
      : (tensor<?x2x16xbf16>, tensor<?x2x24xbf16>, tensor<?xi64>, tensor<?xi64>, tensor<?x?xi32>,
         tensor<?x?x2x16xbf16>, tensor<?x?x2x24xbf16>) -> (tensor<?x?x2x16xbf16>, tensor<?x?x2x24xbf16>)
  return %0#0, %0#1 : tensor<?x?x2x16xbf16>, tensor<?x?x2x24xbf16>
}

// Slots of a cache that is contiguous, of any strides; tables of another type.
// CHECK-LABEL: func.func @slots
// CHECK: varlen.append %{{.*}}, %{{.*}}, %{{.*}} seqused_k(%{{.*}}) rotary(%{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}) interleaved :
// CHECK-SAME: -> ()
func.func @slots(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %cos: memref<?x5xf16>,
                 %cache: memref<5x9x2x16xf32, strided<[600, 64, 16, 1]>>) {
  varlen.append %k, %k, %cu seqused_k(%used) rotary(%cos, %cos) outs(%cache, %cache) interleaved
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<?x5xf16>, memref<?x5xf16>,
         memref<5x9x2x16xf32, strided<[600, 64, 16, 1]>>, memref<5x9x2x16xf32, strided<[600, 64, 16, 1]>>) -> ()
  return
}

// Quantised caches, whose scales are results, too.
// CHECK-LABEL: func.func @quantised
// CHECK: %k_cache, %v_cache, %k_scale, %v_scale = varlen.append %{{.*}}, %{{.*}}, %{{.*}} seqused_k(%{{.*}}) rotary(%{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}) scales(%{{.*}}, %{{.*}}) interleaved :
func.func @quantised(%k: tensor<?x2x16xf16>, %cu: tensor<?xi32>, %used: tensor<?xi32>, %cos: tensor<?x5xf32>,
                     %cache: tensor<?x8x2x16xf8E4M3FN>, %scale: tensor<?x8x2xf32>)
    -> (tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2xf32>) {
  %0:4 = varlen.append %k, %k, %cu seqused_k(%used) rotary(%cos, %cos) outs(%cache, %cache) scales(%scale, %scale) interleaved
      : (tensor<?x2x16xf16>, tensor<?x2x16xf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x5xf32>, tensor<?x5xf32>,
         tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2xf32>, tensor<?x8x2xf32>)
      -> (tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2xf32>, tensor<?x8x2xf32>)
  return %0#0, %0#2 : tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2xf32>
}

// CHECK-LABEL: func.func @runs
// CHECK: %runs = varlen.append_runs %{{.*}}, %{{.*}} block_table(%{{.*}}) rows(%[[N:.*]], %[[N]]) pages(%[[N]], %[[N]]) page_rows(%[[N]], %[[N]]) positions(%[[N]], %[[N]]) :
// CHECK: varlen.append_runs %{{.*}}, %{{.*}} rows(
func.func @runs(%cu: memref<?xi32>, %table: memref<?x?xi32, strided<[?, 1]>>, %n: index) -> (memref<?x6xi64>, memref<?x6xi64>) {
  %0 = varlen.append_runs %cu, %cu block_table(%table) rows(%n, %n) pages(%n, %n) page_rows(%n, %n) positions(%n, %n)
      : (memref<?xi32>, memref<?xi32>, memref<?x?xi32, strided<[?, 1]>>, index, index, index, index, index, index, index, index)
      -> memref<?x6xi64>
  %1 = varlen.append_runs %cu, %cu rows(%n, %n) pages(%n, %n) page_rows(%n, %n)
      : (memref<?xi32>, memref<?xi32>, index, index, index, index, index, index) -> memref<?x6xi64>
  return %0, %1 : memref<?x6xi64>, memref<?x6xi64>
}
