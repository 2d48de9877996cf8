// RUN: varlen-opt %s --varlen-assign-schedule --split-input-file --verify-diagnostics | FileCheck %s

// A region that is a mask becomes one before tiles are chosen.
// CHECK-LABEL: func.func @causal
// CHECK: varlen.attn %{{.*}} {mask = #varlen.mask<causal>, {{.*}}} : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
func.func @causal(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %visible = arith.cmpi sge, %i, %j : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// What intervals know nothing of is said.
// CHECK-LABEL: func.func @dilated
func.func @dilated(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  // expected-remark @below {{blocks of hidden keys may be visited: intervals know nothing of 'arith.remsi', which says whether a key is visible}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %three = arith.constant 3 : i32
        %zero = arith.constant 0 : i32
        %rest = arith.remsi %j, %three : i32
        %visible = arith.cmpi eq, %rest, %zero : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// Of positions and quotients everything is known.
// CHECK-LABEL: func.func @chunked
func.func @chunked(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 30 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}
