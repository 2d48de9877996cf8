// RUN: varlen-opt %s --varlen-online-softmax --canonicalize --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-online-softmax --canonicalize --linalg-generalize-named-ops --one-shot-bufferize="bufferize-function-boundaries" --split-input-file | FileCheck %s --check-prefix=BUFFER
// RUN: varlen-opt %s --varlen-online-softmax=skip-rescaling --canonicalize --split-input-file | FileCheck %s --check-prefix=SKIP

// Queries are rows: statistics are columns, reductions run along rows.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[$QD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$KD:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$VD:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @qk
// CHECK-SAME: (%[[Q:.*]]: tensor<64x128xbf16>, %[[K:.*]]: tensor<32x128xbf16>, %[[V:.*]]: tensor<32x96xbf16>, %[[ACC:.*]]: tensor<64x96xf32>, %[[M:.*]]: tensor<64x1xf32>, %[[L:.*]]: tensor<64x1xf32>)
// CHECK-DAG: %[[C:.*]] = arith.constant 0.7213{{.*}} : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0{{.*}} : f32
// CHECK-DAG: %[[COARSE:.*]] = arith.constant 0x4BB17218 : f32
// CHECK: %[[S:.*]] = linalg.contract indexing_maps = [#[[$QD]], #[[$KD]], #[[$OUT]]] ins(%[[Q]], %[[K]]
// CHECK-SAME: -> tensor<64x32xf32>
// CHECK: %[[TOP:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]]], iterator_types = ["parallel", "reduction"]} ins(%[[S]]
// CHECK: arith.maxnumf
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[TOP]]
// CHECK: arith.maxnumf
// A row whose scores are large takes the power of two after 0.72.
// CHECK: %[[FACTOR:.*]] = linalg.generic {{.*}} ins(%[[NEW]]
// CHECK: %[[SIZE:.*]] = math.absf
// CHECK: %[[LARGE:.*]] = arith.cmpf oge, %[[SIZE]], %[[COARSE]]
// CHECK: arith.select %[[LARGE]], %[[ONE]], %[[C]]
// p is rounded to bf16: the reference is the very maximum.
// CHECK-NOT: math.ceil
// CHECK: %[[MINUS:.*]] = linalg.generic {{.*}} ins(%[[NEW]], %[[FACTOR]]
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: %[[ALPHA:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[NEW]], %[[FACTOR]]
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: math.exp2
// CHECK: %[[LS:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[ALPHA]]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[S]], %[[FACTOR]], %[[MINUS]]
// CHECK: ^bb0(%[[SIN:.*]]: f32, %[[FIN:.*]]: f32, %[[MIN:.*]]: f32, %{{.*}}: f32):
// CHECK: varlen.weight %[[SIN]] by %[[FIN]] plus %[[MIN]] : f32
// CHECK: %[[LNEW:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[P]] {{.*}} outs(%[[LS]]
// CHECK: arith.addf
// p is rounded for the second product, after it was summed.
// CHECK: %[[PB:.*]] = linalg.generic {{.*}} ins(%[[P]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[SCALED:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[ACC]], %[[ALPHA]] : {{.*}} outs(%[[ACC]] :
// CHECK: %[[ANEW:.*]] = linalg.contract indexing_maps = [#[[$QD]], #[[$VD]], #[[$OUT]]] ins(%[[PB]], %[[V]] {{.*}} outs(%[[SCALED]]
// CHECK: return %[[ANEW]], %[[NEW]], %[[LNEW]]
// BUFFER-LABEL: @qk
// BUFFER-NOT: tensor
// BUFFER: return
func.func @qk(%q: tensor<64x128xbf16>, %k: tensor<32x128xbf16>, %v: tensor<32x96xbf16>, %acc: tensor<64x96xf32>, %m: tensor<64x1xf32>, %l: tensor<64x1xf32>) -> (tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
  %r:3 = varlen.online_attn qk ins(%q, %k, %v : tensor<64x128xbf16>, tensor<32x128xbf16>, tensor<32x96xbf16>) outs(%acc, %m, %l : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 0.5
  return %r#0, %r#1, %r#2 : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>
}

// -----

// Keys are rows: the same step with other maps and interchanged loops. Limits
// hide keys before anything else happens. An exact p is summed apart, then added.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$COL:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-DAG: #[[$RD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$CD:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$DC:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$DR:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: @kq_limits
// CHECK-SAME: (%[[Q:.*]]: tensor<24x64xf32>, %[[K:.*]]: tensor<?x64xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[LO:.*]]: tensor<1x24xi32>, %[[HI:.*]]: tensor<1x24xi32>, %[[K0:.*]]: i32, %[[BEGIN:.*]]: index, %[[END:.*]]: index, %[[ACC:.*]]: tensor<32x24xf32>, %{{.*}}: tensor<1x24xf32>, %[[L:.*]]: tensor<1x24xf32>)
// CHECK-DAG: %[[NINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[S:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$CD]], {{.*}}] ins(%[[K]], %[[Q]]
// CHECK-SAME: -> tensor<?x24xf32>
// CHECK: %[[SM:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$COL]], #[[$COL]], #[[$ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[S]], %[[LO]], %[[HI]]
// CHECK: ^bb0(%[[IN:.*]]: f32, %[[LOW:.*]]: i32, %[[HIGH:.*]]: i32, %{{.*}}: f32):
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: varlen.hide %[[IN]] with %[[NINF]] at %[[ROW]] limits(%[[LOW]], %[[HIGH]], %[[K0]]) unless(%{{.*}}) : f32
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$COL]]], iterator_types = ["reduction", "parallel"]} ins(%[[SM]]
// CHECK: arith.maxnumf
// CHECK: math.ceil
// CHECK: %[[ALPHA:.*]] = linalg.generic
// CHECK: math.exp2 %{{.*}} {varlen.exp2_degree = 4 : i64}
// CHECK: varlen.weight %{{.*}} {varlen.exp2_degree = 4 : i64}
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}["reduction", "parallel"]} {{.*}} outs(%{{.*}} : tensor<1x24xf32>)
// CHECK: arith.addf
// The new l and acc are written over the old ones.
// CHECK: linalg.generic {{.*}} ins(%[[L]], %[[ALPHA]], %[[SUM]] : {{.*}} outs(%[[L]] :
// CHECK: math.fma
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<32x24xf32>
// CHECK: %[[PV:.*]] = linalg.contract indexing_maps = [#[[$DR]], #[[$DC]], {{.*}}] ins(%[[V]], {{.*}} outs(%[[ZERO]]
// CHECK: linalg.generic {{.*}} ins(%[[ACC]], %[[ALPHA]], %[[PV]] : {{.*}} outs(%[[ACC]] :
// CHECK: math.fma
// BUFFER-LABEL: @kq_limits
// BUFFER-NOT: tensor
// BUFFER: return
func.func @kq_limits(%q: tensor<24x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %lo: tensor<1x24xi32>, %hi: tensor<1x24xi32>, %k0: i32, %begin: index, %end: index, %acc: tensor<32x24xf32>, %m: tensor<1x24xf32>, %l: tensor<1x24xf32>) -> (tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) {
  %r:3 = varlen.online_attn kq ins(%q, %k, %v : tensor<24x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>) limits(%lo, %hi, %k0 : tensor<1x24xi32>, tensor<1x24xi32>, i32) seen(%begin, %end) outs(%acc, %m, %l : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) scale 0.125 {varlen.exp2_degree = 4 : i64}
  return %r#0, %r#1, %r#2 : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>
}

// -----

// All gradients with queries as rows: p and ds are rounded for the products
// they take part in; ds comes from the p that is not.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[$RD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$CD:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$DC:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$DR:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: @grad_qk
// CHECK-SAME: (%[[Q:.*]]: tensor<64x128xbf16>, %[[K:.*]]: tensor<32x128xbf16>, %[[V:.*]]: tensor<32x96xbf16>, %[[DOUT:.*]]: tensor<64x96xbf16>, %[[LSE:.*]]: tensor<64x1xf32>, %[[DELTA:.*]]: tensor<64x1xf32>, %[[DQ:.*]]: tensor<64x128xf32>, %[[DK:.*]]: tensor<32x128xf32>, %[[DV:.*]]: tensor<32x96xf32>)
// CHECK-DAG: %[[C:.*]] = arith.constant 0.7213{{.*}} : f32
// CHECK: %[[S:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$CD]], {{.*}}] ins(%[[Q]], %[[K]]
// CHECK-SAME: -> tensor<64x32xf32>
// CHECK: %[[MINUS:.*]] = linalg.generic {{.*}} ins(%[[LSE]]
// CHECK: arith.negf
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[S]], %[[MINUS]]
// CHECK: %[[X:.*]] = math.fma %{{.*}}, %[[C]], %{{.*}}
// CHECK: %[[MIN:.*]] = arith.minimumf %[[X]], %{{.*}}
// CHECK: math.exp2 %[[MIN]] {varlen.exp2_degree = 4 : i64}
// CHECK: %[[PB:.*]] = linalg.generic {{.*}} ins(%[[P]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[DVNEW:.*]] = linalg.contract indexing_maps = [#[[$DR]], #[[$DC]], {{.*}}] ins(%[[PB]], %[[DOUT]] {{.*}} outs(%[[DV]]
// CHECK: %[[DP:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$CD]], {{.*}}] ins(%[[DOUT]], %[[V]]
// CHECK: %[[DS:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ID]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[P]], %[[DP]], %[[DELTA]]
// CHECK: ^bb0(%[[PIN:.*]]: f32, %[[DPIN:.*]]: f32, %[[DELTAIN:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[DIFF:.*]] = arith.subf %[[DPIN]], %[[DELTAIN]]
// CHECK: arith.mulf %[[PIN]], %[[DIFF]]
// CHECK: %[[DSB:.*]] = linalg.generic {{.*}} ins(%[[DS]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[DKNEW:.*]] = linalg.contract indexing_maps = [#[[$DR]], #[[$DC]], {{.*}}] ins(%[[DSB]], %[[Q]] {{.*}} outs(%[[DK]]
// CHECK: %[[DQNEW:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$DC]], {{.*}}] ins(%[[DSB]], %[[K]] {{.*}} outs(%[[DQ]]
// CHECK: return %[[DQNEW]], %[[DKNEW]], %[[DVNEW]]
// BUFFER-LABEL: @grad_qk
// BUFFER-NOT: tensor
// BUFFER: return
func.func @grad_qk(%q: tensor<64x128xbf16>, %k: tensor<32x128xbf16>, %v: tensor<32x96xbf16>, %dout: tensor<64x96xbf16>, %lse: tensor<64x1xf32>, %delta: tensor<64x1xf32>, %dq: tensor<64x128xf32>, %dk: tensor<32x128xf32>, %dv: tensor<32x96xf32>) -> (tensor<64x128xf32>, tensor<32x128xf32>, tensor<32x96xf32>) {
  %r:3 = varlen.online_attn_grad qk ins(%q, %k, %v, %dout, %lse, %delta : tensor<64x128xbf16>, tensor<32x128xbf16>, tensor<32x96xbf16>, tensor<64x96xbf16>, tensor<64x1xf32>, tensor<64x1xf32>) dq(%dq : tensor<64x128xf32>) dk(%dk : tensor<32x128xf32>) dv(%dv : tensor<32x96xf32>) scale 0.5 {varlen.exp2_degree = 4 : i64}
  return %r#0, %r#1, %r#2 : tensor<64x128xf32>, tensor<32x128xf32>, tensor<32x96xf32>
}

// -----

// Keys are rows: p and ds are left factors as they are for dk and dv. Limits
// hide p, and ds too, whatever they are. A natural lse is subtracted before the
// change to units of log2.

// CHECK-DAG: #[[$RD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$CD:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$DC:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @grad_kq_limits
// CHECK-SAME: (%[[Q:.*]]: tensor<24x64xf32>, %[[K:.*]]: tensor<?x64xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[DOUT:.*]]: tensor<24x32xf32>, %{{.*}}: tensor<1x24xf32>, %{{.*}}: tensor<1x24xf32>, %[[LO:.*]]: tensor<1x24xi32>, %[[HI:.*]]: tensor<1x24xi32>, %{{.*}}: i32, %[[BEGIN:.*]]: index, %[[END:.*]]: index, %[[DK:.*]]: tensor<?x64xf32>, %[[DV:.*]]: tensor<?x32xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.442695{{.*}} : f32
// CHECK: linalg.contract indexing_maps = [#[[$RD]], #[[$CD]], {{.*}}] ins(%[[K]], %[[Q]]
// CHECK-SAME: -> tensor<?x24xf32>
// CHECK: %[[T:.*]] = math.fma %{{.*}}, %[[SCALE]], %{{.*}}
// CHECK: %[[MIN:.*]] = arith.minimumf %[[T]], %[[ZERO]]
// CHECK: %[[X:.*]] = arith.mulf %[[MIN]], %[[LOG2E]]
// CHECK: math.exp2 %[[X]]
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[LO]], %[[HI]]
// CHECK: ^bb0(%[[IN:.*]]: f32, %[[LOW:.*]]: i32, %[[HIGH:.*]]: i32, %{{.*}}: f32):
// CHECK: linalg.index 0
// CHECK: varlen.hide %[[IN]] with %[[ZERO]] at %{{.*}} limits(%[[LOW]], %[[HIGH]], %{{.*}}) unless(%{{.*}}) : f32
// CHECK: %[[DVNEW:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$DC]], {{.*}}] ins(%[[P]], %[[DOUT]] {{.*}} outs(%[[DV]]
// CHECK: linalg.contract indexing_maps = [#[[$RD]], #[[$CD]], {{.*}}] ins(%[[V]], %[[DOUT]]
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: %[[DS:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[LO]], %[[HI]]
// CHECK: varlen.hide
// CHECK-NOT: arith.truncf
// CHECK: %[[DKNEW:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$DC]], {{.*}}] ins(%[[DS]], %[[Q]] {{.*}} outs(%[[DK]]
// No dq is asked for.
// CHECK-NOT: linalg.contract
// CHECK: return %[[DKNEW]], %[[DVNEW]]
// BUFFER-LABEL: @grad_kq_limits
// BUFFER-NOT: tensor
// BUFFER: return
func.func @grad_kq_limits(%q: tensor<24x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %dout: tensor<24x32xf32>, %lse: tensor<1x24xf32>, %delta: tensor<1x24xf32>, %lo: tensor<1x24xi32>, %hi: tensor<1x24xi32>, %k0: i32, %begin: index, %end: index, %dk: tensor<?x64xf32>, %dv: tensor<?x32xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %r:2 = varlen.online_attn_grad kq natural ins(%q, %k, %v, %dout, %lse, %delta : tensor<24x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>, tensor<24x32xf32>, tensor<1x24xf32>, tensor<1x24xf32>) limits(%lo, %hi, %k0 : tensor<1x24xi32>, tensor<1x24xi32>, i32) seen(%begin, %end) dk(%dk : tensor<?x64xf32>) dv(%dv : tensor<?x32xf32>) scale 0.125
  return %r#0, %r#1 : tensor<?x64xf32>, tensor<?x32xf32>
}

// -----

// dv alone takes two products, dq alone three.
// CHECK-LABEL: @grad_dv
// CHECK-COUNT-2: linalg.contract
// CHECK-NOT: linalg.contract
// CHECK-LABEL: @grad_dq
// CHECK-COUNT-3: linalg.contract
// CHECK-NOT: linalg.contract
func.func @grad_dv(%t: tensor<8x4xf32>, %m: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %r = varlen.online_attn_grad qk ins(%t, %t, %t, %t, %m, %m : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>) dv(%t : tensor<8x4xf32>) scale 1.0
  return %r : tensor<8x4xf32>
}
func.func @grad_dq(%t: tensor<8x4xf32>, %m: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %r = varlen.online_attn_grad qk ins(%t, %t, %t, %t, %m, %m : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>) dq(%t : tensor<8x4xf32>) scale 1.0
  return %r : tensor<8x4xf32>
}

// -----

// The union of two states: both are rescaled to the larger of their maxima.

// CHECK-LABEL: @merge
// CHECK-SAME: (%[[ACC:.*]]: tensor<64x96xf32>, %[[M:.*]]: tensor<64x1xf32>, %[[L:.*]]: tensor<64x1xf32>, %[[ACC1:.*]]: tensor<64x96xf32>, %[[M1:.*]]: tensor<64x1xf32>, %[[L1:.*]]: tensor<64x1xf32>)
// CHECK: %[[MOST:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[M1]] :
// CHECK: arith.maxnumf
// CHECK: %[[FACTOR:.*]] = linalg.generic {{.*}} ins(%[[MOST]] :
// CHECK: arith.select
// CHECK: %[[MINUS:.*]] = linalg.generic {{.*}} ins(%[[MOST]], %[[FACTOR]] :
// CHECK: math.ceil
// CHECK: %[[ALPHA:.*]] = linalg.generic {{.*}} ins(%[[M]], {{.*}}%[[MINUS]] :
// CHECK: math.ceil
// CHECK: math.exp2
// CHECK: %[[BETA:.*]] = linalg.generic {{.*}} ins(%[[M1]], {{.*}}%[[MINUS]] :
// CHECK: math.exp2
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[ACC]], %[[ALPHA]] :
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[ACC1]], %[[BETA]], %[[SCALED]] :
// CHECK: math.fma
// CHECK: %[[LSCALED:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[ALPHA]] :
// CHECK: %[[LSUM:.*]] = linalg.generic {{.*}} ins(%[[L1]], %[[BETA]], %[[LSCALED]] :
// CHECK: return %[[SUM]], %[[MOST]], %[[LSUM]]
// BUFFER-LABEL: @merge
// BUFFER-NOT: tensor
// BUFFER: return
func.func @merge(%acc: tensor<64x96xf32>, %m: tensor<64x1xf32>, %l: tensor<64x1xf32>, %acc1: tensor<64x96xf32>, %m1: tensor<64x1xf32>, %l1: tensor<64x1xf32>) -> (tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
  %r:3 = varlen.online_merge qk %acc, %m, %l with %acc1, %m1, %l1 scale 0.5 : tensor<64x96xf32>, tensor<64x1xf32>
  return %r#0, %r#1, %r#2 : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>
}

// -----

// The beginning of a state: m below every score, but finite, in units before the
// scale.

// CHECK-LABEL: @init
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -8.50705917E+37 : f32
// CHECK: %[[ACC:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<64x96xf32>)
// CHECK: %[[M:.*]] = linalg.fill ins(%[[LEAST]] : f32) outs(%{{.*}} : tensor<64x1xf32>)
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<64x1xf32>)
// CHECK: return %[[ACC]], %[[M]], %[[L]]
// BUFFER-LABEL: @init
// BUFFER-NOT: tensor
// BUFFER: return
func.func @init() -> (tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
  %acc, %m, %l = varlen.online_init qk scale 0.5 : tensor<64x96xf32>, tensor<64x1xf32>
  return %acc, %m, %l : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>
}

// -----

// The same in f64, with queries as columns.

// CHECK-LABEL: @init_kq
// CHECK: arith.constant -{{.*}}E+307 : f64
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<1x64xf64>)
// BUFFER-LABEL: @init_kq
// BUFFER: return
func.func @init_kq() -> tensor<1x64xf64> {
  %acc, %m, %l = varlen.online_init kq scale 0.5 : tensor<96x64xf64>, tensor<1x64xf64>
  return %m : tensor<1x64xf64>
}

// -----

// Products of rows, summed in the type of the result.

// CHECK-LABEL: @row_dot
// CHECK: %[[DOT:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<64x40xbf16>, tensor<64x40xbf16>) outs(%{{.*}} : tensor<64x1xf32>)
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %[[SUM:.*]]: f32):
// CHECK: %[[AW:.*]] = arith.extf %[[A]]
// CHECK: %[[BW:.*]] = arith.extf %[[B]]
// CHECK: %[[AB:.*]] = arith.mulf %[[AW]], %[[BW]] : f32
// CHECK: arith.addf %[[SUM]], %[[AB]] : f32
// CHECK: return %[[DOT]]
// BUFFER-LABEL: @row_dot
// BUFFER-NOT: tensor
// BUFFER: return
func.func @row_dot(%dout: tensor<64x40xbf16>, %out: tensor<64x40xbf16>) -> tensor<64x1xf32> {
  %d = varlen.row_dot %dout, %out : tensor<64x40xbf16> -> tensor<64x1xf32>
  return %d : tensor<64x1xf32>
}

// -----

// What gradients need of rows.

// CHECK-LABEL: @statistics
// CHECK-SAME: (%[[DOT:.*]]: tensor<64x1xf32>, %[[LSE:.*]]: tensor<64x1xf32>, %[[DLSE:.*]]: tensor<64x1xf32>, %[[SINK:.*]]: tensor<64x1xf32>)
// In units of log2, less where it is coarse, and +inf without a key.
// CHECK: %[[ROWLSE:.*]] = linalg.generic {{.*}} ins(%[[LSE]] :
// CHECK: arith.mulf
// CHECK: arith.cmpf oge
// CHECK: arith.cmpf oeq
// CHECK: %[[DELTA:.*]] = linalg.generic {{.*}} ins(%[[LSE]], %[[DOT]], %[[DLSE]] :
// CHECK: arith.subf
// CHECK: arith.cmpf oeq
// CHECK: %[[TERM:.*]] = linalg.generic {{.*}} ins(%[[SINK]], %[[ROWLSE]], %[[DELTA]] :
// CHECK: math.exp2
// CHECK: return %[[ROWLSE]], %[[DELTA]], %[[TERM]]
func.func @statistics(%dot: tensor<64x1xf32>, %lse: tensor<64x1xf32>, %dlse: tensor<64x1xf32>, %sink: tensor<64x1xf32>) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
  %l, %d, %t = varlen.online_statistics %dot, %lse dlse(%dlse : tensor<64x1xf32>) sink(%sink : tensor<64x1xf32>) : tensor<64x1xf32>
  return %l, %d, %t : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>
}

// -----

// Queries are columns; without a sink there are two results.

// CHECK-LABEL: @statistics_kq
// CHECK-COUNT-2: linalg.generic {{.*}}["parallel", "parallel"]} {{.*}} outs(%{{.*}} : tensor<1x16xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @statistics_kq(%dot: tensor<1x16xf32>, %lse: tensor<1x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>) {
  %l, %d = varlen.online_statistics %dot, %lse natural : tensor<1x16xf32>
  return %l, %d : tensor<1x16xf32>, tensor<1x16xf32>
}

// -----

// The maximum stays while it is at most 8 too small: of larger - m = 32 log2(e) a
// factor of 0.25 * log2(e) makes 8.
// CHECK-LABEL: @threshold
// CHECK-SAME: %[[M:[^:]*]]: tensor<64x1xf32>, %{{[^:]*}}: tensor<64x1xf32>)
// CHECK-DAG: %[[LIMIT:.*]] = arith.constant 22.18070{{[0-9]*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[M]], %{{.*}} : tensor<64x1xf32>, tensor<64x1xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[TOP:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[LARGER:.*]] = arith.maxnumf %[[X]], %[[TOP]]
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[LARGER]], %[[X]]
// CHECK-NEXT: %[[FAR:.*]] = arith.cmpf ogt, %[[D]], %[[LIMIT]]
// CHECK-NEXT: %[[KEPT:.*]] = arith.select %[[FAR]], %[[LARGER]], %[[X]]
// CHECK-NEXT: linalg.yield %[[KEPT]]
// CHECK-NOT: varlen.rescale
// CHECK: return
// SKIP-LABEL: @threshold
// SKIP-SAME: %[[ACC:[^:]*]]: tensor<64x96xf32>
// SKIP: %[[ACC1:.*]] = varlen.rescale %[[ACC]] by %{{.*}} : tensor<64x96xf32>, tensor<64x1xf32>
// SKIP: linalg.contract {{.*}} outs(%[[ACC1]] : tensor<64x96xf32>)
func.func @threshold(%q: tensor<64x64xbf16>, %k: tensor<32x64xbf16>, %v: tensor<32x96xbf16>, %acc: tensor<64x96xf32>, %m: tensor<64x1xf32>, %l: tensor<64x1xf32>) -> (tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) {
  %r:3 = varlen.online_attn qk ins(%q, %k, %v : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x96xbf16>)
      outs(%acc, %m, %l : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 0.25 {rescale_threshold = 8 : i64}
  return %r#0, %r#1, %r#2 : tensor<64x96xf32>, tensor<64x1xf32>, tensor<64x1xf32>
}

// -----

// The gradient of p is written behind the scores.
// CHECK-LABEL: @scores_first
// CHECK-COUNT-2: linalg.contract
// CHECK: math.exp2
// SKIP-LABEL: @scores_first
func.func @scores_first(%q: tensor<64x64xbf16>, %k: tensor<32x64xbf16>, %lse: tensor<64x1xf32>, %dq: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %k, %q, %lse, %lse : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x1xf32>, tensor<64x1xf32>)
      dq(%dq : tensor<64x64xf32>) scale 0.125 {scores_first}
  return %r : tensor<64x64xf32>
}
