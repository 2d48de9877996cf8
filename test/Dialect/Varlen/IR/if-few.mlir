// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// CHECK-LABEL: @forms
// CHECK: varlen.for_tiles "twice" %[[T:.*]] of queries(64) in
// CHECK: varlen.if_few %[[F:.*]] of %[[T]] : !varlen.tile<queries(4)> of !varlen.tile<queries(64)> {
// CHECK:   varlen.read %{{.*}} at %[[F]] : memref<?x8x16xf32>, <queries(4)> -> tensor<4x16xf32>
// CHECK: } else {
// CHECK:   varlen.read %{{.*}} at %[[T]] : memref<?x8x16xf32>, <queries(64)> -> tensor<64x16xf32>
// CHECK: }
func.func @forms(%x: memref<?x8x16xf32>, %y: memref<?x8x16xf32>, %cu: memref<?xi32>, %i: index) {
  %batch = varlen.batch %cu, %cu rows(%i, %i) heads(%i, %i) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "twice" %t of queries(64) in %batch {
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(64)> {
      %0 = varlen.read %x at %f : memref<?x8x16xf32>, !varlen.tile<queries(4)> -> tensor<4x16xf32>
      varlen.write %0 to %y at %f otherwise (0.0) : tensor<4x16xf32> -> memref<?x8x16xf32>, !varlen.tile<queries(4)>
    } else {
      %0 = varlen.read %x at %t : memref<?x8x16xf32>, !varlen.tile<queries(64)> -> tensor<64x16xf32>
      varlen.write %0 to %y at %t otherwise (0.0) : tensor<64x16xf32> -> memref<?x8x16xf32>, !varlen.tile<queries(64)>
    }
  }
  return
}
