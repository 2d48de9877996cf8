// RUN: varlen-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(kernel-pack-narrow)))' | FileCheck %s

gpu.module @kernels {
  // The first of a pair is the low half of the register.
  // CHECK-LABEL: gpu.func @fragments
  // CHECK: %[[E:.*]]:4 = vector.to_elements %{{.*}} : vector<1x1x2x2xf32>
  // CHECK: %[[A:.*]] = nvvm.convert.f32x2.to.bf16x2 %[[E]]#1, %[[E]]#0 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
  // CHECK: %[[A2:.*]]:2 = vector.to_elements %[[A]]
  // CHECK: %[[B:.*]] = nvvm.convert.f32x2.to.bf16x2 %[[E]]#3, %[[E]]#2
  // CHECK: %[[B2:.*]]:2 = vector.to_elements %[[B]]
  // CHECK: vector.from_elements %[[A2]]#0, %[[A2]]#1, %[[B2]]#0, %[[B2]]#1 : vector<1x1x2x2xbf16>
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.f16x2
  // CHECK-NOT: arith.truncf
  gpu.func @fragments(%x: vector<1x1x2x2xf32>, %a: memref<?x1x8xbf16>, %b: memref<?x1x8xf16>, %i: index) kernel {
    %y = arith.truncf %x : vector<1x1x2x2xf32> to vector<1x1x2x2xbf16>
    %z = arith.truncf %x : vector<1x1x2x2xf32> to vector<1x1x2x2xf16>
    kernel.store %y to %a rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xbf16> to memref<?x1x8xbf16>
    kernel.store %z to %b rows(%i, %i, %i, %i) valid(%i) : vector<1x1x2x2xf16> to memref<?x1x8xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @stay
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  // CHECK: arith.truncf %{{.*}} : vector<3xf32> to vector<3xbf16>
  gpu.func @stay(%x: f32, %y: vector<3xf32>, %a: memref<bf16>, %b: memref<3xbf16>) kernel {
    %z = arith.truncf %x : f32 to bf16
    memref.store %z, %a[] : memref<bf16>
    %w = arith.truncf %y : vector<3xf32> to vector<3xbf16>
    %c0 = arith.constant 0 : index
    vector.store %w, %b[%c0] : memref<3xbf16>, vector<3xbf16>
    gpu.return
  }
}
