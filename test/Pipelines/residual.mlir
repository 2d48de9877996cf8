// Each layer has its extents from the one before. In terms of the argument they are when
// loops are made: upstream compares the bounds of such loops in exponential time.

// RUN: varlen-opt %s --varlen-bufferize --mlir-print-ir-before=varlen-tile-linalg -o /dev/null 2>&1 | FileCheck %s
// CHECK: IR Dump Before VarlenTileLinalg
// CHECK-LABEL: func.func @layers
// CHECK: tensor.dim %arg0
// CHECK-NOT: tensor.dim %{{[0-9]}}
// CHECK: return
func.func @layers(%x0: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n0 = tensor.dim %x0, %c0 : tensor<?x8xf32>
  %e0 = tensor.empty(%n0) : tensor<?x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y0 = linalg.matmul ins(%x0, %w : tensor<?x8xf32>, tensor<8x8xf32>)
      outs(%f0 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %x1 = arith.addf %x0, %y0 : tensor<?x8xf32>
  %n1 = tensor.dim %x1, %c0 : tensor<?x8xf32>
  %e1 = tensor.empty(%n1) : tensor<?x8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y1 = linalg.matmul ins(%x1, %w : tensor<?x8xf32>, tensor<8x8xf32>)
      outs(%f1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %x2 = arith.addf %x1, %y1 : tensor<?x8xf32>
  return %x2 : tensor<?x8xf32>
}
