// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// CHECK-LABEL: @finish
// CHECK: varlen.for_queries kq rows(%[[R:.*]], %[[H:.*]], %[[F:.*]], %[[G:.*]]) valid(%[[N:.*]]) ins(%[[ACC:.*]], %[[M:.*]], %[[L:.*]] : memref<1536x32xf32>, memref<24x32xf32>, memref<24x32xf32>) outs(%{{.*}} as rows, %{{.*}} as numbers, %{{.*}} as numbers : memref<?x4x64xbf16>, memref<4x?xf32>, memref<4xf32>) {
// CHECK: ^bb0(%[[A:.*]]: tensor<64x768xf32>, %{{.*}}: tensor<1x768xf32>, %{{.*}}: tensor<1x768xf32>):
// CHECK:   %[[OUT:.*]], %[[LSE:.*]] = varlen.online_finish kq %[[A]]
// CHECK:   varlen.yield %[[OUT]], %[[LSE]], %[[LSE]]
// CHECK: varlen.for_queries qk rows(%[[R]], %[[H]], %[[F]], %[[G]]) valid(%[[N]]) outs(%{{.*}} as scratch, %{{.*}} as scratch, %{{.*}} as scratch : memref<8x64xf32>, memref<8x1xf32>, memref<8x1xf32>) {
// CHECK:   varlen.online_init qk
func.func @finish(%row: index, %head: index, %first: index, %group: index, %n: index,
                  %acc: memref<1536x32xf32>, %m: memref<24x32xf32>, %l: memref<24x32xf32>,
                  %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>, %of_heads: memref<4xf32>,
                  %few: memref<8x64xf32>, %few_m: memref<8x1xf32>, %few_l: memref<8x1xf32>) {
  varlen.for_queries kq rows(%row, %head, %first, %group) valid(%n)
      ins(%acc, %m, %l : memref<1536x32xf32>, memref<24x32xf32>, memref<24x32xf32>)
      outs(%out as rows, %lse as numbers, %of_heads as numbers : memref<?x4x64xbf16>, memref<4x?xf32>, memref<4xf32>) {
  ^bb0(%0: tensor<64x768xf32>, %1: tensor<1x768xf32>, %2: tensor<1x768xf32>):
    %3, %4 = varlen.online_finish kq %0, %1, %2 scale 0.125 : tensor<64x768xf32>, tensor<1x768xf32>
    varlen.yield %3, %4, %4 : tensor<768x64xf32>, tensor<1x768xf32>, tensor<1x768xf32>
  }
  varlen.for_queries qk rows(%row, %head, %first, %group) valid(%n)
      outs(%few as scratch, %few_m as scratch, %few_l as scratch : memref<8x64xf32>, memref<8x1xf32>, memref<8x1xf32>) {
    %0, %1, %2 = varlen.online_init qk scale 0.125 : tensor<8x64xf32>, tensor<8x1xf32>
    varlen.yield %0, %1, %2 : tensor<8x64xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  }
  return
}

// CHECK-LABEL: @limits
// CHECK: varlen.key_limits mask <causal> pairs(%[[F:.*]], %[[G:.*]]) valid(%[[N:.*]]) of(%[[Q:.*]], %[[K:.*]]) to %{{.*}}, %{{.*}} : memref<24x32xi32>, memref<24x32xi32>
// CHECK: varlen.key_limits mask <full> pairs(%[[F]], %[[G]]) valid(%[[N]]) of(%[[Q]], %[[K]]) offset(%{{.*}}) to %{{.*}}, %{{.*}} : memref<8x1xi32>, memref<8x1xi32>
func.func @limits(%first: index, %group: index, %n: index, %queries: index, %keys: index, %offset: index,
                  %lo: memref<24x32xi32>, %hi: memref<24x32xi32>, %few_lo: memref<8x1xi32>, %few_hi: memref<8x1xi32>) {
  varlen.key_limits mask <causal> pairs(%first, %group) valid(%n) of(%queries, %keys)
      to %lo, %hi : memref<24x32xi32>, memref<24x32xi32>
  varlen.key_limits mask <full> pairs(%first, %group) valid(%n) of(%queries, %keys) offset(%offset)
      to %few_lo, %few_hi : memref<8x1xi32>, memref<8x1xi32>
  return
}
