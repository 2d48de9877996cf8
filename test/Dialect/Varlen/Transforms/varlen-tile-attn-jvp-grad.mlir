// RUN: varlen-opt %s --varlen-tile-attn -canonicalize -cse | FileCheck %s

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy, part = 16, few_part = 8>

// The loops of gradients: statistics have those of tangents beside them, and steps the rows of
// tangents. The sink has the term of both.
// CHECK-LABEL: @all
// CHECK-SAME: (%[[DTOUT:[a-z0-9]*]]: memref<?x8x24xf32>, %[[Q:[a-z0-9]*]]: memref<?x8x40xf32>, %[[K:[a-z0-9]*]]: memref<?x2x40xf32>, %[[V:[a-z0-9]*]]: memref<?x2x24xf32>, %[[TQ:[a-z0-9]*]]: memref<?x8x40xf32>, %[[TK:[a-z0-9]*]]: memref<?x2x40xf32>, %[[TV:[a-z0-9]*]]: memref<?x2x24xf32>,
// CHECK-SAME: %[[OUT:[a-z0-9]*]]: memref<?x8x24xf32>, %[[LSE:[a-z0-9]*]]: memref<8x?xf32>, %[[TOUT:[a-z0-9]*]]: memref<?x8x24xf32>, %[[TLSE:[a-z0-9]*]]: memref<8x?xf32>, %{{[a-z0-9]*}}: memref<?xi32>,
// CHECK-SAME: %[[DTLSE:[a-z0-9]*]]: memref<8x?xf32>, %[[DOUT:[a-z0-9]*]]: memref<?x8x24xf32>, %[[DLSE:[a-z0-9]*]]: memref<8x?xf32>, %[[SINK:[a-z0-9]*]]: memref<8xf32>, %[[TSINK:[a-z0-9]*]]: memref<8xf32>, %[[DQ:[a-z0-9]*]]: memref<?x8x40xf32>, %[[DK:[a-z0-9]*]]: memref<?x2x40xf32>, %[[DV:[a-z0-9]*]]: memref<?x2x24xf32>, %[[DSINK:[a-z0-9]*]]: memref<8xf32>)
// CHECK: %[[ROWS:.*]] = varlen.rows in %{{.*}} : <4 x f32>
// CHECK: %[[TERMS:.*]] = varlen.rows in %{{.*}} : <1 x f32>
// CHECK: varlen.for_tiles "delta" %[[T:.*]] of queries(1024)
// CHECK-DAG: %[[DTOUTS:.*]] = varlen.read %[[DTOUT]] at %[[T]]
// CHECK-DAG: %[[OUTS:.*]] = varlen.read %[[OUT]] at %[[T]]
// CHECK-DAG: %[[TOUTS:.*]] = varlen.read %[[TOUT]] at %[[T]]
// CHECK-DAG: %[[DOUTS:.*]] = varlen.read %[[DOUT]] at %[[T]]
// CHECK-DAG: %[[LSES:.*]] = varlen.read %[[LSE]] at %[[T]]
// CHECK-DAG: %[[DTLSES:.*]] = varlen.read %[[DTLSE]] at %[[T]]
// CHECK-DAG: %[[DLSES:.*]] = varlen.read %[[DLSE]] at %[[T]]
// CHECK-DAG: %[[TLSES:.*]] = varlen.read %[[TLSE]] at %[[T]]
// CHECK-DAG: %[[SINKS:.*]] = varlen.read %[[SINK]] at %[[T]]
// CHECK-DAG: %[[TSINKS:.*]] = varlen.read %[[TSINK]] at %[[T]]
// CHECK-DAG: %[[DOT:.*]] = varlen.row_dot %[[DTOUTS]], %[[OUTS]]
// CHECK-DAG: %[[TDOT:.*]] = varlen.row_dot %[[DTOUTS]], %[[TOUTS]]
// CHECK-DAG: %[[MORE:.*]] = varlen.row_dot %[[DOUTS]], %[[OUTS]]
// CHECK-DAG: %[[ROWLSE:.*]], %[[DELTA:.*]] = varlen.online_statistics %[[DOT]], %[[LSES]] dlse(%[[DTLSES]] : tensor<1024x1xf32>) natural
// CHECK: %[[TDELTA:.*]], %[[TERM:.*]] = varlen.online_tangent_statistics dots(%[[TDOT]], %[[MORE]] : {{.*}}) %[[LSES]], %[[DELTA]], %[[TLSES]] dlse(%[[DLSES]] : tensor<1024x1xf32>) sink(%[[SINKS]] : tensor<1024x1xf32>) tsink(%[[TSINKS]] : tensor<1024x1xf32>) natural
// CHECK: varlen.write %[[ROWLSE]], %[[DELTA]], %[[TLSES]], %[[TDELTA]] to %[[ROWS]] at %[[T]] otherwise (inf, 0.000000e+00, 0.000000e+00, 0.000000e+00)
// CHECK: varlen.write %[[TERM]] to %[[TERMS]] at %[[T]]
// CHECK: varlen.for_tiles "dqkv" %[[S:.*]] of sequences
// CHECK-DAG: %[[QT:.*]] = varlen.read %[[Q]] at %[[S]]
// CHECK-DAG: %[[TQT:.*]] = varlen.read %[[TQ]] at %[[S]]
// CHECK-DAG: %[[DTT:.*]] = varlen.read %[[DTOUT]] at %[[S]]
// CHECK-DAG: %[[DT:.*]] = varlen.read %[[DOUT]] at %[[S]]
// CHECK-DAG: %[[N:.*]]:4 = varlen.read %[[ROWS]] at %[[S]]
// CHECK:   varlen.for_blocks %[[B:.*]] of keys(32)
// CHECK-DAG: %[[KT:.*]] = varlen.read %[[K]] at %[[B]]
// CHECK-DAG: %[[VT:.*]] = varlen.read %[[V]] at %[[B]]
// CHECK-DAG: %[[TKT:.*]] = varlen.read %[[TK]] at %[[B]]
// CHECK-DAG: %[[TVT:.*]] = varlen.read %[[TV]] at %[[B]]
// CHECK:     %[[GQ:.*]], %[[GK:.*]], %[[GV:.*]] = varlen.online_attn_jvp_grad kq natural at(%[[S]], %[[B]] : {{.*}}) ins(%[[QT]], %[[KT]], %[[VT]], %[[TQT]], %[[TKT]], %[[TVT]], %[[DTT]] : {{.*}}) dout(%[[DT]] : tensor<?x24xf32>) statistics(%[[N]]#0, %[[N]]#1, %[[N]]#2, %[[N]]#3 :
// CHECK:     varlen.write %[[GK]] to %[[DK]] at %[[B]] otherwise (0.000000e+00) times 1.250000e-01
// CHECK:     varlen.write %[[GV]] to %[[DV]] at %[[B]] otherwise (0.000000e+00) :
// CHECK:     varlen.yield %[[GQ]]
// CHECK:   varlen.write %{{.*}} to %[[DQ]] at %[[S]] otherwise (0.000000e+00) times 1.250000e-01
// CHECK: varlen.sum_rows %[[TERMS]] to %[[DSINK]] at %{{.*}} negated
// CHECK: varlen.free_rows %[[ROWS]]
// CHECK: varlen.free_rows %[[TERMS]]
func.func @all(%dtout: memref<?x8x24xf32>, %q: memref<?x8x40xf32>, %k: memref<?x2x40xf32>, %v: memref<?x2x24xf32>, %tq: memref<?x8x40xf32>, %tk: memref<?x2x40xf32>, %tv: memref<?x2x24xf32>,
               %out: memref<?x8x24xf32>, %lse: memref<8x?xf32>, %tout: memref<?x8x24xf32>, %tlse: memref<8x?xf32>, %cu: memref<?xi32>, %dtlse: memref<8x?xf32>, %dout: memref<?x8x24xf32>, %dlse: memref<8x?xf32>,
               %sink: memref<8xf32>, %tsink: memref<8xf32>, %dq: memref<?x8x40xf32>, %dk: memref<?x2x40xf32>, %dv: memref<?x2x24xf32>, %dsink: memref<8xf32>) {
  varlen.attn_jvp_grad %dtout, %q, %k, %v, %tq, %tk, %tv, %out, %lse, %tout, %tlse, %cu, %cu dtlse(%dtlse) dout(%dout) dlse(%dlse) sink(%sink) tsink(%tsink) outs(%dq, %dk, %dv, %dsink)
      {mask = #varlen.mask<causal>, scale = 0.125 : f32, varlen.schedule = #cpu}
      : (memref<?x8x24xf32>, memref<?x8x40xf32>, memref<?x2x40xf32>, memref<?x2x24xf32>, memref<?x8x40xf32>, memref<?x2x40xf32>, memref<?x2x24xf32>, memref<?x8x24xf32>, memref<8x?xf32>, memref<?x8x24xf32>, memref<8x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<8x?xf32>, memref<?x8x24xf32>, memref<8x?xf32>, memref<8xf32>, memref<8xf32>, memref<?x8x40xf32>, memref<?x2x40xf32>, memref<?x2x24xf32>, memref<8xf32>) -> ()
  return
}

// Captures with tangents and gradients: of a number, whose tangent is one of the statistics, and
// of a table, whose rows get what each query adds. Nothing is a product with a dout.
// CHECK-LABEL: @captures
// CHECK-SAME: %[[GAIN:[a-z0-9]*]]: memref<4xf32>, %[[TGAIN:[a-z0-9]*]]: memref<4xf32>, %[[TABLE:[a-z0-9]*]]: memref<4x7xf32>, %[[TTABLE:[a-z0-9]*]]: memref<4x7xf32>
// CHECK: %[[GAINS:.*]] = varlen.read %[[GAIN]]
// CHECK: %[[TGAINS:.*]] = varlen.read %[[TGAIN]]
// CHECK: varlen.write %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[GAINS]], %[[TGAINS]] to %[[ROWS:.*]] at
// CHECK: %[[N:.*]]:6 = varlen.read %[[ROWS]]
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[DGAIN:.*]] = varlen.online_attn_jvp_grad kq natural at({{.*}}) ins({{.*}}) statistics({{.*}}) captures(%[[N]]#4 : tensor<1x?xf32>) tables(%[[TABLE]], %[[TTABLE]] : memref<4x7xf32>, memref<4x7xf32>) tcaptures(%[[N]]#5 : tensor<1x?xf32>) dtables(%[[DROWS:.*]] : memref<4x?x7xf32>) dq({{.*}}) dk({{.*}}) dv({{.*}}) dcaptures(%{{.*}} : tensor<1x?xf32>) scale 1.000000e+00 {tangent_captures = array<i64: 0, 1>, wrt_captures = array<i64: 0, 1>} score
// CHECK: varlen.for_tiles "dcapture0"
// CHECK: varlen.for_tiles "dcapture1"
// CHECK: varlen.sum_rows %[[DROWS]] to
func.func @captures(%q: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>, %gain: memref<4xf32>, %tgain: memref<4xf32>, %table: memref<4x7xf32>, %ttable: memref<4x7xf32>,
                    %dq: memref<?x4x16xf32>, %dk: memref<?x4x16xf32>, %dv: memref<?x4x16xf32>, %dgain: memref<4xf32>, %dtable: memref<4x7xf32>) {
  varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu tcaptures(%tgain, %ttable) outs(%dq, %dk, %dv, %dgain, %dtable) captures(%gain, %table)
      {varlen.schedule = #cpu, wrt_captures = array<i64: 0, 1>}
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<4xf32>, memref<4x7xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<4xf32>, memref<4x7xf32>, memref<4xf32>, memref<4x7xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %g: f32, %t: !varlen.table<f32>) {
        %e = varlen.lookup %t[%j] : !varlen.table<f32>
        %p = arith.mulf %s, %g : f32
        %r = arith.addf %p, %e : f32
        varlen.yield %r : f32
      }
  return
}
