// RUN: varlen-opt %s --varlen-call-libm | FileCheck %s

// CHECK-LABEL: func @f(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NEXT: %[[Y:.*]] = call @erff(%[[X]]) : (f32) -> f32
// CHECK-NEXT: return %[[Y]]
func.func @f(%x: f32) -> f32 {
  %y = math.erf %x : f32
  return %y : f32
}

// Lanes one by one.
// CHECK-LABEL: func @lanes(
// CHECK-COUNT-2: call @cbrt({{.*}}) : (f64) -> f64
func.func @lanes(%x: vector<2xf64>) -> vector<2xf64> {
  %y = math.cbrt %x : vector<2xf64>
  return %y : vector<2xf64>
}

// Through the wider type.
// CHECK-LABEL: func @narrow(
// CHECK: arith.extf
// CHECK-NEXT: call @asinhf(
// CHECK-NEXT: arith.truncf
func.func @narrow(%x: f16) -> f16 {
  %y = math.asinh %x : f16
  return %y : f16
}

// LLVM has these.
// CHECK-LABEL: func @kept(
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.tanh
func.func @kept(%x: f32) -> f32 {
  %y = math.exp %x : f32
  %z = math.tanh %y : f32
  return %z : f32
}
