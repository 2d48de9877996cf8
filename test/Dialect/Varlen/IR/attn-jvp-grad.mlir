// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --emit-bytecode | varlen-opt | FileCheck %s

// Operands, results, and what they are called.
// CHECK-LABEL: func.func @plain
// CHECK: %dq, %dk, %dv = varlen.attn_jvp_grad %arg3, %arg0, %arg1, %arg2, %arg0, %arg1, %arg2, %arg3, %arg4, %arg3, %arg4, %arg5, %arg5 {mask = #varlen.mask<causal>}
func.func @plain(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>, %o: tensor<?x4x24xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  %0:3 = varlen.attn_jvp_grad %o, %q, %k, %v, %q, %k, %v, %o, %l, %o, %l, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// Every clause, in the order in which they are printed.
// CHECK-LABEL: func.func @clauses
// CHECK: %dq, %dk, %dv, %dsink, %dcapture = varlen.attn_jvp_grad {{.*}} dtlse(%{{.*}}) dout(%{{.*}}) dlse(%{{.*}}) seqused_q(%{{.*}}) seqused_k(%{{.*}}) q_offset(%{{.*}}) sink(%{{.*}}) tsink(%{{.*}}) tcaptures(%{{.*}}) captures(%{{.*}}, %{{.*}}) {scale = 2.500000e-01 : f32, wrt_captures = array<i64: 1>}
func.func @clauses(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>, %o: tensor<?x4x24xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %used: tensor<?xi32>, %sink: tensor<4xf32>, %table: tensor<4x7xf32>) {
  %0:5 = varlen.attn_jvp_grad %o, %q, %k, %v, %q, %k, %v, %o, %l, %o, %l, %cu, %cu captures(%sink, %table) tcaptures(%table)
      tsink(%sink) sink(%sink) q_offset(%used) seqused_k(%used) seqused_q(%used) dlse(%l) dout(%o) dtlse(%l)
      {scale = 0.25 : f32, wrt_captures = array<i64: 1>}
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<4x?xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4x7xf32>, tensor<4xf32>, tensor<4x7xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<4xf32>, tensor<4x7xf32>)
      score (%s: f32, %i: i32, %j: i32, %gain: f32, %t: !varlen.table<f32>) {
        %e = varlen.lookup %t[%j] : !varlen.table<f32>
        %p = arith.mulf %s, %gain : f32
        %r = arith.addf %p, %e : f32
        varlen.yield %r : f32
      }
  return
}

// Into buffers.
// CHECK-LABEL: func.func @buffers
// CHECK: varlen.attn_jvp_grad {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}) : {{.*}} -> ()
func.func @buffers(%q: memref<?x4x16xf32>, %l: memref<4x?xf32>, %cu: memref<?xi32>, %dq: memref<?x4x16xf32>) {
  varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu outs(%dq, %dq, %dq)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?x4x16xf32>, memref<4x?xf32>,
         memref<?xi32>, memref<?xi32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>) -> ()
  return
}

// Destinations on tensors.
// CHECK-LABEL: func.func @into
// CHECK: varlen.attn_jvp_grad_into {{.*}} dout(%{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}})
func.func @into(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>, %o: tensor<?x4x24xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  %0:3 = varlen.attn_jvp_grad_into %o, %q, %k, %v, %q, %k, %v, %o, %l, %o, %l, %cu, %cu dout(%o) outs(%q, %k, %v)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}
