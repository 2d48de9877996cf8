// RUN: varlen-opt %s --varlen-legalize-for-cpu=target=avx2 | FileCheck %s

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

// LLVM has powers by i32 alone; which have the sign of x is known of the integer.
// CHECK-LABEL: func @powers(
// CHECK-SAME: %[[X:.*]]: f32, %[[N:.*]]: i64
// CHECK-DAG: %[[SIZE:.*]] = math.absf %[[X]]
// CHECK-DAG: %[[FLOAT:.*]] = arith.sitofp %[[N]] : i64 to f32
// CHECK: %[[POWER:.*]] = math.powf %[[SIZE]], %[[FLOAT]]
// CHECK: %[[ODD:.*]] = arith.trunci %[[N]] : i64 to i1
// CHECK: %[[SIGNED:.*]] = math.copysign %[[POWER]], %[[X]]
// CHECK: arith.select %[[ODD]], %[[SIGNED]], %[[POWER]]
func.func @powers(%x: f32, %n: i64) -> f32 {
  %y = math.fpowi %x, %n : f32, i64
  return %y : f32
}

// In a type that has large integers.
// CHECK-LABEL: func @narrow_powers(
// CHECK: math.powf {{.*}} : vector<4xf32>
// CHECK: arith.truncf {{.*}} : vector<4xf32> to vector<4xf16>
func.func @narrow_powers(%x: vector<4xf16>, %n: vector<4xi8>) -> vector<4xf16> {
  %y = math.fpowi %x, %n : vector<4xf16>, vector<4xi8>
  return %y : vector<4xf16>
}

// CHECK-LABEL: func @cube(
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: pow
func.func @cube(%x: f32) -> f32 {
  %n = arith.constant 3 : i8
  %y = math.fpowi %x, %n : f32, i8
  return %y : f32
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
