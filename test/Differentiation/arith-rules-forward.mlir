// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=mulf mode=forward" \
// RUN:   --varlen-differentiate="function=subf mode=forward wrt=1" \
// RUN:   --varlen-differentiate="function=narrow mode=forward" \
// RUN:   --varlen-differentiate="function=select mode=forward wrt=0" \
// RUN:   --varlen-differentiate="function=maximumf mode=forward" \
// RUN:   --varlen-differentiate="function=powf mode=forward wrt=1" \
// RUN:   --varlen-differentiate="function=floor mode=forward" \
// RUN:   --varlen-differentiate="function=unused mode=forward" \
// RUN:   | FileCheck %s

// The terms of both factors, with the partial derivatives of the reverse mode.
// CHECK-LABEL: func.func @mulf_jvp(
// CHECK-SAME: %[[X:.*]]: vector<4xf32>, %[[Y:.*]]: vector<4xf32>, %[[TX:.*]]: vector<4xf32>, %[[TY:.*]]: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
// CHECK-NEXT: %[[Z:.*]] = arith.mulf %[[X]], %[[Y]] : vector<4xf32>
// CHECK-NEXT: %[[A:.*]] = arith.mulf %[[TX]], %[[Y]] : vector<4xf32>
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[TY]], %[[X]] : vector<4xf32>
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK-NEXT: return %[[Z]], %[[C]] : vector<4xf32>, vector<4xf32>
func.func @mulf(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
  %z = arith.mulf %x, %y : vector<4xf32>
  return %z : vector<4xf32>
}

// Nothing of an operand without a tangent.
// CHECK-LABEL: func.func @subf_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[T:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: %[[Z:.*]] = arith.subf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[A:.*]] = arith.negf %[[T]] : f32
// CHECK-NEXT: return %[[Z]], %[[A]] : f32, f32
func.func @subf(%x: f32, %y: f32) -> f32 {
  %z = arith.subf %x, %y : f32
  return %z : f32
}

// A conversion of the tangent, the same way.
// CHECK-LABEL: func.func @narrow_jvp(
// CHECK: %[[T:.*]] = arith.truncf %arg1 : f32 to bf16
// CHECK-NEXT: return %{{.*}}, %[[T]] : bf16, bf16
func.func @narrow(%x: f32) -> bf16 {
  %z = arith.truncf %x : f32 to bf16
  return %z : bf16
}

// By selection, not by a product with 0.
// CHECK-LABEL: func.func @select_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[C:.*]]: i1, %[[T:.*]]: f32) -> (f32, f32) {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[A:.*]] = arith.select %[[C]], %[[T]], %[[ZERO]] : f32
// CHECK-NEXT: return %{{.*}}, %[[A]] : f32, f32
func.func @select(%x: f32, %y: f32, %c: i1) -> f32 {
  %z = arith.select %c, %x, %y : f32
  return %z : f32
}

// The mean of both where they are equal.
// CHECK-LABEL: func.func @maximumf_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[TX:.*]]: f32, %[[TY:.*]]: f32) -> (f32, f32) {
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: %[[H:.*]] = arith.mulf %[[TX]], %[[HALF]] : f32
// CHECK-NEXT: %[[E:.*]] = arith.cmpf oeq, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[R:.*]] = arith.select %[[E]], %[[H]], %{{.*}} : f32
// CHECK-NEXT: %[[G:.*]] = arith.cmpf ogt, %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[A:.*]] = arith.select %[[G]], %[[TX]], %[[R]] : f32
// CHECK: %[[B:.*]] = arith.select %{{.*}}, %[[TY]], %{{.*}} : f32
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT: return %{{.*}}, %[[S]] : f32, f32
func.func @maximumf(%x: f32, %y: f32) -> f32 {
  %z = arith.maximumf %x, %y : f32
  return %z : f32
}

// x^y log x by y, and nothing of the derivative by x.
// CHECK-LABEL: func.func @powf_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[T:.*]]: f32) -> (f32, f32) {
// CHECK: %[[Z:.*]] = math.powf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[L:.*]] = math.log %[[X]] : f32
// CHECK-NEXT: %[[A:.*]] = arith.mulf %[[Z]], %[[L]] : f32
// CHECK-NOT: math.powf
// CHECK: return
func.func @powf(%x: f32, %y: f32) -> f32 {
  %z = math.powf %x, %y : f32
  return %z : f32
}

// A step has the tangent 0.
// CHECK-LABEL: func.func @floor_jvp(
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: return %{{.*}}, %[[ZERO]] : f32, f32
func.func @floor(%x: f32) -> f32 {
  %z = math.floor %x : f32
  return %z : f32
}

// What no result depends on needs no rule.
// CHECK-LABEL: func.func @unused_jvp(
// CHECK: math.cos
func.func @unused(%x: f32) -> f32 {
  %z = math.sin %x : f32
  %w = math.clampf %x to [%z, %z] : f32
  return %z : f32
}
