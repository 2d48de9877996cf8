// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-decompose-linalg))" --verify-diagnostics

func.func @on_buffers(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  // expected-error@+1 {{cannot be decomposed: expected tensors, got 'memref<?x?xf32>', 'memref<?x?xf32>'}}
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
