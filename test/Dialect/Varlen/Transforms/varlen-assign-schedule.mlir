// RUN: varlen-opt %s --varlen-assign-schedule=target=avx2 --split-input-file | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: varlen-opt %s --varlen-assign-schedule=target=avx512_bf16 --split-input-file | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: varlen-opt %s --varlen-assign-schedule=target=neon --split-input-file | FileCheck %s --check-prefixes=CHECK,NEON

// The compute type gives the lanes, the vector registers the blocking.

// CHECK-LABEL: @f32
// CHECK: varlen.attn
// CHECK-SAME: varlen.exp2_degree = 5 : i64
// AVX2-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = {{[0-9]+}}, kv_block = {{[0-9]+}}, kv = copy>
// DOT-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 2, rows = 8, panels = {{[0-9]+}}, kv_block = {{[0-9]+}}, kv = copy>
// NEON-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 4, vectors = 4, rows = 4, panels = {{[0-9]+}}, kv_block = {{[0-9]+}}, kv = copy>
func.func @f32(%q: tensor<?x4x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x4x64xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xf32>
}

// -----

// 16-bit tiles are converted as they are copied, or multiplied in pairs where
// the CPU has a dot product.

// CHECK-LABEL: @bf16
// CHECK: varlen.attn
// CHECK-SAME: varlen.exp2_degree = 4 : i64
// AVX2-SAME: lanes = 8
// AVX2-SAME: kv = copy
// DOT-SAME: lanes = 16
// DOT-SAME: kv = pairs
func.func @bf16(%q: tensor<?x4x64xbf16>, %k: tensor<?x4x64xbf16>, %v: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) -> tensor<?x4x64xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xbf16>
}

// -----

// An odd head_dim has no pairs.

// CHECK-LABEL: @bf16_odd
// CHECK: varlen.attn
// CHECK-SAME: kv = copy
func.func @bf16_odd(%q: tensor<?x4x63xbf16>, %k: tensor<?x4x63xbf16>, %v: tensor<?x4x63xbf16>, %cu: tensor<?xi32>) -> tensor<?x4x63xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x63xbf16>, tensor<?x4x63xbf16>, tensor<?x4x63xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x63xbf16>, tensor<4x?xf32>)
  return %out : tensor<?x4x63xbf16>
}

// -----

// CHECK-LABEL: @f64
// CHECK: varlen.attn
// CHECK-NOT: exp2_degree
// AVX2-SAME: lanes = 4
// DOT-SAME: lanes = 8
// NEON-SAME: lanes = 2
func.func @f64(%q: tensor<?x4x64xf64>, %k: tensor<?x4x64xf64>, %v: tensor<?x4x64xf64>, %cu: tensor<?xi32>) -> tensor<?x4x64xf64> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu : (tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf64>, tensor<4x?xf64>)
  return %out : tensor<?x4x64xf64>
}

// -----

// A schedule in the input stays.

// CHECK-LABEL: @given
// CHECK: varlen.attn
// CHECK-NOT: exp2_degree
// CHECK-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 64, kv = copy>
func.func @given(%q: tensor<?x4x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x4x64xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 64, kv = copy>} : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xf32>
}

// -----

// Gradients have a table of their own; pairs need both head sizes even.

// CHECK-LABEL: @grad
// CHECK: varlen.attn_grad
// CHECK-SAME: varlen.exp2_degree = 4 : i64
// AVX2-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 1, kv_block = {{[0-9]+}}, kv = copy>
// DOT-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 4, rows = 4, panels = 1, kv_block = {{[0-9]+}}, kv = pairs>
// CHECK: varlen.attn_grad
// DOT-SAME: kv = copy>
func.func @grad(%q: tensor<?x4x64xbf16>, %odd: tensor<?x4x63xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>) {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  %dq1, %dk1, %dv1 = varlen.attn_grad %odd, %q, %q, %odd, %odd, %lse, %cu, %cu : (tensor<?x4x63xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x63xbf16>, tensor<?x4x63xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x63xbf16>)
  return %dq, %dq1 : tensor<?x4x64xbf16>, tensor<?x4x64xbf16>
}

// -----

// Tangents have the tiles of an attention.

// CHECK-LABEL: @tangents
// CHECK: varlen.attn_jvp
// CHECK-SAME: varlen.exp2_degree = 5 : i64
// AVX2-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4,
// DOT-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 2, rows = 8,
// NEON-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 4, vectors = 4, rows = 4,
func.func @tangents(%q: tensor<?x4x64xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>, tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %0#2 : tensor<?x4x64xf32>
}

// -----

// Gradients of tangents have the tiles of gradients.

// CHECK-LABEL: @gradients_of_tangents
// CHECK: varlen.attn_jvp_grad
// CHECK-SAME: varlen.exp2_degree = 4 : i64
// AVX2-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 1, kv_block = {{[0-9]+}}, kv = copy>
// DOT-SAME: varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 4, rows = 4, panels = 1, kv_block = {{[0-9]+}}, kv = pairs>
func.func @gradients_of_tangents(%q: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x64xbf16> {
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
  return %0#0 : tensor<?x4x64xbf16>
}
