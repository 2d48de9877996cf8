// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=generic | FileCheck %s

// The product is rounded.
// CHECK-LABEL: func @f(
// CHECK-SAME: %[[A:.*]]: vector<4xf32>, %[[B:.*]]: vector<4xf32>, %[[C:.*]]: vector<4xf32>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[C]]
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[S]], %[[B]]
// CHECK-NEXT: %[[R:.*]] = arith.addf %[[Q]], %[[A]]
// CHECK-NEXT: return %[[R]]
func.func @f(%a: vector<4xf32>, %b: vector<4xf32>, %c: vector<4xf32>) -> vector<4xf32> {
  %0 = math.fma %a, %b, %c : vector<4xf32>
  %1 = vector.fma %0, %b, %a : vector<4xf32>
  return %1 : vector<4xf32>
}
