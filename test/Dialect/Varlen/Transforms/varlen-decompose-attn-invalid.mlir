// RUN: varlen-opt %s --varlen-decompose-attn --verify-diagnostics

func.func @bufferized(%q: memref<?x1x8xf32>, %cu: memref<?xi32>, %o: memref<?x1x8xf32>, %l: memref<1x?xf32>) {
  // expected-error@+1 {{'varlen.attn' op expected tensors to decompose, got memrefs; decompose before bufferization}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l)
    : (memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?x1x8xf32>, memref<?xi32>, memref<?xi32>,
       memref<?x1x8xf32>, memref<1x?xf32>) -> ()
  return
}
