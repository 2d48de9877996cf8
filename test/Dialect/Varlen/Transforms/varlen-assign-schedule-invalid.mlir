// RUN: varlen-opt %s --varlen-assign-schedule=target=avx2 --verify-diagnostics
// RUN: not varlen-opt %s --varlen-assign-schedule=target=z80 2>&1 | FileCheck %s

// CHECK: error: expected target to be one of host, {{.*}}avx2{{.*}}, got z80

// Without a static head_dim there is nothing to tile by.
func.func @dynamic_head_dim(%q: tensor<?x4x?xf32>, %k: tensor<?x4x?xf32>, %v: tensor<?x4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x?xf32> {
  // expected-remark @below {{no tiles for a dynamic head_dim; it is decomposed instead}}
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x?xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x?xf32>
}

// Nor where one operand knows what another does not say.
func.func @dynamic_head_dim_of_k(%q: memref<?x4x16xf32>, %k: memref<?x4x?xf32>, %v: memref<?x4x16xf32>, %cu: memref<?xi32>, %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) {
  // expected-remark @below {{no tiles for a dynamic head_dim; it is decomposed instead}}
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse) : (memref<?x4x16xf32>, memref<?x4x?xf32>, memref<?x4x16xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  return
}

// What is in the way of compiling a huge head_dim is compile time.
func.func @huge_head_dim(%q: tensor<?x4x1000000xf32>, %cu: tensor<?xi32>) {
  // expected-remark @below {{no tiles for head_dim 1000000, which is more than 4096; it is decomposed instead}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x1000000xf32>, tensor<?x4x1000000xf32>, tensor<?x4x1000000xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x1000000xf32>, tensor<4x?xf32>)
  return
}
