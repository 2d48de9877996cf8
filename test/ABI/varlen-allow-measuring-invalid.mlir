// RUN: varlen-opt %s --varlen-allow-measuring --verify-diagnostics

// expected-note @+1 {{the name stands for this}}
func.func private @varlen_is_measuring() -> i32

// expected-error @+1 {{needs the runtime function 'varlen_is_measuring' of type '() -> i1'}}
func.func @f(%x: memref<f32>, %y: memref<f32>) {
  memref.copy %x, %y : memref<f32> to memref<f32>
  return
}
