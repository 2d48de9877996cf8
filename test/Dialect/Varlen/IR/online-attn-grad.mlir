// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s --check-prefix=CANON
// RUN: varlen-opt %s --resolve-shaped-type-result-dims --canonicalize | FileCheck %s --check-prefix=REIFY

// All gradients; statistics are columns. bf16 accumulates in f32.
// CHECK-LABEL: func.func @qk
// CHECK: %dq, %dk, %dv = varlen.online_attn_grad qk
// CHECK-SAME: ins(%{{.*}} : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>, tensor<32x48xbf16>, tensor<32x1xf32>, tensor<32x1xf32>)
// CHECK-SAME: dq(%{{.*}} : tensor<32x64xf32>) dk(%{{.*}} : tensor<16x64xf32>) dv(%{{.*}} : tensor<16x48xf32>) scale 1.250000e-01 {my.note}
func.func @qk(%q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x48xbf16>,
              %dout: tensor<32x48xbf16>, %stat: tensor<32x1xf32>, %dq: tensor<32x64xf32>,
              %dk: tensor<16x64xf32>, %dv: tensor<16x48xf32>)
    -> (tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>) {
  %r:3 = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %stat, %stat : tensor<32x64xbf16>, tensor<16x64xbf16>,
          tensor<16x48xbf16>, tensor<32x48xbf16>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) dk(%dk : tensor<16x64xf32>) dv(%dv : tensor<16x48xf32>)
      scale 0.125 {my.note}
  return %r#0, %r#1, %r#2 : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>
}

// Gradients of keys and values only; statistics are rows; extents and limits
// that are known at run time.
// CHECK-LABEL: func.func @kq
// CHECK: %dk, %dv = varlen.online_attn_grad kq
// CHECK-SAME: limits(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x?xi32>, tensor<1x?xi32>, i32) seen(%{{.*}}, %{{.*}}) dk(%{{.*}} : tensor<?x64xf32>) dv(%{{.*}} : tensor<?x?xf32>) scale
func.func @kq(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x?xf16>,
              %stat: tensor<1x?xf32>, %limit: tensor<1x?xi32>, %k0: i32, %begin: index, %end: index,
              %dk: tensor<?x64xf32>, %dv: tensor<?x?xf32>) -> (tensor<?x64xf32>, tensor<?x?xf32>) {
  %r:2 = varlen.online_attn_grad kq
      ins(%q, %k, %v, %v, %stat, %stat : tensor<?x64xf32>, tensor<?x64xf32>,
          tensor<?x?xf16>, tensor<?x?xf16>, tensor<1x?xf32>, tensor<1x?xf32>)
      limits(%limit, %limit, %k0 : tensor<1x?xi32>, tensor<1x?xi32>, i32) seen(%begin, %end)
      dk(%dk : tensor<?x64xf32>) dv(%dv : tensor<?x?xf32>) scale 0.125
  return %r#0, %r#1 : tensor<?x64xf32>, tensor<?x?xf32>
}

// Gradients of the queries only, in f64.
// CHECK-LABEL: func.func @dq
// CHECK: %dq = varlen.online_attn_grad qk {{.*}} tensor<8x1xf64>) dq(%{{.*}} : tensor<8x4xf64>) scale
func.func @dq(%t: tensor<8x4xf64>, %stat: tensor<8x1xf64>) -> tensor<8x4xf64> {
  %r = varlen.online_attn_grad qk
      ins(%t, %t, %t, %t, %stat, %stat : tensor<8x4xf64>, tensor<8x4xf64>,
          tensor<8x4xf64>, tensor<8x4xf64>, tensor<8x1xf64>, tensor<8x1xf64>)
      dq(%t : tensor<8x4xf64>) scale 1.0
  return %r : tensor<8x4xf64>
}

// Destination-style: upstream reads inits through casts. A step without
// uses is removed.
// CANON-LABEL: func.func @cast
// CANON-SAME: %{{.*}}: tensor<?x?xf32>, %{{.*}}: tensor<?x1xf32>, %[[DV:[a-z0-9]+]]: tensor<8x16xf32>
// CANON: %[[R:.*]] = varlen.online_attn_grad qk {{.*}} dv(%[[DV]] : tensor<8x16xf32>)
// CANON-NOT: varlen.online_attn_grad
// CANON: return %[[R]]
func.func @cast(%t: tensor<?x?xf32>, %stat: tensor<?x1xf32>, %dv: tensor<8x16xf32>)
    -> tensor<8x16xf32> {
  %cast = tensor.cast %dv : tensor<8x16xf32> to tensor<?x?xf32>
  %r = varlen.online_attn_grad qk
      ins(%t, %t, %t, %t, %stat, %stat : tensor<?x?xf32>, tensor<?x?xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      dv(%cast : tensor<?x?xf32>) scale 1.0
  %unused:2 = varlen.online_attn_grad qk
      ins(%t, %t, %t, %t, %stat, %stat : tensor<?x?xf32>, tensor<?x?xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      dq(%t : tensor<?x?xf32>) dk(%t : tensor<?x?xf32>) scale 1.0
  %result = tensor.cast %r : tensor<?x?xf32> to tensor<8x16xf32>
  return %result : tensor<8x16xf32>
}

// Results have the extents of their destinations.
// REIFY-LABEL: func.func @reify
// REIFY-SAME: %[[DK:[a-z0-9]+]]: tensor<?x4xf32>)
// REIFY: %[[DIM:.*]] = tensor.dim %[[DK]]
// REIFY-NOT: varlen.online_attn_grad
// REIFY: return %[[DIM]]
func.func @reify(%t: tensor<?x?xf32>, %stat: tensor<?x1xf32>, %dk: tensor<?x4xf32>) -> index {
  %c0 = arith.constant 0 : index
  %r = varlen.online_attn_grad qk
      ins(%t, %t, %t, %t, %stat, %stat : tensor<?x?xf32>, tensor<?x?xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      dk(%dk : tensor<?x4xf32>) scale 1.0
  %dim = tensor.dim %r, %c0 : tensor<?x4xf32>
  return %dim : index
}
