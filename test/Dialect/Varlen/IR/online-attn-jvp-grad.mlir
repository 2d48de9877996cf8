// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// Keys are rows of scores, and the number of these is not known.
// CHECK-LABEL: func.func @kq
// CHECK: %dq, %dk, %dv = varlen.online_attn_jvp_grad kq natural
// CHECK-SAME: ins(%{{.*}} : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x48xf32>)
// CHECK-SAME: dout(%{{.*}} : tensor<32x48xf32>) statistics(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
// CHECK-SAME: limits(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%{{[a-z0-9]+}}, %{{[a-z0-9]+}})
// CHECK-SAME: dq(%{{.*}} : tensor<32x64xf32>) dk(%{{.*}} : tensor<?x64xf32>) dv(%{{.*}} : tensor<?x48xf32>) scale 1.250000e-01
func.func @kq(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf32>, %dout: tensor<32x48xf32>, %n: tensor<1x32xf32>,
              %limit: tensor<1x32xi32>, %k0: i32, %at: index) -> tensor<?x48xf32> {
  %s:3 = varlen.online_attn_jvp_grad kq natural
      ins(%q, %k, %v, %q, %k, %v, %dout : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x48xf32>)
      dout(%dout : tensor<32x48xf32>)
      statistics(%n, %n, %n, %n : tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      limits(%limit, %limit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%at, %at)
      dq(%q : tensor<32x64xf32>) dk(%k : tensor<?x64xf32>) dv(%v : tensor<?x48xf32>)
      scale 0.125
  return %s#2 : tensor<?x48xf32>
}

// A score of a number and of a table of each query; both have tangents and gradients.
// CHECK-LABEL: func.func @score
// CHECK: %dq, %dk, %dv, %dcapture = varlen.online_attn_jvp_grad qk ins(
// CHECK-SAME: captures(%{{.*}} : tensor<8x1xf32>) tables(%[[TABLE:.*]], %[[TABLE]] : memref<?x?xf32>, memref<?x?xf32>)
// CHECK-SAME: rows(%{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<8x1xi64>, tensor<8x1xi64>) tcaptures(%{{[a-z0-9]+}} : tensor<8x1xf32>)
// CHECK-SAME: dtables(%[[TABLE]] : memref<?x?xf32>) drows(%{{.*}} : tensor<8x1xi64>) dq(
// CHECK-SAME: dcaptures(%{{.*}} : tensor<8x1xf32>) scale 1.000000e+00 {tangent_captures = array<i64: 0, 1>, wrt_captures = array<i64: 0, 1>} score
func.func @score(%q: tensor<8x4xbf16>, %n: tensor<8x1xf32>, %d: tensor<8x4xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  %s:4 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>)
      statistics(%n, %n, %n, %n : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%n : tensor<8x1xf32>) tables(%table, %table : memref<?x?xf32>, memref<?x?xf32>) rows(%rows, %rows : tensor<8x1xi64>, tensor<8x1xi64>)
      tcaptures(%n : tensor<8x1xf32>) dtables(%table : memref<?x?xf32>) drows(%rows : tensor<8x1xi64>)
      dq(%d : tensor<8x4xf32>) dk(%d : tensor<8x4xf32>) dv(%d : tensor<8x4xf32>) dcaptures(%n : tensor<8x1xf32>)
      scale 1.0 {tangent_captures = array<i64: 0, 1>, wrt_captures = array<i64: 0, 1>}
      score (%s: f32, %i: i32, %j: i32, %gain: f32, %t: !varlen.table<f32>) {
        %zero = arith.constant 0 : i32
        %e = varlen.lookup %t[%zero] : !varlen.table<f32>
        %p = arith.mulf %s, %gain : f32
        %r = arith.addf %p, %e : f32
        varlen.yield %r : f32
      }
  return
}

// A kernel of queries, one of keys and one of values.
// CHECK-LABEL: func.func @apart
// CHECK: %dq = varlen.online_attn_jvp_grad qk ins({{.*}}) statistics({{.*}}) dq(%{{.*}} : tensor<16x8xf32>) scale
// CHECK: %dk = varlen.online_attn_jvp_grad qk ins({{.*}}) statistics({{.*}}) dk(%{{.*}} : tensor<16x8xf32>) scale
// CHECK: %dv = varlen.online_attn_jvp_grad qk ins({{.*}}) statistics({{.*}}) dv(%{{.*}} : tensor<16x8xf32>) scale
func.func @apart(%q: tensor<16x8xf32>, %n: tensor<16x1xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {
  %dq = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      statistics(%n, %n, %n, %n : tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>) dq(%q : tensor<16x8xf32>) scale 1.0
  %dk = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      statistics(%n, %n, %n, %n : tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>) dk(%q : tensor<16x8xf32>) scale 1.0
  %dv = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      statistics(%n, %n, %n, %n : tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>) dv(%q : tensor<16x8xf32>) scale 1.0
  return %dq, %dk, %dv : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}

// The gradient of keys alone, of scores with a capture whose tangent they depend on.
// CHECK-LABEL: func.func @captured
// CHECK: varlen.online_attn_jvp_grad kq {{.*}} tcaptures(%{{.*}} : tensor<1x8xf32>) dk(%{{.*}} : tensor<8x4xf32>) scale 1.000000e+00 {tangent_captures = array<i64: 0>} score
func.func @captured(%q: tensor<8x4xf32>, %n: tensor<1x8xf32>) -> tensor<8x4xf32> {
  %dk = varlen.online_attn_jvp_grad kq
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %n, %n : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>)
      captures(%n : tensor<1x8xf32>) tcaptures(%n : tensor<1x8xf32>) dk(%q : tensor<8x4xf32>) scale 1.0 {tangent_captures = array<i64: 0>}
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        %p = arith.mulf %s, %gain : f32
        varlen.yield %p : f32
      }
  return %dk : tensor<8x4xf32>
}

// What rows have: with a sink and its tangent, and of a dout and a dlse.
// CHECK-LABEL: func.func @statistics
// CHECK: %tdelta, %term = varlen.online_tangent_statistics dots(%{{.*}}, %{{.*}} : tensor<64x1xf32>, tensor<64x1xf32>) %{{.*}}, %{{.*}}, %{{.*}} dlse(%{{.*}} : tensor<64x1xf32>) sink(%{{.*}} : tensor<64x1xf32>) tsink(%{{.*}} : tensor<64x1xf32>) natural : tensor<64x1xf32>
// CHECK: varlen.online_tangent_statistics dots(%{{.*}} : tensor<1x8xf64>) %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x8xf64>
func.func @statistics(%n: tensor<64x1xf32>, %columns: tensor<1x8xf64>) -> tensor<64x1xf32> {
  %tdelta, %term = varlen.online_tangent_statistics dots(%n, %n : tensor<64x1xf32>, tensor<64x1xf32>) %n, %n, %n dlse(%n : tensor<64x1xf32>)
      sink(%n : tensor<64x1xf32>) tsink(%n : tensor<64x1xf32>) natural : tensor<64x1xf32>
  %other = varlen.online_tangent_statistics dots(%columns : tensor<1x8xf64>) %columns, %columns, %columns : tensor<1x8xf64>
  return %term : tensor<64x1xf32>
}
