// RUN: varlen-opt %s --varlen-online-softmax --canonicalize --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-online-softmax --canonicalize --linalg-generalize-named-ops --one-shot-bufferize="bufferize-function-boundaries" --split-input-file | FileCheck %s --check-prefix=BUFFER

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
// CHECK: %[[S:.*]] = linalg.contract indexing_maps = [#[[$QD]], #[[$KD]], #[[$OUT]]] ins(%[[Q]], %[[K]]
// CHECK-SAME: -> tensor<64x32xf32>
// CHECK: %[[TOP:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]]], iterator_types = ["parallel", "reduction"]} ins(%[[S]]
// CHECK: arith.maxnumf
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[TOP]]
// CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %[[C]]
// p is rounded to bf16: m is the very maximum.
// CHECK-NOT: math.ceil
// CHECK: arith.maxnumf %{{.*}}, %[[X]]
// CHECK: %[[MINUS:.*]] = linalg.generic {{.*}} ins(%[[NEW]]
// CHECK: arith.negf
// CHECK: %[[ALPHA:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[MINUS]]
// CHECK: arith.addf
// CHECK: math.exp2
// CHECK: %[[LS:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[ALPHA]]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[S]], %[[MINUS]]
// CHECK: %[[Y:.*]] = math.fma %{{.*}}, %[[C]], %{{.*}}
// CHECK: math.exp2 %[[Y]]
// CHECK: %[[LNEW:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[P]] {{.*}} outs(%[[LS]]
// CHECK: arith.addf
// p is rounded for the second product, after it was summed.
// CHECK: %[[PB:.*]] = linalg.generic {{.*}} ins(%[[P]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[SCALED:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], {{.*}}} ins(%[[ACC]], %[[ALPHA]]
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
// hide keys before anything else happens.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$COL:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-DAG: #[[$RD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$DC:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$DR:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: @kq_limits
// CHECK-SAME: (%[[Q:.*]]: tensor<64x24xf32>, %[[K:.*]]: tensor<?x64xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[LO:.*]]: tensor<1x24xi32>, %[[HI:.*]]: tensor<1x24xi32>, %[[K0:.*]]: i32, %[[WHOLE:.*]]: i1
// CHECK-DAG: %[[NINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[S:.*]] = linalg.contract indexing_maps = [#[[$RD]], #[[$DC]], {{.*}}] ins(%[[K]], %[[Q]]
// CHECK-SAME: -> tensor<?x24xf32>
// CHECK: %[[SM:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$COL]], #[[$COL]], #[[$ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[S]], %[[LO]], %[[HI]]
// CHECK: ^bb0(%[[IN:.*]]: f32, %[[LOW:.*]]: i32, %[[HIGH:.*]]: i32, %{{.*}}: f32):
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[CAST:.*]] = arith.index_cast %[[ROW]]
// CHECK: %[[J:.*]] = arith.addi %[[CAST]], %[[K0]]
// CHECK-DAG: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[LOW]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.cmpi slt, %[[J]], %[[HIGH]]
// CHECK: %[[B:.*]] = arith.select %[[BEFORE]], %[[IN]], %[[NINF]]
// CHECK: %[[A:.*]] = arith.select %[[AFTER]], %[[B]], %[[NINF]]
// CHECK: arith.select %[[WHOLE]], %[[IN]], %[[A]]
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$COL]]], iterator_types = ["reduction", "parallel"]} ins(%[[SM]]
// CHECK: %[[CEIL:.*]] = math.ceil
// CHECK: arith.maxnumf %{{.*}}, %[[CEIL]]
// CHECK: math.exp2 %{{.*}} {varlen.exp2_degree = 4 : i64}
// CHECK: math.exp2 %{{.*}} {varlen.exp2_degree = 4 : i64}
// CHECK: linalg.contract indexing_maps = [#[[$DR]], #[[$DC]], {{.*}}] ins(%[[V]]
// BUFFER-LABEL: @kq_limits
// BUFFER-NOT: tensor
// BUFFER: return
func.func @kq_limits(%q: tensor<64x24xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %lo: tensor<1x24xi32>, %hi: tensor<1x24xi32>, %k0: i32, %whole: i1, %acc: tensor<32x24xf32>, %m: tensor<1x24xf32>, %l: tensor<1x24xf32>) -> (tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) {
  %r:3 = varlen.online_attn kq ins(%q, %k, %v : tensor<64x24xf32>, tensor<?x64xf32>, tensor<?x32xf32>) limits(%lo, %hi, %k0 : tensor<1x24xi32>, tensor<1x24xi32>, i32) unless(%whole) outs(%acc, %m, %l : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>) scale 0.125 {varlen.exp2_degree = 4 : i64}
  return %r#0, %r#1, %r#2 : tensor<32x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>
}
