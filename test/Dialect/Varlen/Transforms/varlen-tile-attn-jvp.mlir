// RUN: varlen-opt %s --varlen-tile-attn -canonicalize -cse | FileCheck %s
// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv -canonicalize -cse | FileCheck %s --check-prefix=PARTS

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy, part = 16, few_part = 8>

// The loop of an attention, whose state has tangents; the tangents of a sink join at the end.
// CHECK-LABEL: @out
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: memref<?x8x40xf32>, %[[TQ:[a-z0-9]*]]: memref<?x8x40xf32>, %[[K:[a-z0-9]*]]: memref<?x2x40xf32>, %[[TK:[a-z0-9]*]]: memref<?x2x40xf32>, %[[V:[a-z0-9]*]]: memref<?x2x24xf32>, %[[TV:[a-z0-9]*]]: memref<?x2x24xf32>,
// CHECK: varlen.for_tiles "attn" %[[T:.*]] of queries(32)
// CHECK:   %[[QT:.*]] = varlen.read %[[Q]] at %[[T]] : {{.*}} -> tensor<32x40xf32>
// CHECK:   %[[TQT:.*]] = varlen.read %[[TQ]] at %[[T]] : {{.*}} -> tensor<32x40xf32>
// CHECK:   %[[ACC:.*]], %[[M:.*]], %[[L:.*]], %[[TACC:.*]], %[[TL:.*]] = varlen.online_init kq scale 1.250000e-01 : tensor<24x32xf32>, tensor<1x32xf32> tangents(tensor<24x32xf32>, tensor<1x32xf32>)
// CHECK:   %[[S:.*]]:5 = varlen.for_blocks %[[B:.*]] of keys(32) meeting %[[T]] : {{.*}} iter_args(%{{.*}} = %[[ACC]], %{{.*}} = %[[M]], %{{.*}} = %[[L]], %{{.*}} = %[[TACC]], %{{.*}} = %[[TL]])
// CHECK-DAG: %[[KT:.*]] = varlen.read %[[K]] at %[[B]] : {{.*}} -> tensor<32x40xf32>
// CHECK-DAG: %[[TKT:.*]] = varlen.read %[[TK]] at %[[B]] : {{.*}} -> tensor<32x40xf32>
// CHECK-DAG: %[[VT:.*]] = varlen.read %[[V]] at %[[B]] : {{.*}} -> tensor<32x24xf32>
// CHECK-DAG: %[[TVT:.*]] = varlen.read %[[TV]] at %[[B]] : {{.*}} -> tensor<32x24xf32>
// CHECK:     varlen.online_attn_jvp kq at(%[[T]], %[[B]] : {{.*}}) ins(%[[QT]], %[[KT]], %[[VT]], %[[TQT]], %[[TKT]], %[[TVT]] :
// CHECK:   %[[O:.*]], %[[LSE:.*]], %[[TOUT:.*]], %[[TLSE:.*]] = varlen.online_finish kq %[[S]]#0, %[[S]]#1, %[[S]]#2 tangents(%[[S]]#3, %[[S]]#4 : {{.*}}) sink(%{{.*}} : tensor<1x32xf32>) tsink(%{{.*}} : tensor<1x32xf32>) scale 1.250000e-01 : tensor<24x32xf32>
// CHECK:   varlen.write %[[O]] to %{{.*}} at %[[T]] otherwise (0.000000e+00) : tensor<32x24xf32>
// CHECK:   varlen.write %[[LSE]] to %{{.*}} at %[[T]] otherwise (-inf) : tensor<1x32xf32>
// CHECK:   varlen.write %[[TOUT]] to %{{.*}} at %[[T]] otherwise (0.000000e+00) : tensor<32x24xf32>
// CHECK:   varlen.write %[[TLSE]] to %{{.*}} at %[[T]] otherwise (0.000000e+00) : tensor<1x32xf32>

// Parts have states of their own, with tangents.
// PARTS-LABEL: @out
// PARTS: varlen.for_parts {{.*}} blocks(16) few(8) : {{.*}} -> (tensor<24x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<24x32xf32>, tensor<1x32xf32>)
// PARTS: varlen.online_merge kq %{{.*}} tangents(%{{.*}}, %{{.*}} : tensor<24x32xf32>, tensor<1x32xf32>) with %{{.*}} tangents(
func.func @out(%q: memref<?x8x40xf32>, %tq: memref<?x8x40xf32>, %k: memref<?x2x40xf32>, %tk: memref<?x2x40xf32>, %v: memref<?x2x24xf32>, %tv: memref<?x2x24xf32>, %cu: memref<?xi32>,
               %sink: memref<8xf32>, %tsink: memref<8xf32>, %out: memref<?x8x24xf32>, %lse: memref<8x?xf32>, %tout: memref<?x8x24xf32>, %tlse: memref<8x?xf32>) {
  varlen.attn_jvp %q, %k, %v, %tq, %tk, %tv, %cu, %cu sink(%sink) tsink(%tsink) outs(%out, %lse, %tout, %tlse)
      {mask = #varlen.mask<causal>, scale = 0.125 : f32, varlen.schedule = #cpu}
      : (memref<?x8x40xf32>, memref<?x2x40xf32>, memref<?x2x24xf32>, memref<?x8x40xf32>, memref<?x2x40xf32>, memref<?x2x24xf32>, memref<?xi32>, memref<?xi32>,
         memref<8xf32>, memref<8xf32>, memref<?x8x24xf32>, memref<8x?xf32>, memref<?x8x24xf32>, memref<8x?xf32>) -> ()
  return
}

// Tangents of captures: of a number, which is read, and of a table, which is looked up in.
// CHECK-LABEL: @captures
// CHECK-SAME: %[[GAIN:[a-z0-9]*]]: memref<4xf32>, %[[TGAIN:[a-z0-9]*]]: memref<4xf32>, %[[TABLE:[a-z0-9]*]]: memref<4x7xf32>, %[[TTABLE:[a-z0-9]*]]: memref<4x7xf32>
// CHECK: %[[GAINS:.*]] = varlen.read %[[GAIN]]
// CHECK: %[[TGAINS:.*]] = varlen.read %[[TGAIN]]
// CHECK: varlen.online_attn_jvp kq {{.*}} captures(%[[GAINS]] : tensor<1x32xf32>) tables(%[[TABLE]], %[[TTABLE]] : memref<4x7xf32>, memref<4x7xf32>) tcaptures(%[[TGAINS]] : tensor<1x32xf32>) {{.*}} scale 1.000000e+00 {wrt_captures = array<i64: 0, 1>} score
// CHECK: %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
func.func @captures(%q: memref<?x4x16xf32>, %cu: memref<?xi32>, %gain: memref<4xf32>, %tgain: memref<4xf32>, %table: memref<4x7xf32>, %ttable: memref<4x7xf32>,
                    %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %tout: memref<?x4x16xf32>, %tlse: memref<4x?xf32>) {
  varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu tcaptures(%tgain, %ttable) outs(%out, %lse, %tout, %tlse) captures(%gain, %table)
      {varlen.schedule = #cpu, wrt_captures = array<i64: 0, 1>}
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>, memref<?xi32>,
         memref<4xf32>, memref<4x7xf32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<4xf32>, memref<4x7xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %g: f32, %t: !varlen.table<f32>) {
        %e = varlen.lookup %t[%j] : !varlen.table<f32>
        %p = arith.mulf %s, %g : f32
        %r = arith.addf %p, %e : f32
        varlen.yield %r : f32
      }
  return
}
