// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=recurrence mode=forward" \
// RUN:   --varlen-differentiate="function=partly mode=forward" \
// RUN:   --varlen-differentiate="function=branch mode=forward" \
// RUN:   | FileCheck %s

// A loop whose values depend on those that it carries, which the reverse mode
// refuses: values and tangents are carried by one loop.
// CHECK-LABEL: func.func @recurrence_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[N:.*]]: index, %[[T:.*]]: f32) -> (f32, f32) {
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[A:.*]] = %[[X]], %[[TA:.*]] = %[[T]]) -> (f32, f32) {
// CHECK-NEXT:   %[[S:.*]] = math.sin %[[A]] : f32
// CHECK-NEXT:   %[[C:.*]] = math.cos %[[A]] : f32
// CHECK-NEXT:   %[[TS:.*]] = arith.mulf %[[TA]], %[[C]] : f32
// CHECK-NEXT:   %[[M:.*]] = arith.mulf %[[S]], %[[X]] : f32
// CHECK-NEXT:   %[[B:.*]] = arith.mulf %[[TS]], %[[X]] : f32
// CHECK-NEXT:   %[[D:.*]] = arith.mulf %[[T]], %[[S]] : f32
// CHECK-NEXT:   %[[TM:.*]] = arith.addf %[[B]], %[[D]] : f32
// CHECK-NEXT:   scf.yield %[[M]], %[[TM]] : f32, f32
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1 : f32, f32
func.func @recurrence(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 {
    %s = math.sin %a : f32
    %m = arith.mulf %s, %x : f32
    scf.yield %m : f32
  }
  return %r : f32
}

// What does not vary has no tangent; what begins to vary in an iteration has.
// CHECK-LABEL: func.func @partly_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[N:.*]]: index, %[[T:.*]]: f32) -> (f32, f32, f32, f32) {
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[TB:.*]] = %[[ZERO]]) -> (f32, f32, f32) {
// CHECK:   %[[NEXT:.*]] = arith.addf %[[TB]], %[[T]] : f32
// CHECK:   scf.yield %{{.*}}, %{{.*}}, %[[NEXT]] : f32, f32, f32
func.func @partly(%x: f32, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %one, %b = %one) -> (f32, f32) {
    %c = arith.addf %a, %one : f32
    %d = arith.addf %b, %x : f32
    scf.yield %c, %d : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}

// A branch returns values and tangents; one that passes on what does not vary
// returns a zero.
// CHECK-LABEL: func.func @branch_jvp(
// CHECK-SAME: %[[X:.*]]: f32, %[[C:.*]]: i1, %[[T:.*]]: f32) -> (f32, f32) {
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[R:.*]]:2 = scf.if %[[C]] -> (f32, f32) {
// CHECK:   scf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield %{{.*}}, %[[ZERO]] : f32, f32
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1 : f32, f32
func.func @branch(%x: f32, %c: i1) -> f32 {
  %one = arith.constant 1.0 : f32
  %r = scf.if %c -> f32 {
    %s = math.exp %x : f32
    scf.yield %s : f32
  } else {
    scf.yield %one : f32
  }
  return %r : f32
}
