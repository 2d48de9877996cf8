// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// Keys are rows of scores, and the number of these is not known.
// CHECK-LABEL: func.func @kq
// CHECK: %acc, %m, %l, %tacc, %tl = varlen.online_attn_jvp kq
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
// CHECK-SAME: limits(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%{{[a-z0-9]+}}, %{{[a-z0-9]+}})
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<48x32xf32>, tensor<1x32xf32>) scale 1.250000e-01
func.func @kq(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf32>, %limit: tensor<1x32xi32>, %k0: i32, %at: index,
              %acc: tensor<48x32xf32>, %m: tensor<1x32xf32>) -> tensor<48x32xf32> {
  %s:5 = varlen.online_attn_jvp kq
      ins(%q, %k, %v, %q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>, tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
      limits(%limit, %limit, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%at, %at)
      outs(%acc, %m, %m, %acc, %m : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<48x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return %s#3 : tensor<48x32xf32>
}

// A score of a number and of a table of each query; both have tangents. p is rounded, so that
// the state has one sum more.
// CHECK-LABEL: func.func @score
// CHECK: %acc, %m, %l, %tacc, %tl, %tl_rounded = varlen.online_attn_jvp qk
// CHECK: captures(%{{.*}} : tensor<8x1xf32>) tables(%[[TABLE:.*]], %[[TABLE]] : memref<?x?xf32>, memref<?x?xf32>)
// CHECK-SAME: rows(%{{.*}}, %{{.*}} : tensor<8x1xi64>, tensor<8x1xi64>) tcaptures(%{{.*}} : tensor<8x1xf32>) outs(
// CHECK-SAME: {wrt_captures = array<i64: 0, 1>} score
func.func @score(%q: tensor<8x4xbf16>, %m: tensor<8x1xf32>, %acc: tensor<8x4xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  %s:6 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %q, %q, %q : tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>)
      captures(%m : tensor<8x1xf32>) tables(%table, %table : memref<?x?xf32>, memref<?x?xf32>) rows(%rows, %rows : tensor<8x1xi64>, tensor<8x1xi64>)
      tcaptures(%m : tensor<8x1xf32>)
      outs(%acc, %m, %m, %acc, %m, %m : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 0, 1>}
      score (%s: f32, %i: i32, %j: i32, %gain: f32, %t: !varlen.table<f32>) {
        %zero = arith.constant 0 : i32
        %e = varlen.lookup %t[%zero] : !varlen.table<f32>
        %p = arith.mulf %s, %gain : f32
        %r = arith.addf %p, %e : f32
        varlen.yield %r : f32
      }
  return
}

// The state: its beginning, the union of two, and its end.
// CHECK-LABEL: func.func @state
// CHECK: %acc, %m, %l, %tacc, %tl = varlen.online_init kq scale 1.250000e-01 : tensor<48x32xf32>, tensor<1x32xf32> tangents(tensor<48x32xf32>, tensor<1x32xf32>)
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[TACC:.*]], %[[TL:.*]] = varlen.online_merge kq %acc, %m, %l tangents(%tacc, %tl : tensor<48x32xf32>, tensor<1x32xf32>)
// CHECK-SAME: with %acc, %m, %l tangents(%tacc, %tl : tensor<48x32xf32>, tensor<1x32xf32>) scale 1.250000e-01 rounded : tensor<48x32xf32>, tensor<1x32xf32>
// CHECK: %out, %lse, %tout, %tlse = varlen.online_finish kq %{{.*}} tangents(%[[TACC]], %[[TL]] : tensor<48x32xf32>, tensor<1x32xf32>)
// CHECK-SAME: sink(%{{.*}} : tensor<1x32xf32>) tsink(%{{.*}} : tensor<1x32xf32>) scale 1.250000e-01 : tensor<48x32xf32>, tensor<1x32xf32>
// CHECK: return %tout, %tlse : tensor<32x48xf32>, tensor<1x32xf32>
func.func @state(%sink: tensor<1x32xf32>) -> (tensor<32x48xf32>, tensor<1x32xf32>) {
  %s:5 = varlen.online_init kq scale 0.125 : tensor<48x32xf32>, tensor<1x32xf32> tangents(tensor<48x32xf32>, tensor<1x32xf32>)
  %u:5 = varlen.online_merge kq %s#0, %s#1, %s#2 tangents(%s#3, %s#4 : tensor<48x32xf32>, tensor<1x32xf32>)
      with %s#0, %s#1, %s#2 tangents(%s#3, %s#4 : tensor<48x32xf32>, tensor<1x32xf32>) scale 0.125 rounded : tensor<48x32xf32>, tensor<1x32xf32>
  %e:4 = varlen.online_finish kq %u#0, %u#1, %u#2 tangents(%u#3, %u#4 : tensor<48x32xf32>, tensor<1x32xf32>)
      sink(%sink : tensor<1x32xf32>) tsink(%sink : tensor<1x32xf32>) scale 0.125 : tensor<48x32xf32>, tensor<1x32xf32>
  return %e#2, %e#3 : tensor<32x48xf32>, tensor<1x32xf32>
}

// The state where p is rounded.
// CHECK-LABEL: func.func @rounded_state
// CHECK: %acc, %m, %l, %tacc, %tl, %tl_rounded = varlen.online_init kq
// CHECK: varlen.online_merge kq %acc, %m, %l tangents(%tacc, %tl, %tl_rounded :
// CHECK-SAME: with %acc, %m, %l tangents(%tacc, %tl, %tl_rounded :
// CHECK: varlen.online_finish kq %{{.*}} tangents(%{{.*}}, %{{.*}}, %{{.*}} : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
func.func @rounded_state() -> tensor<32x48xf32> {
  %s:6 = varlen.online_init kq scale 0.125 : tensor<48x32xf32>, tensor<1x32xf32> tangents(tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
  %u:6 = varlen.online_merge kq %s#0, %s#1, %s#2 tangents(%s#3, %s#4, %s#5 : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      with %s#0, %s#1, %s#2 tangents(%s#3, %s#4, %s#5 : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 0.125 rounded : tensor<48x32xf32>, tensor<1x32xf32>
  %e:4 = varlen.online_finish kq %u#0, %u#1, %u#2 tangents(%u#3, %u#4, %u#5 : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125 rounded : tensor<48x32xf32>, tensor<1x32xf32>
  return %e#2 : tensor<32x48xf32>
}
