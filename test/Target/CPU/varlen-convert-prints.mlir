// RUN: varlen-opt %s --varlen-convert-prints --split-input-file | FileCheck %s

// CHECK-DAG: llvm.func @printF32(f32)
// CHECK-DAG: llvm.func @printNewline()
// CHECK-LABEL: func @print(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: llvm.call @printF32(%[[X]])
// CHECK: llvm.call @printNewline()
func.func @print(%x: f32) {
  vector.print %x : f32
  return
}

// -----

// CHECK-LABEL: func @none(
// CHECK: vector.extract
func.func @none(%x: vector<2xf32>) -> f32 {
  %y = vector.extract %x[1] : f32 from vector<2xf32>
  return %y : f32
}
