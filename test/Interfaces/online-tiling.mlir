// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// Blocks of keys carry the state on; the limits, and the keys that all see, follow
// the first key. Queries are
// rows of the state in this orientation.

// CHECK-LABEL: func @qk(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<32x64xf32>, %[[K:[a-z0-9]+]]: tensor<?x64xf32>, %[[V:[a-z0-9]+]]: tensor<?x48xf32>, %[[LO:[a-z0-9]+]]: tensor<32x1xi32>, %[[HI:[a-z0-9]+]]: tensor<32x1xi32>, %[[K0:[a-z0-9]+]]: i32, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[ACC:[a-z0-9]+]]: tensor<32x48xf32>, %[[M:[a-z0-9]+]]: tensor<32x1xf32>, %[[L:[a-z0-9]+]]: tensor<32x1xf32>
// CHECK:         scf.for %[[I:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c16 iter_args(%[[ACC1:.*]] = %[[ACC]], %[[M1:.*]] = %[[M]], %[[L1:.*]] = %[[L]])
// CHECK:           scf.for %[[J:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c8 iter_args(%[[ACC2:.*]] = %[[ACC1]], %[[M2:.*]] = %[[M1]], %[[L2:.*]] = %[[L1]])
// CHECK:             %[[KEYS:[a-z0-9]+]] = affine.min
// CHECK-DAG:         %[[Q_TILE:.*]] = tensor.extract_slice %[[Q]][%[[I]], 0] [16, 64]
// CHECK-DAG:         %[[K_TILE:.*]] = tensor.extract_slice %[[K]][%[[J]], 0] [%[[KEYS]], 64]
// CHECK-DAG:         %[[V_TILE:.*]] = tensor.extract_slice %[[V]][%[[J]], 0] [%[[KEYS]], 48]
// CHECK-DAG:         %[[LO_TILE:.*]] = tensor.extract_slice %[[LO]][%[[I]], 0] [16, 1]
// CHECK-DAG:         %[[HI_TILE:.*]] = tensor.extract_slice %[[HI]][%[[I]], 0] [16, 1]
// CHECK-DAG:         %[[ACC_TILE:.*]] = tensor.extract_slice %[[ACC2]][%[[I]], 0] [16, 48]
// CHECK-DAG:         %[[M_TILE:.*]] = tensor.extract_slice %[[M2]][%[[I]], 0] [16, 1]
// CHECK-DAG:         %[[L_TILE:.*]] = tensor.extract_slice %[[L2]][%[[I]], 0] [16, 1]
// CHECK:             %[[FROM:.*]] = arith.subi %[[BEGIN]], %[[J]] : index
// CHECK:             %[[TO:.*]] = arith.subi %[[END]], %[[J]] : index
// CHECK:             %[[J32:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK:             %[[FIRST:.*]] = arith.addi %[[K0]], %[[J32]] : i32
// CHECK:             varlen.online_attn qk ins(%[[Q_TILE]], %[[K_TILE]], %[[V_TILE]] : {{.*}}) limits(%[[LO_TILE]], %[[HI_TILE]], %[[FIRST]] : {{.*}}) seen(%[[FROM]], %[[TO]]) outs(%[[ACC_TILE]], %[[M_TILE]], %[[L_TILE]] : {{.*}}) scale 1.250000e-01 {some.attribute}
// CHECK-COUNT-3:     tensor.insert_slice
func.func @qk(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf32>, %lo: tensor<32x1xi32>, %hi: tensor<32x1xi32>, %k0: i32, %begin: index, %end: index,
              %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) -> (tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>) {
  %0:3 = varlen.online_attn qk ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
    limits(%lo, %hi, %k0 : tensor<32x1xi32>, tensor<32x1xi32>, i32) seen(%begin, %end)
    outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125 {some.attribute}
  return %0#0, %0#1, %0#2 : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["varlen.online_attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %step tile_sizes [16, 8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Queries are columns of the state here: panels, as a CPU takes them.

// CHECK-LABEL: func @kq(
// CHECK:         scf.forall (%{{.*}}) in (2) shared_outs(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[I:.*]] = affine.apply
// CHECK-DAG:       tensor.extract_slice %{{.*}}[%[[I]], 0] [16, 64]
// CHECK-DAG:       %[[ACC_TILE:.*]] = tensor.extract_slice %[[ACC]][0, %[[I]]] [48, 16]
// CHECK-DAG:       %[[M_TILE:.*]] = tensor.extract_slice %[[M]][0, %[[I]]] [1, 16]
// CHECK-DAG:       %[[L_TILE:.*]] = tensor.extract_slice %[[L]][0, %[[I]]] [1, 16]
// CHECK:           varlen.online_attn kq ins({{.*}} : tensor<16x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>) outs(%[[ACC_TILE]], %[[M_TILE]], %[[L_TILE]]
// CHECK-COUNT-3:   tensor.parallel_insert_slice
func.func @kq(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf32>, %acc: tensor<48x32xf32>, %m: tensor<1x32xf32>, %l: tensor<1x32xf32>)
    -> (tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) {
  %0:3 = varlen.online_attn kq ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
    outs(%acc, %m, %l : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 0.125
  return %0#0, %0#1, %0#2 : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["varlen.online_attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %step tile_sizes [16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A step joins the loop of what reads its acc, and takes the queries' producer
// along; all keys are in each tile.

// CHECK-LABEL: func @fuse(
// CHECK-NOT:     varlen.online_attn
// CHECK:         scf.for
// CHECK:           linalg.tanh {{.*}} -> tensor<8x64xf32>
// CHECK:           varlen.online_attn qk ins({{.*}} : tensor<8x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
// CHECK:           linalg.exp {{.*}} -> tensor<8x48xf32>
// CHECK-NOT:     varlen.online_attn
func.func @fuse(%x: tensor<32x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x48xf32>, %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) -> tensor<32x48xf32> {
  %q = linalg.tanh ins(%x : tensor<32x64xf32>) outs(%x : tensor<32x64xf32>) -> tensor<32x64xf32>
  %0:3 = varlen.online_attn qk ins(%q, %k, %v : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x48xf32>)
    outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125
  %empty = tensor.empty() : tensor<32x48xf32>
  %exp = linalg.exp ins(%0#0 : tensor<32x48xf32>) outs(%empty : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %exp : tensor<32x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %exp tile_sizes [8] {apply_cleanup}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Parts of the keys run in parallel, each with a state of its own, stacked; the
// state of the step takes them up one by one.

// CHECK-LABEL: func @parts(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<32x64xf32>, %[[K:[a-z0-9]+]]: tensor<40x64xbf16>, %[[ACC:[a-z0-9]+]]: tensor<32x64xf32>, %[[M:[a-z0-9]+]]: tensor<32x1xf32>, %[[L:[a-z0-9]+]]: tensor<32x1xf32>
// CHECK-DAG:     %[[ACC0:.*]] = linalg.fill {{.*}} -> tensor<3x32x64xf32>
// CHECK-DAG:     %[[M0:.*]] = linalg.fill {{.*}} -> tensor<3x32x1xf32>
// CHECK:         %[[PARTS:.*]]:3 = scf.forall (%[[I:.*]]) {{.*}} shared_outs(%[[ACCS:.*]] = %[[ACC0]], %[[MS:.*]] = %[[M0]], %[[LS:.*]] = %{{.*}})
// CHECK-DAG:       tensor.extract_slice %[[K]][%{{.*}}, 0] [%{{.*}}, 64]
// CHECK-DAG:       %[[A:.*]] = tensor.extract_slice %[[ACCS]][%[[PART:.*]], 0, 0] [1, 32, 64] [1, 1, 1] : tensor<3x32x64xf32> to tensor<32x64xf32>
// CHECK-DAG:       %[[B:.*]] = tensor.extract_slice %[[MS]][%[[PART]], 0, 0] [1, 32, 1]
// CHECK:           %[[R:.*]], %{{.*}}, %{{.*}} = varlen.online_attn qk {{.*}} outs(%[[A]], %[[B]],
// CHECK:           tensor.parallel_insert_slice %[[R]] into %[[ACCS]][%[[PART]], 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf32> into tensor<3x32x64xf32>
// CHECK:         %[[S:.*]]:3 = scf.for %[[J:.*]] = %c0 to %c3 step %c1 iter_args(%[[SA:.*]] = %[[ACC]], %[[SM:.*]] = %[[M]], %[[SL:.*]] = %[[L]])
// CHECK:           %[[PA:.*]] = tensor.extract_slice %[[PARTS]]#0[%[[J]], 0, 0]
// CHECK:           varlen.online_merge qk %[[SA]], %[[SM]], %[[SL]] with %[[PA]], %{{.*}}, %{{.*}} scale 1.250000e-01 rounded
// CHECK:         return %[[S]]#0
func.func @parts(%q: tensor<32x64xf32>, %k: tensor<40x64xbf16>, %acc: tensor<32x64xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) -> tensor<32x64xf32> {
  %empty = tensor.empty() : tensor<32x64xbf16>
  %qb = linalg.copy ins(%q : tensor<32x64xf32>) outs(%empty : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %0:3 = varlen.online_attn qk ins(%qb, %k, %k : tensor<32x64xbf16>, tensor<40x64xbf16>, tensor<40x64xbf16>)
    outs(%acc, %m, %l : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125
  return %0#0 : tensor<32x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["varlen.online_attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill:3, %split, %merge, %loop = transform.structured.tile_reduction_using_forall %step by tile_sizes = [0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
