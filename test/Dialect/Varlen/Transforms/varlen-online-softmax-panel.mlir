// RUN: varlen-opt %s --varlen-online-softmax --canonicalize --split-input-file | FileCheck %s

// A step of a panel on a CPU: the limits of queries are the bounds of loops.

// Scores of 8 keys for the queries of both vectors, or of the one that sees a key; limits
// are looked at where not all queries see all 8.

// CHECK-LABEL: @forward
// CHECK-SAME: (%[[Q:.*]]: tensor<16x64xf32>, %[[K:.*]]: tensor<?x64xf32>, %[[V:.*]]: tensor<?x20xf32>, %[[LO:.*]]: tensor<1x16xi32>, %[[HI:.*]]: tensor<1x16xi32>, %[[K0:.*]]: i32, %[[FROM:.*]]: index, %[[TO:.*]]: index, %[[ACC:.*]]: tensor<20x16xf32>,
// CHECK: scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step %c8 iter_args(%[[S:.*]] = %{{.*}}, %[[TOP:.*]] = %{{.*}}) -> (tensor<?x16xf32>, tensor<1x16xf32>)
// CHECK: scf.if %{{.*}} -> (tensor<?x16xf32>, tensor<1x16xf32>)
// CHECK: %[[KEYS:.*]] = tensor.extract_slice %[[K]][%[[AT]], 0] [8, 64] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%[[KEYS]], %[[Q]] : tensor<8x64xf32>, tensor<16x64xf32>) outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: %[[BEGINS:.*]] = arith.cmpi sle, %[[FROM]], %[[AT]] : index
// CHECK: %[[END:.*]] = arith.addi %[[AT]], %c8 : index
// CHECK: %[[ENDS:.*]] = arith.cmpi sle, %[[END]], %[[TO]] : index
// CHECK: %[[SEEN:.*]] = arith.andi %[[BEGINS]], %[[ENDS]] : i1
// CHECK: scf.if %[[SEEN]] -> (tensor<?x16xf32>) {
// CHECK-NEXT: scf.yield
// CHECK: } else {
// CHECK: linalg.generic {{.*}} ins(%[[G:.*]], %[[LO]], %[[HI]] : {{.*}}) outs(%[[G]] : tensor<8x16xf32>)
// CHECK: varlen.hide %{{.*}} limits(%{{.*}}, %{{.*}}, %{{.*}}) : f32
// CHECK: arith.maxnumf
// One vector alone always has limits.
// CHECK: } else {
// CHECK: %[[QUERIES:.*]] = tensor.extract_slice %[[Q]][%{{.*}}, 0] [8, 64] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[QUERIES]] : tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK: varlen.hide
// CHECK: arith.maxnumf

// p of the keys that each vector sees.
// CHECK-COUNT-2: varlen.weight
// Sums of 8 columns of v: of the keys that the first vector sees alone, both, and the
// second one alone, then the other columns.
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c16 step %c8 iter_args(%[[A:.*]] = %[[ACC]])
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x16xf32>) outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: math.fma
// CHECK: linalg.contract {{.*}} : tensor<?x4xf32>, tensor<?x16xf32>) outs(%{{.*}} : tensor<4x16xf32>)
func.func @forward(%q: tensor<16x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x20xf32>, %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %k0: i32, %from: index, %to: index,
    %acc: tensor<20x16xf32>, %m: tensor<1x16xf32>, %l: tensor<1x16xf32>, %run: i1) -> (tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
  %r:3 = scf.if %run -> (tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
    %s:3 = varlen.online_attn kq ins(%q, %k, %v : tensor<16x64xf32>, tensor<?x64xf32>, tensor<?x20xf32>)
        limits(%lo, %hi, %k0 : tensor<1x16xi32>, tensor<1x16xi32>, i32) seen(%from, %to)
        outs(%acc, %m, %l : tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.125
    scf.yield %s#0, %s#1, %s#2 : tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
  } else {
    scf.yield %acc, %m, %l : tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 1, kv_block = 32, kv = copy>}
  return %r#0, %r#1, %r#2 : tensor<20x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
}

// -----

// Where vectors do not come in twos, all queries are looked at together. p is rounded
// for the second product, not for the sum.

// CHECK-LABEL: @three_vectors
// CHECK: scf.for {{.*}} step %c8 iter_args
// CHECK: linalg.contract {{.*}} : tensor<8x64xbf16>, tensor<24x64xbf16>) outs(%{{.*}} : tensor<8x24xf32>)
// CHECK-NOT: linalg.contract
// CHECK: varlen.weight
// CHECK: %[[L:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]}
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: scf.for {{.*}} step %c8 iter_args(%{{.*}} = %{{.*}}) -> (tensor<32x24xf32>)
// CHECK: arith.mulf
// CHECK: linalg.contract {{.*}} : tensor<?x8xbf16>, tensor<?x24xbf16>) outs(%{{.*}} : tensor<8x24xf32>)
func.func @three_vectors(%q: tensor<24x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x32xbf16>, %lo: tensor<1x24xi32>, %hi: tensor<1x24xi32>, %k0: i32, %from: index, %to: index,
    %acc: tensor<32x24xf32>, %m: tensor<1x24xf32>, %l: tensor<1x24xf32>, %run: i1) -> (tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) {
  %r:3 = scf.if %run -> (tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) {
    %s:3 = varlen.online_attn kq ins(%q, %k, %v : tensor<24x64xbf16>, tensor<?x64xbf16>, tensor<?x32xbf16>)
        limits(%lo, %hi, %k0 : tensor<1x24xi32>, tensor<1x24xi32>, i32) seen(%from, %to)
        outs(%acc, %m, %l : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) scale 0.125
    scf.yield %s#0, %s#1, %s#2 : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>
  } else {
    scf.yield %acc, %m, %l : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 1, kv_block = 32, kv = pairs>}
  return %r#0, %r#1, %r#2 : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>
}

// -----

// Gradients: p and ds in register blocks of 8 keys, with limits where not all queries see it. Rows of
// dk and dv are summed over the queries that see one of them, which are looked for from
// those of the rows before; rows of dq over the keys that these queries see. Tiles of
// sums are as high as registers have room for.

// CHECK-LABEL: @gradients
// CHECK: %[[PDS:.*]]:2 = scf.for %{{.*}} = %c0 to %c32 step %c16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<?x32xf32>, tensor<?x32xf32>)
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8
// CHECK: scf.if %{{.*}} -> (tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK-COUNT-2: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: } else {
// CHECK-COUNT-2: linalg.contract {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: scf.if %{{.*}} -> (tensor<?x32xf32>, tensor<?x32xf32>) {
// CHECK-NOT: varlen.hide
// CHECK: } else {
// CHECK-COUNT-2: varlen.hide
// CHECK: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c4 iter_args(%{{.*}} = %{{.*}}, %[[B:.*]] = %[[FIRST:.*]], %[[E:.*]] = %[[FIRST]])
// CHECK: scf.while (%{{.*}} = %[[B]])
// CHECK: scf.while (%{{.*}} = %[[E]])
// CHECK: tensor.extract_slice %[[PDS]]#0[%{{.*}}, %[[AT:.*]]] [4, %[[DEPTH:.*]]] [1, 1]
// CHECK: linalg.contract {{.*}} {varlen.add_last} ins(%{{.*}}, %{{.*}} : tensor<4x?xf32>, tensor<?x32xf32>) outs(%{{.*}} : tensor<4x32xf32>)
// CHECK: scf.for {{.*}} step %c4
// CHECK: tensor.extract_slice %[[PDS]]#1
// CHECK: linalg.contract {{.*}} {varlen.add_last}
// CHECK: scf.for {{.*}} = %c0 to %c32 step %c4
// CHECK-NOT: scf.while
// CHECK: tensor.extract_slice %[[PDS]]#1[%{{.*}}, %{{.*}}] [%{{.*}}, 4] [1, 1]
// CHECK: linalg.contract {{.*}} {varlen.add_last} ins(%{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x32xf32>) outs(%{{.*}} : tensor<4x32xf32>)
func.func @gradients(%q: tensor<32x32xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %dout: tensor<32x32xf32>, %lse: tensor<1x32xf32>, %delta: tensor<1x32xf32>,
    %lo: tensor<1x32xi32>, %hi: tensor<1x32xi32>, %k0: i32, %from: index, %to: index,
    %dq: tensor<32x32xf32>, %dk: tensor<?x32xf32>, %dv: tensor<?x32xf32>, %run: i1) -> (tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %r:3 = scf.if %run -> (tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
    %s:3 = varlen.online_attn_grad kq ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<32x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
        limits(%lo, %hi, %k0 : tensor<1x32xi32>, tensor<1x32xi32>, i32) seen(%from, %to)
        dq(%dq : tensor<32x32xf32>) dk(%dk : tensor<?x32xf32>) dv(%dv : tensor<?x32xf32>) scale 0.125
    scf.yield %s#0, %s#1, %s#2 : tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  } else {
    scf.yield %dq, %dk, %dv : tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 4, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return %r#0, %r#1, %r#2 : tensor<32x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// Gradients of dv alone need no ds.

// CHECK-LABEL: @values
// CHECK: scf.for {{.*}} -> (tensor<?x16xf32>)
// CHECK: math.exp2
// CHECK-NOT: arith.subf
// CHECK: linalg.contract {{.*}} {varlen.add_last}
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @values(%q: tensor<16x32xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %dout: tensor<16x32xf32>, %lse: tensor<1x16xf32>, %delta: tensor<1x16xf32>,
    %lo: tensor<1x16xi32>, %hi: tensor<1x16xi32>, %k0: i32, %from: index, %to: index, %dv: tensor<?x32xf32>, %run: i1) -> tensor<?x32xf32> {
  %r = scf.if %run -> (tensor<?x32xf32>) {
    %s = varlen.online_attn_grad kq ins(%q, %k, %v, %dout, %lse, %delta : tensor<16x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<16x32xf32>, tensor<1x16xf32>, tensor<1x16xf32>)
        limits(%lo, %hi, %k0 : tensor<1x16xi32>, tensor<1x16xi32>, i32) seen(%from, %to)
        dv(%dv : tensor<?x32xf32>) scale 0.125
    scf.yield %s : tensor<?x32xf32>
  } else {
    scf.yield %dv : tensor<?x32xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return %r : tensor<?x32xf32>
}
