// RUN: varlen-opt %s --varlen-assign-schedule=target=avx2 --verify-diagnostics
// RUN: not varlen-opt %s --varlen-assign-schedule=target=z80 2>&1 | FileCheck %s

// CHECK: error: expected target to be one of host, {{.*}}avx2{{.*}}, got z80

// Without a static head_dim there is nothing to tile by.
func.func @dynamic_head_dim(%q: tensor<?x4x?xf32>, %k: tensor<?x4x?xf32>, %v: tensor<?x4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x?xf32> {
  // expected-remark @below {{no tiles for a dynamic head_dim; it is decomposed instead}}
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x?xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x?xf32>
}
