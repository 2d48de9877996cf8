// RUN: varlen-opt %s --varlen-decompose-attn | FileCheck %s

// Gradients of tables in the oracle: one loop nest over queries and keys for each table, with all
// lookups in its body. Loops one after another that carry the same tensor would take upstream's
// bufferization, which asks each of them for the type of the one before, a time that doubles with
// each.
// CHECK-LABEL: func.func @lookups(
// CHECK: scf.for {{.*}} -> (tensor<?x2x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<2x37xf32>, tensor<2x?xf32>)
// CHECK-NOT: scf.for
// The region is computed once, with the cotangents of three entries.
// CHECK: %[[A:.*]] = scf.for %[[Q:.*]] = %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<2x37xf32>) {
// CHECK-NEXT: %{{.*}} = arith.constant
// CHECK-NEXT: %{{.*}} = arith.constant
// CHECK-NEXT: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<2x37xf32>) {
// CHECK-COUNT-1: math.tanh
// CHECK: tensor.extract %[[SUM]][
// CHECK: %[[ONE:.*]] = tensor.insert %{{.*}} into %[[SUM]][
// CHECK-NOT: math.tanh
// CHECK: %[[TWO:.*]] = tensor.insert %{{.*}} into %[[ONE]][
// CHECK: %[[THREE:.*]] = tensor.insert %{{.*}} into %[[TWO]][
// CHECK: scf.yield %[[THREE]]
// CHECK: scf.yield
// Another table, of keys: the row of a key is counted from the first one of the sequence.
// CHECK: scf.for {{.*}} -> (tensor<2x?xf32>) {
// CHECK: scf.for {{.*}} -> (tensor<2x?xf32>) {
// CHECK: math.tanh
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK: tensor.insert %{{.*}} into %{{.*}}[%{{.*}}, %[[ROW]]]
// CHECK-NOT: scf.for
// CHECK: return
func.func @lookups(%q: tensor<?x2x16xf32>, %lse: tensor<2x?xf32>, %cu: tensor<?xi32>,
                   %bias: tensor<2x37xf32>, %of_key: tensor<2x?xf32>)
    -> (tensor<?x2x16xf32>, tensor<2x37xf32>, tensor<2x?xf32>) {
  %0:5 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%bias, %of_key)
      {wrt_captures = array<i64: 0, 1>}
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<?x2x16xf32>, tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<2x37xf32>,
         tensor<2x?xf32>)
      -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<2x37xf32>,
          tensor<2x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %t: !varlen.table<f32>, %u: !varlen.table<f32, keys>) {
        %a = varlen.lookup %t[%i] : !varlen.table<f32>
        %b = varlen.lookup %t[%j] : !varlen.table<f32>
        %d = arith.subi %i, %j : i32
        %c = varlen.lookup %t[%d] : !varlen.table<f32>
        %k = varlen.lookup %u[%j] : !varlen.table<f32, keys>
        %s0 = arith.addf %s, %a : f32
        %s1 = arith.mulf %s0, %b : f32
        %s2 = arith.addf %s1, %c : f32
        %s3 = arith.addf %s2, %k : f32
        %new = math.tanh %s3 : f32
        varlen.yield %new : f32
      }
  return %0#0, %0#3, %0#4 : tensor<?x2x16xf32>, tensor<2x37xf32>, tensor<2x?xf32>
}
