// RUN: varlen-opt %s --varlen-to-cpu | FileCheck %s

// A shape that is a tensor: rows become a batch of which both extents are dynamic.

// CHECK-NOT: memref.reshape
// CHECK: llvm.func @batch(
// CHECK: llvm.return
func.func @batch(%x: tensor<?xf32>, %b: index, %s: index) -> tensor<?x?xf32> {
  %shape = tensor.from_elements %b, %s : tensor<2xindex>
  %y = tensor.reshape %x(%shape) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %z = arith.addf %y, %y : tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}
