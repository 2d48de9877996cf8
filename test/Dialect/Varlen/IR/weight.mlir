// RUN: varlen-opt %s | varlen-opt | FileCheck %s

// CHECK-LABEL: @weight
// CHECK: varlen.weight %{{.*}} by %{{.*}} plus %{{.*}} : f32
// CHECK: varlen.weight %{{.*}} by %{{.*}} plus %{{.*}} {varlen.exp2_degree = 11 : i64} : f64
func.func @weight(%s: f32, %c: f32, %m: f32, %wide: f64) -> (f32, f64) {
  %p = varlen.weight %s by %c plus %m : f32
  %x = varlen.weight %wide by %wide plus %wide {varlen.exp2_degree = 11 : i64} : f64
  return %p, %x : f32, f64
}
