// RUN: varlen-opt %s | varlen-opt | FileCheck %s

// CHECK-LABEL: @hide
// CHECK: varlen.hide %{{.*}} with %{{.*}} at %{{.*}} limits(%{{.*}}, %{{.*}}, %{{.*}}) : f32
// CHECK: varlen.hide %{{.*}} with %{{.*}} at %{{.*}} limits(%{{.*}}, %{{.*}}, %{{.*}}) unless(%{{.*}}) : f32
func.func @hide(%x: f32, %zero: f32, %key: index, %lo: i32, %hi: i32, %k0: i32, %whole: i1) -> f32 {
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : f32
  %z = varlen.hide %y with %zero at %key limits(%lo, %hi, %k0) unless(%whole) : f32
  return %z : f32
}
