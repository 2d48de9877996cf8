// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-expand-math)))' | FileCheck %s

// Vectors that no registers hold stay as they are.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @huge
  // CHECK: math.exp2 %{{.*}} : vector<2147483648x2xf32>
  // CHECK: math.exp2 %{{.*}} : vector<[4]xf32>
  gpu.func @huge(%x: vector<2147483648x2xf32>, %y: vector<[4]xf32>, %p: memref<f32>) kernel {
    %a = math.exp2 %x : vector<2147483648x2xf32>
    %b = vector.extract %a[0, 1] : f32 from vector<2147483648x2xf32>
    memref.store %b, %p[] : memref<f32>
    %c = math.exp2 %y : vector<[4]xf32>
    %d = vector.extract %c[0] : f32 from vector<[4]xf32>
    memref.store %d, %p[] : memref<f32>
    gpu.return
  }
}
