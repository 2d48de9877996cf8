// RUN: varlen-opt %s --varlen-expand-hide | FileCheck %s

// CHECK-LABEL: @hide
// CHECK-SAME: (%[[X:.*]]: f32, %[[ZERO:.*]]: f32, %[[KEY:.*]]: i32, %[[LO:.*]]: i32, %[[HI:.*]]: i32, %[[K0:.*]]: i32)
// CHECK: %[[J:.*]] = arith.addi %[[KEY]], %[[K0]] : i32
// CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[LO]] : i32
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[J]], %[[HI]] : i32
// CHECK: %[[B:.*]] = arith.select %[[BEFORE]], %[[X]], %[[ZERO]] : f32
// CHECK: %[[A:.*]] = arith.select %[[AFTER]], %[[B]], %[[ZERO]] : f32
// CHECK: return %[[A]]
func.func @hide(%x: f32, %zero: f32, %key: i32, %lo: i32, %hi: i32, %k0: i32) -> f32 {
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : f32
  return %y : f32
}

// CHECK-LABEL: @unless
// CHECK-SAME: (%[[X:[^:]*]]: f64, {{.*}}, %[[WHOLE:[^:]*]]: i1)
// CHECK: %[[A:.*]] = arith.select
// CHECK: %[[A:.*]] = arith.select
// CHECK: %[[Y:.*]] = arith.select %[[WHOLE]], %[[X]], %[[A]] : f64
// CHECK: return %[[Y]]
func.func @unless(%x: f64, %zero: f64, %key: i32, %lo: i32, %hi: i32, %k0: i32, %whole: i1) -> f64 {
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) unless(%whole) : f64
  return %y : f64
}
