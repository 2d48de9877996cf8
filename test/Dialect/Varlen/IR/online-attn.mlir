// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// Queries are rows; bf16 accumulates in f32.
// CHECK-LABEL: func.func @qk
// CHECK: %acc, %m, %l = varlen.online_attn qk ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 1.250000e-01
func.func @qk(%q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x48xbf16>,
              %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>) -> tensor<32x48xf32> {
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>)
      outs(%acc, %m, %m : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return %acc1 : tensor<32x48xf32>
}

// Scores have keys as rows, and the number of these is not known. q and k may
// have been widened where v has not.
// CHECK-LABEL: func.func @kq
// CHECK: varlen.online_attn kq ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf16>)
// CHECK-SAME: limits(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x32xi32>, tensor<1x32xi32>, i32)
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.000000e-01 {my.note}
func.func @kq(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf16>,
              %limit: tensor<1x32xi32>, %k0: i32, %acc: tensor<48x32xf32>,
              %m: tensor<1x32xf32>) -> tensor<48x32xf32> {
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf16>)
      limits(%limit, %limit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32)
      outs(%acc, %m, %m : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.1 {my.note}
  return %acc1 : tensor<48x32xf32>
}

// Keys that all queries see.
// CHECK-LABEL: func.func @seen
// CHECK: limits(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x1xi32>, tensor<8x1xi32>, i32) seen(%{{.*}}, %{{.*}}) outs(
func.func @seen(%q: tensor<8x4xf32>, %limit: tensor<8x1xi32>, %k0: i32, %begin: index, %end: index,
                %m: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      limits(%limit, %limit, %k0 : tensor<8x1xi32>, tensor<8x1xi32>, i32) seen(%begin, %end)
      outs(%q, %m, %m : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      scale 0.1
  return %acc1 : tensor<8x4xf32>
}

// f64 accumulates in f64.
// CHECK-LABEL: func.func @f64
// CHECK: varlen.online_attn qk
func.func @f64(%q: tensor<?x?xf64>, %acc: tensor<?x?xf64>, %m: tensor<?x1xf64>)
    -> tensor<?x?xf64> {
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %q, %q : tensor<?x?xf64>, tensor<?x?xf64>, tensor<?x?xf64>)
      outs(%acc, %m, %m : tensor<?x?xf64>, tensor<?x1xf64>, tensor<?x1xf64>)
      scale 1.0
  return %acc1 : tensor<?x?xf64>
}

// A step is destination-style: upstream reads inits through casts and makes the
// results as static. An unused step is removed.
// CANON-LABEL: func.func @cast
// CANON-SAME: %{{.*}}: tensor<?x?xf32>, %[[ACC:[a-z0-9]+]]: tensor<8x16xf32>, %[[M:[a-z0-9]+]]: tensor<8x1xf32>
// CANON: %[[R:.*]], %{{.*}}, %{{.*}} = varlen.online_attn qk {{.*}} outs(%[[ACC]], %[[M]], %[[M]] : tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
// CANON-NOT: varlen.online_attn
// CANON: return %[[R]]
func.func @cast(%q: tensor<?x?xf32>, %acc: tensor<8x16xf32>, %m: tensor<8x1xf32>)
    -> tensor<8x16xf32> {
  %acc_cast = tensor.cast %acc : tensor<8x16xf32> to tensor<?x?xf32>
  %m_cast = tensor.cast %m : tensor<8x1xf32> to tensor<?x1xf32>
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %q, %q : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%acc_cast, %m_cast, %m_cast : tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      scale 1.0
  %acc2, %m2, %l2 = varlen.online_attn qk
      ins(%q, %q, %q : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%acc1, %m1, %l1 : tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      scale 1.0
  %result = tensor.cast %acc1 : tensor<?x?xf32> to tensor<8x16xf32>
  return %result : tensor<8x16xf32>
}

// Quantised keys and values are as they are, with a number of each key.
// CHECK-LABEL: func.func @quantised
// CHECK: varlen.online_attn qk ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<16x64xi8>, tensor<16x48xi8>)
// CHECK-SAME: k_scale(%{{.*}} : tensor<1x16xf32>) v_scale(%{{.*}} : tensor<1x16xf32>) outs(
func.func @quantised(%q: tensor<8x64xbf16>, %k: tensor<16x64xi8>, %v: tensor<16x48xi8>,
                     %scale: tensor<1x16xf32>, %acc: tensor<8x48xf32>, %m: tensor<8x1xf32>)
    -> tensor<8x48xf32> {
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<8x64xbf16>, tensor<16x64xi8>, tensor<16x48xi8>)
      k_scale(%scale : tensor<1x16xf32>) v_scale(%scale : tensor<1x16xf32>)
      outs(%acc, %m, %m : tensor<8x48xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 0.125
  return %acc1 : tensor<8x48xf32>
}
